package org.sluice.flink.transport;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.apache.flink.runtime.io.network.buffer.NetworkBuffer;
import org.apache.flink.shaded.netty4.io.netty.buffer.ByteBuf;
import org.apache.flink.shaded.netty4.io.netty.buffer.Unpooled;
import org.apache.flink.shaded.netty4.io.netty.channel.Channel;
import org.apache.flink.shaded.netty4.io.netty.channel.ChannelHandlerContext;
import org.apache.flink.shaded.netty4.io.netty.channel.ChannelInboundHandlerAdapter;
import org.apache.flink.shaded.netty4.io.netty.channel.EventLoop;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.wire.ClientHandshake;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.FrameDecoder;
import org.sluice.flink.wire.Message;
import org.sluice.flink.wire.MessageType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One connection to one worker and the channels on it, reads and writes alike. All its state belongs
 * to the thread of its netty channel. What comes for a channel that is gone is dropped.
 */
public final class WorkerConnection extends ChannelInboundHandlerAdapter
    implements FrameDecoder.Handler, ClientHandshake.Listener {
  private static final Logger LOG = LoggerFactory.getLogger(WorkerConnection.class);
  private static final long HANDSHAKE_TIMEOUT_MS = 10_000;
  private static final long IDLE_TIMEOUT_MS = 60_000;
  private static final int IDLE_PINGS_MAX = 3;

  private final WorkerAddress address;
  private final long heartbeatIntervalMs;
  private final ClientHandshake handshake;
  private final FrameDecoder decoder;
  private final CompletableFuture<WorkerConnection> ready = new CompletableFuture<>();
  private final Map<Integer, WorkerChannel> channels = new HashMap<>();
  private final Runnable onRetired;

  private Channel netty;
  private EventLoop loop;
  private ScheduledFuture<?> timer;
  private int lastChannelId;
  private boolean isFlushPending;
  private boolean isRetired;
  private ShuffleException failure;
  private long deadAfterMs;
  private long pingSequence;
  private long lastReceivedNanos = System.nanoTime();
  private long lastPingNanos = lastReceivedNanos;
  private long unusedSinceNanos = lastReceivedNanos;
  private volatile long bufferSizeBytes;

  WorkerConnection(
      WorkerAddress address,
      ClientHandshake.Facts facts,
      long heartbeatIntervalMs,
      Runnable onRetired) {
    this.address = address;
    this.heartbeatIntervalMs = heartbeatIntervalMs;
    this.deadAfterMs = IDLE_PINGS_MAX * heartbeatIntervalMs;
    this.handshake = new ClientHandshake(facts, this, this);
    this.decoder = handshake.decoder();
    this.onRetired = onRetired;
  }

  /** Done when the handshake is. */
  CompletableFuture<WorkerConnection> ready() {
    return ready;
  }

  /** The largest buffer size that a data set may have there. */
  public long bufferSizeBytes() {
    return bufferSizeBytes;
  }

  /** A channel, to be opened. */
  public WorkerChannel channel(ChannelHandler handler) {
    return new WorkerChannel(this, handler);
  }

  void open(WorkerChannel channel, Message first) {
    boolean isAccepted =
        execute(
            () -> {
              if (channel.isClosed) {
                return;
              }
              if (failure != null || isRetired) {
                channel.isClosed = true;
                channel.handler.onClosed(failure == null ? ended() : failure);
                return;
              }
              channel.id = ++lastChannelId;
              channels.put(channel.id, channel);
              write(channel, first, null, null);
            });
    if (!isAccepted) {
      channel.handler.onClosed(ended());
    }
  }

  /** Ends it; every channel hears so. */
  void close(ShuffleException reason) {
    execute(() -> fail(reason));
  }

  // --- in the thread of the connection from here on ---

  boolean execute(Runnable action) {
    if (loop.inEventLoop()) {
      action.run();
      return true;
    }
    try {
      loop.execute(action);
      return true;
    } catch (RejectedExecutionException error) {
      LOG.debug("the threads of the plugin have ended", error);
      return false;
    }
  }

  void write(WorkerChannel channel, Message message, byte[] control, ByteBuf data) {
    if (channel.isClosed || channel.id == 0) {
      if (data != null) {
        data.release();
      }
      return;
    }
    writeFrame(channel.id, message, control, data);
  }

  private void writeFrame(int channelId, Message message, byte[] control, ByteBuf data) {
    int bodyLength = 0;
    if (control != null) {
      bodyLength = control.length;
    } else if (data != null) {
      bodyLength = data.readableBytes();
    }
    netty.write(Unpooled.wrappedBuffer(message.encode(channelId, bodyLength)), netty.voidPromise());
    if (control != null && control.length > 0) {
      netty.write(Unpooled.wrappedBuffer(control), netty.voidPromise());
    } else if (data != null) {
      if (data instanceof NetworkBuffer) {
        ((NetworkBuffer) data).setAllocator(netty.alloc());
      }
      netty.write(data, netty.voidPromise());
    }
    if (!isFlushPending) {
      isFlushPending = true;
      loop.execute(
          () -> {
            isFlushPending = false;
            netty.flush();
          });
    }
  }

  void forget(WorkerChannel channel) {
    channel.isClosed = true;
    channels.remove(channel.id);
    if (channels.isEmpty()) {
      unusedSinceNanos = System.nanoTime();
      if (isRetired) {
        fail(ended());
      }
    }
  }

  @Override
  public void handlerAdded(ChannelHandlerContext context) {
    netty = context.channel();
    loop = netty.eventLoop();
  }

  @Override
  public void channelActive(ChannelHandlerContext context) {
    handshake.start();
    long tickMs = Math.max(10, heartbeatIntervalMs / 2);
    timer = loop.scheduleAtFixedRate(this::tick, tickMs, tickMs, TimeUnit.MILLISECONDS);
    loop.schedule(
        () -> {
          if (!ready.isDone()) {
            fail(unreachable("it did not finish the handshake in time"));
          }
        },
        HANDSHAKE_TIMEOUT_MS,
        TimeUnit.MILLISECONDS);
  }

  @Override
  public void channelRead(ChannelHandlerContext context, Object received) {
    ByteBuf bytes = (ByteBuf) received;
    lastReceivedNanos = System.nanoTime();
    try {
      if (failure == null) {
        decoder.push(bytes);
      }
    } catch (RuntimeException error) {
      fail(ShuffleException.of(error, ErrorCode.PROTOCOL));
    } finally {
      bytes.release();
    }
  }

  @Override
  public void channelInactive(ChannelHandlerContext context) {
    fail(ended());
  }

  @Override
  public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
    fail(unreachable(String.valueOf(cause.getMessage())));
  }

  @Override
  public void send(Message message) {
    writeFrame(0, message, null, null);
  }

  @Override
  public void onReady(Message helloAck) {
    bufferSizeBytes = helloAck.number("bufferSizeBytes");
    deadAfterMs =
        IDLE_PINGS_MAX * Math.max(heartbeatIntervalMs, helloAck.number("heartbeatIntervalMs"));
    unusedSinceNanos = System.nanoTime();
    ready.complete(this);
  }

  @Override
  public ByteBuf dataBody(Message message, int channelId, int bodyLength) {
    WorkerChannel channel = channels.get(channelId);
    return channel == null ? null : channel.handler.dataBody(bodyLength);
  }

  @Override
  public void onData(Message message, int channelId, ByteBuf body) {
    WorkerChannel channel = channels.get(channelId);
    if (channel == null) {
      body.release();
    } else {
      channel.handler.onData(body);
    }
  }

  @Override
  public void onMessage(Message message, int channelId, byte[] body) {
    if (channelId == 0) {
      onConnectionMessage(message);
      return;
    }
    WorkerChannel channel = channels.get(channelId);
    if (channel == null) {
      return;
    }
    if (message.type() == MessageType.CLOSE_CHANNEL) {
      write(channel, new Message(MessageType.CHANNEL_CLOSED), null, null);
      forget(channel);
      channel.handler.onClosed(
          unreachable(
              "it closed the channel: " + ErrorCode.ofWire(message.integer("code")).name()));
      return;
    }
    channel.handler.onMessage(message);
  }

  private void onConnectionMessage(Message message) {
    switch (message.type()) {
      case PING:
        send(new Message(MessageType.PONG, message.number("sequence")));
        break;
      case GO_AWAY:
        retire();
        if (channels.isEmpty()) {
          fail(ended());
        }
        break;
      case ERROR:
        fail(
            new ShuffleException(
                ErrorCode.ofWire(message.integer("code")),
                "worker " + address + ": " + message.text("text")));
        break;
      default:
        break;
    }
  }

  private void tick() {
    long now = System.nanoTime();
    long silentMs = TimeUnit.NANOSECONDS.toMillis(now - lastReceivedNanos);
    if (silentMs > deadAfterMs) {
      fail(unreachable("nothing was heard of it for " + silentMs + " ms"));
      return;
    }
    boolean isUnused =
        channels.isEmpty() && now - unusedSinceNanos > TimeUnit.MILLISECONDS.toNanos(IDLE_TIMEOUT_MS);
    if (ready.isDone() && isUnused) {
      fail(ended());
    } else if (ready.isDone()
        && silentMs >= heartbeatIntervalMs / 2
        && now - lastPingNanos >= TimeUnit.MILLISECONDS.toNanos(heartbeatIntervalMs / 2)) {
      lastPingNanos = now;
      send(new Message(MessageType.PING, pingSequence++));
    }
  }

  private void retire() {
    if (!isRetired) {
      isRetired = true;
      onRetired.run();
    }
  }

  private void fail(ShuffleException reason) {
    if (failure != null) {
      return;
    }
    failure = reason;
    retire();
    if (timer != null) {
      timer.cancel(false);
    }
    decoder.close();
    netty.close();
    ready.completeExceptionally(reason);
    for (WorkerChannel channel : new ArrayList<>(channels.values())) {
      channel.isClosed = true;
      channel.handler.onClosed(reason);
    }
    channels.clear();
  }

  private ShuffleException ended() {
    return unreachable("the connection to it has ended");
  }

  private ShuffleException unreachable(String why) {
    return new ShuffleException(
        ErrorCode.WORKER_UNREACHABLE, "worker " + address + ": " + why);
  }

  @Override
  public String toString() {
    return address.toString();
  }
}
