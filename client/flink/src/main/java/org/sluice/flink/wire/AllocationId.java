package org.sluice.flink.wire;

import java.io.Serializable;

/** By which the manager placed a partition; compared in the order of its parts. */
public final class AllocationId implements Serializable {
  private static final long serialVersionUID = 1L;

  private final long managerEpoch;
  private final long jobEpoch;
  private final long sequence;

  public AllocationId(long managerEpoch, long jobEpoch, long sequence) {
    this.managerEpoch = managerEpoch;
    this.jobEpoch = jobEpoch;
    this.sequence = sequence;
  }

  public long managerEpoch() {
    return managerEpoch;
  }

  public long jobEpoch() {
    return jobEpoch;
  }

  public long sequence() {
    return sequence;
  }

  @Override
  public boolean equals(Object other) {
    if (!(other instanceof AllocationId)) {
      return false;
    }
    AllocationId that = (AllocationId) other;
    return managerEpoch == that.managerEpoch
        && jobEpoch == that.jobEpoch
        && sequence == that.sequence;
  }

  @Override
  public int hashCode() {
    return Long.hashCode(managerEpoch * 31 + jobEpoch) * 31 + Long.hashCode(sequence);
  }

  @Override
  public String toString() {
    return managerEpoch + "/" + jobEpoch + "/" + sequence;
  }
}
