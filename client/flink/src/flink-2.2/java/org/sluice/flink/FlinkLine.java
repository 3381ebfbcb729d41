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

/** What differs between lines of Flink. This one is for 2.0 to 2.2. */
public final class FlinkLine {
  /** The line that the jar is for, by the beginning of its version. */
  public static final String NAME = "2.2";

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

  /**
   * The descriptors that are consumed, in their order, each with its own range: a join whose skew is
   * split consumes some of them in part and others not at all.
   */
  public static List<ConsumedInput> consumedInputs(InputGateDeploymentDescriptor gate) {
    ShuffleDescriptor[] descriptors = gate.getShuffleDescriptors();
    List<ConsumedInput> inputs = new ArrayList<>();
    for (IndexRange positions : gate.getConsumedShuffleDescriptorRanges()) {
      for (int index = positions.getStartIndex(); index <= positions.getEndIndex(); index++) {
        inputs.add(new ConsumedInput(descriptors[index], gate.getConsumedSubpartitionRange(index)));
      }
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
