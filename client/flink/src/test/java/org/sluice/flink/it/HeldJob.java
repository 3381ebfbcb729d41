package org.sluice.flink.it;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.CloseableIterator;

/**
 * A job of three stages that stands still where a test wants it to: the tasks that produce, or those
 * that consume, at a record of their own. The tasks run in this process, so statics reach them.
 */
final class HeldJob {
  /** What the tasks of a running test obey. */
  static final class Controls {
    final AtomicInteger arrived = new AtomicInteger();
    final CountDownLatch released = new CountDownLatch(1);
    private final int heldMax;

    Controls() {
      this(Integer.MAX_VALUE);
    }

    /** Holds the first so many that arrive, and lets the others pass. */
    Controls(int heldMax) {
      this.heldMax = heldMax;
    }

    void hold() throws InterruptedException {
      // The test counts those that arrived: at most as many as are held.
      if (arrived.getAndUpdate(count -> Math.min(count + 1, heldMax)) < heldMax) {
        released.await();
      }
    }
  }

  /** In place of a record's number: before a consumer has read anything. */
  static final long BEFORE_READING = -2;

  static volatile Controls producers;
  static volatile Controls consumers;

  /** Records that consumers have seen, of all jobs since a test set it to 0. */
  static final AtomicLong CONSUMED = new AtomicLong();

  private static final String FILLER = "x".repeat(60);

  private HeldJob() {}

  private static void hold(Controls controls) throws InterruptedException {
    if (controls != null) {
      controls.hold();
    }
  }

  /** Makes a record of about 100 bytes of each number. */
  static final class Produce extends RichMapFunction<Long, Tuple2<Long, String>> {
    private static final long serialVersionUID = 1L;
    private final long holdAt;
    private long seen;

    Produce(long holdAt) {
      this.holdAt = holdAt;
    }

    @Override
    public Tuple2<Long, String> map(Long number) throws Exception {
      if (seen++ == holdAt) {
        hold(producers);
      }
      return Tuple2.of(number, FILLER + Long.toHexString(number * 0x9E3779B97F4A7C15L));
    }
  }

  /** Checks the record and passes its number on. */
  static final class Consume extends RichMapFunction<Tuple2<Long, String>, Tuple2<Integer, Long>> {
    private static final long serialVersionUID = 1L;
    private final long holdAt;
    private long seen;

    Consume(long holdAt) {
      this.holdAt = holdAt;
    }

    @Override
    public void open(OpenContext context) throws Exception {
      if (holdAt == BEFORE_READING) {
        hold(consumers);
      }
    }

    @Override
    public Tuple2<Integer, Long> map(Tuple2<Long, String> record) throws Exception {
      if (seen++ == holdAt) {
        hold(consumers);
      }
      CONSUMED.incrementAndGet();
      if (!record.f1.equals(FILLER + Long.toHexString(record.f0 * 0x9E3779B97F4A7C15L))) {
        throw new IllegalStateException("a record has changed");
      }
      return Tuple2.of((int) (record.f0 % 11), record.f0);
    }
  }

  static void reset() {
    producers = null;
    consumers = null;
  }

  /** Sums by key; producers and consumers hold at their record of that number, if so controlled. */
  static DataStream<Tuple2<Integer, Long>> build(
      StreamExecutionEnvironment environment, long records, long produceHoldAt, long consumeHoldAt) {
    // What is not set here is decided by how much was produced.
    int parallelism = environment.getParallelism();
    return environment
        .fromSequence(1, records)
        .setParallelism(parallelism)
        .map(new Produce(produceHoldAt))
        .setParallelism(parallelism)
        .returns(Types.TUPLE(Types.LONG, Types.STRING))
        .rebalance()
        .map(new Consume(consumeHoldAt))
        .setParallelism(parallelism)
        .returns(Types.TUPLE(Types.INT, Types.LONG))
        .keyBy(pair -> pair.f0)
        .sum(1);
  }

  static Map<Integer, Long> expected(long records) {
    Map<Integer, Long> sums = new HashMap<>();
    for (long number = 1; number <= records; number++) {
      sums.merge((int) (number % 11), number, Long::sum);
    }
    return sums;
  }

  /** A job that runs in the background. */
  static final class Running {
    final JobID id;
    final JobClient client;
    final CompletableFuture<Map<Integer, Long>> result;

    Running(JobID id, JobClient client, CompletableFuture<Map<Integer, Long>> result) {
      this.id = id;
      this.client = client;
      this.result = result;
    }

    Map<Integer, Long> await() throws Exception {
      return result.get(5, TimeUnit.MINUTES);
    }
  }

  static Running start(DataStream<Tuple2<Integer, Long>> sums) throws Exception {
    CloseableIterator<Tuple2<Integer, Long>> rows = sums.collectAsync();
    JobClient client = sums.getExecutionEnvironment().executeAsync("held job");
    CompletableFuture<Map<Integer, Long>> result = new CompletableFuture<>();
    Thread thread =
        new Thread(
            () -> {
              Map<Integer, Long> found = new HashMap<>();
              try (CloseableIterator<Tuple2<Integer, Long>> open = rows) {
                open.forEachRemaining(pair -> found.put(pair.f0, pair.f1));
                result.complete(found);
              } catch (Exception error) {
                result.completeExceptionally(error);
              }
            });
    thread.setDaemon(true);
    thread.start();
    return new Running(client.getJobID(), client, result);
  }
}
