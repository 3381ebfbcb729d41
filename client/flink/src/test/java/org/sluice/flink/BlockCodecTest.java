package org.sluice.flink;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import org.apache.flink.configuration.NettyShuffleEnvironmentOptions.CompressionCodec;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.sluice.flink.wire.ErrorCode;

class BlockCodecTest {
  private static final int MAX = 32_704;
  /** As in an entry: 16 bytes of header, 4 of the uncompressed length. */
  private static final int OFFSET = 20;

  @Test
  @DisplayName("blocks of every codec come back as they were, in heap and direct memory")
  void roundTrip() throws Exception {
    byte[] data = new byte[MAX];
    new Random(1).nextBytes(data);
    Arrays.fill(data, 1000, 20_000, (byte) 7);
    for (CompressionCodec name : CompressionCodec.values()) {
      if (name == CompressionCodec.NONE) {
        continue;
      }
      BlockCodec codec = BlockCodec.of(BlockCodec.nameOf(name), MAX);
      int length = codec.compress(data, MAX);
      assertTrue(length < MAX, name.name());
      byte[] block = new byte[length];
      codec.copyBlock(block, 0, length);
      for (ByteBuffer source :
          new ByteBuffer[] {
            ByteBuffer.allocate(32_768), ByteBuffer.allocateDirect(32_768)
          }) {
        source.position(OFFSET);
        source.put(block);
        byte[] found = new byte[MAX];
        codec.decompress(source, OFFSET, length, found, MAX);
        assertArrayEquals(data, found, name.name());
      }
    }
  }

  @Test
  @DisplayName("the project's lz4 is read: the block of the golden vector")
  void golden() throws Exception {
    Path path = Path.of("..", "protocol", "wire.json");
    JsonNode root = new ObjectMapper().readTree(Files.readAllBytes(path));
    JsonNode entry = root.get("entries").get(2);
    assertEquals(3, entry.get("flags").asInt());
    byte[] payload = hex(entry.get("payload").asText());
    ByteBuffer source = ByteBuffer.allocate(16 + payload.length);
    source.position(16);
    source.put(payload);
    byte[] found = new byte[86];
    BlockCodec.of("lz4", MAX).decompress(source, OFFSET, payload.length - 4, found, 86);
    String sample = "The quick brown fox jumps over the lazy dog";
    assertEquals(sample + sample, new String(found, StandardCharsets.UTF_8));
  }

  private static byte[] hex(String text) {
    byte[] bytes = new byte[text.length() / 2];
    for (int index = 0; index < bytes.length; index++) {
      bytes[index] = (byte) Integer.parseInt(text.substring(index * 2, index * 2 + 2), 16);
    }
    return bytes;
  }

  @Test
  @DisplayName("a block that is broken or has another length is corrupt")
  void corrupt() throws Exception {
    BlockCodec codec = BlockCodec.of("lz4", MAX);
    ByteBuffer source = ByteBuffer.allocate(100);
    source.put(OFFSET, (byte) 0xff);
    ShuffleException refusal =
        assertThrows(
            ShuffleException.class,
            () -> codec.decompress(source, OFFSET, 50, new byte[MAX], 1000));
    assertEquals(ErrorCode.DATA_CORRUPT, refusal.code());
  }

  @Test
  @DisplayName("no codec is none, and one that is not known is refused by name")
  void names() throws Exception {
    assertNull(BlockCodec.of("none", MAX));
    ShuffleException refusal =
        assertThrows(ShuffleException.class, () -> BlockCodec.of("brotli", MAX));
    assertEquals(ErrorCode.UNSUPPORTED_CODEC, refusal.code());
    assertTrue(refusal.getMessage().contains("brotli"));
  }
}
