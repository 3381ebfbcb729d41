package org.sluice.flink.manager;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.sluice.flink.wire.PartitionKey;

/** Partition keys as the manager's calls carry them: columns, attempts without their common prefix. */
public final class KeyColumns {
  private KeyColumns() {}

  /** Adds the columns of attempts to {@code target}, in the order of the keys. */
  public static void putAttempts(ObjectNode target, Collection<PartitionKey> keys) {
    String prefix = commonPrefix(keys);
    target.put("attemptPrefix", prefix);
    ArrayNode indices = target.putArray("partitionIndices");
    ArrayNode attempts = target.putArray("attempts");
    for (PartitionKey key : keys) {
      indices.add(Integer.toUnsignedLong(key.partitionIndex()));
      attempts.add(key.attemptId().substring(prefix.length()));
    }
  }

  /** One group a data set. */
  public static ArrayNode groups(Collection<PartitionKey> keys) {
    Map<String, List<PartitionKey>> byDataSet = new LinkedHashMap<>();
    for (PartitionKey key : keys) {
      byDataSet.computeIfAbsent(key.dataSetId(), id -> new ArrayList<>()).add(key);
    }
    ArrayNode groups = ManagerClient.array();
    byDataSet.forEach(
        (dataSetId, members) -> {
          ObjectNode group = groups.addObject();
          group.put("dataSetId", dataSetId);
          putAttempts(group, members);
        });
    return groups;
  }

  /** The inverse, for keys of one job. */
  public static List<PartitionKey> keys(String jobId, JsonNode groups) {
    List<PartitionKey> keys = new ArrayList<>();
    for (JsonNode group : groups) {
      String dataSetId = group.path("dataSetId").asText();
      String prefix = group.path("attemptPrefix").asText();
      JsonNode indices = group.path("partitionIndices");
      JsonNode attempts = group.path("attempts");
      for (int row = 0; row < indices.size(); row++) {
        keys.add(
            new PartitionKey(
                jobId,
                dataSetId,
                (int) indices.get(row).asLong(),
                prefix + attempts.path(row).asText()));
      }
    }
    return keys;
  }

  private static String commonPrefix(Collection<PartitionKey> keys) {
    String prefix = null;
    for (PartitionKey key : keys) {
      String attempt = key.attemptId();
      if (prefix == null) {
        prefix = attempt;
        continue;
      }
      int length = Math.min(prefix.length(), attempt.length());
      int shared = 0;
      while (shared < length && prefix.charAt(shared) == attempt.charAt(shared)) {
        shared++;
      }
      prefix = prefix.substring(0, shared);
    }
    return prefix == null ? "" : prefix;
  }
}
