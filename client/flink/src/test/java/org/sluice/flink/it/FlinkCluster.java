package org.sluice.flink.it;

import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.executiongraph.AccessExecution;
import org.apache.flink.runtime.executiongraph.AccessExecutionGraph;
import org.apache.flink.runtime.executiongraph.AccessExecutionJobVertex;
import org.apache.flink.runtime.executiongraph.AccessExecutionVertex;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;
import org.sluice.flink.SluiceShuffleServiceFactory;

/** A Flink cluster in this process, on Sluice or on its own shuffle. */
final class FlinkCluster implements AutoCloseable {
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
          configuration.setString(
              "shuffle-service-factory.class", SluiceShuffleServiceFactory.class.getName());
          configuration.setString("remote-shuffle.manager.address", sluice.managerUrl());
          change.accept(configuration);
        });
  }

  /** On its own shuffle. */
  static FlinkCluster withOwnShuffle(int taskManagers, int slots) throws Exception {
    return new FlinkCluster(taskManagers, slots, configuration -> {});
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
    client.setString("execution.target", "remote");
    client.setString("rest.address", rest.getHost());
    client.setString("rest.port", String.valueOf(rest.getPort()));
    client.setString("execution.runtime-mode", "BATCH");
  }

  MiniCluster miniCluster() {
    return cluster;
  }

  /** For batch jobs, submitted as a client would. */
  StreamExecutionEnvironment environment(int parallelism) {
    StreamExecutionEnvironment environment = new StreamExecutionEnvironment(client);
    environment.setRuntimeMode(RuntimeExecutionMode.BATCH);
    environment.setParallelism(parallelism);
    return environment;
  }

  TableEnvironment tables(int parallelism) {
    Configuration with = new Configuration(client);
    with.setString("parallelism.default", String.valueOf(parallelism));
    with.setString("table.exec.resource.default-parallelism", String.valueOf(parallelism));
    return TableEnvironment.create(
        EnvironmentSettings.newInstance().inBatchMode().withConfiguration(with).build());
  }

  /** All rows of a query, in one order. */
  static List<String> rows(TableEnvironment tables, String query) throws Exception {
    List<String> rows = new ArrayList<>();
    TableResult result = tables.executeSql(query);
    try (CloseableIterator<Row> found = result.collect()) {
      found.forEachRemaining(row -> rows.add(row.toString()));
    }
    rows.sort(String::compareTo);
    return rows;
  }

  /** The job that ended last, or runs. */
  JobID onlyJob() throws Exception {
    List<JobID> ids = new ArrayList<>();
    cluster.listJobs().get().forEach(job -> ids.add(job.getJobId()));
    return ids.get(ids.size() - 1);
  }

  AccessExecutionGraph graph(JobID job) throws Exception {
    return cluster.getExecutionGraph(job).get(30, TimeUnit.SECONDS);
  }

  /** The last attempt number of every subtask of every task. */
  TreeMap<String, List<Integer>> attempts(JobID job) throws Exception {
    TreeMap<String, List<Integer>> attempts = new TreeMap<>();
    for (AccessExecutionJobVertex vertex : graph(job).getAllVertices().values()) {
      List<Integer> numbers = new ArrayList<>();
      for (AccessExecutionVertex task : vertex.getTaskVertices()) {
        numbers.add(task.getCurrentExecutionAttempt().getAttemptNumber());
      }
      attempts.put(vertex.getName(), numbers);
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
