package org.sluice.flink.wire;

import java.io.Serializable;
import java.util.Objects;

/** Identity of the output of one producer attempt; opaque to the servers. */
public final class PartitionKey implements Serializable {
  private static final long serialVersionUID = 1L;

  private final String jobId;
  private final String dataSetId;
  private final int partitionIndex;
  private final String attemptId;

  public PartitionKey(String jobId, String dataSetId, int partitionIndex, String attemptId) {
    this.jobId = checkId(jobId);
    this.dataSetId = checkId(dataSetId);
    this.partitionIndex = partitionIndex;
    this.attemptId = checkId(attemptId);
  }

  /** Throws PROTOCOL unless it is 1 to 200 printable ASCII characters without spaces. */
  static String checkId(String id) {
    boolean isValid = !id.isEmpty() && id.length() <= Wire.ID_LENGTH_MAX;
    for (int index = 0; isValid && index < id.length(); index++) {
      isValid = id.charAt(index) > 0x20 && id.charAt(index) < 0x7f;
    }
    if (!isValid) {
      throw new ProtocolException("'" + id + "' is no id");
    }
    return id;
  }

  public String jobId() {
    return jobId;
  }

  public String dataSetId() {
    return dataSetId;
  }

  /** As an unsigned number. */
  public int partitionIndex() {
    return partitionIndex;
  }

  public String attemptId() {
    return attemptId;
  }

  @Override
  public boolean equals(Object other) {
    if (!(other instanceof PartitionKey)) {
      return false;
    }
    PartitionKey that = (PartitionKey) other;
    return partitionIndex == that.partitionIndex
        && attemptId.equals(that.attemptId)
        && dataSetId.equals(that.dataSetId)
        && jobId.equals(that.jobId);
  }

  @Override
  public int hashCode() {
    return Objects.hash(dataSetId, partitionIndex, attemptId);
  }

  /** Ids contain no space, so the text is equal exactly when the keys are. */
  @Override
  public String toString() {
    return jobId + ' ' + dataSetId + ' ' + Integer.toUnsignedString(partitionIndex) + ' ' + attemptId;
  }
}
