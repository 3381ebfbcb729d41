package org.sluice.flink.support;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.flink.shaded.netty4.io.netty.buffer.ByteBuf;
import org.apache.flink.shaded.netty4.io.netty.buffer.Unpooled;
import org.sluice.flink.transport.WorkerAddress;
import org.sluice.flink.wire.FrameDecoder;
import org.sluice.flink.wire.Message;
import org.sluice.flink.wire.MessageType;
import org.sluice.flink.wire.Wire;
import org.sluice.flink.wire.WorkerSide;

/**
 * A worker that does what the test says: it shakes hands and answers pings by itself, everything else
 * that comes is the test's to look at and to answer.
 */
public final class FakeWorker implements AutoCloseable {
  public static final String CLUSTER = "test";

  /** What the worker says of itself in the handshake, and whether it says anything. */
  public static final class Manners {
    public long magic = Wire.MAGIC;
    public long versionMin = Wire.VERSION_MIN;
    public long versionMax = Wire.VERSION_MAX;
    public String clusterId = CLUSTER;
    public long bufferSizeBytes = 32_768;
    public long heartbeatIntervalMs = 10_000;
    /** Null: no authentication. */
    public String token;
    public volatile boolean isSilent;
    public volatile boolean isDeafToPings;
  }

  /** One frame of a client. */
  public static final class Frame {
    public final Message message;
    public final int channelId;
    public final byte[] body;
    private final Connection connection;

    Frame(Connection connection, Message message, int channelId, byte[] body) {
      this.connection = connection;
      this.message = message;
      this.channelId = channelId;
      this.body = body;
    }

    /** On the channel of the frame. */
    public void reply(MessageType type, Object... values) throws IOException {
      reply(new byte[0], type, values);
    }

    public void reply(byte[] body, MessageType type, Object... values) throws IOException {
      connection.send(channelId, new Message(type, values), body);
    }

    /** Ends the connection that it came on. */
    public void cutConnection() throws IOException {
      connection.socket.close();
    }
  }

  public final Manners manners;
  private final String workerId;
  private final ServerSocket server;
  private final List<Connection> connections = new CopyOnWriteArrayList<>();
  private final LinkedBlockingQueue<Frame> frames = new LinkedBlockingQueue<>();

  public FakeWorker(String workerId) throws IOException {
    this(workerId, new Manners());
  }

  public FakeWorker(String workerId, Manners manners) throws IOException {
    this(workerId, manners, 0);
  }

  public FakeWorker(String workerId, Manners manners, int port) throws IOException {
    this.workerId = workerId;
    this.manners = manners;
    this.server = new ServerSocket(port, 50, InetAddress.getLoopbackAddress());
    start("fake-worker", this::accept);
  }

  private static void start(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
  }

  public WorkerAddress address() {
    return new WorkerAddress(workerId, "127.0.0.1", server.getLocalPort());
  }

  public int port() {
    return server.getLocalPort();
  }

  /** How many connections were ever made to it. */
  public int connectionCount() {
    return connections.size();
  }

  private void accept() {
    try {
      while (true) {
        Connection connection = new Connection(server.accept());
        connections.add(connection);
        start("fake-worker-connection", connection::read);
      }
    } catch (IOException closed) {
      // The end of the test.
    }
  }

  /** The next frame that is not answered by itself. */
  public Frame awaitAny() throws Exception {
    Frame frame = frames.poll(Await.DEADLINE_MS, TimeUnit.MILLISECONDS);
    if (frame == null) {
      throw new AssertionError("nothing came");
    }
    return frame;
  }

  /** The same; fails unless it is of this type. */
  public Frame await(MessageType type) throws Exception {
    Frame frame = awaitAny();
    assertEquals(type, frame.message.type());
    return frame;
  }

  /** What has come and was not looked at. */
  public int frameCount() {
    return frames.size();
  }

  public void cutConnections() throws IOException {
    for (Connection connection : connections) {
      connection.socket.close();
    }
  }

  /** On the connection itself, of the last connection made. */
  public void send(MessageType type, Object... values) throws IOException {
    connections.get(connections.size() - 1).send(0, new Message(type, values), new byte[0]);
  }

  /** On any channel of the last connection, whether the client knows it or not. */
  public void sendOn(int channelId, byte[] body, MessageType type, Object... values)
      throws IOException {
    connections.get(connections.size() - 1).send(channelId, new Message(type, values), body);
  }

  @Override
  public void close() throws IOException {
    server.close();
    cutConnections();
  }

  private final class Connection implements FrameDecoder.Handler {
    final Socket socket;
    private final OutputStream out;
    private final WorkerSide side = new WorkerSide(this);
    private final byte[] challenge = {1, 2, 3, 4};

    Connection(Socket socket) throws IOException {
      this.socket = socket;
      this.out = socket.getOutputStream();
    }

    void read() {
      byte[] bytes = new byte[65_536];
      try {
        while (true) {
          int length = socket.getInputStream().read(bytes);
          if (length < 0) {
            return;
          }
          side.push(Unpooled.wrappedBuffer(bytes, 0, length));
        }
      } catch (IOException closed) {
        // By either side.
      }
    }

    synchronized void send(int channelId, Message message, byte[] body) throws IOException {
      out.write(message.encode(channelId, body.length));
      out.write(body);
      out.flush();
    }

    @Override
    public ByteBuf dataBody(Message message, int channelId, int bodyLength) {
      return Unpooled.buffer(bodyLength, bodyLength);
    }

    @Override
    public void onData(Message message, int channelId, ByteBuf body) {
      byte[] bytes = new byte[body.readableBytes()];
      body.readBytes(bytes);
      onMessage(message, channelId, bytes);
    }

    @Override
    public void onMessage(Message message, int channelId, byte[] body) {
      try {
        switch (message.type()) {
          case HELLO:
            shakeHands();
            break;
          case AUTHENTICATE:
            byte[] wanted =
                WorkerSide.answer(manners.token, challenge, manners.clusterId, workerId);
            side.ready();
            if (java.util.Arrays.equals(wanted, message.bytes("answer"))) {
              send(0, new Message(MessageType.AUTHENTICATED), new byte[0]);
            } else {
              send(0, new Message(MessageType.ERROR, 22L, false, "wrong", ""), new byte[0]);
            }
            break;
          case PING:
            if (!manners.isDeafToPings) {
              send(0, new Message(MessageType.PONG, message.number("sequence")), new byte[0]);
            }
            break;
          case PONG:
            break;
          default:
            frames.add(new Frame(this, message, channelId, body));
            break;
        }
      } catch (IOException closed) {
        // By either side.
      }
    }

    private void shakeHands() throws IOException {
      if (manners.isSilent) {
        return;
      }
      boolean hasToken = manners.token != null;
      if (hasToken) {
        side.expectAuthentication();
      } else {
        side.ready();
      }
      send(
          0,
          new Message(
              MessageType.HELLO_ACK,
              manners.magic,
              manners.versionMin,
              manners.versionMax,
              0L,
              manners.clusterId,
              workerId,
              1L,
              manners.heartbeatIntervalMs,
              manners.bufferSizeBytes,
              hasToken ? challenge : new byte[0],
              "fake"),
          new byte[0]);
    }
  }
}
