package org.sluice.flink.wire;

import org.apache.flink.shaded.netty4.io.netty.buffer.ByteBuf;

/** The client's side of Hello and Authenticate. One per connection. */
public final class ClientHandshake implements FrameDecoder.Handler {
  /** What the client says of itself and of whom it means. */
  public static final class Facts {
    final String clusterId;
    final String expectedWorkerId;
    final String token;
    final long heartbeatIntervalMs;
    final String software;

    /** No token: null. */
    public Facts(
        String clusterId,
        String expectedWorkerId,
        String token,
        long heartbeatIntervalMs,
        String software) {
      this.clusterId = clusterId;
      this.expectedWorkerId = expectedWorkerId;
      this.token = token;
      this.heartbeatIntervalMs = heartbeatIntervalMs;
      this.software = software;
    }
  }

  /** Where its frames go and what it makes known. */
  public interface Listener {
    void send(Message message);

    /** The connection is ready; with what the worker said of itself. */
    void onReady(Message helloAck);
  }

  private final Facts facts;
  private final Listener listener;
  private final FrameRules rules = new FrameRules(true);
  private final FrameDecoder.Handler next;
  private Message helloAck;

  /** After the handshake every frame goes to {@code next}. */
  public ClientHandshake(Facts facts, Listener listener, FrameDecoder.Handler next) {
    this.facts = facts;
    this.listener = listener;
    this.next = next;
  }

  public FrameDecoder decoder() {
    return new FrameDecoder(rules, this);
  }

  public void start() {
    listener.send(
        new Message(
            MessageType.HELLO,
            (long) Wire.MAGIC,
            (long) Wire.VERSION_MIN,
            (long) Wire.VERSION_MAX,
            0L,
            facts.clusterId,
            facts.expectedWorkerId,
            facts.heartbeatIntervalMs,
            facts.software));
  }

  @Override
  public ByteBuf dataBody(
      Message message, int channelId, int bodyLength) {
    return next.dataBody(message, channelId, bodyLength);
  }

  @Override
  public void onData(
      Message message,
      int channelId,
      ByteBuf body) {
    next.onData(message, channelId, body);
  }

  @Override
  public void onMessage(Message message, int channelId, byte[] body) {
    if (message.type() == MessageType.HELLO_ACK) {
      onHelloAck(message);
    } else if (message.type() == MessageType.AUTHENTICATED) {
      ready();
    } else {
      next.onMessage(message, channelId, body);
    }
  }

  private void onHelloAck(Message message) {
    if ((int) message.number("magic") != Wire.MAGIC) {
      throw new ProtocolException("who answers speaks another protocol: check the address");
    }
    if (message.number("versionMin") > Wire.VERSION_MAX
        || message.number("versionMax") < Wire.VERSION_MIN) {
      throw new ProtocolException(
          ErrorCode.UNSUPPORTED_VERSION,
          "the worker speaks versions "
              + message.number("versionMin")
              + " to "
              + message.number("versionMax")
              + ", this client "
              + Wire.VERSION_MIN
              + " to "
              + Wire.VERSION_MAX);
    }
    if (facts.clusterId != null && !facts.clusterId.equals(message.text("clusterId"))) {
      throw new ProtocolException(
          ErrorCode.UNAUTHENTICATED,
          "the worker belongs to cluster " + message.text("clusterId"));
    }
    if (!facts.expectedWorkerId.equals(message.text("workerId"))) {
      throw new ProtocolException(
          ErrorCode.WORKER_CHANGED, "worker " + message.text("workerId") + " answers there");
    }
    helloAck = message;
    byte[] challenge = message.bytes("challenge");
    if (challenge.length == 0) {
      ready();
      return;
    }
    if (facts.token == null) {
      throw new ProtocolException(
          ErrorCode.UNAUTHENTICATED,
          "the worker wants the cluster's token: set remote-shuffle.token-file");
    }
    rules.enter(FrameRules.Phase.AUTHENTICATION);
    byte[] answer =
        Authentication.answer(
            facts.token, challenge, message.text("clusterId"), message.text("workerId"));
    listener.send(new Message(MessageType.AUTHENTICATE, "hmacSha256", answer));
  }

  private void ready() {
    rules.enter(FrameRules.Phase.READY);
    listener.onReady(helloAck);
  }
}
