package org.sluice.flink.master;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.apache.flink.runtime.executiongraph.ExecutionAttemptID;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.jobgraph.IntermediateDataSetID;
import org.apache.flink.runtime.jobgraph.IntermediateResultPartitionID;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.sluice.flink.SluiceShuffleDescriptor;
import org.sluice.flink.manager.KeyColumns;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.transport.WorkerAddress;
import org.sluice.flink.wire.AllocationId;
import org.sluice.flink.wire.PartitionKey;

class MasterJobTest {
  private final IntermediateDataSetID dataSet = new IntermediateDataSetID();
  private MasterJob job;

  @BeforeEach
  void make() {
    job = new MasterJob("app.job", null);
    job.jobEpoch = 5L;
  }

  private ListedPartition add(int index) {
    ResultPartitionID id =
        new ResultPartitionID(
            new IntermediateResultPartitionID(dataSet, index), ExecutionAttemptID.randomId());
    SluiceShuffleDescriptor descriptor =
        new SluiceShuffleDescriptor(
            id,
            job.jobId,
            dataSet.toString(),
            new WorkerAddress("worker-1", "host", 9710),
            new AllocationId(1, 5, index),
            4,
            32_768,
            "lz4");
    ListedPartition partition = new ListedPartition(descriptor, ManagerClient.object());
    job.add(descriptor.key(), partition);
    return partition;
  }

  private static ArrayNode command(String type, List<PartitionKey> keys) {
    ArrayNode commands = ManagerClient.array();
    ObjectNode command = commands.addObject();
    command.put("type", type);
    command.set(type.equals("lost") ? "groups" : "dataSets", KeyColumns.groups(keys));
    return commands;
  }

  @Test
  @DisplayName("what is released while the list is under way is dropped after it too")
  void releasedDuringReport() {
    List<PartitionKey> keys = List.of(add(1).descriptor.key());
    List<PartitionKey> later = List.of(add(2).descriptor.key());
    job.beginReport();
    job.release(keys);
    job.reportTaken(1);
    ObjectNode beat = job.beat();
    assertEquals(1, beat.get("sequence").asLong());
    assertEquals(keys, KeyColumns.keys(job.jobId, beat.get("dropped")));
    job.beatTaken(beat);
    job.release(later);
    assertFalse(job.hasChanges());
  }

  @Test
  @DisplayName("lost partitions leave the list at once, are told once, and dropped at the manager")
  void lost() {
    ListedPartition one = add(1);
    ListedPartition two = add(2);
    add(3);
    List<PartitionKey> keys = List.of(one.descriptor.key(), two.descriptor.key());
    assertEquals(List.of(one, two), job.take(command("lost", keys)));
    assertTrue(job.hasChanges());
    assertEquals(List.of(), job.take(command("lost", keys)));
    ObjectNode beat = job.beat();
    assertEquals(1, beat.get("sequence").asLong());
    assertEquals(keys, KeyColumns.keys(job.jobId, beat.get("dropped")));
    assertEquals(beat, job.beat(), "said again until it was taken");
    job.beatTaken(beat);
    assertFalse(job.hasChanges());
    assertEquals(1, job.beginReport().size());
  }

  @Test
  @DisplayName("a question is answered by what is listed or being allocated")
  void asked() {
    ListedPartition listed = add(1);
    PartitionKey allocating = new PartitionKey(job.jobId, dataSet.toString(), 2, "b");
    PartitionKey stranger = new PartitionKey(job.jobId, dataSet.toString(), 3, "c");
    job.beginAllocating(allocating);
    ArrayNode commands =
        command("asked", List.of(listed.descriptor.key(), allocating, stranger));
    ((ObjectNode) commands.get(0)).put("question", 9);
    job.take(commands);
    ObjectNode beat = job.beat();
    assertEquals(9, beat.get("answered").asLong());
    assertEquals(
        List.of(listed.descriptor.key(), allocating),
        KeyColumns.keys(job.jobId, beat.get("claimed")));
    job.beatTaken(beat);
    assertFalse(job.hasChanges());
  }

  @Test
  @DisplayName("commits are seen, and commands that nobody knows are reported back")
  void commitsAndUnknown() {
    ListedPartition partition = add(1);
    ArrayNode commands = command("committed", List.of(partition.descriptor.key()));
    ((ObjectNode) commands.get(0)).put("news", 4);
    commands.addObject().put("type", "dance");
    job.take(commands);
    assertTrue(partition.isCommitted);
    assertEquals(4, job.beat().get("newsSeen").asLong());
    ArrayNode unknown = ManagerClient.array();
    job.putUnknownCommands(unknown);
    assertEquals("[\"dance\"]", unknown.toString());
  }

  @Test
  @DisplayName("what is released leaves the list, and stays to be released until that was heard")
  void released() {
    ListedPartition partition = add(1);
    job.release(List.of(partition.descriptor.key()));
    assertEquals(0, job.beginReport().size());
    List<PartitionKey> keys = job.takeReleases(10);
    assertFalse(job.hasReleases());
    job.releaseFailed(keys);
    assertTrue(job.hasReleases());
  }
}
