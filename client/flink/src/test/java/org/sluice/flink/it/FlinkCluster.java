package org.sluice.flink.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.executiongraph.AccessExecution;
import org.apache.flink.runtime.executiongraph.AccessExecutionGraph;
import org.apache.flink.runtime.executiongraph.AccessExecutionJobVertex;
import org.apache.flink.runtime.executiongraph.AccessExecutionVertex;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;
import org.sluice.flink.SluiceShuffleServiceFactory;

/** A Flink cluster in this process, on Sluice or on its own shuffle. */
final class FlinkCluster implements AutoCloseable {
  private static final String PLUGIN = SluiceShuffleServiceFactory.class.getName();

  private final MiniCluster cluster;
  private final Configuration configuration;
  private final Configuration client = new Configuration();

  /** On Sluice. */
  FlinkCluster(SluiceCluster sluice, int taskManagers, int slots, Consumer<Configuration> change)
      throws Exception {
    this(
        taskManagers,
        slots,
        configuration -> {
          configuration.setString("shuffle-service-factory.class", PLUGIN);
          configuration.setString("remote-shuffle.manager.address", sluice.managerUrl());
          change.accept(configuration);
        });
  }

  /** On its own shuffle. */
  static FlinkCluster withOwnShuffle(int taskManagers, int slots) throws Exception {
    return new FlinkCluster(taskManagers, slots, configuration -> {});
  }

  static FlinkCluster withOwnShuffle(
      int taskManagers, int slots, Consumer<Configuration> change) throws Exception {
    return new FlinkCluster(taskManagers, slots, change);
  }

  /** The plugin is heard by {@link ListeningFactory}, from now on. */
  static Consumer<Configuration> heard(Consumer<Configuration> change) {
    ListeningFactory.forget();
    return configuration -> {
      change.accept(configuration);
      configuration.setString(
          "shuffle-service-factory.class", ListeningFactory.class.getName());
    };
  }

  private FlinkCluster(int taskManagers, int slots, Consumer<Configuration> change)
      throws Exception {
    configuration = new Configuration();
    configuration.setString("rest.port", "0");
    configuration.setString("rest.bind-port", "0");
    configuration.setString("taskmanager.memory.network.min", "64mb");
    configuration.setString("taskmanager.memory.network.max", "64mb");
    configuration.setString("taskmanager.memory.managed.size", "128mb");
    configuration.setString("restart-strategy.type", "fixed-delay");
    configuration.setString("restart-strategy.fixed-delay.attempts", "3");
    configuration.setString("restart-strategy.fixed-delay.delay", "100ms");
    configuration.setString("execution.batch-shuffle-mode", "ALL_EXCHANGES_BLOCKING");
    change.accept(configuration);
    cluster =
        new MiniCluster(
            new MiniClusterConfiguration.Builder()
                .setConfiguration(configuration)
                .setNumTaskManagers(taskManagers)
                .setNumSlotsPerTaskManager(slots)
                .build());
    cluster.start();
    URI rest = cluster.getRestAddress().get();
    client.addAll(configuration);
    pointTo(client, rest.getHost(), rest.getPort());
  }

  /** Makes it a configuration of a client of the cluster there. */
  static void pointTo(Configuration client, String host, int port) {
    client.setString("execution.target", "remote");
    client.setString("rest.address", host);
    client.setString("rest.port", String.valueOf(port));
    client.setString("execution.runtime-mode", "BATCH");
  }

  MiniCluster miniCluster() {
    return cluster;
  }

  /** For batch jobs, submitted as a client would. */
  StreamExecutionEnvironment environment(int parallelism) {
    return environment(client, parallelism);
  }

  static StreamExecutionEnvironment environment(Configuration client, int parallelism) {
    StreamExecutionEnvironment environment = new StreamExecutionEnvironment(client);
    environment.setRuntimeMode(RuntimeExecutionMode.BATCH);
    environment.setParallelism(parallelism);
    return environment;
  }

  /** Every operator of its queries has that parallelism. */
  TableEnvironment tables(int parallelism) {
    return tables(client, parallelism);
  }

  static TableEnvironment tables(Configuration client, int parallelism) {
    Configuration with = new Configuration(client);
    with.setString("parallelism.default", String.valueOf(parallelism));
    with.setString("table.exec.resource.default-parallelism", String.valueOf(parallelism));
    return tables(with);
  }

  /** Flink chooses the parallelism of each operator by what it has to read. */
  TableEnvironment adaptiveTables() {
    Configuration with = new Configuration(client);
    with.setString("parallelism.default", "-1");
    return tables(with);
  }

