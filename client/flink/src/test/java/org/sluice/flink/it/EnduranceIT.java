package org.sluice.flink.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import javax.management.ObjectName;
import org.apache.flink.api.common.JobStatus;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** What is done often leaves nothing behind. */
@ExtendWith(Progress.class)
class EnduranceIT {
  private static final long RECORDS = 200_000;
  private static final int CANCELS = 20;
  private static final int JOBS = Integer.getInteger("sluice.jobs", 100);
  /** Parts of these jobs, after each of which is looked at what is held. */
  private static final int PARTS = 5;

  @AfterEach
  void letGo() {
    HeldJob.reset();
  }

  /** Where a job is when it is cancelled. */
  private enum Moment {
    WRITING,
    READING,
    BEFORE_READING,
    /** Workers stand still, and a task waits for one of them. */
    WAITING_FOR_WORKERS,
    /** Nothing is held: tasks go on while they are cancelled. */
    RUNNING
  }

  private static void awaitNothingLeft(SluiceCluster sluice, FlinkCluster flink) {
    SluiceCluster.await("the job is gone", () -> sluice.jobs().isEmpty());
    for (String metric :
        List.of(
            "sluice_worker_channels",
            "sluice_worker_partitions",
            "sluice_worker_partitions_listed",
            "sluice_worker_buffers_held",
            "sluice_worker_memory_waiters")) {
      SluiceCluster.await(metric + " is 0", () -> sluice.workerMetric(metric) == 0);
    }
    SluiceCluster.await("no file is left", () -> sluice.storedFiles().isEmpty());
    SluiceCluster.await("no thread of a task is left", () -> threadsOfTasks().isEmpty());
    SluiceCluster.await("no buffer is left", () -> flink.usedNetworkBuffers(sluice) == 0);
  }

