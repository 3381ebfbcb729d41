package org.sluice.flink.wire;

import java.util.ArrayList;
import java.util.List;

/** One field of a message: its name and its layout, by the wire's name for it. */
final class Field {
  /** How a value stands in a header. */
  enum Kind {
    ENUMERATION,
    U16,
    U32,
    U64,
    OPTIONAL_U64,
    BITS64,
    BOOL,
    TEXT,
    BYTES,
    ID,
    OPTIONAL_ID,
    PARTITION_KEY,
    ALLOCATION_ID
  }

  private final String name;
  private final Kind kind;
  private final int lengthMax;
  private final List<String> choices = new ArrayList<>();

  Field(String name, String wireType, int since) {
    if (since != 1) {
      throw new IllegalArgumentException("defaults of later fields are not made yet: " + name);
    }
    this.name = name;
    int open = wireType.indexOf('(');
    String word = open < 0 ? wireType : wireType.substring(0, open);
    String argument = open < 0 ? "" : wireType.substring(open + 1, wireType.length() - 1);
    this.kind = kindOf(word);
    this.lengthMax = kind == Kind.TEXT || kind == Kind.BYTES ? Integer.parseInt(argument) : 0;
    if (kind == Kind.ENUMERATION) {
      for (String choice : argument.split(", ")) {
        String[] parts = choice.split(" ");
        while (choices.size() < Integer.parseInt(parts[0])) {
          choices.add(null);
        }
        choices.add(parts[1]);
      }
    }
  }

  private static Kind kindOf(String word) {
    switch (word) {
      case "u8":
        return Kind.ENUMERATION;
      case "u16":
        return Kind.U16;
      case "u32":
        return Kind.U32;
      case "u64":
        return Kind.U64;
      case "u64?":
        return Kind.OPTIONAL_U64;
      case "bits64":
        return Kind.BITS64;
      case "bool":
        return Kind.BOOL;
      case "text":
        return Kind.TEXT;
      case "bytes":
        return Kind.BYTES;
      case "id":
        return Kind.ID;
      case "id?":
        return Kind.OPTIONAL_ID;
      case "partitionKey":
        return Kind.PARTITION_KEY;
      case "allocationId":
        return Kind.ALLOCATION_ID;
      default:
        throw new IllegalArgumentException("no such layout: " + word);
    }
  }

  String name() {
    return name;
  }

  Kind kind() {
    return kind;
  }

  int lengthMax() {
    return lengthMax;
  }

  /** Name of the enumeration's number; null when there is none. */
  String choice(int number) {
    return number < choices.size() ? choices.get(number) : null;
  }

  int numberOf(String choice) {
    return choices.indexOf(choice);
  }
}