  private static TableEnvironment tables(Configuration with) {
    return TableEnvironment.create(
        EnvironmentSettings.newInstance().inBatchMode().withConfiguration(with).build());
  }

  /** What a query gave, as it came, and the job that it was. */
  static final class Answer {
    final List<String> rows;
    final JobID job;

    Answer(List<String> rows, JobID job) {
      this.rows = rows;
      this.job = job;
    }

    List<String> sorted() {
      List<String> sorted = new ArrayList<>(rows);
      sorted.sort(String::compareTo);
      return sorted;
    }
  }

  static Answer ask(TableEnvironment tables, String query) throws Exception {
    List<String> rows = new ArrayList<>();
    TableResult result = tables.executeSql(query);
    try (CloseableIterator<Row> found = result.collect()) {
      found.forEachRemaining(row -> rows.add(row.toString()));
    }
    return new Answer(rows, result.getJobClient().orElseThrow().getJobID());
  }

  /** All records of a stream, and the job that made them. */
  static final class Collected<T> {
    final List<T> records = new ArrayList<>();
    JobID job;
  }

  static <T> Collected<T> collect(DataStream<T> stream) throws Exception {
    Collected<T> collected = new Collected<>();
    try (CloseableIterator<T> rows = stream.collectAsync()) {
      collected.job = stream.getExecutionEnvironment().executeAsync().getJobID();
      rows.forEachRemaining(collected.records::add);
    }
    return collected;
  }

  AccessExecutionGraph graph(JobID job) throws Exception {
    return cluster.getExecutionGraph(job).get(30, TimeUnit.SECONDS);
  }

  JobStatus stateOf(JobID job) {
    try {
      return cluster.getJobStatus(job).get(30, TimeUnit.SECONDS);
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  /** When the job has ended, and all that its tasks have to say of themselves is known. */
  AccessExecutionGraph ended(JobID job) throws Exception {
    cluster.requestJobResult(job).get(2, TimeUnit.MINUTES);
    return graph(job);
  }

  /**
   * The job ran once and its exchanges went through the workers: what they committed since then is,
   * to the byte, what Flink says that its tasks wrote. The bytes are returned.
   */
  long assertExchanged(SluiceCluster sluice, JobID job, long committedBefore) throws Exception {
    ended(job);
    TreeMap<String, List<Integer>> attempts = attempts(job);
    assertEquals(0, highest(attempts), attempts.toString());
    long told = bytesOut(job);
    assertTrue(told > 0, "Flink says that nothing was exchanged");
    assertEquals(told, sluice.committedBytes() - committedBefore);
    return told;
  }

  /** The last attempt number of every subtask of every task. */
  TreeMap<String, List<Integer>> attempts(JobID job) throws Exception {
    TreeMap<String, List<Integer>> attempts = new TreeMap<>();
    for (AccessExecutionJobVertex vertex : graph(job).getAllVertices().values()) {
      List<Integer> numbers = new ArrayList<>();
      for (AccessExecutionVertex task : vertex.getTaskVertices()) {
        numbers.add(task.getCurrentExecutionAttempt().getAttemptNumber());
      }
      attempts.put(vertex.getName() + " " + vertex.getJobVertexId(), numbers);
    }
    return attempts;
  }

  static int highest(TreeMap<String, List<Integer>> attempts) {
    return attempts.values().stream()
        .flatMap(List::stream)
        .mapToInt(Integer::intValue)
        .max()
        .orElse(-1);
  }

  /** What Flink says its tasks have written to each other. */
  long bytesOut(JobID job) throws Exception {
    long sum = 0;
    for (AccessExecutionJobVertex vertex : graph(job).getAllVertices().values()) {
      for (AccessExecutionVertex task : vertex.getTaskVertices()) {
        AccessExecution attempt = task.getCurrentExecutionAttempt();
        sum += attempt.getIOMetrics() == null ? 0 : attempt.getIOMetrics().getNumBytesOut();
      }
    }
    return sum;
  }

  /** Network buffers in use in all TaskManagers, as their metrics say. */
  long usedNetworkBuffers(SluiceCluster http) {
    String rest = "http://" + cluster.getRestAddress().getNow(null).getHost() + ":" + cluster.getRestAddress().getNow(null).getPort();
    long sum = 0;
    for (JsonNode manager : http.get(rest + "/taskmanagers").path("taskmanagers")) {
      JsonNode found =
          http.get(
              rest
                  + "/taskmanagers/"
                  + manager.path("id").asText()
                  + "/metrics?get=Status.Shuffle.Netty.UsedMemorySegments");
      sum += found.path(0).path("value").asLong(1);
    }
    return sum;
  }

  @Override
  public void close() throws Exception {
    cluster.close();
  }
}
