package org.sluice.flink.master;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.sluice.flink.manager.KeyColumns;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.wire.PartitionKey;

class JobBeatsTest {
  private static final String PADDING = "a".repeat(190);

  private static MasterJob jobWithLosses(int number) {
    MasterJob job = new MasterJob("app.job-" + number, null);
    job.jobEpoch = 5L;
    List<PartitionKey> keys = new ArrayList<>();
    for (int index = 0; index < 4_000; index++) {
      keys.add(new PartitionKey(job.jobId, "data-set", index, index + "-" + PADDING));
    }
    ArrayNode commands = ManagerClient.array();
    commands.addObject().put("type", "lost").set("groups", KeyColumns.groups(keys));
    job.take(commands);
    return job;
  }

  @Test
  @DisplayName("changes of more jobs than a body takes are told one heartbeat after another, each once")
  void bounded() {
    List<MasterJob> jobs = new ArrayList<>();
    for (int number = 0; number < 8; number++) {
      jobs.add(jobWithLosses(number));
    }
    int told = 0;
    for (int heartbeat = 0; heartbeat < 2; heartbeat++) {
      List<ObjectNode> beats = JobBeats.of(jobs);
      assertEquals(jobs.size(), beats.size());
      assertTrue(beats.toString().length() < JobBeats.BODY_BYTES_MAX);
      for (int index = 0; index < beats.size(); index++) {
        ObjectNode beat = beats.get(index);
        boolean isQuiet = !beat.has("dropped");
        boolean wasTold = !jobs.get(index).hasChanges();
        // A sequence without its change would be a gap.
        assertEquals(isQuiet && !wasTold ? 0 : 1, beat.get("sequence").asLong());
        told += isQuiet ? 0 : 1;
        jobs.get(index).beatTaken(beat);
      }
    }
    assertEquals(jobs.size(), told);
    jobs.forEach(job -> assertFalse(job.hasChanges()));
  }
}
