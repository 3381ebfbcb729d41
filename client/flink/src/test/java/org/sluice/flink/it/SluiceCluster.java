package org.sluice.flink.it;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/** A manager and workers as processes of their own, on ports of their own. */
final class SluiceCluster implements AutoCloseable {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Path MAIN =
      Path.of(System.getProperty("sluice.main", "../../dist/cli/main.js")).toAbsolutePath();

  /** A service that runs. */
  private static final class Service {
    final Process process;
    final JsonNode hello;

    Service(Process process, JsonNode hello) {
      this.process = process;
      this.hello = hello;
    }
  }

  private final Path directory;
  private final List<String> managerOptions;
  private final List<String> workerOptions;
  private final int managerPort = freePort();
  private final List<int[]> workerPorts = new ArrayList<>();
  private final HttpClient http = HttpClient.newHttpClient();
  private Service manager;
  private final List<Service> workers = new ArrayList<>();

  SluiceCluster(int workerCount) throws IOException {
    this(workerCount, List.of(), List.of());
  }

  SluiceCluster(int workerCount, List<String> managerOptions, List<String> workerOptions)
      throws IOException {
    this.managerOptions = managerOptions;
    this.workerOptions = workerOptions;
    this.directory = Files.createTempDirectory("sluice-it");
    startManager();
    for (int index = 0; index < workerCount; index++) {
      workerPorts.add(new int[] {freePort(), freePort()});
      workers.add(null);
      startWorker(index);
    }
    await(
        "the workers are registered",
        () -> get(managerUrl() + "/v1/workers").path("workers").size() == workerCount);
  }

  /** Below the ports that systems give out by themselves, so that nobody takes it meanwhile. */
  static int freePort() {
    for (int attempt = 0; attempt < 100; attempt++) {
      int port = 20_000 + ThreadLocalRandom.current().nextInt(12_000);
      try (ServerSocket socket = new ServerSocket(port)) {
        return socket.getLocalPort();
      } catch (IOException error) {
        // In use: another one.
      }
    }
    throw new IllegalStateException("a hundred ports between 20000 and 32000 are in use");
  }

  String managerUrl() {
    return "http://127.0.0.1:" + managerPort;
  }

  void startManager() throws IOException {
    List<String> command = new ArrayList<>(List.of("node", MAIN.toString(), "manager"));
    command.addAll(List.of("--port", String.valueOf(managerPort)));
    command.addAll(List.of("--state-directory", directory.resolve("manager").toString()));
    command.addAll(List.of("--settle-time", "200ms"));
    command.addAll(managerOptions);
    manager = start(command, "manager");
  }

  void killManager() throws InterruptedException {
    kill(manager);
  }

  void startWorker(int index) throws IOException {
    int[] ports = workerPorts.get(index);
    List<String> command = new ArrayList<>(List.of("node", MAIN.toString(), "worker"));
    command.addAll(List.of("--manager", managerUrl()));
    command.addAll(List.of("--data-directories", dataDirectory(index).toString()));
    command.addAll(List.of("--data-port", String.valueOf(ports[0])));
    command.addAll(List.of("--http-port", String.valueOf(ports[1])));
    command.addAll(workerOptions);
    workers.set(index, start(command, "worker-" + index));
  }

  /** Without any good-bye. */
  void killWorker(int index) throws InterruptedException {
    kill(workers.get(index));
  }

  /** They hear nothing and say nothing until they are resumed. */
  void pauseWorkers() throws Exception {
    signalWorkers("-STOP");
  }

  void resumeWorkers() throws Exception {
    signalWorkers("-CONT");
  }

  private void signalWorkers(String signal) throws Exception {
    for (Service worker : workers) {
      String pid = String.valueOf(worker.process.pid());
      assertEquals(0, new ProcessBuilder("kill", signal, pid).start().waitFor());
    }
  }

  /** What the descriptors of a process are open on; none where the system doesn't tell. */
  static List<String> descriptorsOf(String process) throws IOException {
    List<String> targets = new ArrayList<>();
    Path directory = Path.of("/proc", process, "fd");
    if (!Files.isDirectory(directory)) {
      return targets;
    }
    try (Stream<Path> links = Files.list(directory)) {
      for (Path link : links.collect(Collectors.toList())) {
        try {
          targets.add(Files.readSymbolicLink(link).toString());
        } catch (IOException error) {
          // Closed meanwhile.
        }
      }
    }
    return targets;
  }

  /** The processes of the manager and the workers by what they are. */
  Map<String, Long> processes() {
    Map<String, Long> processes = new LinkedHashMap<>();
    processes.put("Sluice manager", manager.process.pid());
    for (int index = 0; index < workers.size(); index++) {
      processes.put("Sluice worker " + (index + 1), workers.get(index).process.pid());
    }
    return processes;
  }

