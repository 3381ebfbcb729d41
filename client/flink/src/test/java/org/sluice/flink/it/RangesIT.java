package org.sluice.flink.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.table.api.TableEnvironment;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.sluice.flink.FlinkLine;

/** Tasks that read several subpartitions of a result, or different ones of each producer. */
@ExtendWith(Progress.class)
class RangesIT {
  private static final String ADAPTIVE = "execution.batch.adaptive.auto-parallelism.";

  /** Results have so many subpartitions, and a consumer reads about so much of them. */
  private static Consumer<Configuration> adaptive(int subpartitions, String volume) {
    return change -> {
      change.setString(ADAPTIVE + "min-parallelism", "1");
      change.setString(ADAPTIVE + "max-parallelism", String.valueOf(subpartitions));
      change.setString(ADAPTIVE + "avg-data-volume-per-task", volume);
    };
  }

  @Test
  @DisplayName("consumers that are fewer than subpartitions read ranges of them, each once")
  void ranges() throws Exception {
    int keys = 30_000;
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink =
            new FlinkCluster(sluice, 2, 2, FlinkCluster.heard(adaptive(64, "256kb")))) {
      StreamExecutionEnvironment environment = flink.environment(4);
      FlinkCluster.Collected<Tuple2<Long, Long>> found =
          FlinkCluster.collect(
              environment
                  .fromSequence(1, 4L * keys)
                  .setParallelism(4)
                  .map(number -> Tuple2.of(number % keys, number))
                  .returns(Types.TUPLE(Types.LONG, Types.LONG))
                  .setParallelism(4)
                  .keyBy(pair -> pair.f0)
                  .sum(1)
                  .name("sums"));
      Map<Long, Long> sums = new HashMap<>();
      for (long number = 1; number <= 4L * keys; number++) {
        sums.merge(number % keys, number, Long::sum);
      }
      Map<Long, Long> actual = new HashMap<>();
      found.records.forEach(pair -> actual.put(pair.f0, pair.f1));
      assertEquals(sums, actual);
      assertEquals(keys, found.records.size());
      flink.assertExchanged(sluice, found.job, 0);

      List<ListeningFactory.Gate> gates = ListeningFactory.gatesOf("sums");
      assertTrue(gates.size() > 1, "one consumer only: " + gates);
      Set<Integer> read = new HashSet<>();
      for (ListeningFactory.Gate gate : gates) {
        assertEquals(1, gate.ranges().size(), gate.toString());
        assertTrue(gate.widest() > 1, gate.toString());
        for (int index = gate.inputs.get(0).first; index <= gate.inputs.get(0).last; index++) {
          assertTrue(read.add(index), "read twice: " + index);
        }
      }
      assertEquals(64, read.size());
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
    try (FlinkCluster flink = FlinkCluster.withOwnShuffle(2, 2, adaptive(32, "64kb"))) {
      assertEquals(0, countLate(flink), "on Flink's own shuffle");
    }
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink =
            new FlinkCluster(sluice, 2, 2, FlinkCluster.heard(adaptive(32, "64kb")))) {
      assertEquals(0, countLate(flink));
      List<ListeningFactory.Gate> gates = ListeningFactory.gatesOf("late");
      assertFalse(gates.isEmpty());
      for (ListeningFactory.Gate gate : gates) {
        assertTrue(gate.widest() > 1, gate.toString());
      }
    }
  }

  private static int countLate(FlinkCluster flink) throws Exception {
    Late.LATE.set(0);
    Late.ENDS.set(0);
    List<Long> found =
        FlinkCluster.collect(
                flink
                    .environment(4)
                    .fromSequence(1, 20_000)
                    .setParallelism(4)
                    .assignTimestampsAndWatermarks(
                        WatermarkStrategy.<Long>forMonotonousTimestamps()
                            .withTimestampAssigner((number, before) -> number))
                    .setParallelism(4)
                    .rebalance()
                    .transform("late", Types.LONG, new Late()))
            .records;
    assertEquals(20_000, new HashSet<>(found).size());
    assertEquals(20_000, found.size());
    assertTrue(Late.ENDS.get() > 0, "no watermark came");
    return Late.LATE.get();
  }

  /**
   * Nine of ten rows have one key. The keys of both sides are computed, so that each side is hashed
   * right before the join: an exchange that Flink moves farther up is not split.
   */
  private static final String SKEWED =
      "SELECT o_priority, COUNT(*), SUM(l_price), MIN(l_comment) FROM"
          + " (SELECT CASE WHEN MOD(l_orderkey, 10) = 0 THEN l_orderkey ELSE 1 END AS k, l_price,"
          + " l_comment FROM lineitem) JOIN orders ON k = MOD(o_orderkey, 1000003)"
          + " WHERE l_comment <> o_comment GROUP BY o_priority";

  private static void splitting(Configuration change) {
    // A producer's part of the skewed subpartition, and little more.
    adaptive(16, "4400kb").accept(change);
    change.setString(ADAPTIVE + "default-source-parallelism", "8");
    change.setString("table.optimizer.skewed-join-optimization.strategy", "forced");
    change.setString("table.optimizer.skewed-join-optimization.skewed-factor", "2");
    change.setString("table.optimizer.skewed-join-optimization.skewed-threshold", "256kb");
    change.setString("table.optimizer.join.broadcast-threshold", "-1");
    change.setString("table.optimizer.adaptive-broadcast-join.strategy", "none");
    change.setString("table.optimizer.multiple-input-enabled", "false");
  }

  @Test
  @DisplayName("a join whose skew Flink splits: ranges differ from producer to producer")
  void skewedJoin() throws Exception {
    List<String> expected;
    try (FlinkCluster flink = FlinkCluster.withOwnShuffle(2, 4, RangesIT::splitting)) {
      expected = skewed(flink).sorted();
    }
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink =
            new FlinkCluster(sluice, 2, 4, FlinkCluster.heard(RangesIT::splitting))) {
      FlinkCluster.Answer answer = skewed(flink);
      assertFalse(answer.rows.isEmpty());
      assertEquals(expected, answer.sorted());
      flink.assertExchanged(sluice, answer.job, 0);
      List<ListeningFactory.Gate> gates = ListeningFactory.gatesOf("Join");
      assertTrue(gates.size() > 2, gates.toString());
      if (FlinkLine.NAME.startsWith("1.")) {
        System.out.println(
            "Flink " + FlinkLine.NAME + " splits no skewed join: only the result was compared");
        return;
      }
      assertTrue(
          gates.stream().anyMatch(gate -> gate.ranges().size() > 1),
          "no gate has ranges that differ: " + gates);
      assertTrue(
          gates.stream().anyMatch(gate -> gate.inputs.size() < gate.named),
          "no gate leaves producers out: " + gates);
      assertReadOnceOrBySplit(gates);
    }
  }

  private static FlinkCluster.Answer skewed(FlinkCluster flink) throws Exception {
    TableEnvironment tables = flink.adaptiveTables();
    SqlJobs.createTables(tables, 50_000);
    return FlinkCluster.ask(tables, SKEWED);
  }

  /** One side is divided, so of one of the two results nothing is read twice. */
  private static void assertReadOnceOrBySplit(List<ListeningFactory.Gate> gates) {
    Map<Object, List<String>> readOf = new HashMap<>();
    for (ListeningFactory.Gate gate : gates) {
      for (ListeningFactory.Input input : gate.inputs) {
        for (int index = input.first; index <= input.last; index++) {
          readOf
              .computeIfAbsent(gate.result, result -> new ArrayList<>())
              .add(input.producer + ":" + index);
        }
      }
    }
    assertEquals(2, readOf.size(), "a join of two results");
    assertTrue(
        readOf.values().stream().anyMatch(read -> read.size() == new HashSet<>(read).size()),
        "both sides were read twice");
    assertTrue(
        readOf.values().stream().anyMatch(read -> read.size() > new HashSet<>(read).size()),
        "no side was read by several tasks: nothing was split");
  }
}
