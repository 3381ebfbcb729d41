package org.sluice.flink;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.runtime.deployment.InputGateDeploymentDescriptor;
import org.apache.flink.runtime.executiongraph.IndexRange;
import org.apache.flink.runtime.shuffle.ShuffleDescriptor;

/** What a gate consumes, as Flink 1.20 says it. */
public final class ConsumedInputs {
  private ConsumedInputs() {}

  /** All descriptors, in their order; they share one range. */
  public static List<ConsumedInput> of(InputGateDeploymentDescriptor gate) {
    IndexRange range = gate.getConsumedSubpartitionIndexRange();
    List<ConsumedInput> inputs = new ArrayList<>();
    for (ShuffleDescriptor descriptor : gate.getShuffleDescriptors()) {
      inputs.add(new ConsumedInput(descriptor, range));
    }
    return inputs;
  }
}
