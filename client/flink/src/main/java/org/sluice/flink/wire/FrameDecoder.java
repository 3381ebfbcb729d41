package org.sluice.flink.wire;

import org.apache.flink.shaded.netty4.io.netty.buffer.ByteBuf;

/**
 * Finds the frames in a stream of bytes that arrives in any pieces. Bodies of data go straight into
 * the memory that the handler gives; a frame that nobody wants is skipped by its length, and the
 * stream goes on. Throws {@link ProtocolException}; after that nothing more may be pushed. One per
 * connection, used by its thread alone.
 */
public final class FrameDecoder {
  private static final int PREFIX_LENGTH = 12;
  private static final long FRAME_LENGTH_MAX =
      8L
          + Wire.HEADER_LENGTH_MAX
          + Math.max(Wire.CONTROL_BODY_LENGTH_MAX, Wire.DATA_BODY_LENGTH_MAX);

  /** What a decoder tells. */
  public interface Handler {
    /** Memory for a body of data, writable from its writer index on; null: skip the body. */
    ByteBuf dataBody(Message message, int channelId, int bodyLength);

    /** A whole body; the memory is the handler's again. */
    void onData(Message message, int channelId, ByteBuf body);

    void onMessage(Message message, int channelId, byte[] body);
  }

  private enum Stage {
    PREFIX,
    HEADER,
    BODY,
    DATA,
    SKIP,
    CLOSED
  }

  private static final byte[] NOTHING = new byte[0];

  private final FrameRules rules;
  private final Handler handler;
  private final byte[] prefix = new byte[PREFIX_LENGTH];

  private Stage stage = Stage.PREFIX;
  private byte[] target = prefix;
  private int filled;
  private int needed = PREFIX_LENGTH;
  private MessageType type;
  private int channelId;
  private int bodyLength;
  private Message message;
  private ByteBuf data;

  FrameDecoder(FrameRules rules, Handler handler) {
    this.rules = rules;
    this.handler = handler;
  }

  /** Takes everything readable. */
  public void push(ByteBuf bytes) {
    while (bytes.isReadable() && stage != Stage.CLOSED) {
      int length = Math.min(bytes.readableBytes(), needed - filled);
      switch (stage) {
        case DATA:
          data.writeBytes(bytes, length);
          break;
        case SKIP:
          bytes.skipBytes(length);
          break;
        default:
          bytes.readBytes(target, filled, length);
          break;
      }
      filled += length;
      if (filled == needed) {
        onFilled();
      }
    }
  }

  /** Gives back the memory of a body that is partly received. Idempotent. */
  public void close() {
    stage = Stage.CLOSED;
    ByteBuf unfinished = data;
    data = null;
    if (unfinished != null) {
      unfinished.release();
    }
  }

  private void onFilled() {
    switch (stage) {
      case PREFIX:
        onPrefix();
        break;
      case HEADER:
        onHeader();
        break;
      case BODY:
        deliver(target);
        break;
      case DATA:
        ByteBuf body = data;
        data = null;
        Message of = message;
        enter(Stage.PREFIX, prefix, PREFIX_LENGTH);
        handler.onData(of, channelId, body);
        break;
      default:
        enter(Stage.PREFIX, prefix, PREFIX_LENGTH);
        break;
    }
  }

  private void enter(Stage next, byte[] into, int length) {
    if (stage == Stage.CLOSED) {
      return;
    }
    stage = next;
    target = into;
    filled = 0;
    needed = length;
  }

  private void onPrefix() {
    HeaderReader reader = new HeaderReader(prefix, 0, PREFIX_LENGTH, "frame");
    long length = reader.u32();
    type = MessageType.ofId(reader.u8());
    reader.u8();
    int headerLength = reader.u16();
    channelId = (int) reader.u32();
    if (length > FRAME_LENGTH_MAX) {
      throw fail("its length " + length + " is above the limit");
    }
    if (headerLength > Wire.HEADER_LENGTH_MAX) {
      throw fail("its header of " + headerLength + " bytes is above the limit");
    }
    bodyLength = (int) length - 8 - headerLength;
    if (bodyLength < 0) {
      throw fail("its length " + length + " is less than its header takes");
    }
    checkBody();
    rules.admit(type, channelId);
    if (type == null) {
      skip((int) length - 8);
    } else if (headerLength == 0) {
      target = NOTHING;
      needed = 0;
      onHeader();
    } else {
      enter(Stage.HEADER, new byte[headerLength], headerLength);
    }
  }

  private void checkBody() {
    if (type == null) {
      return;
    }
    switch (type.bodyKind()) {
      case NONE:
        if (bodyLength > 0) {
          throw fail("it has a body, but may have none");
        }
        break;
      case CONTROL:
        if (bodyLength > Wire.CONTROL_BODY_LENGTH_MAX) {
          throw fail("its body of " + bodyLength + " bytes is above the limit");
        }
        break;
      default:
        if (bodyLength == 0 || bodyLength > Wire.DATA_BODY_LENGTH_MAX) {
          throw fail("its body of " + bodyLength + " bytes is outside the limits");
        }
        break;
    }
  }

  private void onHeader() {
    message = Message.decode(type, target, 0, needed);
    if (type.bodyKind() != MessageType.BodyKind.DATA) {
      if (bodyLength == 0) {
        deliver(NOTHING);
      } else {
        enter(Stage.BODY, new byte[bodyLength], bodyLength);
      }
      return;
    }
    ByteBuf memory = handler.dataBody(message, channelId, bodyLength);
    if (memory == null) {
      skip(bodyLength);
    } else if (stage == Stage.CLOSED) {
      memory.release();
    } else if (memory.maxCapacity() - memory.writerIndex() < bodyLength) {
      memory.release();
      throw fail("its body of " + bodyLength + " bytes is larger than its buffer");
    } else {
      data = memory;
      enter(Stage.DATA, NOTHING, bodyLength);
    }
  }

  private void skip(int length) {
    if (length == 0) {
      enter(Stage.PREFIX, prefix, PREFIX_LENGTH);
    } else {
      enter(Stage.SKIP, NOTHING, length);
    }
  }

  private void deliver(byte[] body) {
    Message of = message;
    message = null;
    enter(Stage.PREFIX, prefix, PREFIX_LENGTH);
    handler.onMessage(of, channelId, body);
  }

  private ProtocolException fail(String what) {
    String name = type == null ? "a frame of unknown type" : type.wireName();
    return new ProtocolException(
        name + " on channel " + Integer.toUnsignedString(channelId) + ": " + what);
  }
}
