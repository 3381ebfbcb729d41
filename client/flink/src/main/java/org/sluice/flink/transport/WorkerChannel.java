package org.sluice.flink.transport;

import org.apache.flink.shaded.netty4.io.netty.buffer.ByteBuf;
import org.sluice.flink.wire.Message;
import org.sluice.flink.wire.MessageType;

/** One logical channel of a connection. Its methods may be called from any thread. */
public final class WorkerChannel {
  private final WorkerConnection connection;
  final ChannelHandler handler;
  /** Set and read in the connection's thread; 0: not opened yet. */
  int id;
  boolean isClosed;

  WorkerChannel(WorkerConnection connection, ChannelHandler handler) {
    this.connection = connection;
    this.handler = handler;
  }

  /** Opens it with its first message; anything wrong comes by {@code onClosed}. */
  public void open(Message first) {
    connection.open(this, first);
  }

  public void send(Message message) {
    connection.execute(() -> connection.write(this, message, null, null));
  }

  public void send(Message message, byte[] body) {
    connection.execute(() -> connection.write(this, message, body, null));
  }

  /** The memory is released when it has been sent, or can't be. */
  public void send(Message message, ByteBuf body) {
    connection.execute(() -> connection.write(this, message, null, body));
  }

  /** Gives the channel up and tells the worker so. Idempotent. */
  public void close() {
    connection.execute(
        () -> {
          if (!isClosed && id != 0) {
            connection.write(this, new Message(MessageType.CLOSE_CHANNEL, 0L), null, null);
          }
          connection.forget(this);
        });
  }

  /** After its last frame. Idempotent. */
  public void forget() {
    connection.execute(() -> connection.forget(this));
  }

  public String describe() {
    return connection.toString();
  }
}
