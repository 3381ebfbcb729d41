package org.sluice.flink.master;

import java.util.HashMap;
import java.util.Map;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.jobgraph.IntermediateDataSetID;
import org.apache.flink.runtime.shuffle.NettyShuffleDescriptor;
import org.apache.flink.runtime.shuffle.ShuffleMaster;
import org.apache.flink.runtime.shuffle.TaskInputsOutputsDescriptor;

/** For fine-grained resources: what network memory the results and gates of a task take at most. */
final class TaskMemory {
  private TaskMemory() {}

  /** Ours by the options; of the others Flink's own shuffle says it. */
  static MemorySize of(
      TaskInputsOutputsDescriptor task,
      MasterSettings settings,
      ShuffleMaster<NettyShuffleDescriptor> netty) {
    MemorySize own = MemorySize.ZERO;
    Map<IntermediateDataSetID, ResultPartitionType> inputTypes = new HashMap<>();
    Map<IntermediateDataSetID, Integer> inputs = new HashMap<>();
    for (Map.Entry<IntermediateDataSetID, ResultPartitionType> input :
        task.getInputPartitionTypes().entrySet()) {
      IntermediateDataSetID id = input.getKey();
      if (SluiceShuffleMaster.isRemote(input.getValue())) {
        own = own.add(settings.memoryPerGate);
      } else {
        inputTypes.put(id, input.getValue());
        inputs.put(id, task.getInputChannelNums().get(id));
      }
    }
    Map<IntermediateDataSetID, ResultPartitionType> outputTypes = new HashMap<>();
    Map<IntermediateDataSetID, Integer> outputs = new HashMap<>();
    for (Map.Entry<IntermediateDataSetID, ResultPartitionType> output :
        task.getPartitionTypes().entrySet()) {
      IntermediateDataSetID id = output.getKey();
      if (SluiceShuffleMaster.isRemote(output.getValue())) {
        own = own.add(settings.memoryPerPartition);
      } else {
        outputTypes.put(id, output.getValue());
        outputs.put(id, task.getSubpartitionNums().get(id));
      }
    }
    if (inputTypes.isEmpty() && outputTypes.isEmpty()) {
      return own;
    }
    Map<IntermediateDataSetID, Integer> reuse = new HashMap<>(task.getPartitionReuseCount());
    reuse.keySet().retainAll(inputs.keySet());
    return own.add(
        netty.computeShuffleMemorySizeForTask(
            TaskInputsOutputsDescriptor.from(
                inputs.size(), inputs, reuse, outputs, inputTypes, outputTypes)));
  }
}
