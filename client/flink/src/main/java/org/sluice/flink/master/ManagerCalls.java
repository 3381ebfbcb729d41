package org.sluice.flink.master;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.SluiceShuffleDescriptor;
import org.sluice.flink.manager.KeyColumns;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.transport.WorkerAddress;
import org.sluice.flink.wire.AllocationId;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.PartitionKey;

/** The longer conversations of a ShuffleMaster with the manager. Not for one job alone; stateless. */
final class ManagerCalls {
  private static final long RETRY_MS = 5_000;
  /** Rows of one page of a list: with the longest ids it stays below the body limit. */
  private static final int PAGE_ROWS_MAX = 4_000;

  private ManagerCalls() {}

  private static String path(String jobId, String rest) {
    return "/v1/jobs/" + ManagerClient.segment(jobId) + rest;
  }

  /** With the epoch that the job has, or for a new one. */
  static CompletableFuture<JsonNode> register(
      ManagerClient manager, MasterJob job, String clientId, boolean takeOver) {
    ObjectNode body = ManagerClient.object();
    body.put("clientId", clientId);
    if (job.jobEpoch == null) {
      body.put("takeOver", takeOver);
    } else {
      body.put("jobEpoch", job.jobEpoch);
    }
    return manager.call("PUT", path(job.jobId, ""), body, RETRY_MS, 0);
  }

  /** Sends the whole list, in pages. */
  static CompletableFuture<Void> report(ManagerClient manager, MasterJob job) {
    List<ObjectNode> pages = pages(job, job.beginReport());
    CompletableFuture<Void> done = CompletableFuture.completedFuture(null);
    for (ObjectNode page : pages) {
      done =
          done.thenCompose(
                  before ->
                      manager.call(
                          "POST", path(job.jobId, "/partitions/report"), page, RETRY_MS, 0))
              .thenApply(answer -> null);
    }
    return done;
  }

  private static List<ObjectNode> pages(MasterJob job, Collection<ListedPartition> listed) {
    Map<String, List<ListedPartition>> groups = new LinkedHashMap<>();
    Map<String, ObjectNode> facts = new LinkedHashMap<>();
    Map<String, WorkerAddress> workers = new LinkedHashMap<>();
    for (ListedPartition partition : listed) {
      SluiceShuffleDescriptor descriptor = partition.descriptor;
      AllocationId allocation = descriptor.allocation();
      String name =
          String.join(
              " ",
              descriptor.key().dataSetId(),
              descriptor.worker().workerId(),
              String.valueOf(allocation.managerEpoch()),
              String.valueOf(allocation.jobEpoch()),
              String.valueOf(partition.isCommitted));
      groups.computeIfAbsent(name, key -> new ArrayList<>()).add(partition);
      facts.put(descriptor.key().dataSetId(), partition.facts);
      workers.put(descriptor.worker().workerId(), descriptor.worker());
    }
    String report = UUID.randomUUID().toString();
    List<ObjectNode> pages = new ArrayList<>();
    ObjectNode page = newPage(job, report, pages);
    int rows = 0;
    for (List<ListedPartition> group : groups.values()) {
      for (int start = 0; start < group.size(); start += PAGE_ROWS_MAX) {
        List<ListedPartition> part =
            group.subList(start, Math.min(group.size(), start + PAGE_ROWS_MAX));
        if (rows + part.size() > PAGE_ROWS_MAX) {
          page = newPage(job, report, pages);
          rows = 0;
        }
        rows += part.size();
        ((ArrayNode) page.get("groups")).add(listGroup(part));
      }
    }
    page.put("last", true);
    facts.values().forEach(((ArrayNode) page.get("dataSets"))::add);
    ArrayNode addresses = (ArrayNode) pages.get(0).get("workers");
    for (WorkerAddress worker : workers.values()) {
      addresses
          .addObject()
          .put("workerId", worker.workerId())
          .put("host", worker.host())
          .put("port", worker.port());
    }
    return pages;
  }

  private static ObjectNode newPage(MasterJob job, String report, List<ObjectNode> pages) {
    ObjectNode page = ManagerClient.object();
    page.put("jobEpoch", job.jobEpoch);
    page.put("report", report);
    page.put("page", pages.size());
    page.put("last", false);
    page.putArray("dataSets");
    page.putArray("workers");
    page.putArray("groups");
    pages.add(page);
    return page;
  }

