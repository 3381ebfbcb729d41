package org.sluice.flink.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.JoinFunction;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.operators.Order;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.executiongraph.AccessExecutionJobVertex;
import org.apache.flink.runtime.executiongraph.AccessExecutionVertex;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.table.api.TableEnvironment;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Jobs of many shapes give the right results, and what they exchange lies on the workers. */
@ExtendWith(Progress.class)
class JobShapesIT {
  @Test
  @DisplayName("a sort of a DataStream: each task gets a range of keys and sorts it")
  void sort() throws Exception {
    int count = 200_000;
    int tasks = 4;
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 2, change -> {})) {
      FlinkCluster.Collected<Tuple3<Integer, Long, String>> found =
          FlinkCluster.collect(
              flink
                  .environment(tasks)
                  .fromSequence(0, count - 1)
                  // 7919 and the count have no divisor in common: each number comes once.
                  .map(number -> Tuple2.of(number * 7919 % count, "record " + number))
                  .returns(Types.TUPLE(Types.LONG, Types.STRING))
                  .partitionCustom(
                      (key, consumers) -> (int) (key * consumers / count), pair -> pair.f0)
                  .fullWindowPartition()
                  .sortPartition(new KeyOf(), Order.ASCENDING)
                  .setParallelism(tasks)
                  .map(new WithTask())
                  .setParallelism(tasks));
      assertEquals(count, found.records.size());
      Map<Integer, Long> last = new HashMap<>();
      Set<Long> keys = new HashSet<>();
      for (Tuple3<Integer, Long, String> record : found.records) {
        assertTrue(last.getOrDefault(record.f0, -1L) < record.f1, "task " + record.f0);
        last.put(record.f0, record.f1);
        keys.add(record.f1);
        assertEquals(record.f0, (int) (record.f1 * tasks / count));
      }
      assertEquals(count, keys.size());
      assertEquals(tasks, last.size());
      assertTrue(flink.assertExchanged(sluice, found.job, 0) > 20L * count);
    }
  }

  /** The key of a pair; a class, because Flink has to see its type. */
  static final class KeyOf implements KeySelector<Tuple2<Long, String>, Long> {
    private static final long serialVersionUID = 1L;

    @Override
    public Long getKey(Tuple2<Long, String> pair) {
      return pair.f0;
    }
  }

  /** Joins two records to one. */
  static final class Both
      implements JoinFunction<Tuple2<Long, String>, Tuple2<Long, String>, Tuple2<Long, String>> {
    private static final long serialVersionUID = 1L;

    @Override
    public Tuple2<Long, String> join(Tuple2<Long, String> left, Tuple2<Long, String> right) {
      return Tuple2.of(left.f0, left.f1 + " " + right.f1);
    }
  }

  /** Puts the number of its task before each record. */
  static final class WithTask
      extends RichMapFunction<Tuple2<Long, String>, Tuple3<Integer, Long, String>> {
    private static final long serialVersionUID = 1L;

    @Override
    public Tuple3<Integer, Long, String> map(Tuple2<Long, String> pair) {
      return Tuple3.of(
          getRuntimeContext().getTaskInfo().getIndexOfThisSubtask(), pair.f0, pair.f1);
    }
  }

  @Test
  @DisplayName("a join of two DataStreams: each pair comes once")
  void join() throws Exception {
    int count = 50_000;
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 2, change -> {})) {
      StreamExecutionEnvironment environment = flink.environment(4);
      FlinkCluster.Collected<Tuple2<Long, String>> found =
          FlinkCluster.collect(
              numbered(environment, count, "left")
                  // Each number of the left has two on the right.
                  .join(numbered(environment, count * 2, "right"))
                  .where(pair -> pair.f0)
                  .equalTo(pair -> pair.f0 / 2)
                  .window(TumblingEventTimeWindows.of(Duration.ofDays(1)))
                  .apply(new Both()));
      Set<String> expected = new HashSet<>();
      for (int number = 0; number < 2 * count; number++) {
        expected.add("left" + number / 2 + " right" + number);
      }
      Set<String> actual = new HashSet<>();
      for (Tuple2<Long, String> pair : found.records) {
        assertTrue(actual.add(pair.f1), "twice: " + pair);
      }
      assertEquals(expected, actual);
      flink.assertExchanged(sluice, found.job, 0);
    }
  }

  private static DataStream<Tuple2<Long, String>> numbered(
      StreamExecutionEnvironment environment, int count, String name) {
    return environment
        .fromSequence(0, count - 1)
        .map(number -> Tuple2.of(number, name + number))
        .returns(Types.TUPLE(Types.LONG, Types.STRING))
        .assignTimestampsAndWatermarks(
            WatermarkStrategy.<Tuple2<Long, String>>forMonotonousTimestamps()
                .withTimestampAssigner((pair, before) -> 1000));
  }

  /** Counts what its tasks see. */
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
    int count = 50_000;
    for (String scheduler : List.of("AdaptiveBatch", "Default")) {
      Count.SEEN.set(0);
      try (SluiceCluster sluice = new SluiceCluster(2);
          FlinkCluster flink =
              new FlinkCluster(
                  sluice, 2, 2, change -> change.setString("jobmanager.scheduler", scheduler))) {
        FlinkCluster.Collected<Tuple2<Integer, Long>> found =
            FlinkCluster.collect(
                flink
                    .environment(4)
                    .fromSequence(1, count)
                    .setParallelism(2)
                    .broadcast()
                    .map(new Count())
                    .setParallelism(4)
                    .map(value -> Tuple2.of(0, value))
                    .returns(Types.TUPLE(Types.INT, Types.LONG))
                    .setParallelism(4)
                    .keyBy(pair -> pair.f0)
                    .sum(1));
        long sum = found.records.stream().mapToLong(pair -> pair.f1).sum();
        assertEquals(4L * count * (count + 1) / 2, sum, scheduler);
        assertEquals(4L * count, Count.SEEN.get(), scheduler);
        long told = flink.assertExchanged(sluice, found.job, 0);
        // Four consumers read it, but its bytes lie on the disks once: 13 for each record.
        double stored = sluice.workerMetric("sluice_worker_partitions_committed_bytes_total");
        assertTrue(
            scheduler.equals("AdaptiveBatch") || stored < told, stored + " stored of " + told);
      }
    }
  }

  /** However little there is to read. */
  private static void fourTasks(Configuration change) {
    String adaptive = "execution.batch.adaptive.auto-parallelism.";
    change.setString(adaptive + "min-parallelism", "4");
    change.setString(adaptive + "max-parallelism", "4");
    change.setString(adaptive + "default-source-parallelism", "4");
  }

  @Test
  @DisplayName("a table that is broadcast to a join gives what it gives on Flink's own shuffle")
  void broadcastJoin() throws Exception {
    String query =
        "SELECT /*+ BROADCAST(customer) */ c_nation, COUNT(*), SUM(o_orderkey) FROM orders"
            + " JOIN customer ON o_custkey = c_custkey GROUP BY c_nation";
    List<String> expected;
    try (FlinkCluster flink = FlinkCluster.withOwnShuffle(2, 2, JobShapesIT::fourTasks)) {
      TableEnvironment tables = flink.adaptiveTables();
      SqlJobs.createTables(tables, 50_000);
      expected = FlinkCluster.ask(tables, query).sorted();
    }
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink =
            new FlinkCluster(sluice, 2, 2, FlinkCluster.heard(JobShapesIT::fourTasks))) {
      TableEnvironment tables = flink.adaptiveTables();
      SqlJobs.createTables(tables, 50_000);
      assertTrue(tables.explainSql(query).contains("broadcast"), tables.explainSql(query));
      FlinkCluster.Answer answer = FlinkCluster.ask(tables, query);
      assertEquals(expected, answer.sorted());
      assertEquals(25, answer.rows.size());
      flink.assertExchanged(sluice, answer.job, 0);
      List<ListeningFactory.Gate> gates = ListeningFactory.gatesOf("Join");
      assertTrue(gates.stream().map(gate -> gate.attempt).distinct().count() > 1, "one task joins");
    }
  }

  @Test
  @DisplayName("producers that emit nothing at all end like all others")
  void nothing() throws Exception {
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 2, change -> {})) {
      StreamExecutionEnvironment environment = flink.environment(4);
      DataStream<Long> silent =
          environment.fromSequence(1, 1000).filter(number -> number < 0).name("silent");
      DataStream<Long> speaking =
          environment.fromSequence(1, 1000).filter(number -> number == 77).name("speaking");
      FlinkCluster.Collected<Tuple2<Long, Long>> found =
          FlinkCluster.collect(
              silent
                  .union(speaking)
                  .map(number -> Tuple2.of(number, number))
                  .returns(Types.TUPLE(Types.LONG, Types.LONG))
                  .keyBy(pair -> pair.f0)
                  .sum(1));
      assertEquals(List.of(Tuple2.of(77L, 77L)), found.records);
      flink.assertExchanged(sluice, found.job, 0);
      assertSaidNothing(flink, found.job);

      // Nor does anything come of a job in which nobody says anything.
      StreamExecutionEnvironment other = flink.environment(4);
      FlinkCluster.Collected<Long> none =
          FlinkCluster.collect(
              other
                  .fromSequence(1, 1000)
                  .filter(number -> number < 0)
                  .name("silent")
                  .rebalance()
                  .map(number -> number)
                  .returns(Types.LONG));
      assertEquals(List.of(), none.records);
      assertSaidNothing(flink, none.job);
      SluiceCluster.await("everything is released", () -> sluice.partitions().isEmpty());
    }
  }

  /** The silent tasks wrote no record, and only their ends as bytes. */
  private static void assertSaidNothing(FlinkCluster flink, JobID job) throws Exception {
    int tasks = 0;
    for (AccessExecutionJobVertex vertex : flink.ended(job).getAllVertices().values()) {
      if (!vertex.getName().contains("silent") || vertex.getName().contains("speaking")) {
        continue;
      }
      for (AccessExecutionVertex task : vertex.getTaskVertices()) {
        long records =
            task.getCurrentExecutionAttempt().getIOMetrics().getNumRecordsOut();
        long bytes = task.getCurrentExecutionAttempt().getIOMetrics().getNumBytesOut();
        assertEquals(0, records, vertex.getName());
        assertTrue(bytes > 0 && bytes < 1000, vertex.getName() + " wrote " + bytes + " bytes");
        tasks++;
      }
    }
    assertTrue(tasks >= 4, "the silent tasks were not found");
  }

  @Test
  @DisplayName("records of no bytes, and of 100 KB to 10 MB, arrive as they were")
  void recordSizes() throws Exception {
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink =
            new FlinkCluster(
                sluice,
                2,
                2,
                change -> change.setString("remote-shuffle.job.memory-per-partition", "1mb"))) {
      FlinkCluster.Collected<Tuple2<Integer, Integer>> found =
          FlinkCluster.collect(
              flink
                  .environment(2)
                  .fromSequence(0, RECORD_SIZES.length * 3 - 1)
                  .setParallelism(2)
                  .map(JobShapesIT::recordOf)
                  .returns(byte[].class)
                  .setParallelism(2)
                  .rebalance()
                  .map(bytes -> Tuple2.of(bytes.length, Arrays.hashCode(bytes)))
                  .returns(Types.TUPLE(Types.INT, Types.INT))
                  .setParallelism(2));
      List<String> expected = new ArrayList<>();
      long sum = 0;
      for (long number = 0; number < RECORD_SIZES.length * 3; number++) {
        byte[] bytes = recordOf(number);
        expected.add(Tuple2.of(bytes.length, Arrays.hashCode(bytes)).toString());
        sum += bytes.length;
      }
      List<String> actual = new ArrayList<>();
      found.records.forEach(pair -> actual.add(pair.toString()));
      Collections.sort(expected);
      Collections.sort(actual);
      assertEquals(expected, actual);
      assertTrue(flink.assertExchanged(sluice, found.job, 0) > sum);
    }
  }

  private static final int[] RECORD_SIZES = {
    0, 1, 100_000, 0, 500_000, 1_000_000, 32 << 10, 2_500_000, 0, 1 << 20, 5_000_000, 10_000_000
  };

  private static byte[] recordOf(long number) {
    byte[] bytes = new byte[RECORD_SIZES[(int) (number % RECORD_SIZES.length)]];
    new Random(number).nextBytes(bytes);
    return bytes;
  }

  @Test
  @DisplayName("128 producers and 128 consumers")
  void manyTasks() throws Exception {
    long records = 200_000;
    try (SluiceCluster sluice = new SluiceCluster(3);
        FlinkCluster flink =
            new FlinkCluster(sluice, 2, 4, FlinkCluster.heard(change -> {}))) {
      HeldJob.Running job = HeldJob.start(HeldJob.build(flink.environment(128), records, -1, -1));
      assertEquals(HeldJob.expected(records), job.await());
      flink.assertExchanged(sluice, job.id, 0);
      long wide =
          ListeningFactory.GATES.stream().filter(gate -> gate.inputs.size() == 128).count();
      assertTrue(wide >= 128, wide + " tasks read from 128 producers");
      assertFalse(ListeningFactory.RESULTS.stream().noneMatch(it -> it.subpartitions == 128));
    }
  }
}