  private static List<String> threadsOfTasks() {
    List<String> names = new ArrayList<>();
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      ThreadGroup group = thread.getThreadGroup();
      if (group != null && group.getName().equals("Flink Task Threads")) {
        names.add(thread.getName());
      }
    }
    return names;
  }

  /** The plugin's own threads, which live as long as the TaskManagers. */
  private static long threadsOfPlugin() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith("sluice-"))
        .count();
  }

  private static boolean waitsForWorker() {
    for (Map.Entry<Thread, StackTraceElement[]> entry : Thread.getAllStackTraces().entrySet()) {
      Thread.State state = entry.getKey().getState();
      boolean waits = state == Thread.State.WAITING || state == Thread.State.TIMED_WAITING;
      if (waits
          && Arrays.stream(entry.getValue())
              .anyMatch(frame -> frame.getClassName().startsWith("org.sluice.flink.write."))) {
        return true;
      }
    }
    return false;
  }

  @Test
  @DisplayName("twenty jobs cancelled at random leave no buffer, channel, thread, partition or file")
  void cancelledAtAnyTime() throws Exception {
    Random random = new Random(11);
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink =
            new FlinkCluster(
                sluice,
                2,
                2,
                change -> {
                  change.setString("remote-shuffle.job.memory-per-partition", "1mb");
                  change.setString("metrics.fetcher.update-interval", "100");
                })) {
      runOne(sluice, flink, RECORDS);
      long threads = threadsOfPlugin();
      for (int round = 0; round < CANCELS; round++) {
        Moment moment = Moment.values()[round % Moment.values().length];
        System.out.println("cancel " + round + ": " + moment);
        cancelOne(sluice, flink, moment, random);
        awaitNothingLeft(sluice, flink);
        assertEquals(threads, threadsOfPlugin());
      }
      runOne(sluice, flink, RECORDS);
    }
  }

  private static void cancelOne(
      SluiceCluster sluice, FlinkCluster flink, Moment moment, Random random) throws Exception {
    HeldJob.Controls held = new HeldJob.Controls();
    int at = random.nextInt(40_000);
    boolean inProducers = moment == Moment.WRITING || moment == Moment.WAITING_FOR_WORKERS;
    if (inProducers) {
      HeldJob.producers = held;
    } else if (moment != Moment.RUNNING) {
      HeldJob.consumers = held;
    }
    HeldJob.CONSUMED.set(0);
    HeldJob.Running job =
        HeldJob.start(
            HeldJob.build(
                flink.environment(4),
                RECORDS,
                at,
                moment == Moment.BEFORE_READING ? HeldJob.BEFORE_READING : at));
    if (moment == Moment.RUNNING) {
      SluiceCluster.await("records arrive", () -> HeldJob.CONSUMED.get() > at);
    } else {
      SluiceCluster.await("a task holds", () -> held.arrived.get() > 0);
    }
    if (moment == Moment.WAITING_FOR_WORKERS) {
      sluice.pauseWorkers();
      HeldJob.reset();
      held.released.countDown();
      SluiceCluster.await("a task waits for a worker", EnduranceIT::waitsForWorker);
    }
    job.client.cancel().get();
    // Tasks end whether workers answer or not.
    SluiceCluster.await("no thread of a task is left", () -> threadsOfTasks().isEmpty());
    SluiceCluster.await(
        "the job is cancelled", () -> flink.stateOf(job.id) == JobStatus.CANCELED);
    sluice.resumeWorkers();
    HeldJob.reset();
    held.released.countDown();
  }

  private static void runOne(SluiceCluster sluice, FlinkCluster flink, long records)
      throws Exception {
    long before = sluice.committedBytes();
    HeldJob.Running job = HeldJob.start(HeldJob.build(flink.environment(4), records, -1, -1));
    assertEquals(HeldJob.expected(records), job.await());
    flink.assertExchanged(sluice, job.id, before);
  }

  @Test
  @Timeout(value = 20, unit = TimeUnit.MINUTES)
  @DisplayName("a hundred jobs in a row grow neither heap nor threads nor sockets nor files")
  void manyJobs() throws Exception {
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink =
            new FlinkCluster(
                sluice,
                2,
                2,
                change -> {
                  change.setString("jobstore.max-capacity", "2");
                  change.setString("web.checkpoints.history", "1");
                  change.setString("metrics.fetcher.update-interval", "100");
                })) {
      for (int round = 0; round < Math.max(5, JOBS / 5); round++) {
        runOne(sluice, flink, 20_000);
      }
      awaitNothingLeft(sluice, flink);
      List<Footprint> footprints = new ArrayList<>(List.of(new Footprint(sluice)));
      for (int part = 1; part <= PARTS; part++) {
        for (int round = 0; round < JOBS / PARTS; round++) {
          runOne(sluice, flink, 20_000);
        }
        awaitNothingLeft(sluice, flink);
        footprints.add(new Footprint(sluice));
        System.out.println(part * JOBS / PARTS + " jobs done");
      }
      Footprint before = footprints.get(0);
      Footprint after = footprints.get(PARTS);
      String figures =
          footprints.stream()
              .map(String::valueOf)
              .collect(Collectors.joining("; ", JOBS + " jobs: ", ""));
      System.out.println(figures);
      // A pool of Netty's takes four megabytes at once, now or later; what leaks grows in every part.
      assertTrue(
          medianGrowth(footprints) < (8 << 20) / PARTS, () -> figures + after.largestClasses());
      assertTrue(after.threads - before.threads < 10, figures);
      assertTrue(after.sockets - before.sockets < 10, figures);
      assertTrue(after.files - before.files < 10, figures);
      assertTrue(after.serviceDescriptors - before.serviceDescriptors < 10, figures);
    }
  }

  private static long medianGrowth(List<Footprint> footprints) {
    long[] growths = new long[PARTS];
    for (int part = 0; part < PARTS; part++) {
      growths[part] = footprints.get(part + 1).heapBytes - footprints.get(part).heapBytes;
    }
    Arrays.sort(growths);
    return growths[PARTS / 2];
  }

  /** What this process, with all of Flink in it, and the services hold. */
  private static final class Footprint {
    final long heapBytes;
    final long threads;
    final long sockets;
    final long files;
    final long serviceDescriptors;

    private final String histogram;

    Footprint(SluiceCluster sluice) throws Exception {
      // What is alive, object by object: what the heap has in use counts garbage made since the last
      // collection and the gaps beside large objects too, by tens of megabytes on a busy machine.
      String smallest = null;
      for (int round = 0; round < 3; round++) {
        Thread.sleep(500);
        String taken = aliveByClass();
        if (smallest == null || totalBytes(taken) < totalBytes(smallest)) {
          smallest = taken;
        }
      }
      histogram = smallest;
      heapBytes = totalBytes(smallest);
      threads = ManagementFactory.getThreadMXBean().getThreadCount();
      List<String> open = SluiceCluster.descriptorsOf("self");
      sockets = open.stream().filter(target -> target.startsWith("socket:")).count();
      files = open.size() - sockets;
      serviceDescriptors = sluice.serviceDescriptors();
    }

    /** Collects first. A line for each class, the largest first; the last line has the total. */
    private static String aliveByClass() throws Exception {
      return (String)
          ManagementFactory.getPlatformMBeanServer()
              .invoke(
                  new ObjectName("com.sun.management:type=DiagnosticCommand"),
                  "gcClassHistogram",
                  new Object[] {new String[0]},
                  new String[] {String[].class.getName()});
    }

    private static long totalBytes(String histogram) {
      String[] total = histogram.stripTrailing().replaceAll("(?s).*\n", "").trim().split("\\s+");
      assertEquals("Total", total[0]);
      return Long.parseLong(total[2]);
    }

    String largestClasses() {
      return histogram.lines().limit(40).collect(Collectors.joining("\n", "\n", ""));
    }

    @Override
    public String toString() {
      return String.format(
          "%d KiB of heap, %d threads, %d sockets, %d other descriptors, %d in the services",
          heapBytes >> 10, threads, sockets, files, serviceDescriptors);
    }
  }
}
