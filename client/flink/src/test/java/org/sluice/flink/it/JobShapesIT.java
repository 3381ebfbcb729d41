package org.sluice.flink.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.runtime.checkpoint.CheckpointStatsSnapshot;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Jobs of many shapes give the right results. */
@ExtendWith(Progress.class)
class JobShapesIT {
  private static final long RECORDS = 200_000;

  @AfterEach
  void letGo() {
    HeldJob.reset();
  }

  private static <T> List<T> collect(DataStream<T> stream) throws Exception {
    List<T> found = new ArrayList<>();
    try (CloseableIterator<T> rows = stream.executeAndCollect()) {
      rows.forEachRemaining(found::add);
    }
    return found;
  }

  @Test
  @DisplayName("a consumer of few reads ranges of many subpartitions")
  void ranges() throws Exception {
    HeldJob.consumers = new HeldJob.Controls();
    HeldJob.Controls held = HeldJob.consumers;
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 2, change -> {})) {
      HeldJob.Running job = HeldJob.start(HeldJob.build(flink.environment(4), RECORDS, -1, 10_000));
      SluiceCluster.await("consumers hold", () -> held.arrived.get() == 4);
      String jobId = sluice.jobs().get(0).path("jobId").asText();
      int most = 0;
      for (JsonNode partition : sluice.partitions()) {
        JsonNode facts =
            sluice
                .get(
                    sluice.managerUrl()
                        + "/v1/jobs/"
                        + jobId
                        + "/data-sets/"
                        + partition.path("dataSetId").asText())
                .path("facts");
        most = Math.max(most, facts.path("subpartitionCount").asInt());
      }
      HeldJob.reset();
      held.released.countDown();
      assertEquals(HeldJob.expected(RECORDS), job.await());
      int fewest =
          flink.attempts(job.id).values().stream().mapToInt(List::size).min().orElseThrow();
      assertTrue(most > fewest, most + " subpartitions, " + fewest + " consumers");
    }
  }

  /** Counts what each of its tasks sees. */
  static final class Count extends RichMapFunction<Long, Long> {
    private static final long serialVersionUID = 1L;
    static final AtomicLong SEEN = new AtomicLong();

    @Override
    public Long map(Long value) {
      SEEN.incrementAndGet();
      return value;
    }
  }

  @Test
  @DisplayName("what is broadcast reaches all consumers, and is stored once")
  void broadcast() throws Exception {
    for (String scheduler : List.of("AdaptiveBatch", "Default")) {
      Count.SEEN.set(0);
      try (SluiceCluster sluice = new SluiceCluster(2);
          FlinkCluster flink =
              new FlinkCluster(
                  sluice, 2, 2, change -> change.setString("jobmanager.scheduler", scheduler))) {
        StreamExecutionEnvironment environment = flink.environment(4);
        long sum =
            collect(
                    environment
                        .fromSequence(1, 50_000)
                        .setParallelism(2)
                        .broadcast()
                        .map(new Count())
                        .setParallelism(4)
                        .map(value -> Tuple2.of(0, value))
                        .returns(Types.TUPLE(Types.INT, Types.LONG))
                        .setParallelism(4)
                        .keyBy(pair -> pair.f0)
                        .sum(1))
                .stream()
                .mapToLong(pair -> pair.f1)
                .sum();
        assertEquals(4L * 50_000 * 50_001 / 2, sum, scheduler);
        assertEquals(200_000, Count.SEEN.get(), scheduler);
      }
    }
  }

  @Test
  @DisplayName("a table that is broadcast to a join gives what it gives on Flink's own shuffle")
  void broadcastJoin() throws Exception {
    String query =
        "SELECT /*+ BROADCAST(customer) */ c_nation, COUNT(*), SUM(o_orderkey) FROM orders"
            + " JOIN customer ON o_custkey = c_custkey GROUP BY c_nation";
    List<String> expected;
    try (FlinkCluster flink = FlinkCluster.withOwnShuffle(2, 2)) {
      TableEnvironment tables = flink.tables(4);
      SqlJobs.createTables(tables, 50_000);
      expected = FlinkCluster.rows(tables, query);
    }
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 2, change -> {})) {
      TableEnvironment tables = flink.tables(4);
      SqlJobs.createTables(tables, 50_000);
      assertEquals(expected, FlinkCluster.rows(tables, query));
      assertFalse(expected.isEmpty());
    }
  }

  @Test
  @DisplayName("producers that emit nothing end like all others")
  void nothing() throws Exception {
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 2, change -> {})) {
      StreamExecutionEnvironment environment = flink.environment(4);
      List<Long> found =
          collect(
              environment
                  .fromSequence(1, 1000)
                  .filter(number -> number == 77)
                  .keyBy(number -> number)
                  .map(number -> number)
                  .returns(Types.LONG));
      assertEquals(List.of(77L), found);
      assertTrue(sluice.committedBytes() > 0);
    }
  }

  @Test
  @DisplayName("records of no bytes to ten megabytes arrive as they were")
  void recordSizes() throws Exception {
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink =
            new FlinkCluster(
                sluice,
                2,
                2,
                change -> change.setString("remote-shuffle.job.memory-per-partition", "1mb"))) {
      StreamExecutionEnvironment environment = flink.environment(2);
      List<Tuple2<Integer, Integer>> found =
          collect(
              environment
                  .fromSequence(0, 39)
                  .setParallelism(2)
                  .map(
                      number -> {
                        int size = number % 4 == 0 ? 0 : (int) (number % 10 * 1_000_000 + 100_000);
                        byte[] bytes = new byte[size];
                        new java.util.Random(number).nextBytes(bytes);
                        return bytes;
                      })
                  .returns(byte[].class)
                  .setParallelism(2)
                  .rebalance()
                  .map(bytes -> Tuple2.of(bytes.length, java.util.Arrays.hashCode(bytes)))
                  .returns(Types.TUPLE(Types.INT, Types.INT))
                  .setParallelism(2));
      List<String> expected = new ArrayList<>();
      for (long number = 0; number < 40; number++) {
        int size = number % 4 == 0 ? 0 : (int) (number % 10 * 1_000_000 + 100_000);
        byte[] bytes = new byte[size];
        new java.util.Random(number).nextBytes(bytes);
        expected.add(Tuple2.of(size, java.util.Arrays.hashCode(bytes)).toString());
      }
      List<String> actual = new ArrayList<>();
      found.forEach(pair -> actual.add(pair.toString()));
      expected.sort(String::compareTo);
      actual.sort(String::compareTo);
      assertEquals(expected, actual);
    }
  }

  @Test
  @DisplayName("128 producers and 128 consumers")
  void manyTasks() throws Exception {
    try (SluiceCluster sluice = new SluiceCluster(3);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 4, change -> {})) {
      HeldJob.Running job = HeldJob.start(HeldJob.build(flink.environment(128), RECORDS, -1, -1));
      assertEquals(HeldJob.expected(RECORDS), job.await());
      assertEquals(0, FlinkCluster.highest(flink.attempts(job.id)));
    }
  }

  /** Sees whether a record comes behind the last watermark. */
  static final class Late extends AbstractStreamOperator<Long>
      implements OneInputStreamOperator<Long, Long> {
    private static final long serialVersionUID = 1L;
    static final AtomicInteger LATE = new AtomicInteger();
    static final AtomicInteger ENDS = new AtomicInteger();
    private boolean hasEnded;

    @Override
    public void processElement(StreamRecord<Long> element) {
      if (hasEnded) {
        LATE.incrementAndGet();
      }
      output.collect(element);
    }

    @Override
    public void processWatermark(Watermark mark) throws Exception {
      hasEnded |= mark.getTimestamp() == Long.MAX_VALUE;
      ENDS.incrementAndGet();
      super.processWatermark(mark);
    }
  }

  @Test
  @DisplayName("no record comes behind the last watermark of a range")
  void eventTime() throws Exception {
    try (FlinkCluster flink = FlinkCluster.withOwnShuffle(2, 2)) {
      assertEquals(0, countLate(flink), "on Flink's own shuffle");
    }
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 2, change -> {})) {
      assertEquals(0, countLate(flink));
    }
  }

  private static int countLate(FlinkCluster flink) throws Exception {
    Late.LATE.set(0);
    Late.ENDS.set(0);
    StreamExecutionEnvironment environment = flink.environment(4);
    List<Long> found =
        collect(
            environment
                .fromSequence(1, 20_000)
                .setParallelism(4)
                .assignTimestampsAndWatermarks(
                    WatermarkStrategy.<Long>forMonotonousTimestamps()
                        .withTimestampAssigner((number, before) -> number))
                .setParallelism(4)
                .rebalance()
                .transform("late", Types.LONG, new Late()));
    assertEquals(20_000, found.size());
    assertTrue(Late.ENDS.get() > 0);
    return Late.LATE.get();
  }

  @Test
  @DisplayName("one join that is split for its skew gives what it gives on Flink's own shuffle")
  void skewedJoin() throws Exception {
    // Nine of ten rows have one key.
    String query =
        "SELECT o_priority, COUNT(*), SUM(l_price) FROM"
            + " (SELECT CASE WHEN MOD(l_orderkey, 10) = 0 THEN l_orderkey ELSE 1 END AS k, l_price,"
            + " l_comment FROM lineitem) JOIN orders ON k = o_orderkey"
            + " WHERE l_comment <> o_comment GROUP BY o_priority";
    List<String> expected;
    try (FlinkCluster flink = FlinkCluster.withOwnShuffle(2, 2)) {
      TableEnvironment tables = flink.tables(4);
      SqlJobs.createTables(tables, 50_000);
      expected = FlinkCluster.rows(tables, query);
    }
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 2, change -> {})) {
      TableEnvironment tables = flink.tables(4);
      for (String[] option :
          new String[][] {
            {"table.optimizer.skewed-join-optimization.strategy", "forced"},
            {"table.optimizer.skewed-join-optimization.skewed-factor", "1.5"},
            {"table.optimizer.skewed-join-optimization.skewed-threshold", "64kb"},
            {"table.optimizer.join.broadcast-threshold", "-1"},
            {"table.optimizer.adaptive-broadcast-join.strategy", "none"},
            {"execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task", "256kb"}
          }) {
        tables.getConfig().set(option[0], option[1]);
      }
      SqlJobs.createTables(tables, 50_000);
      assertEquals(expected, FlinkCluster.rows(tables, query));
      assertFalse(expected.isEmpty());
    }
  }

  /** Its first attempt of one task stands still. */
  static final class Slow extends RichMapFunction<Long, Long> {
    private static final long serialVersionUID = 1L;

    @Override
    public Long map(Long value) throws Exception {
      boolean isSlow =
          getRuntimeContext().getTaskInfo().getIndexOfThisSubtask() == 0
              && getRuntimeContext().getTaskInfo().getAttemptNumber() == 0;
      if (isSlow) {
        Thread.sleep(20);
      }
      return value;
    }
  }

  @Test
  @DisplayName("a slow attempt and its speculative twin don't meet")
  void speculative() throws Exception {
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink =
            new FlinkCluster(
                sluice,
                2,
                3,
                change -> {
                  change.setString("execution.batch.speculative.enabled", "true");
                  // Both TaskManagers are on this host, which must not be avoided.
                  change.setString("execution.batch.speculative.block-slow-node-duration", "0s");
                  change.setString("slow-task-detector.check-interval", "200ms");
                  change.setString(
                      "slow-task-detector.execution-time.baseline-lower-bound", "1s");
                  change.setString("slow-task-detector.execution-time.baseline-multiplier", "1.2");
                })) {
      StreamExecutionEnvironment environment = flink.environment(4);
      List<Tuple2<Integer, Long>> found =
          collect(
              environment
                  .fromSequence(1, 40_000)
                  .setParallelism(4)
                  .map(new Slow())
                  .setParallelism(4)
                  .map(value -> Tuple2.of((int) (value % 3), value))
                  .returns(Types.TUPLE(Types.INT, Types.LONG))
                  .setParallelism(4)
                  .keyBy(pair -> pair.f0)
                  .sum(1));
      assertEquals(40_000L * 40_001 / 2, found.stream().mapToLong(pair -> pair.f1).sum());
      JobID id = flink.onlyJob();
      assertTrue(
          flink.graph(id).getAllVertices().values().stream()
              .flatMap(vertex -> java.util.Arrays.stream(vertex.getTaskVertices()))
              .anyMatch(task -> task.getCurrentExecutions().size() > 1
                  || task.getCurrentExecutionAttempt().getAttemptNumber() > 0),
          "no second attempt ran");
    }
  }

  @Test
  @DisplayName("a task whose input stands still takes no memory that others were promised")
  void stoppedInput() throws Exception {
    HeldJob.consumers = new HeldJob.Controls();
    HeldJob.Controls held = HeldJob.consumers;
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 1, 8, change -> {})) {
      HeldJob.Running stopped = HeldJob.start(HeldJob.build(flink.environment(4), RECORDS, -1, 20_000));
      SluiceCluster.await("consumers hold", () -> held.arrived.get() == 4);
      HeldJob.reset();
      for (int round = 0; round < 3; round++) {
        HeldJob.Running other = HeldJob.start(HeldJob.build(flink.environment(4), RECORDS, -1, -1));
        assertEquals(HeldJob.expected(RECORDS), other.await());
      }
      held.released.countDown();
      assertEquals(HeldJob.expected(RECORDS), stopped.await());
    }
  }

  @Test
  @DisplayName("two clusters that run the same job under the same JobID at once")
  void sameJobId() throws Exception {
    String id = "000000000000000000000000000000aa";
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster one =
            new FlinkCluster(
                sluice, 2, 2, change -> change.setString("$internal.pipeline.job-id", id));
        FlinkCluster two =
            new FlinkCluster(
                sluice, 2, 2, change -> change.setString("$internal.pipeline.job-id", id))) {
      HeldJob.Running first = HeldJob.start(HeldJob.build(one.environment(4), RECORDS, -1, -1));
      HeldJob.Running second = HeldJob.start(HeldJob.build(two.environment(4), RECORDS, -1, -1));
      Map<Integer, Long> expected = HeldJob.expected(RECORDS);
      assertEquals(expected, first.await());
      assertEquals(expected, second.await());
      assertEquals(first.id, second.id);
      assertEquals(0, FlinkCluster.highest(one.attempts(first.id)));
      assertEquals(0, FlinkCluster.highest(two.attempts(second.id)));
    }
  }

  @Test
  @DisplayName("a streaming job takes its checkpoints while batch jobs run beside it")
  void streamingBeside() throws Exception {
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 4, change -> {})) {
      StreamExecutionEnvironment streaming = flink.environment(2);
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
      JobClient stream = streaming.executeAsync("streaming");
      for (int round = 0; round < 2; round++) {
        HeldJob.Running job = HeldJob.start(HeldJob.build(flink.environment(4), RECORDS, -1, -1));
        assertEquals(HeldJob.expected(RECORDS), job.await());
      }
      SluiceCluster.await(
          "checkpoints are taken",
          () -> {
            try {
              CheckpointStatsSnapshot stats =
                  flink.graph(stream.getJobID()).getCheckpointStatsSnapshot();
              return stats.getCounts().getNumberOfCompletedCheckpoints() >= 3;
            } catch (Exception error) {
              return false;
            }
          });
      stream.cancel().get();
      TreeMap<String, List<Integer>> attempts = flink.attempts(stream.getJobID());
      assertEquals(0, FlinkCluster.highest(attempts));
    }
  }
}
