package org.sluice.flink.wire;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.sluice.flink.wire.WireVectors.hex;
import static org.sluice.flink.wire.WireVectors.key;
import static org.sluice.flink.wire.WireVectors.list;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.netty4.io.netty.buffer.ByteBuf;
import org.apache.flink.shaded.netty4.io.netty.buffer.Unpooled;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The codec against client/protocol/wire.json, both ways. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class GoldenVectorsTest {
  /** Receives everything and keeps it. */
  private static class Received implements FrameDecoder.Handler {
    final List<Message> messages = new ArrayList<>();
    final List<byte[]> bodies = new ArrayList<>();
    final List<Integer> channels = new ArrayList<>();

    @Override
    public ByteBuf dataBody(Message message, int channelId, int bodyLength) {
      return Unpooled.buffer(bodyLength, bodyLength);
    }

    @Override
    public void onData(Message message, int channelId, ByteBuf body) {
      byte[] bytes = new byte[body.readableBytes()];
      body.readBytes(bytes);
      body.release();
      onMessage(message, channelId, bytes);
    }

    @Override
    public void onMessage(Message message, int channelId, byte[] body) {
      messages.add(message);
      channels.add(channelId);
      bodies.add(body);
    }
  }

  List<JsonNode> messages() {
    return list(WireVectors.ROOT.get("messages"));
  }

  @ParameterizedTest
  @MethodSource("messages")
  @DisplayName("every message is encoded and decoded as the vector says")
  void message(JsonNode declared) {
    MessageType type = MessageType.ofId(declared.get("id").asInt());
    assertEquals(declared.get("name").asText(), type.wireName());
    for (JsonNode vector : list(declared.get("vectors"))) {
      Object[] values = valuesOf(type, vector.get("fields"));
      byte[] body = hex(vector.get("body").asText());
      int channelId = (int) vector.get("channelId").asLong();
      byte[] head = new Message(type, values).encode(channelId, body.length);
      assertEquals(vector.get("frame").asText(), hex(head) + hex(body));

      for (int piece : new int[] {1, 7, Integer.MAX_VALUE}) {
        Received received = decode(type, hex(vector.get("frame").asText()), piece);
        assertEquals(1, received.messages.size());
        assertEquals(channelId, received.channels.get(0));
        assertArrayEquals(body, received.bodies.get(0));
        Message message = received.messages.get(0);
        byte[] again = message.encode(channelId, body.length);
        assertArrayEquals(head, again);
      }
    }
  }

  private static Received decode(MessageType type, byte[] frame, int pieceLength) {
    Received received = new Received();
    boolean isClient = type.direction() == MessageType.Direction.WORKER_TO_CLIENT;
    FrameRules rules = new FrameRules(isClient);
    boolean isHandshake = type.ordinal() <= MessageType.AUTHENTICATED.ordinal();
    if (!isHandshake) {
      rules.enter(FrameRules.Phase.READY);
    } else if (type == MessageType.AUTHENTICATE || type == MessageType.AUTHENTICATED) {
      rules.enter(FrameRules.Phase.AUTHENTICATION);
    }
    FrameDecoder decoder = new FrameDecoder(rules, received);
    for (int start = 0; start < frame.length; start += Math.min(pieceLength, frame.length)) {
      int length = Math.min(pieceLength, frame.length - start);
      decoder.push(Unpooled.wrappedBuffer(frame, start, length));
    }
    return received;
  }

  private static Object[] valuesOf(MessageType type, JsonNode fields) {
    Object[] values = new Object[type.fieldCount()];
    Iterator<Map.Entry<String, JsonNode>> entries = fields.fields();
    while (entries.hasNext()) {
      Map.Entry<String, JsonNode> entry = entries.next();
      int position = type.positionOf(entry.getKey());
      values[position] = valueOf(type.field(position), entry.getValue());
    }
    return values;
  }

  private static Object valueOf(Field field, JsonNode node) {
    if (node.isNull()) {
      return null;
    }
    switch (field.kind()) {
      case U16:
      case U32:
      case U64:
      case OPTIONAL_U64:
        return node.asLong();
      case BITS64:
        return new BigInteger(node.asText()).longValue();
      case BOOL:
        return node.asBoolean();
      case BYTES:
        return hex(node.asText());
      case PARTITION_KEY:
        return key(node);
      case ALLOCATION_ID:
        return new AllocationId(
            node.get("managerEpoch").asLong(),
            node.get("jobEpoch").asLong(),
            node.get("sequence").asLong());
      default:
        return node.asText();
    }
  }

  @Test
  @DisplayName("the checksums of entries are those of the vectors")
  void entries() {
    for (JsonNode entry : list(WireVectors.ROOT.get("entries"))) {
      int checksum =
          new EntryChecksum(key(entry.get("key")))
              .of(
                  entry.get("regionIndex").asInt(),
                  (int) entry.get("subpartition").asLong(),
                  entry.get("position").asInt(),
                  entry.get("flags").asInt(),
                  entry.get("type").asInt(),
                  ByteBuffer.wrap(hex(entry.get("payload").asText())));
      assertEquals((int) entry.get("checksum").asLong(), checksum, entry.get("about").asText());
    }
  }

  @Test
  @DisplayName("partition lists are coded and decoded as the vectors say")
  void partitionLists() {
    for (JsonNode vector : list(WireVectors.ROOT.get("partitionLists"))) {
      List<PartitionList.Entry> entries = new ArrayList<>();
      for (JsonNode entry : list(vector.get("entries"))) {
        JsonNode start = entry.get("start");
        entries.add(
            new PartitionList.Entry(
                entry.get("index").asInt(),
                key(entry.get("key")),
                (int) entry.get("firstSubpartition").asLong(),
                (int) entry.get("lastSubpartition").asLong(),
                (int) start.get("regionIndex").asLong(),
                (int) start.get("subpartition").asLong(),
                start.get("byteOffset").asLong(),
                entry.get("isPending").asBoolean()));
      }
      List<String> bodies = new ArrayList<>();
      List<PartitionList.Entry> decoded = new ArrayList<>();
      for (PartitionList.Page page : PartitionList.encode(entries)) {
        bodies.add(hex(page.body));
        decoded.addAll(PartitionList.decode(page.body, page.partitionCount));
      }
      List<String> expected = new ArrayList<>();
      list(vector.get("bodies")).forEach(body -> expected.add(body.asText()));
      assertEquals(expected, bodies);
      List<String> again = new ArrayList<>();
      PartitionList.encode(decoded).forEach(page -> again.add(hex(page.body)));
      assertEquals(expected, again);
    }
  }

  @Test
  @DisplayName("malformed partition lists are refused")
  void refusedPartitionLists() {
    for (JsonNode vector : list(WireVectors.ROOT.get("refusedPartitionLists"))) {
      ProtocolException refusal =
          assertThrows(
              ProtocolException.class,
              () ->
                  PartitionList.decode(
                      hex(vector.get("body").asText()), vector.get("partitionCount").asLong()),
              vector.get("about").asText());
      assertEquals(vector.get("code").asText(), refusal.code().name());
    }
  }

  @Test
  @DisplayName("byte counts are coded as the vectors say")
  void byteCounts() {
    for (JsonNode vector : list(WireVectors.ROOT.get("byteCounts"))) {
      long[] counts = list(vector.get("counts")).stream().mapToLong(JsonNode::asLong).toArray();
      List<String> bodies = new ArrayList<>();
      ByteCounts.pages(counts).forEach(page -> bodies.add(hex(page)));
      List<String> expected = new ArrayList<>();
      list(vector.get("bodies")).forEach(body -> expected.add(body.asText()));
      assertEquals(expected, bodies);
    }
  }

  @Test
  @DisplayName("challenges are answered as the vectors say")
  void authentication() {
    for (JsonNode vector : list(WireVectors.ROOT.get("authentication"))) {
      byte[] answer =
          Authentication.answer(
              vector.get("token").asText(),
              hex(vector.get("challenge").asText()),
              vector.get("clusterId").asText(),
              vector.get("workerId").asText());
      assertEquals(vector.get("answer").asText(), hex(answer));
    }
  }

  @Test
  @DisplayName("numbers and error codes are those of the vectors")
  void constants() {
    JsonNode root = WireVectors.ROOT;
    assertEquals(root.get("magic").asInt(), Wire.MAGIC);
    assertEquals(root.get("limits").get("dataBodyLengthMax").asInt(), Wire.DATA_BODY_LENGTH_MAX);
    root.get("errorCodes")
        .fields()
        .forEachRemaining(
            entry ->
                assertEquals(
                    entry.getValue().asInt(), ErrorCode.valueOf(entry.getKey()).wireCode()));
    assertEquals(root.get("errorCodes").size(), ErrorCode.values().length);
    assertEquals(root.get("messages").size(), MessageType.values().length);
    assertEquals(ErrorCode.PROTOCOL, ErrorCode.ofWire(60_000));
  }

  List<JsonNode> refused() {
    return list(WireVectors.ROOT.get("refused").get("streams"));
  }

  @ParameterizedTest
  @MethodSource("refused")
  @DisplayName("wrong streams are refused by their code")
  void refusedStream(JsonNode vector) {
    ProtocolException refusal =
        assertThrows(ProtocolException.class, () -> asWorker(vector), vector.get("about").asText());
    assertEquals(vector.get("code").asText(), refusal.code().name());
  }

  List<JsonNode> tolerated() {
    return list(WireVectors.ROOT.get("tolerated").get("streams"));
  }

  @ParameterizedTest
  @MethodSource("tolerated")
  @DisplayName("what a newer peer sends is skipped")
  void toleratedStream(JsonNode vector) {
    List<String> names = new ArrayList<>();
    for (Message message : asWorker(vector).messages) {
      if (message.type() != MessageType.HELLO) {
        names.add(message.type().wireName());
      }
    }
    List<String> expected = new ArrayList<>();
    list(vector.get("messages")).forEach(name -> expected.add(name.asText()));
    assertEquals(expected, names);
  }

  /** The streams are those that a worker gets: the worker's part of the handshake is here. */
  private static Received asWorker(JsonNode vector) {
    FrameRules rules = new FrameRules(false);
    JsonNode self = WireVectors.ROOT.get("refused").get("receiver");
    Received received =
        new Received() {
          @Override
          public void onMessage(Message message, int channelId, byte[] body) {
            super.onMessage(message, channelId, body);
            if (message.type() == MessageType.HELLO) {
              checkHello(message, self);
              rules.enter(FrameRules.Phase.READY);
            }
          }
        };
    if (vector.get("phase").asText().equals("ready")) {
      rules.enter(FrameRules.Phase.READY);
    }
    new FrameDecoder(rules, received)
        .push(Unpooled.wrappedBuffer(hex(vector.get("bytes").asText())));
    return received;
  }

  private static void checkHello(Message hello, JsonNode self) {
    if ((int) hello.number("magic") != Wire.MAGIC) {
      throw new ProtocolException("another protocol");
    }
    if (hello.number("versionMin") > Wire.VERSION_MAX
        || hello.number("versionMax") < Wire.VERSION_MIN) {
      throw new ProtocolException(ErrorCode.UNSUPPORTED_VERSION, "no version in common");
    }
    if (!self.get("clusterId").asText().equals(hello.text("clusterId"))) {
      throw new ProtocolException(ErrorCode.UNAUTHENTICATED, "another cluster");
    }
    if (!self.get("workerId").asText().equals(hello.text("expectedWorkerId"))) {
      throw new ProtocolException(ErrorCode.WORKER_CHANGED, "another worker");
    }
  }

  @Test
  @DisplayName("every message of the file was tried")
  void complete() {
    assertTrue(messages().size() >= 30);
    assertTrue(refused().size() >= 30);
  }
}
