package org.sluice.flink;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.runtime.deployment.InputGateDeploymentDescriptor;
import org.apache.flink.runtime.executiongraph.IndexRange;
import org.apache.flink.runtime.shuffle.ShuffleDescriptor;

/** What a gate consumes, as Flink says it from 2.0 on. */
public final class ConsumedInputs {
  private ConsumedInputs() {}

  /**
   * The descriptors that are consumed, in their order, each with its own range: a join whose skew is
   * split consumes some of them in part and others not at all.
   */
  public static List<ConsumedInput> of(InputGateDeploymentDescriptor gate) {
    ShuffleDescriptor[] descriptors = gate.getShuffleDescriptors();
    List<ConsumedInput> inputs = new ArrayList<>();
    for (IndexRange positions : gate.getConsumedShuffleDescriptorRanges()) {
      for (int index = positions.getStartIndex(); index <= positions.getEndIndex(); index++) {
        inputs.add(new ConsumedInput(descriptors[index], gate.getConsumedSubpartitionRange(index)));
      }
    }
    return inputs;
  }
}
