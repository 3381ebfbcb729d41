package org.sluice.flink.wire;

/**
 * One message: its type and the values of its fields in their order. Numbers are Long, texts, ids
 * and choices String, the others as their names say; null where a value may be left out.
 */
public final class Message {
  private final MessageType type;
  private final Object[] values;

  public Message(MessageType type, Object... values) {
    if (values.length != type.fieldCount()) {
      throw new IllegalArgumentException(type.wireName() + " has " + type.fieldCount() + " fields");
    }
    this.type = type;
    this.values = values;
  }

  public MessageType type() {
    return type;
  }

  public Object get(String field) {
    return values[type.positionOf(field)];
  }

  public long number(String field) {
    return (Long) get(field);
  }

  public int integer(String field) {
    return Math.toIntExact(number(field));
  }

  public boolean flag(String field) {
    return (Boolean) get(field);
  }

  public String text(String field) {
    return (String) get(field);
  }

  public byte[] bytes(String field) {
    return (byte[]) get(field);
  }

  /** The frame up to its body: length, type, flags, headerLength, channel, header. */
  public byte[] encode(int channelId, int bodyLength) {
    HeaderWriter header = new HeaderWriter();
    for (int position = 0; position < values.length; position++) {
      write(header, type.field(position), values[position]);
    }
    HeaderWriter frame = new HeaderWriter();
    frame.u32(8L + header.length() + bodyLength);
    frame.u8(type.id());
    frame.u8(0);
    frame.u16(header.length());
    frame.u32(channelId);
    frame.raw(header.toByteArray(), header.length());
    return frame.toByteArray();
  }

  /** The inverse, for a header; what lies behind the known fields is skipped. */
  static Message decode(MessageType type, byte[] bytes, int offset, int length) {
    HeaderReader reader = new HeaderReader(bytes, offset, length, type.wireName());
    Object[] values = new Object[type.fieldCount()];
    for (int position = 0; position < values.length; position++) {
      values[position] = read(reader, type.field(position));
    }
    return new Message(type, values);
  }

  private static void write(HeaderWriter header, Field field, Object value) {
    switch (field.kind()) {
      case ENUMERATION:
        header.u8(field.numberOf((String) value));
        break;
      case U16:
        header.u16(((Number) value).intValue());
        break;
      case U32:
        header.u32(((Number) value).longValue());
        break;
      case U64:
      case BITS64:
        header.u64(((Number) value).longValue());
        break;
      case OPTIONAL_U64:
        header.u64(value == null ? -1 : ((Number) value).longValue());
        break;
      case BOOL:
        header.u8((Boolean) value ? 1 : 0);
        break;
      case TEXT:
        header.text((String) value, field.lengthMax());
        break;
      case BYTES:
        header.bytes((byte[]) value);
        break;
      case ID:
        header.id((String) value);
        break;
      case OPTIONAL_ID:
        header.optionalId((String) value);
        break;
      case PARTITION_KEY:
        header.partitionKey((PartitionKey) value);
        break;
      case ALLOCATION_ID:
        header.allocationId((AllocationId) value);
        break;
      default:
        throw new IllegalStateException();
    }
  }

  private static Object read(HeaderReader header, Field field) {
    switch (field.kind()) {
      case ENUMERATION:
        String choice = field.choice(header.u8());
        if (choice == null) {
          throw header.fail(field.name() + " has an unknown value");
        }
        return choice;
      case U16:
        return (long) header.u16();
      case U32:
        return header.u32();
      case U64:
        return header.u64();
      case BITS64:
        return header.bits64();
      case OPTIONAL_U64:
        return header.optionalU64();
      case BOOL:
        return header.bool();
      case TEXT:
        return header.text(field.lengthMax());
      case BYTES:
        return header.bytes(field.lengthMax());
      case ID:
        return header.id();
      case OPTIONAL_ID:
        return header.optionalId();
      case PARTITION_KEY:
        return header.partitionKey();
      case ALLOCATION_ID:
        return header.allocationId();
      default:
        throw new IllegalStateException();
    }
  }

  @Override
  public String toString() {
    return type.wireName();
  }
}
