package org.sluice.flink.master;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * What one heartbeat says of all jobs: the changes of their lists as far as a body takes them. What
 * does not fit is told by the next heartbeat, which then does not wait.
 */
final class JobBeats {
  /** Longest body of a request that the manager takes. */
  static final int BODY_BYTES_MAX = 4 * 1024 * 1024;

  /** With the longest id and all its numbers. */
  private static final int QUIET_BEAT_BYTES = 320;
  /** Client, wait and the commands that were skipped. */
  private static final int AROUND_BEATS_BYTES = 128 * 1024;

  private JobBeats() {}

  /** In the order of the jobs. The first change is told in any case: a job tells few enough at once. */
  static List<ObjectNode> of(List<MasterJob> jobs) {
    long freeBytes = BODY_BYTES_MAX - AROUND_BEATS_BYTES - (long) jobs.size() * QUIET_BEAT_BYTES;
    boolean isFirst = true;
    List<ObjectNode> beats = new ArrayList<>();
    for (MasterJob job : jobs) {
      int bytes = job.changeBytes();
      if (bytes > freeBytes && !isFirst) {
        beats.add(job.quietBeat());
        continue;
      }
      freeBytes -= bytes;
      isFirst &= bytes == 0;
      beats.add(job.beat());
    }
    return beats;
  }
}
