package org.sluice.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.jobgraph.IntermediateDataSetID;
import org.apache.flink.runtime.shuffle.ShuffleDescriptor;
import org.apache.flink.runtime.shuffle.ShuffleMaster;
import org.apache.flink.runtime.shuffle.ShuffleMasterContext;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.sluice.flink.master.MasterFixture;
import org.sluice.flink.support.Await;
import org.sluice.flink.support.FakeManager;
import org.sluice.flink.support.FakeManager.Answer;
import org.sluice.flink.support.FakeWorker;
import org.sluice.flink.wire.ErrorCode;

class SluiceShuffleServiceFactoryTest {
  @Test
  @DisplayName("the jar of this line starts in the Flink that it was built against")
  void rightLine() {
    assertTrue(
        EnvironmentInformation.getVersion().startsWith(FlinkLine.NAME + "."),
        EnvironmentInformation.getVersion());
    new SluiceShuffleServiceFactory();
    new SluiceShuffleServiceFactory(FlinkLine.NAME + ".9");
    new SluiceShuffleServiceFactory(FlinkLine.NAME + "-SNAPSHOT");
  }

  @Test
  @DisplayName("in another line of Flink the jar is refused, and the right one named")
  void wrongLine() {
    for (String version : new String[] {"1.7.2", "1.2.0", "3.0-SNAPSHOT", "2.30.1"}) {
      IllegalStateException refusal =
          assertThrows(
              IllegalStateException.class, () -> new SluiceShuffleServiceFactory(version));
      assertTrue(refusal.getMessage().contains("Flink is " + version), refusal.getMessage());
      assertTrue(refusal.getMessage().contains(FlinkLine.NAME), refusal.getMessage());
      String line = version.replaceAll("^(\\d+\\.\\d+).*", "$1");
      assertTrue(
          refusal.getMessage().contains("sluice-flink-" + line + " into lib/"),
          refusal.getMessage());
    }
  }

  @Test
  @DisplayName("a restart strategy is one that restarts")
  void restartStrategy() {
    Configuration configuration = new Configuration();
    assertFalse(SluiceShuffleServiceFactory.hasRestartStrategy(configuration));
    for (String none : List.of("none", "off", "disable", "NONE")) {
      configuration.set(RestartStrategyOptions.RESTART_STRATEGY, none);
      assertFalse(SluiceShuffleServiceFactory.hasRestartStrategy(configuration), none);
    }
    configuration.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
    assertTrue(SluiceShuffleServiceFactory.hasRestartStrategy(configuration));
    assertEquals("restart-strategy.type", RestartStrategyOptions.RESTART_STRATEGY.key());
  }

  /** A job that stores one result and ends, in a JobManager of this configuration. */
  private static CompletableFuture<ShuffleDescriptor> oneResult(
      FakeManager manager, Configuration configuration) throws Exception {
    configuration.set(SluiceOptions.MANAGER_ADDRESS, manager.address().toString());
    configuration.set(SluiceOptions.CLUSTER_ID, FakeWorker.CLUSTER);
    ShuffleMasterContext context =
        new ShuffleMasterContext() {
          @Override
          public Configuration getConfiguration() {
            return configuration;
          }

          @Override
          public void onFatalError(Throwable error) {
            throw new AssertionError(error);
          }
        };
    MasterFixture.Job job = new MasterFixture.Job();
    try (ShuffleMaster<ShuffleDescriptor> master =
        new SluiceShuffleServiceFactory().createShuffleMaster(context)) {
      master.start();
      master.registerJob(job);
      CompletableFuture<ShuffleDescriptor> asked =
          MasterFixture.ask(
              master, job, new IntermediateDataSetID(), 0, ResultPartitionType.BLOCKING);
      Await.until("it is answered", asked::isDone);
      master.unregisterJob(job.id);
      return asked;
    }
  }

  @Test
  @DisplayName("the options reach the manager: application, segment size, codec, job recovery")
  void options() throws Exception {
    try (FakeManager manager = new FakeManager()) {
      Configuration configuration = new Configuration();
      configuration.set(SluiceOptions.APPLICATION, "nightly");
      configuration.set(TaskManagerOptions.MEMORY_SEGMENT_SIZE, MemorySize.ofMebiBytes(1));
      configuration.set(SluiceOptions.ENABLE_DATA_COMPRESSION, false);
      configuration.setString("execution.batch.job-recovery.enabled", "true");
      SluiceShuffleDescriptor placed =
          MasterFixture.placed(oneResult(manager, configuration));
      assertEquals(1 << 20, placed.bufferSizeBytes());
      assertEquals("none", placed.codec());
      assertTrue(manager.await("PUT", "").jobId().startsWith("nightly."));
      assertTrue(manager.await("PUT", "").body.get("takeOver").asBoolean());
      manager.await("POST", "/detach");
    }
    try (FakeManager manager = new FakeManager()) {
      SluiceShuffleDescriptor placed =
          MasterFixture.placed(oneResult(manager, new Configuration()));
      assertEquals(32_768, placed.bufferSizeBytes());
      assertEquals("lz4", placed.codec());
      assertFalse(manager.await("PUT", "").body.get("takeOver").asBoolean());
      manager.await("DELETE", "?jobEpoch=100");
    }
  }

  @Test
  @DisplayName("a request fails within nine tenths of Flink's own timeout")
  void askTimeout() throws Exception {
    try (FakeManager manager = new FakeManager()) {
      manager.instead = call -> Answer.error(503, ErrorCode.NO_MANAGER, "starting");
      Configuration configuration = new Configuration();
      configuration.setString("pekko.ask.timeout", "1 s");
      ShuffleException failure = MasterFixture.failure(oneResult(manager, configuration));
      assertEquals(ErrorCode.NO_MANAGER, failure.code());
    }
  }
}
