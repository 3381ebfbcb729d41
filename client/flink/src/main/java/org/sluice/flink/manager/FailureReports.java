package org.sluice.flink.manager;

import java.util.HashMap;
import java.util.Map;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.PartitionKey;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the tasks of a TaskManager saw fail, for the manager's events: collected for a moment, since a
 * lost worker is seen by every task for every partition, and dropped when the manager is away.
 * Nothing depends on it.
 */
final class FailureReports {
  private static final Logger LOG = LoggerFactory.getLogger(FailureReports.class);
  private static final long DELAY_MS = 100;
  /** Of one report: the first ones say what happened, more say it again. */
  private static final int FAILURES_MAX = 256;
  /** That have something to report at one time. */
  private static final int JOBS_MAX = 1024;

  private final ManagerClient manager;
  private final Map<String, ArrayNode> byJob = new HashMap<>();
  private boolean isScheduled;

  FailureReports(ManagerClient manager) {
    this.manager = manager;
  }

  synchronized void add(PartitionKey key, String workerId, ErrorCode code) {
    if (byJob.size() >= JOBS_MAX && !byJob.containsKey(key.jobId())) {
      return;
    }
    ArrayNode failures = byJob.computeIfAbsent(key.jobId(), id -> ManagerClient.array());
    if (failures.size() < FAILURES_MAX) {
      failures
          .addObject()
          .put("dataSetId", key.dataSetId())
          .put("partitionIndex", Integer.toUnsignedLong(key.partitionIndex()))
          .put("attemptId", key.attemptId())
          .put("workerId", workerId)
          .put("code", code.name());
    }
    if (!isScheduled) {
      isScheduled = true;
      manager.schedule(this::send, DELAY_MS);
    }
  }

  private void send() {
    Map<String, ArrayNode> reports;
    synchronized (this) {
      isScheduled = false;
      reports = new HashMap<>(byJob);
      byJob.clear();
    }
    reports.forEach(
        (jobId, failures) -> {
          ObjectNode body = ManagerClient.object();
          body.set("failures", failures);
          body.set("timeInStateMs", ManagerClient.object());
          manager
              .call("POST", "/v1/jobs/" + ManagerClient.segment(jobId) + "/reports", body, 0, 0)
              .whenComplete(
                  (answer, error) -> {
                    if (error != null) {
                      LOG.debug("a report to the manager was dropped", error);
                    }
                  });
        });
  }
}
