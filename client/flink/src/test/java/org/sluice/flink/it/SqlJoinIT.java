package org.sluice.flink.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.table.api.TableEnvironment;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Queries give on Sluice what they give on Flink's own shuffle. */
@ExtendWith(Progress.class)
class SqlJoinIT {
  @Test
  @Tag("quick")
  @DisplayName("a join of two large tables gives what it gives on Flink's own shuffle")
  void join() throws Exception {
    compare(List.of(SqlJobs.JOIN), 100_000);
  }

  @Test
  @DisplayName("queries in the shape of TPC-H give what they give on Flink's own shuffle")
  void queries() throws Exception {
    compare(SqlJobs.QUERIES, 200_000);
  }

  private static void compare(List<String> queries, int orders) throws Exception {
    List<List<String>> expected = new ArrayList<>();
    try (FlinkCluster flink = FlinkCluster.withOwnShuffle(2, 2)) {
      for (String query : queries) {
        TableEnvironment tables = flink.tables(4);
        SqlJobs.createTables(tables, orders);
        expected.add(FlinkCluster.rows(tables, query));
      }
    }
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 2, change -> {})) {
      for (int index = 0; index < queries.size(); index++) {
        long before = sluice.committedBytes();
        TableEnvironment tables = flink.tables(4);
        SqlJobs.createTables(tables, orders);
        List<String> rows = FlinkCluster.rows(tables, queries.get(index));
        assertFalse(rows.isEmpty(), queries.get(index));
        assertEquals(expected.get(index), rows, queries.get(index));
        assertTrue(sluice.committedBytes() > before + orders, "nothing went through the workers");
      }
      SluiceCluster.await("everything is released", () -> sluice.partitions().isEmpty());
    }
  }
}
