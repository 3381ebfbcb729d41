package org.sluice.flink.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.runtime.checkpoint.CheckpointStatsSnapshot;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Attempts, tasks, jobs and clusters that run at once and share what there is. */
@ExtendWith(Progress.class)
class SharingIT {
  private static final long RECORDS = 200_000;

  @AfterEach
  void letGo() {
    HeldJob.reset();
    Slow.released = null;
  }

  /** The first attempt of one task stands still half-way until the test lets it go. */
  static final class Slow extends RichMapFunction<Long, Long> {
    private static final long serialVersionUID = 1L;
    static volatile java.util.concurrent.CountDownLatch released;
    private boolean isSlow;
    private int seen;

    @Override
    public void open(OpenContext context) {
      isSlow =
          getRuntimeContext().getTaskInfo().getIndexOfThisSubtask() == 0
              && getRuntimeContext().getTaskInfo().getAttemptNumber() == 0;
    }

    @Override
    public Long map(Long value) throws Exception {
      java.util.concurrent.CountDownLatch latch = released;
      if (isSlow && ++seen == 5_000 && latch != null) {
        latch.await();
      }
      return value;
    }
  }

  @Test
  @DisplayName("a slow attempt and its speculative twin don't meet")
  void speculative() throws Exception {
    Slow.released = new java.util.concurrent.CountDownLatch(1);
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink =
            new FlinkCluster(
                sluice,
                2,
                3,
                FlinkCluster.heard(
                    change -> {
                      change.setString("execution.batch.speculative.enabled", "true");
                      // Both TaskManagers are on this host, which must not be avoided.
                      change.setString(
                          "execution.batch.speculative.block-slow-node-duration", "0s");
                      change.setString("slow-task-detector.check-interval", "200ms");
                      change.setString(
                          "slow-task-detector.execution-time.baseline-lower-bound", "1s");
                      change.setString(
                          "slow-task-detector.execution-time.baseline-multiplier", "1.2");
                    }))) {
      StreamExecutionEnvironment environment = flink.environment(4);
      FlinkCluster.Collected<Tuple2<Integer, Long>> found =
          FlinkCluster.collect(
              environment
                  .fromSequence(1, 40_000)
                  .setParallelism(4)
                  .rebalance()
                  .map(new Slow())
                  .setParallelism(4)
                  .name("slow")
                  .map(value -> Tuple2.of((int) (value % 3), value))
                  .returns(Types.TUPLE(Types.INT, Types.LONG))
                  .setParallelism(4)
                  .keyBy(pair -> pair.f0)
                  .sum(1));
      assertEquals(
          40_000L * 40_001 / 2, found.records.stream().mapToLong(pair -> pair.f1).sum());
      // The twin won while the slow one still stands where it stood, and both had a result.
      Set<Integer> attempts = new TreeSet<>();
      ListeningFactory.RESULTS.stream()
          .filter(result -> result.task.contains("slow"))
          .filter(result -> result.attempt.getExecutionVertexId().getSubtaskIndex() == 0)
          .forEach(result -> attempts.add(result.attempt.getAttemptNumber()));
      assertTrue(attempts.size() >= 2, "attempts that wrote: " + attempts);
      assertTrue(attempts.contains(0), "attempts that wrote: " + attempts);
      int won =
          flink.ended(found.job).getAllVertices().values().stream()
              .filter(vertex -> vertex.getName().contains("slow"))
              .mapToInt(vertex -> vertex.getTaskVertices()[0].getCurrentExecutionAttempt().getAttemptNumber())
              .max()
              .orElseThrow();
      assertTrue(won > 0, "the slow attempt won");
      assertTrue(sluice.committedBytes() > 40_000 * 8);
      SluiceCluster.await("everything is released", () -> sluice.partitions().isEmpty());
    }
  }

  @Test
  @DisplayName("eight slots on 64 MB: a task whose input stands still takes nothing from the others")
  void stoppedInput() throws Exception {
    HeldJob.Controls held = new HeldJob.Controls(1);
    HeldJob.consumers = held;
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 8, change -> {})) {
      HeldJob.Running stopped =
          HeldJob.start(HeldJob.build(flink.environment(8), RECORDS, -1, 10_000));
      SluiceCluster.await("one task holds", () -> held.arrived.get() == 1);
      HeldJob.reset();
      for (int round = 0; round < 3; round++) {
        // On all slots but the one that is held.
        HeldJob.Running other =
            HeldJob.start(HeldJob.build(flink.environment(15), RECORDS, -1, -1));
        assertEquals(HeldJob.expected(RECORDS), other.await());
        assertEquals(0, FlinkCluster.highest(flink.attempts(other.id)));
      }
      held.released.countDown();
      assertEquals(HeldJob.expected(RECORDS), stopped.await());
      assertEquals(0, FlinkCluster.highest(flink.attempts(stopped.id)));
    }
  }

  @Test
  @DisplayName("two clusters that run the same job under the same JobID at once")
  void sameJobId() throws Exception {
    String id = "000000000000000000000000000000aa";
    HeldJob.Controls held = new HeldJob.Controls();
    HeldJob.consumers = held;
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster one =
            new FlinkCluster(
                sluice, 2, 2, change -> change.setString("$internal.pipeline.job-id", id));
        FlinkCluster two =
            new FlinkCluster(
                sluice, 2, 2, change -> change.setString("$internal.pipeline.job-id", id))) {
      HeldJob.Running first = HeldJob.start(HeldJob.build(one.environment(4), RECORDS, -1, 100));
      HeldJob.Running second = HeldJob.start(HeldJob.build(two.environment(4), RECORDS, -1, 100));
      SluiceCluster.await("both are half done", () -> held.arrived.get() == 8);
      assertEquals(2, sluice.jobs().size());
      HeldJob.reset();
      held.released.countDown();
      Map<Integer, Long> expected = HeldJob.expected(RECORDS);
      assertEquals(expected, first.await());
      assertEquals(expected, second.await());
      assertEquals(first.id, second.id);
      one.ended(first.id);
      two.ended(second.id);
      assertEquals(0, FlinkCluster.highest(one.attempts(first.id)));
      assertEquals(0, FlinkCluster.highest(two.attempts(second.id)));
      assertEquals(one.bytesOut(first.id) + two.bytesOut(second.id), sluice.committedBytes());
    }
  }

  @Test
  @DisplayName("a streaming job takes its checkpoints while batch jobs run beside it")
  void streamingBeside() throws Exception {
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 4, change -> {})) {
      JobClient stream = startStream(flink.environment(2));
      for (int round = 0; round < 2; round++) {
        long checkpoints = checkpoints(flink, stream);
        long before = sluice.committedBytes();
        HeldJob.Controls held = new HeldJob.Controls();
        HeldJob.consumers = held;
        HeldJob.Running job = HeldJob.start(HeldJob.build(flink.environment(4), RECORDS, -1, 100));
        SluiceCluster.await("the batch job is half done", () -> held.arrived.get() == 4);
        SluiceCluster.await(
            "two checkpoints more", () -> checkpoints(flink, stream) >= checkpoints + 2);
        HeldJob.reset();
        held.released.countDown();
        assertEquals(HeldJob.expected(RECORDS), job.await());
        // The batch job's bytes, and not one of the stream's.
        flink.assertExchanged(sluice, job.id, before);
      }
      TreeMap<String, ?> attempts = flink.attempts(stream.getJobID());
      assertEquals(0, FlinkCluster.highest(flink.attempts(stream.getJobID())), attempts.toString());
      stream.cancel().get();
    }
  }

  private static JobClient startStream(StreamExecutionEnvironment streaming) throws Exception {
    streaming.setRuntimeMode(RuntimeExecutionMode.STREAMING);
    streaming.enableCheckpointing(200);
    streaming
        .fromSequence(1, Long.MAX_VALUE - 1)
        .map(
            number -> {
              if (number % 100 == 0) {
                Thread.sleep(1);
              }
              return Tuple2.of((int) (number % 7), 1L);
            })
        .returns(Types.TUPLE(Types.INT, Types.LONG))
        .keyBy(pair -> pair.f0)
        .sum(1)
        .filter(pair -> pair.f1 < 0)
        .print();
    return streaming.executeAsync("streaming");
  }

  private static long checkpoints(FlinkCluster flink, JobClient stream) {
    try {
      CheckpointStatsSnapshot stats =
          flink.graph(stream.getJobID()).getCheckpointStatsSnapshot();
      return stats.getCounts().getNumberOfCompletedCheckpoints();
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }
}
