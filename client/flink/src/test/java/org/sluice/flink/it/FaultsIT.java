package org.sluice.flink.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.apache.flink.configuration.Configuration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What goes wrong, each with what should come of it. */
@ExtendWith(Progress.class)
class FaultsIT {
  private static final long RECORDS = 400_000;
  private static final long NEVER = -1;

  /** A cluster that judges within seconds. */
  private static final List<String> QUICK_MANAGER =
      List.of(
          "--heartbeat-interval", "250ms",
          "--worker-suspect-after", "1s",
          "--worker-recovery-time", "4s",
          "--start-grace", "1s");

  private static final Consumer<Configuration> QUICK_FLINK =
      configuration -> configuration.setString("remote-shuffle.worker.max-recovery-time", "4s");

  @AfterEach
  void letGo() {
    HeldJob.reset();
  }

  private static HeldJob.Controls holdProducers() {
    HeldJob.producers = new HeldJob.Controls();
    return HeldJob.producers;
  }

  private static HeldJob.Controls holdConsumers() {
    HeldJob.consumers = new HeldJob.Controls();
    return HeldJob.consumers;
  }

  @Test
  @Tag("quick")
  @DisplayName("a worker that is killed while it is written to costs a restart of its producers")
  void killedWhileWritten() throws Exception {
    HeldJob.Controls held = holdProducers();
    try (SluiceCluster sluice = new SluiceCluster(2, QUICK_MANAGER, List.of());
        FlinkCluster flink = new FlinkCluster(sluice, 2, 2, small(QUICK_FLINK))) {
      // Late enough that a region has been sent.
      HeldJob.Running job =
          HeldJob.start(HeldJob.build(flink.environment(4), RECORDS, 90_000, NEVER));
      SluiceCluster.await("the producers are half done", () -> held.arrived.get() == 4);
      SluiceCluster.await(
          "regions have been sent", () -> sluice.workerMetric("sluice_worker_data_frames_total") > 8);
      sluice.killWorker(0);
      HeldJob.reset();
      held.released.countDown();
      assertEquals(HeldJob.expected(RECORDS), job.await());
      assertTrue(FlinkCluster.highest(flink.attempts(job.id)) >= 1);
    }
  }

  /** Sort buffers small enough that regions are sent early. */
  private static Consumer<Configuration> small(Consumer<Configuration> more) {
    return configuration -> {
      configuration.setString("remote-shuffle.job.memory-per-partition", "1mb");
      more.accept(configuration);
    };
  }

  @Test
  @DisplayName("fifty partitions that are lost with a worker cost one restart")
  void lostAfterProduced() throws Exception {
    HeldJob.Controls held = holdConsumers();
    try (SluiceCluster sluice = new SluiceCluster(2, QUICK_MANAGER, List.of());
        FlinkCluster flink = new FlinkCluster(sluice, 2, 4, QUICK_FLINK)) {
      org.apache.flink.streaming.api.environment.StreamExecutionEnvironment environment =
          flink.environment(100);
      HeldJob.Running job = HeldJob.start(HeldJob.build(environment, RECORDS, NEVER, 0));
      SluiceCluster.await("consumers have begun", () -> held.arrived.get() == 8);
      assertTrue(sluice.countPartitions("committed") >= 100);
      sluice.killWorker(0);
      SluiceCluster.await("the worker is lost", () -> sluice.countPartitions("committed") <= 58);
      HeldJob.reset();
      held.released.countDown();
      assertEquals(HeldJob.expected(RECORDS), job.await());
      TreeMap<String, List<Integer>> attempts = flink.attempts(job.id);
      assertEquals(1, FlinkCluster.highest(attempts), attempts.toString());
    }
  }

  /**
   * A task that has read everything may have to open its own result while the workers are away; where
   * they take longer than 15 s to start, it would rightly be given up and placed anew.
   */
  private static void patientToOpen(Configuration change) {
    change.setString("remote-shuffle.write.open-timeout", "2 min");
  }

