package org.sluice.flink.read;

import java.util.Collection;
import java.util.Collections;
import org.apache.flink.core.memory.MemorySegment;
import org.apache.flink.core.memory.MemorySegmentProvider;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.io.network.partition.consumer.InputChannel;
import org.apache.flink.runtime.io.network.partition.consumer.SingleInputGate;
import org.apache.flink.runtime.jobgraph.IntermediateDataSetID;
import org.apache.flink.runtime.throughput.ThroughputCalculator;
import org.apache.flink.util.clock.SystemClock;

/**
 * Flink asks a gate for objects of its own class that stand for its channels. Of each it uses the
 * index and the subpartitions: watermarks say which subpartition they are of, and hold for it alone.
 * Nothing is ever read through them. They are made when they are first asked for, and kept.
 */
final class StandInChannels {
  private final InputPartition[] inputs;
  private final SingleInputGate owner;
  private final InputChannel[] channels;

  StandInChannels(
      String owningTaskName,
      int gateIndex,
      IntermediateDataSetID consumedResultId,
      ResultPartitionType consumedType,
      InputPartition[] inputs) {
    this.inputs = inputs;
    this.channels = new InputChannel[inputs.length];
    this.owner =
        new SingleInputGate(
            owningTaskName,
            gateIndex,
            consumedResultId,
            consumedType,
            inputs.length,
            (jobId, resultId, partitionId) -> {},
            () -> null,
            null,
            new NoSegments(),
            1,
            new ThroughputCalculator(SystemClock.getInstance()),
            null);
  }

  InputChannel get(int channelIndex) {
    if (channels[channelIndex] == null) {
      channels[channelIndex] = StandInChannel.of(owner, channelIndex, inputs[channelIndex]);
    }
    return channels[channelIndex];
  }

  /** Who never reads needs no memory. */
  private static final class NoSegments implements MemorySegmentProvider {
    @Override
    public Collection<MemorySegment> requestUnpooledMemorySegments(int count) {
      return Collections.emptyList();
    }

    @Override
    public void recycleUnpooledMemorySegments(Collection<MemorySegment> segments) {}
  }
}
