package org.sluice.flink.it;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.Map;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The first job that anybody tries. */
@ExtendWith(Progress.class)
@Tag("quick")
class WordCountIT {
  private static final int RECORDS = 400_000;

  @Test
  @DisplayName("a word count goes through the workers and counts right")
  void wordCount() throws Exception {
    try (SluiceCluster sluice = new SluiceCluster(2);
        FlinkCluster flink = new FlinkCluster(sluice, 2, 2, change -> {})) {
      StreamExecutionEnvironment environment = flink.environment(4);
      FlinkCluster.Collected<Tuple2<String, Integer>> found =
          FlinkCluster.collect(
              environment
                  .fromSequence(1, RECORDS)
                  .map(number -> Tuple2.of("word" + number % 1009, 1))
                  .returns(Types.TUPLE(Types.STRING, Types.INT))
                  .keyBy(pair -> pair.f0)
                  .sum(1));
      Map<String, Integer> counts = new HashMap<>();
      found.records.forEach(pair -> counts.put(pair.f0, pair.f1));
      Map<String, Integer> expected = new HashMap<>();
      for (int number = 1; number <= RECORDS; number++) {
        expected.merge("word" + number % 1009, 1, Integer::sum);
      }
      assertEquals(expected, counts);
      assertTrue(flink.assertExchanged(sluice, found.job, 0) > RECORDS);
      SluiceCluster.await("everything is released", () -> sluice.partitions().isEmpty());
      SluiceCluster.await("no file is left", () -> sluice.storedFiles().isEmpty());
    }
  }
}
