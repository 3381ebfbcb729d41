package org.sluice.flink.read;

import java.io.IOException;
import org.apache.flink.runtime.io.network.partition.PartitionNotFoundException;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.consumer.PartitionConnectionException;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.wire.ErrorCode;

/**
 * What has gone wrong with a gate's input and is kept back for a while: when partitions are lost the
 * JobManager is to hear of all of them before a task fails for one. The first failure counts.
 */
final class ReadFailure {
  private final long delayMs;
  private InputPartition partition;
  private ShuffleException error;
  private long dueNanos;

  ReadFailure(long delayMs) {
    this.delayMs = delayMs;
  }

  /**
   * Throws at once, unless it is the loss of a partition that the manager knows of too; that is kept.
   * Answers whether it is the first that is kept.
   */
  boolean add(InputPartition failed, ShuffleException cause) throws IOException {
    boolean isLoss = isLost(cause);
    // Of damage in the data this task alone knows.
    boolean isLocal = cause.is(ErrorCode.DATA_CORRUPT, ErrorCode.COUNT_MISMATCH);
    if (!isLoss || isLocal || delayMs == 0) {
      throw exceptionFor(failed.descriptor.getResultPartitionID(), cause);
    }
    if (error != null) {
      return false;
    }
    partition = failed;
    error = cause;
    dueNanos = System.nanoTime() + delayMs * 1_000_000;
    return true;
  }

  long delayMs() {
    return delayMs;
  }

  void throwIfDue() throws IOException {
    if (error != null && System.nanoTime() - dueNanos >= 0) {
      throw exceptionFor(partition.descriptor.getResultPartitionID(), error);
    }
  }

  /** Whoever was asked again until the deadline and still was not ready does not have it. */
  private static boolean isLost(ShuffleException error) {
    return error.code().action() == ErrorCode.Action.PRODUCE_AGAIN
        || error.is(ErrorCode.PARTITION_NOT_READY);
  }

  /** The exception that makes Flink do what the code says. */
  static IOException exceptionFor(ResultPartitionID id, ShuffleException error) {
    error.throwIfFinal();
    if (!isLost(error)) {
      return error;
    }
    if (error.is(ErrorCode.WORKER_UNREACHABLE, ErrorCode.WORKER_CHANGED)) {
      return new PartitionConnectionException(id, error);
    }
    PartitionNotFoundException notFound = new PartitionNotFoundException(id);
    notFound.addSuppressed(error);
    return notFound;
  }
}
