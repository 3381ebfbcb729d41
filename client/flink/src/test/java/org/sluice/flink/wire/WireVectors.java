package org.sluice.flink.wire;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/** The project's golden vectors. */
final class WireVectors {
  static final JsonNode ROOT = read();

  private WireVectors() {}

  private static JsonNode read() {
    Path path = Path.of("..", "protocol", "wire.json").toAbsolutePath().normalize();
    try {
      return new ObjectMapper().readTree(Files.readAllBytes(path));
    } catch (IOException error) {
      throw new UncheckedIOException(path + " is missing", error);
    }
  }

  static byte[] hex(String text) {
    byte[] bytes = new byte[text.length() / 2];
    for (int index = 0; index < bytes.length; index++) {
      bytes[index] = (byte) Integer.parseInt(text.substring(index * 2, index * 2 + 2), 16);
    }
    return bytes;
  }

  static String hex(byte[] bytes) {
    StringBuilder text = new StringBuilder();
    for (byte value : bytes) {
      text.append(String.format("%02x", value));
    }
    return text.toString();
  }

  static PartitionKey key(JsonNode node) {
    return new PartitionKey(
        node.get("jobId").asText(),
        node.get("dataSetId").asText(),
        (int) node.get("partitionIndex").asLong(),
        node.get("attemptId").asText());
  }

  static List<JsonNode> list(JsonNode node) {
    List<JsonNode> items = new ArrayList<>();
    node.forEach(items::add);
    return items;
  }
}
