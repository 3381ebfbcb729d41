package org.sluice.flink.manager;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.sluice.flink.wire.PartitionKey;

class KeyColumnsTest {
  @Test
  @DisplayName("keys come back from their columns, grouped by data set, without the common prefix")
  void columns() {
    List<PartitionKey> keys =
        List.of(
            new PartitionKey("job", "one", 0, "attempt-0-0"),
            new PartitionKey("job", "one", 1, "attempt-1-0"),
            new PartitionKey("job", "one", -1, "attempt-1"),
            new PartitionKey("job", "two", 7, "x"));
    JsonNode groups = KeyColumns.groups(keys);
    assertEquals(2, groups.size());
    assertEquals("attempt-", groups.get(0).get("attemptPrefix").asText());
    assertEquals(4_294_967_295L, groups.get(0).get("partitionIndices").get(2).asLong());
    assertEquals("x", groups.get(1).get("attemptPrefix").asText());
    assertEquals("", groups.get(1).get("attempts").get(0).asText());
    assertEquals(keys, KeyColumns.keys("job", groups));
  }
}
