package org.sluice.flink.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.TableEnvironment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.sluice.flink.FlinkLine;
import org.sluice.flink.SluiceShuffleServiceFactory;

/**
 * The same jobs on Flink's own sort shuffle and on Sluice, turn and turn about, all roles in
 * processes of their own on one machine. Not a test: npm run bench:flink.
 */
class ShuffleBench {
  private static final int ROUNDS = Integer.getInteger("bench.rounds", 5);
  private static final int ORDERS = Integer.getInteger("bench.orders", 400_000);
  private static final int TASK_MANAGERS = 2;
  private static final int SLOTS = 2;
  /** What /proc counts processor time in. */
  private static final double TICKS_PER_SECOND = 100;

  /** One of the jobs; its result tells whether both shuffles did the same. */
  private interface Job {
    List<String> run(Configuration client) throws Exception;
  }

  /** A cluster, and what its processes have used over all measured runs. */
  private static final class Side {
    final String name;
    final Configuration client;
    final Map<String, Long> pids;
    final Map<String, Double> cpuSeconds = new LinkedHashMap<>();
    final Map<String, Long> peakKilobytes = new LinkedHashMap<>();

    Side(String name, Configuration client, Map<String, Long> pids) {
      this.name = name;
      this.client = client;
      this.pids = pids;
    }

    /** How long the job took, and the processor time of all processes, in seconds. */
    double[] measure(Job job, List<String> expected) throws Exception {
      Map<String, Double> before = new LinkedHashMap<>();
      for (Map.Entry<String, Long> process : pids.entrySet()) {
        before.put(process.getKey(), cpuSecondsOf(process.getValue()));
      }
      long began = System.nanoTime();
      List<String> result = job.run(client);
      double seconds = (System.nanoTime() - began) / 1e9;
      double cpu = 0;
      for (Map.Entry<String, Long> process : pids.entrySet()) {
        double used = cpuSecondsOf(process.getValue()) - before.get(process.getKey());
        cpu += used;
        cpuSeconds.merge(process.getKey(), used, Double::sum);
        peakKilobytes.put(process.getKey(), peakKilobytesOf(process.getValue()));
      }
      if (!expected.isEmpty()) {
        assertEquals(expected, result, "the result on " + name);
      }
      return new double[] {seconds, cpu};
    }
  }

  private static double cpuSecondsOf(long pid) throws IOException {
    String stat = Files.readString(Path.of("/proc", String.valueOf(pid), "stat"));
    String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
    return (Long.parseLong(fields[11]) + Long.parseLong(fields[12])) / TICKS_PER_SECOND;
  }

  private static long peakKilobytesOf(long pid) throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc", String.valueOf(pid), "status"))) {
      if (line.startsWith("VmHWM:")) {
        return Long.parseLong(line.replaceAll("[^0-9]", ""));
      }
    }
    throw new IOException("no VmHWM for process " + pid);
  }

  private static Job query(String query) {
    return client -> {
      TableEnvironment tables = FlinkCluster.tables(client, TASK_MANAGERS * SLOTS);
      SqlJobs.createTables(tables, ORDERS);
      return FlinkCluster.ask(tables, query).sorted();
    };
  }

  private static Map<String, Job> jobs() {
    Map<String, Job> jobs = new LinkedHashMap<>();
    jobs.put("SQL join, grouped", query(SqlJobs.JOIN));
    jobs.put(
        "SQL rank in groups",
        query(
            "SELECT place, COUNT(*), MAX(l_comment) FROM (SELECT l_comment, RANK() OVER (PARTITION"
                + " BY l_suppkey ORDER BY l_price DESC, l_id) AS place FROM lineitem)"
                + " WHERE place <= 10 GROUP BY place"));
    jobs.put(
        "DataStream, records of 100 bytes",
        client -> {
          List<String> sums = new ArrayList<>();
          FlinkCluster.collect(
                  HeldJob.build(
                      FlinkCluster.environment(client, TASK_MANAGERS * SLOTS), ORDERS * 5L, -1, -1))
              .records
              .forEach(pair -> sums.add(pair.toString()));
          Collections.sort(sums);
          return sums;
        });
    return jobs;
  }

  @Test
  @Timeout(value = 1, unit = TimeUnit.HOURS)
  void compare() throws Exception {
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkProcesses plain = new FlinkProcesses("own", TASK_MANAGERS, SLOTS, Map.of());
        FlinkProcesses remote =
            new FlinkProcesses(
                "sluice",
                TASK_MANAGERS,
                SLOTS,
                Map.of(
                    "shuffle-service-factory.class",
                    SluiceShuffleServiceFactory.class.getName(),
                    "remote-shuffle.manager.address",
                    sluice.managerUrl()))) {
      plain.awaitTaskManagers(sluice, TASK_MANAGERS);
      remote.awaitTaskManagers(sluice, TASK_MANAGERS);
      Map<String, Long> remotePids = remote.pids();
      remotePids.putAll(sluice.processes());
      Side own = new Side("Flink's sort shuffle", plain.client(), plain.pids());
      Side ours = new Side("Sluice", remote.client(), remotePids);
      System.out.printf(
          "Flink %s, %d TaskManagers of %d slots, 2 workers, %d rounds, %d orders%n",
          FlinkLine.NAME, TASK_MANAGERS, SLOTS, ROUNDS, ORDERS);
      for (Map.Entry<String, Job> job : jobs().entrySet()) {
        compareOne(job.getKey(), job.getValue(), own, ours, sluice);
      }
      print(own);
      print(ours);
    }
  }

  private static void compareOne(
      String name, Job job, Side own, Side ours, SluiceCluster sluice) throws Exception {
    // Once each to warm up.
    List<String> expected = job.run(own.client);
    assertFalse(expected.isEmpty(), name);
    long committed = sluice.committedBytes();
    assertEquals(expected, job.run(ours.client), name);
    long exchanged = sluice.committedBytes() - committed;
    assertTrue(exchanged > 0, name + " exchanged nothing");
    System.out.printf("%s: %d MiB exchanged%n", name, exchanged >> 20);
    TreeMap<String, List<Double>> ratios = new TreeMap<>();
    for (int round = 0; round < ROUNDS; round++) {
      double[] first = (round % 2 == 0 ? own : ours).measure(job, expected);
      double[] second = (round % 2 == 0 ? ours : own).measure(job, expected);
      double[] plain = round % 2 == 0 ? first : second;
      double[] remote = round % 2 == 0 ? second : first;
      System.out.printf(
          "  round %d: own %.1f s, CPU %.1f s; Sluice %.1f s, CPU %.1f s%n",
          round + 1, plain[0], plain[1], remote[0], remote[1]);
      ratios.computeIfAbsent("time", key -> new ArrayList<>()).add(remote[0] / plain[0]);
      ratios.computeIfAbsent("CPU", key -> new ArrayList<>()).add(remote[1] / plain[1]);
    }
    ratios.forEach(
        (what, values) -> {
          Collections.sort(values);
          System.out.printf(
              "  %s, Sluice / own: min %.2f, median %.2f, max %.2f%n",
              what, values.get(0), median(values), values.get(values.size() - 1));
        });
  }

  private static double median(List<Double> sorted) {
    int half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted.get(half) : (sorted.get(half - 1) + sorted.get(half)) / 2;
  }

  private static void print(Side side) {
    System.out.printf("%s, all measured runs:%n", side.name);
    side.cpuSeconds.forEach(
        (role, seconds) ->
            System.out.printf(
                "  %-16s CPU %7.1f s, peak memory %5d MiB%n",
                role, seconds, side.peakKilobytes.get(role) >> 10));
  }
}
