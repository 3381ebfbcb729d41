package org.sluice.flink.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.flink.table.api.TableEnvironment;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** Queries give on Sluice what they give on Flink's own shuffle. */
@ExtendWith(Progress.class)
class SqlJoinIT {
  @Test
  @Tag("quick")
  @DisplayName("a join of two large tables gives what it gives on Flink's own shuffle")
  void join() throws Exception {
    assertTrue(compare(List.of(SqlJobs.JOIN), 50_000) > 20L << 20);
  }

  @Test
  @Timeout(value = 20, unit = TimeUnit.MINUTES)
  @DisplayName("queries in the shape of TPC-H and TPC-DS over some hundred megabytes")
  void queries() throws Exception {
    List<String> queries = new ArrayList<>(SqlJobs.QUERIES);
    queries.add(SqlJobs.SORT);
    long exchanged = compare(queries, 120_000);
    System.out.println(queries.size() + " queries exchanged " + (exchanged >> 20) + " MiB");
    assertTrue(exchanged > 250L << 20, "only " + exchanged + " bytes were exchanged");
  }

  /** The bytes that went through the workers. */
  private static long compare(List<String> queries, int orders) throws Exception {
    List<FlinkCluster.Answer> expected = new ArrayList<>();
    try (FlinkCluster flink = FlinkCluster.withOwnShuffle(2, 2)) {
      for (String query : queries) {
        expected.add(ask(flink, query, orders));
      }
    }
    long exchanged = 0;
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 2, change -> {})) {
      for (int index = 0; index < queries.size(); index++) {
        String query = queries.get(index);
        long before = sluice.committedBytes();
        long began = System.nanoTime();
        FlinkCluster.Answer answer = ask(flink, query, orders);
        assertFalse(answer.rows.isEmpty(), query);
        if (query.equals(SqlJobs.SORT)) {
          assertEquals(expected.get(index).rows, answer.rows, query);
        } else {
          assertEquals(expected.get(index).sorted(), answer.sorted(), query);
        }
        long bytes = flink.assertExchanged(sluice, answer.job, before);
        exchanged += bytes;
        System.out.printf(
            "query %d: %d rows, %d MiB exchanged, %.1f s%n",
            index, answer.rows.size(), bytes >> 20, (System.nanoTime() - began) / 1e9);
      }
      SluiceCluster.await("everything is released", () -> sluice.partitions().isEmpty());
    }
    return exchanged;
  }

  private static FlinkCluster.Answer ask(FlinkCluster flink, String query, int orders)
      throws Exception {
    TableEnvironment tables = flink.tables(4);
    SqlJobs.createTables(tables, orders);
    return FlinkCluster.ask(tables, query);
  }
}
