package org.sluice.flink.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.UnixOperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Random;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What is done often leaves nothing behind. */
@ExtendWith(Progress.class)
class EnduranceIT {
  private static final long RECORDS = 200_000;
  private static final int JOBS = Integer.getInteger("sluice.jobs", 100);

  @AfterEach
  void letGo() {
    HeldJob.reset();
  }

  private static void awaitNothingLeft(SluiceCluster sluice, FlinkCluster flink) {
    SluiceCluster.await("the job is gone", () -> sluice.jobs().isEmpty());
    SluiceCluster.await(
        "no channel is left", () -> sluice.workerMetric("sluice_worker_channels") == 0);
    SluiceCluster.await("no file is left", () -> isWithoutFiles(sluice));
    SluiceCluster.await("no buffer is left", () -> flink.usedNetworkBuffers(sluice) == 0);
  }

  private static boolean isWithoutFiles(SluiceCluster sluice) {
    try {
      return sluice.partitionFiles().isEmpty();
    } catch (java.io.IOException error) {
      return false;
    }
  }

  @Test
  @DisplayName("jobs that are cancelled at twenty times leave no buffer, channel, partition or file")
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
      for (int round = 0; round < 20; round++) {
        boolean inProducers = round % 2 == 0;
        HeldJob.Controls held = new HeldJob.Controls();
        if (inProducers) {
          HeldJob.producers = held;
        } else {
          HeldJob.consumers = held;
        }
        int at = random.nextInt(45_000);
        HeldJob.Running job =
            HeldJob.start(HeldJob.build(flink.environment(4), RECORDS, at, at));
        SluiceCluster.await("a task holds", () -> held.arrived.get() > 0);
        job.client.cancel().get();
        HeldJob.reset();
        held.released.countDown();
        awaitNothingLeft(sluice, flink);
      }
      HeldJob.Running job = HeldJob.start(HeldJob.build(flink.environment(4), RECORDS, -1, -1));
      assertEquals(HeldJob.expected(RECORDS), job.await());
    }
  }

  @Test
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
                  change.setString("metrics.fetcher.update-interval", "100");
                })) {
      int warmUp = Math.max(5, JOBS / 10);
      run(sluice, flink, warmUp);
      long[] before = measure();
      run(sluice, flink, JOBS);
      long[] after = measure();
      String figures =
          "heap " + before[0] + " to " + after[0] + " bytes, threads " + before[1] + " to " + after[1]
              + ", descriptors " + before[2] + " to " + after[2];
      assertTrue(after[0] - before[0] < (48 << 20), figures);
      assertTrue(after[1] - before[1] < 20, figures);
      assertTrue(after[2] - before[2] < 20, figures);
      assertEquals(List.of(), sluice.partitionFiles());
    }
  }

  private static void run(SluiceCluster sluice, FlinkCluster flink, int count) throws Exception {
    for (int round = 0; round < count; round++) {
      HeldJob.Running job = HeldJob.start(HeldJob.build(flink.environment(4), 20_000, -1, -1));
      assertEquals(HeldJob.expected(20_000), job.await());
    }
    awaitNothingLeft(sluice, flink);
  }

  /** Heap in use, threads, file descriptors. */
  private static long[] measure() throws InterruptedException {
    long heap = Long.MAX_VALUE;
    for (int round = 0; round < 5; round++) {
      System.gc();
      heap = Math.min(heap, ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed());
    }
    UnixOperatingSystemMXBean system =
        (UnixOperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    return new long[] {
      heap,
      ManagementFactory.getThreadMXBean().getThreadCount(),
      system.getOpenFileDescriptorCount()
    };
  }
}
