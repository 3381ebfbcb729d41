package org.sluice.flink;

import static org.apache.flink.configuration.ConfigOptions.key;

import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.IllegalConfigurationException;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.NettyShuffleEnvironmentOptions;
import org.sluice.flink.wire.Wire;

/** The options of the plugin, in Flink's own configuration. README.md has them as a table. */
public final class SluiceOptions {
  private static final Set<String> SCHEMES = Set.of("http", "https");

  public static final ConfigOption<String> MANAGER_ADDRESS =
      key("remote-shuffle.manager.address")
          .stringType()
          .noDefaultValue()
          .withDescription("Base address of the shuffle manager: http://host:9700. Required.");

  public static final ConfigOption<String> CLUSTER_ID =
      key("remote-shuffle.cluster.id")
          .stringType()
          .defaultValue("sluice")
          .withDescription("Name of the shuffle cluster; one of another name is refused.");

  public static final ConfigOption<String> TOKEN_FILE =
      key("remote-shuffle.token-file")
          .stringType()
          .noDefaultValue()
          .withDescription("File with the cluster's shared secret, if it has one.");

  public static final ConfigOption<String> APPLICATION =
      key("remote-shuffle.application")
          .stringType()
          .noDefaultValue()
          .withDescription(
              "Name of this Flink cluster, unique among all that share a shuffle cluster; a"
                  + " JobManager that restarts takes its jobs over by it. Not set: made at random.");

  public static final ConfigOption<MemorySize> MEMORY_PER_PARTITION =
      key("remote-shuffle.job.memory-per-partition")
          .memoryType()
          .noDefaultValue()
          .withDescription(
              "Network memory of one result of a task; less than 16 buffers counts as 16. Not set: of"
                  + " half of the network memory a slot's share, divided among the results of the"
                  + " task, at most 64 MiB.");

  public static final ConfigOption<MemorySize> MEMORY_PER_GATE =
      key("remote-shuffle.job.memory-per-gate")
          .memoryType()
          .noDefaultValue()
          .withDescription(
              "Most network memory of one input of a task, which takes what it needs; less than 8"
                  + " buffers counts as 8. Not set: of the other half a slot's share, divided among"
                  + " the inputs of the task, at most 32 MiB.");

  public static final ConfigOption<Boolean> ENABLE_DATA_COMPRESSION =
      key("remote-shuffle.job.enable-data-compression")
          .booleanType()
          .defaultValue(true)
          .withDescription(
              "Whether data is compressed, with taskmanager.network.compression.codec (LZ4).");

  public static final ConfigOption<Duration> FAILURE_REPORT_DELAY =
      key("remote-shuffle.failure-report-delay")
          .durationType()
          .defaultValue(Duration.ofSeconds(2))
          .withDescription(
              "How long a consumer keeps the failure of a lost partition back, so that the"
                  + " JobManager hears of all that are lost first.");

  public static final ConfigOption<Duration> WORKER_RECOVERY_TIME =
      key("remote-shuffle.worker.max-recovery-time")
          .durationType()
          .defaultValue(Duration.ofMinutes(3))
          .withDescription(
              "How long a worker may be away and come back with its data: the manager's"
                  + " worker-recovery-time. A consumer waits 15 s longer.");

  public static final ConfigOption<Integer> NUM_THREADS =
      key("remote-shuffle.transfer.client.num-threads")
          .intType()
          .defaultValue(-1)
          .withDescription("Threads for connections in a TaskManager; -1: two, or one per 4 slots.");

  public static final ConfigOption<Duration> CONNECT_TIMEOUT =
      key("remote-shuffle.transfer.client.connect-timeout")
          .durationType()
          .defaultValue(Duration.ofSeconds(5))
          .withDescription("How long one try to connect to a worker may take.");

  public static final ConfigOption<Duration> HEARTBEAT_INTERVAL =
      key("remote-shuffle.transfer.heartbeat.interval")
          .durationType()
          .defaultValue(Duration.ofSeconds(10))
          .withDescription(
              "A connection on which nothing comes for three of these is given up as broken.");

  public static final ConfigOption<Duration> WRITE_OPEN_TIMEOUT =
      key("remote-shuffle.write.open-timeout")
          .durationType()
          .defaultValue(Duration.ofSeconds(15))
          .withDescription("How long the opening of a write is tried.");

  public static final ConfigOption<Duration> WRITE_REGION_TIMEOUT =
      key("remote-shuffle.write.region-timeout")
          .durationType()
          .defaultValue(Duration.ofSeconds(60))
          .withDescription("How long a producer waits for a worker to take more of a region.");

