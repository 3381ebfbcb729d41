package org.sluice.flink;

import org.apache.flink.configuration.Configuration;

/**
 * How many buffers the results and gates of a task have. Half of the network memory is for results,
 * the other half for gates; both are divided by the slots, and then among those of a task. So what
 * all slots take together never exceeds what there is: a task that waits holds nothing that another
 * one was promised.
 */
final class MemoryPlan {
  private static final int RESULT_BUFFERS_MIN = 16;
  private static final int GATE_BUFFERS_MIN = 8;
  private static final long RESULT_BYTES_MAX = 64L << 20;
  private static final long GATE_BYTES_MAX = 32L << 20;

  private final int buffersPerSlot;
  private final int bufferSize;
  private final Long resultBytes;
  private final Long gateBytes;

  MemoryPlan(Configuration configuration, int totalBuffers, int bufferSize, int slots) {
    this.buffersPerSlot = totalBuffers / 2 / Math.max(1, slots);
    this.bufferSize = bufferSize;
    this.resultBytes =
        configuration
            .getOptional(SluiceOptions.MEMORY_PER_PARTITION)
            .map(size -> size.getBytes())
            .orElse(null);
    this.gateBytes =
        configuration
            .getOptional(SluiceOptions.MEMORY_PER_GATE)
            .map(size -> size.getBytes())
            .orElse(null);
  }

  /** Of one result, fixed, when its task has so many. */
  int resultBuffers(int resultsOfTask) {
    return buffers(resultBytes, RESULT_BYTES_MAX, RESULT_BUFFERS_MIN, resultsOfTask);
  }

  /** Of one gate at most, when its task has so many. */
  int gateBuffersMax(int gatesOfTask) {
    return buffers(gateBytes, GATE_BYTES_MAX, GATE_BUFFERS_MIN, gatesOfTask);
  }

  /** What a gate is sure of: two channels and as much again. */
  static int gateBuffersMin() {
    return GATE_BUFFERS_MIN;
  }

  private int buffers(Long configured, long bytesMax, int min, int sharers) {
    long buffers =
        configured == null
            ? Math.min(bytesMax / bufferSize, buffersPerSlot / Math.max(1, sharers))
            : configured / bufferSize;
    return (int) Math.max(min, Math.min(buffers, Integer.MAX_VALUE / 2));
  }

  @Override
  public String toString() {
    return String.format(
        "%d buffers of %d bytes for a result, up to %d for a gate, of a task with one of each",
        resultBuffers(1), bufferSize, gateBuffersMax(1));
  }
}
