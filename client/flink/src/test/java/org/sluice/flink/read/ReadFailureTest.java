package org.sluice.flink.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.EnumSet;
import java.util.Set;
import org.apache.flink.runtime.execution.SuppressRestartsException;
import org.apache.flink.runtime.io.network.partition.PartitionException;
import org.apache.flink.runtime.io.network.partition.PartitionNotFoundException;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.consumer.PartitionConnectionException;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.support.Descriptors;
import org.sluice.flink.transport.WorkerAddress;
import org.sluice.flink.wire.ErrorCode;

class ReadFailureTest {
  private static final long NEVER_MS = 3_600_000;

  /** Flink runs the producer again for these; written out, so that a change of the table is seen. */
  private static final Set<ErrorCode> PRODUCED_AGAIN =
      EnumSet.of(
          ErrorCode.PARTITION_NOT_READY,
          ErrorCode.PARTITION_NOT_FOUND,
          ErrorCode.PARTITION_RELEASED,
          ErrorCode.DATA_CORRUPT,
          ErrorCode.COUNT_MISMATCH,
          ErrorCode.DISK_FAILED,
          ErrorCode.WORKER_UNREACHABLE,
          ErrorCode.WORKER_CHANGED);

  private static final Set<ErrorCode> FINAL =
      EnumSet.of(
          ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNSUPPORTED_CODEC, ErrorCode.UNAUTHENTICATED);

  private final InputPartition partition =
      new InputPartition(
          0, new Descriptors().next(new WorkerAddress("worker-1", "host", 1), 1, "none"), 0, 0);
  private final ResultPartitionID id = partition.descriptor.getResultPartitionID();

  @ParameterizedTest
  @EnumSource(ErrorCode.class)
  @DisplayName("each code becomes the exception that makes Flink do the right thing")
  void mapping(ErrorCode code) {
    ShuffleException error = new ShuffleException(code, "so it was");
    if (FINAL.contains(code)) {
      Throwable thrown =
          assertThrows(
              SuppressRestartsException.class, () -> ReadFailure.exceptionFor(id, error));
      assertSame(error, thrown.getCause());
      return;
    }
    Exception exception = assertThrows(Exception.class, () -> raise(error));
    if (!PRODUCED_AGAIN.contains(code)) {
      assertSame(error, exception);
      return;
    }
    boolean isWorkerLost = code == ErrorCode.WORKER_UNREACHABLE || code == ErrorCode.WORKER_CHANGED;
    assertEquals(
        isWorkerLost ? PartitionConnectionException.class : PartitionNotFoundException.class,
        exception.getClass());
    assertEquals(id, ((PartitionException) exception).getPartitionId());
    boolean isExplained =
        exception.getCause() == error || exception.getSuppressed()[0] == error;
    assertTrue(isExplained, "the reason is kept");
  }

  private void raise(ShuffleException error) throws Exception {
    throw ReadFailure.exceptionFor(id, error);
  }

  @ParameterizedTest
  @EnumSource(ErrorCode.class)
  @DisplayName("only losses that the manager knows of too are kept back")
  void keptBack(ErrorCode code) throws Exception {
    ReadFailure failure = new ReadFailure(NEVER_MS);
    ShuffleException error = new ShuffleException(code, "so it was");
    boolean isKept =
        PRODUCED_AGAIN.contains(code)
            && code != ErrorCode.DATA_CORRUPT
            && code != ErrorCode.COUNT_MISMATCH;
    if (isKept) {
      assertTrue(failure.add(partition, error));
      assertFalse(failure.add(partition, error), "the first counts");
      failure.throwIfDue();
    } else {
      assertThrows(Exception.class, () -> failure.add(partition, error));
    }
  }

  @Test
  @DisplayName("without a delay nothing is kept back")
  void noDelay() {
    ShuffleException error = new ShuffleException(ErrorCode.PARTITION_NOT_FOUND, "gone");
    assertThrows(
        PartitionNotFoundException.class, () -> new ReadFailure(0).add(partition, error));
  }
}
