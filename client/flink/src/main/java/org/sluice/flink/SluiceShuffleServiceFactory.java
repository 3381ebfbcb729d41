package org.sluice.flink;

import java.time.Duration;
import java.util.Locale;
import java.util.Set;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.runtime.io.network.NettyShuffleServiceFactory;
import org.apache.flink.runtime.io.network.api.writer.ResultPartitionWriter;
import org.apache.flink.runtime.io.network.partition.consumer.IndexedInputGate;
import org.apache.flink.runtime.shuffle.ShuffleDescriptor;
import org.apache.flink.runtime.shuffle.ShuffleEnvironment;
import org.apache.flink.runtime.shuffle.ShuffleEnvironmentContext;
import org.apache.flink.runtime.shuffle.ShuffleMaster;
import org.apache.flink.runtime.shuffle.ShuffleMasterContext;
import org.apache.flink.runtime.shuffle.ShuffleServiceFactory;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.master.MasterSettings;
import org.sluice.flink.master.SluiceShuffleMaster;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What {@code shuffle-service-factory.class} names. Blocking results go to Sluice, everything else
 * to Flink's own shuffle, so that streaming and batch jobs share a cluster.
 */
public final class SluiceShuffleServiceFactory
    implements ShuffleServiceFactory<ShuffleDescriptor, ResultPartitionWriter, IndexedInputGate> {
  private static final Logger LOG = LoggerFactory.getLogger(SluiceShuffleServiceFactory.class);
  private static final String JOB_RECOVERY_KEY = "execution.batch.job-recovery.enabled";
  private static final String ASK_TIMEOUT_KEY = "pekko.ask.timeout";

  /** Flink's names for it. */
  private static final Set<String> NO_RESTART = Set.of("none", "off", "disable");

  /** Throws when the jar is for another line of Flink. */
  public SluiceShuffleServiceFactory() {
    this(EnvironmentInformation.getVersion());
  }

  SluiceShuffleServiceFactory(String flinkVersion) {
    checkVersion(flinkVersion);
  }

  private static void checkVersion(String flinkVersion) {
    if (!flinkVersion.matches("[0-9]+\\.[0-9]+.*")) {
      LOG.warn("the version of Flink is not known: '{}'", flinkVersion);
      return;
    }
    String[] parts = flinkVersion.split("[.-]");
    String line = parts[0] + "." + parts[1];
    if (!line.equals(FlinkLine.NAME)) {
      throw new IllegalStateException(
          "this is the jar for Flink "
              + FlinkLine.NAME
              + ", but Flink is "
              + flinkVersion
              + ": put sluice-flink-"
              + line
              + " into lib/ instead");
    }
  }

  @Override
  public ShuffleMaster<ShuffleDescriptor> createShuffleMaster(ShuffleMasterContext context) {
    Configuration configuration = context.getConfiguration();
    int bufferSize =
        (int) configuration.get(TaskManagerOptions.MEMORY_SEGMENT_SIZE).getBytes();
    Duration askTimeout =
        configuration.get(
            org.apache.flink.configuration.ConfigOptions.key(ASK_TIMEOUT_KEY)
                .durationType()
                .defaultValue(Duration.ofSeconds(10)));
    boolean isDetaching =
        configuration.get(
            org.apache.flink.configuration.ConfigOptions.key(JOB_RECOVERY_KEY)
                .booleanType()
                .defaultValue(false));
    MasterSettings settings =
        new MasterSettings(
            SluiceOptions.application(configuration),
            isDetaching,
            hasRestartStrategy(configuration),
            bufferSize,
            SluiceOptions.codec(configuration),
            askTimeout.multipliedBy(9).dividedBy(10),
            configuration
                .getOptional(SluiceOptions.MEMORY_PER_PARTITION)
                .orElse(new MemorySize((long) bufferSize * 64)),
            configuration
                .getOptional(SluiceOptions.MEMORY_PER_GATE)
                .orElse(new MemorySize((long) bufferSize * 64)));
    return new SluiceShuffleMaster(
        managerClient(configuration),
        new NettyShuffleServiceFactory().createShuffleMaster(context),
        settings);
  }

  /** Of the cluster; what a job sets itself a ShuffleMaster is not told. */
  static boolean hasRestartStrategy(Configuration configuration) {
    String strategy = configuration.get(RestartStrategyOptions.RESTART_STRATEGY);
    return strategy != null && !NO_RESTART.contains(strategy.toLowerCase(Locale.ROOT));
  }

  private static ManagerClient managerClient(Configuration configuration) {
    return new ManagerClient(
        SluiceOptions.managerAddress(configuration),
        SluiceOptions.clusterId(configuration),
        SluiceOptions.token(configuration));
  }

  @Override
  public ShuffleEnvironment<ResultPartitionWriter, IndexedInputGate> createShuffleEnvironment(
      ShuffleEnvironmentContext context) {
    return new SluiceShuffleEnvironment(
        context,
        new NettyShuffleServiceFactory().createShuffleEnvironment(context),
        managerClient(context.getConfiguration()));
  }
}
