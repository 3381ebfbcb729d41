package org.sluice.flink.it;

import java.util.List;
import org.apache.flink.table.api.TableEnvironment;

/** Tables in the shape of TPC-H and TPC-DS, made up from numbers, and queries over them. */
final class SqlJobs {
  private SqlJobs() {}

  /** Registers the tables; {@code orders} orders have four lines each. */
  static void createTables(TableEnvironment tables, int orders) {
    source(tables, "o_seq", orders);
    source(tables, "l_seq", orders * 4);
    source(tables, "c_seq", Math.max(10, orders / 10));
    tables.executeSql(
        "CREATE TEMPORARY VIEW orders AS SELECT id AS o_orderkey,"
            + " MOD(id * 7919, " + Math.max(10, orders / 10) + ") AS o_custkey,"
            + " CAST(MOD(id * 31, 5) AS INT) AS o_priority,"
            + " CONCAT('comment ', CAST(MOD(id * 104729, 1000003) AS STRING)) AS o_comment"
            + " FROM o_seq");
    tables.executeSql(
        "CREATE TEMPORARY VIEW lineitem AS SELECT MOD(id, " + orders + ") AS l_orderkey,"
            + " MOD(id * 13, 50) AS l_quantity, MOD(id * 17, 9973) AS l_price,"
            + " CAST(MOD(id * 3, 7) AS INT) AS l_shipmode,"
            + " CONCAT('line ', CAST(id AS STRING), ' of ', CAST(MOD(id, " + orders
            + ") AS STRING)) AS l_comment FROM l_seq");
    tables.executeSql(
        "CREATE TEMPORARY VIEW customer AS SELECT id AS c_custkey,"
            + " CONCAT('nation ', CAST(MOD(id, 25) AS STRING)) AS c_nation FROM c_seq");
  }

  private static void source(TableEnvironment tables, String name, int count) {
    tables.executeSql(
        "CREATE TEMPORARY TABLE " + name + " (id BIGINT) WITH ('connector' = 'datagen',"
            + " 'rows-per-second' = '100000000', 'number-of-rows' = '" + count + "', 'fields.id.kind' = 'sequence',"
            + " 'fields.id.start' = '0', 'fields.id.end' = '" + (count - 1) + "')");
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
          // Three-way join, aggregation, sort with a limit.
          "SELECT c_nation, COUNT(DISTINCT o_orderkey) AS orders, SUM(l_price) AS revenue"
              + " FROM customer JOIN orders ON c_custkey = o_custkey"
              + " JOIN lineitem ON l_orderkey = o_orderkey"
              + " GROUP BY c_nation ORDER BY revenue DESC, c_nation LIMIT 10",
          // Semi-join and anti-join.
          "SELECT COUNT(*), MIN(o_orderkey), MAX(o_orderkey) FROM orders"
              + " WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem WHERE l_price > 9000)"
              + " AND o_custkey NOT IN (SELECT c_custkey FROM customer WHERE c_nation = 'nation 3')",
          // Union of two, grouped.
          "SELECT k, COUNT(*), SUM(v) FROM (SELECT o_priority AS k, o_custkey AS v FROM orders"
              + " UNION ALL SELECT l_shipmode AS k, l_price AS v FROM lineitem) GROUP BY k",
          // A global sort of long rows.
          "SELECT * FROM (SELECT l_orderkey, l_comment FROM lineitem ORDER BY l_comment DESC"
              + " LIMIT 500) ORDER BY l_comment");
}