  public static final ConfigOption<Duration> WRITE_COMMIT_TIMEOUT =
      key("remote-shuffle.write.commit-timeout")
          .durationType()
          .defaultValue(Duration.ofMinutes(2))
          .withDescription("How long the commit of a result may take.");

  public static final ConfigOption<Duration> READ_RETRY_TIMEOUT =
      key("remote-shuffle.read.retry-timeout")
          .durationType()
          .defaultValue(Duration.ofSeconds(60))
          .withDescription("How long a busy worker, or one that is not ready, is asked again.");

  public static final ConfigOption<Duration> READ_IDLE_TIMEOUT =
      key("remote-shuffle.read.idle-timeout")
          .durationType()
          .defaultValue(Duration.ofMinutes(5))
          .withDescription("After how long without any data a consumer opens its channel anew.");

  private SluiceOptions() {}

  /** All options, in the order of their declaration. */
  public static List<ConfigOption<?>> all() {
    List<ConfigOption<?>> options = new ArrayList<>();
    for (Field field : SluiceOptions.class.getDeclaredFields()) {
      if (Modifier.isStatic(field.getModifiers()) && field.getType() == ConfigOption.class) {
        try {
          options.add((ConfigOption<?>) field.get(null));
        } catch (IllegalAccessException error) {
          throw new IllegalStateException(error);
        }
      }
    }
    return options;
  }

  /** The address of the manager; throws naming the option when it is missing or no address. */
  static URI managerAddress(Configuration configuration) {
    String address = configuration.get(MANAGER_ADDRESS);
    if (address == null) {
      throw new IllegalConfigurationException(
          "set " + MANAGER_ADDRESS.key() + " to the shuffle manager, for example http://host:9700");
    }
    String withScheme = address.contains("://") ? address : "http://" + address;
    try {
      URI uri = new URI(withScheme);
      if (uri.getHost() != null && SCHEMES.contains(uri.getScheme())) {
        return uri;
      }
    } catch (URISyntaxException error) {
      throw noAddress(address, error);
    }
    throw noAddress(address, null);
  }

  private static IllegalConfigurationException noAddress(String address, Throwable cause) {
    return new IllegalConfigurationException(
        MANAGER_ADDRESS.key() + ": '" + address + "' is no address; use http://host:port", cause);
  }

  static String clusterId(Configuration configuration) {
    return checkId(CLUSTER_ID, configuration.get(CLUSTER_ID), Wire.ID_LENGTH_MAX);
  }

  /** Null: one is to be made. A job's id, which goes behind it, is a dot and 32 digits. */
  static String application(Configuration configuration) {
    String name = configuration.get(APPLICATION);
    return name == null ? null : checkId(APPLICATION, name, Wire.ID_LENGTH_MAX - 33);
  }

  private static String checkId(ConfigOption<String> option, String id, int lengthMax) {
    if (id.length() > lengthMax || !id.matches("[\\x21-\\x7e]+")) {
      throw new IllegalConfigurationException(
          option.key()
              + ": '"
              + id
              + "' must be 1 to "
              + lengthMax
              + " printable ASCII characters without spaces");
    }
    return id;
  }

  /** Null: there is none. */
  static String token(Configuration configuration) {
    String file = configuration.get(TOKEN_FILE);
    if (file == null) {
      return null;
    }
    String token;
    try {
      token = Files.readString(Path.of(file)).trim();
    } catch (IOException error) {
      throw new IllegalConfigurationException(
          TOKEN_FILE.key() + ": " + file + " can't be read", error);
    }
    if (!token.matches("[\\x20-\\x7e\\x80-\\xff]+")) {
      throw new IllegalConfigurationException(
          TOKEN_FILE.key() + ": " + file + " is not one line that an HTTP header carries");
    }
    return token;
  }

  /** The codec that goes into descriptors. */
  static String codec(Configuration configuration) {
    NettyShuffleEnvironmentOptions.CompressionCodec codec =
        configuration.get(NettyShuffleEnvironmentOptions.SHUFFLE_COMPRESSION_CODEC);
    boolean isEnabled =
        configuration.get(ENABLE_DATA_COMPRESSION)
            && codec != NettyShuffleEnvironmentOptions.CompressionCodec.NONE;
    return isEnabled ? BlockCodec.nameOf(codec) : BlockCodec.NONE;
  }
}
