package org.sluice.flink;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.metrics.SimpleCounter;
import org.apache.flink.runtime.checkpoint.channel.ChannelStateWriter;
import org.apache.flink.runtime.deployment.InputGateDeploymentDescriptor;
import org.apache.flink.runtime.executiongraph.IndexRange;
import org.apache.flink.runtime.io.network.ConnectionID;
import org.apache.flink.runtime.io.network.LocalConnectionManager;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.consumer.InputChannel;
import org.apache.flink.runtime.io.network.partition.consumer.RemoteInputChannel;
import org.apache.flink.runtime.io.network.partition.consumer.SingleInputGate;
import org.apache.flink.runtime.io.network.partition.ResultSubpartitionIndexSet;
import org.apache.flink.runtime.shuffle.ShuffleDescriptor;

/** What differs between lines of Flink. This one is for 1.20. */
public final class FlinkLine {
  /** The line that the jar is for, by the beginning of its version. */
  public static final String NAME = "1.20";

  private FlinkLine() {}

  /** A descriptor that a gate consumes, and the subpartitions of it, both ends included. */
  public static final class ConsumedInput {
    public final ShuffleDescriptor descriptor;
    public final int firstSubpartition;
    public final int lastSubpartition;

    ConsumedInput(ShuffleDescriptor descriptor, IndexRange range) {
      this.descriptor = descriptor;
      this.firstSubpartition = range.getStartIndex();
      this.lastSubpartition = range.getEndIndex();
    }
  }

  /** All descriptors, in their order; they share one range. */
  public static List<ConsumedInput> consumedInputs(InputGateDeploymentDescriptor gate) {
    List<ConsumedInput> inputs = new ArrayList<>();
    for (ShuffleDescriptor descriptor : gate.getShuffleDescriptors()) {
      inputs.add(new ConsumedInput(descriptor, gate.getConsumedSubpartitionIndexRange()));
    }
    return inputs;
  }

  /**
   * Flink asks a gate for such an object; its index and its subpartitions are used. Watermarks say
   * which subpartition they are of, and hold for it alone.
   */
  public static InputChannel inputChannel(
      SingleInputGate gate,
      int channelIndex,
      ResultPartitionID partitionId,
      int firstSubpartition,
      int lastSubpartition,
      ConnectionID nowhere) {
    return new RemoteInputChannel(
        gate,
        channelIndex,
        partitionId,
        new ResultSubpartitionIndexSet(new IndexRange(firstSubpartition, lastSubpartition)),
        nowhere,
        new LocalConnectionManager(),
        0,
        0,
        0,
        0,
        new SimpleCounter(),
        new SimpleCounter(),
        ChannelStateWriter.NO_OP);
  }
}
