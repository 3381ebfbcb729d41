package org.sluice.flink.master;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.runtime.shuffle.JobShuffleContext;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.sluice.flink.manager.KeyColumns;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.wire.PartitionKey;

/**
 * One job of a ShuffleMaster: its list of what should exist, and what of it the manager has not been
 * told yet. Belongs to the master's thread.
 */
final class MasterJob {
  private static final int CHANGES_PER_BEAT_MAX = 5_000;

  final String jobId;
  JobShuffleContext context;
  /** Done when the manager has heard of the end of an earlier one with this id. */
  CompletableFuture<?> earlierEnded = CompletableFuture.completedFuture(null);
  /** Null before the first registration. */
  Long jobEpoch;
  /** The epoch of the manager that has the list; 0: none has. */
  long reportedTo;
  boolean isEnded;
  /** It has had a blocking result. */
  boolean isUsed;
  /** Why the manager does not have it, as last logged; null: it has. */
  String trouble;

  private final Map<PartitionKey, ListedPartition> listed = new LinkedHashMap<>();
  private final Map<PartitionKey, Integer> allocating = new HashMap<>();
  private final Set<PartitionKey> releases = new LinkedHashSet<>();
  private final Set<String> unknownCommands = new LinkedHashSet<>();
  private List<PartitionKey> claimed = new ArrayList<>();
  private final Set<PartitionKey> dropped = new LinkedHashSet<>();
  private ObjectNode sent;
  private int sentBytes;
  private long sequence;
  private long newsSeen;
  private Long answered;
  private boolean isReporting;

  MasterJob(String jobId, JobShuffleContext context) {
    this.jobId = jobId;
    this.context = context;
  }

  void beginAllocating(PartitionKey key) {
    allocating.merge(key, 1, Integer::sum);
  }

  void endAllocating(PartitionKey key) {
    allocating.computeIfPresent(key, (name, count) -> count == 1 ? null : count - 1);
  }

  void add(PartitionKey key, ListedPartition partition) {
    listed.put(key, partition);
  }

  void release(Collection<PartitionKey> keys) {
    listed.keySet().removeAll(keys);
    releases.addAll(keys);
    if (isReporting) {
      // The list that is under way still has them, and the call that releases may overtake the list.
      dropped.addAll(keys);
    }
  }

  List<PartitionKey> takeReleases(int countMax) {
    List<PartitionKey> keys = new ArrayList<>();
    for (PartitionKey key : releases) {
      if (keys.size() == countMax) {
        break;
      }
      keys.add(key);
    }
    releases.removeAll(keys);
    return keys;
  }

  void releaseFailed(Collection<PartitionKey> keys) {
    releases.addAll(keys);
  }

  boolean hasReleases() {
    return !releases.isEmpty();
  }

  /** Whether the next heartbeat says something, and so must not wait for an answer. */
  boolean hasChanges() {
    return sent != null || answered != null || !claimed.isEmpty() || !dropped.isEmpty();
  }

  /** The whole list; what was to be told as a change is told by it. */
  Collection<ListedPartition> beginReport() {
    isReporting = true;
    sent = null;
    sequence = 0;
    claimed = new ArrayList<>();
    dropped.clear();
    answered = null;
    return new ArrayList<>(listed.values());
  }

  /** The manager of that epoch has taken in the whole list of the last {@link #beginReport}. */
  void reportTaken(long managerEpoch) {
    isReporting = false;
    reportedTo = managerEpoch;
  }

  /** Of the change that {@link #beat} tells; 0: there is none. */
  int changeBytes() {
    prepareChange();
    return sent == null ? 0 : sentBytes;
  }

  /** What this job says in a heartbeat; repeated until {@link #beatTaken}. */
  ObjectNode beat() {
    prepareChange();
    ObjectNode beat = signOfLife(sequence);
    if (sent != null) {
      beat.setAll(sent);
    }
    if (answered != null) {
      beat.put("answered", answered);
    }
    return beat;
  }

  /** What it says where its change has no room; an answer waits too, for what it claims. */
  ObjectNode quietBeat() {
    return signOfLife(sent == null ? sequence : sequence - 1);
  }

  private ObjectNode signOfLife(long ofSequence) {
    ObjectNode beat = ManagerClient.object();
    beat.put("jobId", jobId);
    beat.put("jobEpoch", jobEpoch);
    beat.put("sequence", ofSequence);
    beat.put("newsSeen", newsSeen);
    return beat;
  }

  private void prepareChange() {
    if (sent != null) {
      return;
    }
    sent = nextChange();
    if (sent != null) {
      // All ids are ASCII, and the numbers too.
      sentBytes = sent.toString().length();
    }
  }

  private ObjectNode nextChange() {
    if (claimed.isEmpty() && dropped.isEmpty()) {
      return null;
    }
    List<PartitionKey> gone = new ArrayList<>();
    for (PartitionKey key : dropped) {
      if (gone.size() == CHANGES_PER_BEAT_MAX) {
        break;
      }
      gone.add(key);
    }
    dropped.removeAll(gone);
    ObjectNode change = ManagerClient.object();
    change.set("claimed", KeyColumns.groups(claimed));
    change.set("dropped", KeyColumns.groups(gone));
    claimed = new ArrayList<>();
    sequence++;
    return change;
  }

  void beatTaken(ObjectNode beat) {
    if (beat.get("sequence").asLong() == sequence) {
      sent = null;
    }
    if (answered != null && beat.path("answered").asLong(-1) == answered) {
      answered = null;
    }
  }

  /** Answers the partitions that are newly known to be lost; they are no longer of the list. */
  List<ListedPartition> take(JsonNode commands) {
    List<ListedPartition> lost = new ArrayList<>();
    for (JsonNode command : commands) {
      switch (command.path("type").asText()) {
        case "lost":
          takeLost(command, lost);
          break;
        case "asked":
          takeQuestion(command);
          break;
        case "committed":
          takeCommits(command);
          break;
        default:
          unknownCommands.add(command.path("type").asText());
          break;
      }
    }
    return lost;
  }

  private void takeLost(JsonNode command, List<ListedPartition> lost) {
    for (PartitionKey key : KeyColumns.keys(jobId, command.path("groups"))) {
      dropped.add(key);
      ListedPartition partition = listed.remove(key);
      if (partition != null) {
        lost.add(partition);
      }
    }
  }

  private void takeQuestion(JsonNode command) {
    if (sent != null || !claimed.isEmpty()) {
      return;
    }
    answered = command.path("question").asLong();
    for (PartitionKey key : KeyColumns.keys(jobId, command.path("dataSets"))) {
      if (listed.containsKey(key) || allocating.containsKey(key)) {
        claimed.add(key);
      }
    }
  }

  private void takeCommits(JsonNode command) {
    newsSeen = Math.max(newsSeen, command.path("news").asLong());
    for (PartitionKey key : KeyColumns.keys(jobId, command.path("dataSets"))) {
      ListedPartition partition = listed.get(key);
      if (partition != null) {
        partition.isCommitted = true;
      }
    }
  }

  void putUnknownCommands(ArrayNode target) {
    unknownCommands.forEach(target::add);
    unknownCommands.clear();
  }
}