  private static ObjectNode listGroup(List<ListedPartition> partitions) {
    SluiceShuffleDescriptor first = partitions.get(0).descriptor;
    ObjectNode group = ManagerClient.object();
    group.put("dataSetId", first.key().dataSetId());
    List<PartitionKey> keys = new ArrayList<>();
    partitions.forEach(partition -> keys.add(partition.descriptor.key()));
    KeyColumns.putAttempts(group, keys);
    group.put("workerId", first.worker().workerId());
    group.put("managerEpoch", first.allocation().managerEpoch());
    group.put("jobEpoch", first.allocation().jobEpoch());
    group.put("isCommitted", partitions.get(0).isCommitted);
    ArrayNode sequences = group.putArray("sequences");
    partitions.forEach(partition -> sequences.add(partition.descriptor.allocation().sequence()));
    return group;
  }

  /** What one answer to an allocation says of a key. */
  static final class Placed {
    final WorkerAddress worker;
    final AllocationId allocation;

    Placed(WorkerAddress worker, AllocationId allocation) {
      this.worker = worker;
      this.allocation = allocation;
    }
  }

  /** Places in the order of the keys. */
  static CompletableFuture<List<Placed>> allocate(
      ManagerClient manager,
      MasterJob job,
      ObjectNode facts,
      List<PartitionKey> keys,
      List<String> hosts) {
    ObjectNode body = ManagerClient.object();
    body.put("jobEpoch", job.jobEpoch);
    body.set("dataSet", facts);
    KeyColumns.putAttempts(body, keys);
    Map<String, Integer> positions = new LinkedHashMap<>();
    ArrayNode hostOf = body.putArray("hostOf");
    for (String host : hosts) {
      hostOf.add(positions.computeIfAbsent(host, name -> positions.size()));
    }
    positions.keySet().forEach(body.putArray("hosts")::add);
    return manager
        .call("POST", path(job.jobId, "/partitions/allocate"), body, 0, 0)
        .thenApply(answer -> placed(answer, keys.size()));
  }

  private static List<Placed> placed(JsonNode answer, int count) {
    List<WorkerAddress> workers = new ArrayList<>();
    answer.path("workers").forEach(worker -> workers.add(ManagerClient.address(worker)));
    Map<Integer, JsonNode> older = new HashMap<>();
    answer.path("older").forEach(one -> older.put(one.path("position").asInt(), one));
    List<Placed> placed = new ArrayList<>(count);
    for (int row = 0; row < count; row++) {
      int holder = answer.path("holders").path(row).asInt(-1);
      if (holder < 0 || holder >= workers.size()) {
        throw new java.util.concurrent.CompletionException(
            new ShuffleException(
                ErrorCode.PROTOCOL, "the manager placed fewer partitions than were asked for"));
      }
      JsonNode epochs = older.getOrDefault(row, answer);
      placed.add(
          new Placed(
              workers.get(holder),
              new AllocationId(
                  epochs.path("managerEpoch").asLong(),
                  epochs.path("jobEpoch").asLong(),
                  answer.path("sequences").path(row).asLong())));
    }
    return placed;
  }

  static CompletableFuture<JsonNode> release(
      ManagerClient manager, MasterJob job, Collection<PartitionKey> keys) {
    ObjectNode body = ManagerClient.object();
    body.put("jobEpoch", job.jobEpoch);
    body.set("keys", KeyColumns.groups(keys));
    return manager.call("POST", path(job.jobId, "/partitions/release"), body, RETRY_MS, 0);
  }

  static CompletableFuture<JsonNode> delete(ManagerClient manager, MasterJob job) {
    String query = job.jobEpoch == null ? "" : "?jobEpoch=" + job.jobEpoch;
    return manager.call("DELETE", path(job.jobId, query), null, RETRY_MS, 0);
  }

  static CompletableFuture<JsonNode> detach(ManagerClient manager, MasterJob job) {
    ObjectNode body = ManagerClient.object();
    body.put("jobEpoch", job.jobEpoch);
    return manager.call("POST", path(job.jobId, "/detach"), body, RETRY_MS, 0);
  }
}
