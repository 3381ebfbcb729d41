package org.sluice.flink.it;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint;
import org.apache.flink.runtime.taskexecutor.TaskManagerRunner;

/** A Flink cluster whose JobManager and TaskManagers are processes of their own. */
final class FlinkProcesses implements AutoCloseable {
  private static final String HOST = "127.0.0.1";

  private final Map<String, Process> processes = new LinkedHashMap<>();
  private final Path directory;
  private final Configuration client = new Configuration();
  private final String rest;

  /** Starts them; {@code more} is added to their configuration. */
  FlinkProcesses(String name, int taskManagers, int slots, Map<String, String> more)
      throws IOException {
    directory = Files.createTempDirectory("flink-processes");
    int restPort = SluiceCluster.freePort();
    rest = "http://" + HOST + ":" + restPort;
    Map<String, String> settings = new TreeMap<>(memory());
    settings.put("taskmanager.memory.jvm-overhead.max", "192m");
    settings.put("jobmanager.rpc.address", HOST);
    settings.put("jobmanager.rpc.port", String.valueOf(SluiceCluster.freePort()));
    settings.put("rest.address", HOST);
    settings.put("rest.bind-address", HOST);
    settings.put("rest.port", String.valueOf(restPort));
    settings.put("taskmanager.host", HOST);
    settings.put("taskmanager.numberOfTaskSlots", String.valueOf(slots));
    settings.put("io.tmp.dirs", directory.toString());
    // Six of them start at once.
    settings.put("pekko.startup-timeout", "3 min");
    settings.put("pekko.ask.timeout", "1 min");
    settings.put("restart-strategy.type", "fixed-delay");
    settings.put("execution.runtime-mode", "BATCH");
    settings.put("execution.batch-shuffle-mode", "ALL_EXCHANGES_BLOCKING");
    settings.putAll(more);
    Files.write(
        directory.resolve("config.yaml"),
        settings.entrySet().stream()
            .map(entry -> entry.getKey() + ": " + entry.getValue())
            .collect(Collectors.toList()));
    settings.forEach(client::setString);
    FlinkCluster.pointTo(client, HOST, restPort);
    // A bench that is ended leaves nothing running.
    Runtime.getRuntime()
        .addShutdownHook(new Thread(() -> processes.values().forEach(Process::destroyForcibly)));
    start(name, "JobManager", StandaloneSessionClusterEntrypoint.class, "512m", "256m");
    for (int index = 1; index <= taskManagers; index++) {
      start(name, "TaskManager " + index, TaskManagerRunner.class, "512m", "512m");
    }
  }

  /** A TaskManager insists on all of them when no script computes them. */
  private static Map<String, String> memory() {
    return Map.of(
        "taskmanager.cpu.cores", "1.0",
        "taskmanager.memory.task.heap.size", "384m",
        "taskmanager.memory.task.off-heap.size", "0b",
        "taskmanager.memory.framework.heap.size", "128m",
        "taskmanager.memory.framework.off-heap.size", "128m",
        "taskmanager.memory.network.min", "128m",
        "taskmanager.memory.network.max", "128m",
        "taskmanager.memory.managed.size", "256m",
        "taskmanager.memory.jvm-metaspace.size", "256m",
        "taskmanager.memory.jvm-overhead.min", "192m");
  }

  private void start(String name, String role, Class<?> main, String heap, String direct)
      throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("-Xmx" + heap);
    command.add("-Xms" + heap);
    command.add("-XX:MaxDirectMemorySize=" + direct);
    for (String argument :
        java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()) {
      if (argument.startsWith("--add-opens=")) {
        command.add(argument);
      }
    }
    File log = new File(SluiceCluster.logDirectory(), name + " " + role + ".log");
    command.add("-Dlog4j.configurationFile=log4j2-test.properties");
    command.add("-Dsluice.logs=" + SluiceCluster.logDirectory().getAbsolutePath());
    command.addAll(
        List.of(
            "-cp",
            System.getProperty("java.class.path"),
            main.getName(),
            "--configDir",
            directory.toString()));
    processes.put(
        role,
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log).start());
  }

  void awaitTaskManagers(SluiceCluster http, int count) {
    SluiceCluster.await(
        count + " TaskManagers are registered",
        () -> {
          for (Map.Entry<String, Process> process : processes.entrySet()) {
            if (!process.getValue().isAlive()) {
              throw new AssertionError(process.getKey() + " has ended: see its log");
            }
          }
          return http.get(rest + "/taskmanagers").path("taskmanagers").size() == count;
        });
  }

  Configuration client() {
    return client;
  }

  Map<String, Long> pids() {
    Map<String, Long> pids = new LinkedHashMap<>();
    processes.forEach((role, process) -> pids.put(role, process.pid()));
    return pids;
  }

  @Override
  public void close() throws Exception {
    for (Process process : processes.values()) {
      process.destroyForcibly();
    }
    for (Process process : processes.values()) {
      process.waitFor();
    }
    try (Stream<Path> files = Files.walk(directory)) {
      files.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
    }
  }
}