  @Test
  @DisplayName("a worker that comes back with its data in time costs nothing, mid-stream either")
  void backInTime() throws Exception {
    HeldJob.Controls held = holdConsumers();
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 2, FaultsIT::patientToOpen)) {
      HeldJob.Running job =
          HeldJob.start(HeldJob.build(flink.environment(4), RECORDS, NEVER, 20_000));
      SluiceCluster.await("consumers are half done", () -> held.arrived.get() == 4);
      sluice.killWorker(0);
      sluice.killWorker(1);
      HeldJob.reset();
      held.released.countDown();
      sluice.startWorker(0);
      sluice.startWorker(1);
      assertEquals(HeldJob.expected(RECORDS), job.await());
      assertEquals(0, FlinkCluster.highest(flink.attempts(job.id)));
    }
  }

  @Test
  @DisplayName("a manager that restarts costs nothing")
  void managerRestarted() throws Exception {
    HeldJob.Controls heldProducers = holdProducers();
    HeldJob.Controls heldConsumers = holdConsumers();
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 2, change -> {})) {
      HeldJob.Running job = HeldJob.start(HeldJob.build(flink.environment(4), RECORDS, 50_000, 100));
      SluiceCluster.await("producers have begun", () -> heldProducers.arrived.get() == 4);
      sluice.killManager();
      heldProducers.released.countDown();
      sluice.startManager();
      SluiceCluster.await("consumers have begun", () -> heldConsumers.arrived.get() == 4);
      sluice.killManager();
      sluice.startManager();
      HeldJob.reset();
      heldConsumers.released.countDown();
      assertEquals(HeldJob.expected(RECORDS), job.await());
      assertEquals(0, FlinkCluster.highest(flink.attempts(job.id)));
      SluiceCluster.await("everything is released", () -> sluice.partitions().isEmpty());
    }
  }

  @Test
  @DisplayName("a TaskManager that is lost after its producers have finished costs no producer")
  void taskManagerLost() throws Exception {
    HeldJob.Controls held = holdConsumers();
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 2, change -> {})) {
      HeldJob.Running job = HeldJob.start(HeldJob.build(flink.environment(4), RECORDS, NEVER, 0));
      SluiceCluster.await("consumers have begun", () -> held.arrived.get() == 4);
      flink.miniCluster().terminateTaskManager(0).get();
      flink.miniCluster().startTaskManager();
      HeldJob.reset();
      held.released.countDown();
      assertEquals(HeldJob.expected(RECORDS), job.await());
      TreeMap<String, List<Integer>> attempts = flink.attempts(job.id);
      List<Integer> producers =
          attempts.entrySet().stream()
              .filter(entry -> entry.getKey().contains("Source"))
              .findFirst()
              .orElseThrow()
              .getValue();
      assertEquals(List.of(0, 0, 0, 0), producers, attempts.toString());
    }
  }

  @Test
  @Tag("quick")
  @DisplayName("one byte of a stored file that is flipped costs its producer")
  void byteFlipped() throws Exception {
    damaged(
        path -> {
          try (FileChannel file =
              FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            ByteBuffer one = ByteBuffer.allocate(1);
            long position = file.size() / 3;
            file.read(one, position);
            one.put(0, (byte) (one.get(0) ^ 0x10)).rewind();
            file.write(one, position);
          }
        });
  }

  @Test
  @DisplayName("a stored file that is deleted costs its producer")
  void fileDeleted() throws Exception {
    damaged(Files::delete);
  }

  private interface Damage {
    void to(Path file) throws Exception;
  }

  private static void damaged(Damage damage) throws Exception {
    HeldJob.Controls held = holdConsumers();
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 2, change -> {})) {
      HeldJob.Running job = HeldJob.start(HeldJob.build(flink.environment(4), RECORDS, NEVER, HeldJob.BEFORE_READING));
      SluiceCluster.await("consumers have begun", () -> held.arrived.get() == 4);
      damage.to(sluice.storedFiles().get(0));
      HeldJob.reset();
      held.released.countDown();
      assertEquals(HeldJob.expected(RECORDS), job.await());
      TreeMap<String, List<Integer>> attempts = flink.attempts(job.id);
      List<Integer> producers =
          attempts.entrySet().stream()
              .filter(entry -> entry.getKey().contains("Source"))
              .findFirst()
              .orElseThrow()
              .getValue();
      assertEquals(1, producers.stream().mapToInt(Integer::intValue).sum(), attempts.toString());
    }
  }

  @Test
  @Tag("quick")
  @DisplayName("a job that is cancelled while it writes and reads leaves nothing")
  void cancelled() throws Exception {
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 2, small(change -> {}))) {
      for (int round = 0; round < 2; round++) {
        boolean inProducers = round == 0;
        HeldJob.Controls held = inProducers ? holdProducers() : holdConsumers();
        HeldJob.Running job =
            HeldJob.start(
                HeldJob.build(
                    flink.environment(4), RECORDS, inProducers ? 90_000 : NEVER, 20_000));
        SluiceCluster.await("tasks hold", () -> held.arrived.get() == 4);
        job.client.cancel().get();
        assertThrows(Exception.class, job::await);
        HeldJob.reset();
        held.released.countDown();
        SluiceCluster.await("the job is gone", () -> sluice.jobs().isEmpty());
        SluiceCluster.await(
            "no channel is left", () -> sluice.workerMetric("sluice_worker_channels") == 0);
        SluiceCluster.await("no file is left", () -> sluice.storedFiles().isEmpty());
      }
    }
  }
}
