package org.sluice.flink.it;

import java.util.List;
import org.apache.flink.table.api.TableEnvironment;

/** Tables in the shape of TPC-H and TPC-DS, made up from numbers, and queries over them. */
final class SqlJobs {
  private static final int SUPPLIERS = 1_000;

  private SqlJobs() {}

  /** Registers the tables; {@code orders} orders have four lines of about 130 bytes each. */
  static void createTables(TableEnvironment tables, int orders) {
    int customers = Math.max(10, orders / 10);
    source(tables, "o_seq", orders);
    source(tables, "l_seq", orders * 4);
    source(tables, "c_seq", customers);
    source(tables, "s_seq", SUPPLIERS);
    tables.executeSql(
        "CREATE TEMPORARY VIEW orders AS SELECT id AS o_orderkey,"
            + " MOD(id * 7919, " + customers + ") AS o_custkey,"
            + " CAST(MOD(id * 31, 5) AS INT) AS o_priority,"
            + " CONCAT('comment ', CAST(MOD(id * 104729, 1000003) AS STRING)) AS o_comment"
            + " FROM o_seq");
    tables.executeSql(
        "CREATE TEMPORARY VIEW lineitem AS SELECT id AS l_id, MOD(id, " + orders + ") AS l_orderkey,"
            + " MOD(id * 23, " + SUPPLIERS + ") AS l_suppkey,"
            + " MOD(id * 13, 50) AS l_quantity, MOD(id * 17, 9973) AS l_price,"
            + " CAST(MOD(id * 3, 7) AS INT) AS l_shipmode,"
            + " CONCAT('line ', CAST(id AS STRING), ' of ', CAST(MOD(id, " + orders
            + ") AS STRING), ' ', SHA256(CAST(id AS STRING))) AS l_comment FROM l_seq");
    tables.executeSql(
        "CREATE TEMPORARY VIEW customer AS SELECT id AS c_custkey,"
            + " CONCAT('nation ', CAST(MOD(id, 25) AS STRING)) AS c_nation FROM c_seq");
    tables.executeSql(
        "CREATE TEMPORARY VIEW supplier AS SELECT id AS s_suppkey,"
            + " CONCAT('nation ', CAST(MOD(id * 2, 25) AS STRING)) AS s_nation FROM s_seq");
  }

  private static void source(TableEnvironment tables, String name, int count) {
    tables.executeSql(
        "CREATE TEMPORARY TABLE " + name + " (id BIGINT) WITH ('connector' = 'datagen',"
            + " 'rows-per-second' = '100000000', 'number-of-rows' = '" + count + "',"
            + " 'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '"
            + (count - 1) + "')");
  }

  /** A join of two large sides, and what it is grouped by. */
  static final String JOIN =
      "SELECT o_priority, l_shipmode, COUNT(*) AS n, SUM(l_price * l_quantity) AS total,"
          + " MIN(l_comment) AS first_line, MAX(o_comment) AS last_comment"
          + " FROM lineitem JOIN orders ON l_orderkey = o_orderkey"
          + " GROUP BY o_priority, l_shipmode";

  static final List<String> QUERIES =
      List.of(
          JOIN,
          // TPC-H 5: a join of four tables, grouped and sorted.
          "SELECT c_nation, COUNT(DISTINCT o_orderkey) AS orders, SUM(l_price) AS revenue"
              + " FROM customer JOIN orders ON c_custkey = o_custkey"
              + " JOIN lineitem ON l_orderkey = o_orderkey"
              + " JOIN supplier ON l_suppkey = s_suppkey"
              + " WHERE c_nation <> s_nation"
              + " GROUP BY c_nation ORDER BY revenue DESC, c_nation LIMIT 10",
          // TPC-H 4: a semi-join.
          "SELECT o_priority, COUNT(*), MIN(o_comment) FROM orders WHERE EXISTS (SELECT 1"
              + " FROM lineitem WHERE l_orderkey = o_orderkey AND l_price > 9000"
              + " AND l_comment > 'line 2') GROUP BY o_priority",
          // TPC-H 22: an anti-join.
          "SELECT c_nation, COUNT(*) FROM customer WHERE NOT EXISTS (SELECT 1 FROM orders"
              + " WHERE o_custkey = c_custkey AND o_priority = 3) GROUP BY c_nation",
          // TPC-H 18: a join with what an aggregate lets through, and its top.
          "SELECT o_orderkey, o_comment, SUM(l_quantity) AS quantity FROM orders"
              + " JOIN lineitem ON l_orderkey = o_orderkey WHERE o_orderkey IN (SELECT l_orderkey"
              + " FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 120)"
              + " GROUP BY o_orderkey, o_comment ORDER BY quantity DESC, o_orderkey LIMIT 100",
          // TPC-DS 5: a union, rolled up.
          "SELECT channel, k, COUNT(*), SUM(v), MAX(note) FROM (SELECT 'orders' AS channel,"
              + " o_priority AS k, o_custkey AS v, o_comment AS note FROM orders"
              + " UNION ALL SELECT 'lines' AS channel, l_shipmode AS k, l_price AS v,"
              + " l_comment AS note FROM lineitem) GROUP BY ROLLUP (channel, k)",
          // TPC-DS 67: a rank within groups.
          "SELECT * FROM (SELECT l_shipmode, l_id, l_comment, RANK() OVER (PARTITION BY l_suppkey"
              + " ORDER BY l_price DESC, l_id) AS place FROM lineitem) WHERE place <= 2");

  /** A sort of all that passes its filter, in one order. */
  static final String SORT =
      "SELECT l_comment, l_id FROM lineitem WHERE l_quantity < 2 ORDER BY l_comment, l_id";
}
