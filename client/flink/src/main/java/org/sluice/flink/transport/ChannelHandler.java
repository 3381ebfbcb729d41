package org.sluice.flink.transport;

import org.apache.flink.shaded.netty4.io.netty.buffer.ByteBuf;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.wire.Message;

/**
 * What the owner of a channel hears, always in the thread of the connection, which it must not
 * block. Nothing after {@link #onClosed} or after it closed the channel itself.
 */
public interface ChannelHandler {
  /** Memory for a body of data; null: skip it. */
  ByteBuf dataBody(int bodyLength);

  /** A whole body; the memory is the handler's. */
  void onData(ByteBuf body);

  void onMessage(Message message);

  /** The connection ended, and with it the channel. */
  void onClosed(ShuffleException error);
}