  /** How many descriptors the manager and the workers have open. */
  long serviceDescriptors() throws IOException {
    long count = descriptorsOf(String.valueOf(manager.process.pid())).size();
    for (Service worker : workers) {
      count += descriptorsOf(String.valueOf(worker.process.pid())).size();
    }
    return count;
  }

  Path dataDirectory(int index) {
    return directory.resolve("worker-" + index);
  }

  String workerId(int index) {
    return workers.get(index).hello.path("workerId").asText();
  }

  int workerCount() {
    return workers.size();
  }

  private Service start(List<String> command, String name) throws IOException {
    File log = new File(logDirectory(), name + "-" + System.nanoTime() + ".log");
    List<String> full = new ArrayList<>(command);
    full.addAll(List.of("--exit-with-parent", "true"));
    ProcessBuilder builder = new ProcessBuilder(full).redirectError(log);
    builder.environment().put("UV_THREADPOOL_SIZE", "32");
    Process process = builder.start();
    BufferedReader output =
        new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    String line = output.readLine();
    if (line == null) {
      throw new IOException(name + " did not start: see " + log + "\n" + Files.readString(log.toPath()));
    }
    Thread drain =
        new Thread(
            () -> {
              try {
                while (output.readLine() != null) {
                  // Nothing more is expected.
                }
              } catch (IOException error) {
                // The process has ended.
              }
            });
    drain.setDaemon(true);
    drain.start();
    return new Service(process, JSON.readTree(line));
  }

  static File logDirectory() {
    File logs = new File(System.getProperty("sluice.logs", "target/logs"));
    logs.mkdirs();
    return logs;
  }

  private static void kill(Service service) throws InterruptedException {
    if (service != null) {
      service.process.destroyForcibly();
      service.process.waitFor();
    }
  }

  JsonNode get(String url) {
    try {
      return JSON.readTree(text(url));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private String text(String url) {
    try {
      HttpRequest request =
          HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofSeconds(10)).build();
      return http.send(request, HttpResponse.BodyHandlers.ofString()).body();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }

  /** Sum of a metric over all its labels and all workers that run. */
  double workerMetric(String name) {
    double sum = 0;
    for (int index = 0; index < workers.size(); index++) {
      if (!workers.get(index).process.isAlive()) {
        continue;
      }
      String page = text("http://127.0.0.1:" + workerPorts.get(index)[1] + "/metrics");
      if (!page.contains("# TYPE " + name + " ")) {
        throw new AssertionError("workers have no metric " + name);
      }
      for (String line : page.split("\n")) {
        if (line.startsWith(name + " ") || line.startsWith(name + "{")) {
          sum += Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1));
        }
      }
    }
    return sum;
  }

  /** Bytes of committed partitions before compression. */
  long committedBytes() {
    return (long) workerMetric("sluice_worker_committed_uncompressed_bytes_total");
  }

  /** All that the manager knows of partitions, of all jobs. */
  List<JsonNode> partitions() {
    List<JsonNode> partitions = new ArrayList<>();
    for (JsonNode job : get(managerUrl() + "/v1/jobs").path("jobs")) {
      String jobId = job.path("jobId").asText();
      get(managerUrl() + "/v1/jobs/" + jobId + "/partitions?limit=10000")
          .path("partitions")
          .forEach(partitions::add);
    }
    return partitions;
  }

  List<JsonNode> jobs() {
    List<JsonNode> jobs = new ArrayList<>();
    get(managerUrl() + "/v1/jobs").path("jobs").forEach(jobs::add);
    return jobs;
  }

  long countPartitions(String state) {
    return partitions().stream()
        .filter(partition -> partition.path("state").asText().equals(state))
        .count();
  }

  /** Files of partitions, committed or not, in the directories of all workers; largest first. */
  List<Path> storedFiles() {
    List<Path> files = new ArrayList<>();
    for (int index = 0; index < workers.size(); index++) {
      try (Stream<Path> found = Files.list(dataDirectory(index).resolve("partitions"))) {
        files.addAll(found.collect(Collectors.toList()));
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }
    files.sort(Comparator.comparingLong((Path path) -> path.toFile().length()).reversed());
    return files;
  }

  static void await(String what, BooleanSupplier condition) {
    long deadline = System.nanoTime() + Duration.ofMinutes(2).toNanos();
    while (true) {
      try {
        if (condition.getAsBoolean()) {
          return;
        }
      } catch (RuntimeException error) {
        // A service that is starting or gone.
      }
      if (System.nanoTime() - deadline > 0) {
        throw new AssertionError("after two minutes not yet: " + what);
      }
      try {
        Thread.sleep(20);
      } catch (InterruptedException error) {
        throw new IllegalStateException(error);
      }
    }
  }

  @Override
  public void close() throws Exception {
    for (Service worker : workers) {
      kill(worker);
    }
    kill(manager);
    try (Stream<Path> files = Files.walk(directory)) {
      files.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
    }
  }
}
