package org.sluice.flink.it;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.Collectors;
import org.apache.flink.runtime.deployment.InputGateDeploymentDescriptor;
import org.apache.flink.runtime.deployment.ResultPartitionDeploymentDescriptor;
import org.apache.flink.runtime.executiongraph.ExecutionAttemptID;
import org.apache.flink.runtime.io.network.api.writer.ResultPartitionWriter;
import org.apache.flink.runtime.io.network.partition.consumer.IndexedInputGate;
import org.apache.flink.runtime.jobgraph.IntermediateDataSetID;
import org.apache.flink.runtime.shuffle.ShuffleDescriptor;
import org.apache.flink.runtime.shuffle.ShuffleEnvironment;
import org.apache.flink.runtime.shuffle.ShuffleEnvironmentContext;
import org.apache.flink.runtime.shuffle.ShuffleIOOwnerContext;
import org.apache.flink.runtime.shuffle.ShuffleMaster;
import org.apache.flink.runtime.shuffle.ShuffleMasterContext;
import org.apache.flink.runtime.shuffle.ShuffleServiceFactory;
import org.sluice.flink.ConsumedInput;
import org.sluice.flink.ConsumedInputs;
import org.sluice.flink.SluiceShuffleDescriptor;
import org.sluice.flink.SluiceShuffleServiceFactory;

/** The plugin, and an ear on what Flink gives each task to read and to write. */
public final class ListeningFactory
    implements ShuffleServiceFactory<ShuffleDescriptor, ResultPartitionWriter, IndexedInputGate> {
  /** One producer's output, as far as one gate reads it. */
  static final class Input {
    final int producer;
    final int first;
    final int last;

    Input(int producer, int first, int last) {
      this.producer = producer;
      this.first = first;
      this.last = last;
    }

    int width() {
      return last - first + 1;
    }
  }

  /** What one gate of one attempt of a task reads. */
  static final class Gate {
    final String task;
    final ExecutionAttemptID attempt;
    final IntermediateDataSetID result;
    final List<Input> inputs;
    /** How many producers Flink named, read or not. */
    final int named;

    Gate(
        String task,
        ExecutionAttemptID attempt,
        IntermediateDataSetID result,
        List<Input> inputs,
        int named) {
      this.task = task;
      this.attempt = attempt;
      this.result = result;
      this.inputs = inputs;
      this.named = named;
    }

    /** The different ranges of subpartitions that it reads, each as "first-last". */
    Set<String> ranges() {
      return inputs.stream()
          .map(input -> input.first + "-" + input.last)
          .collect(Collectors.toCollection(TreeSet::new));
    }

    int widest() {
      return inputs.stream().mapToInt(Input::width).max().orElse(0);
    }

    @Override
    public String toString() {
      return task
          + " reads of "
          + named
          + " producers "
          + inputs.stream()
              .map(input -> input.producer + ":" + input.first + "-" + input.last)
              .collect(Collectors.joining(" "));
    }
  }

  /** Where one attempt of a task writes to: a result on Sluice. */
  static final class Result {
    final String task;
    final ExecutionAttemptID attempt;
    final int subpartitions;

    Result(String task, ExecutionAttemptID attempt, int subpartitions) {
      this.task = task;
      this.attempt = attempt;
      this.subpartitions = subpartitions;
    }
  }

  static final Queue<Gate> GATES = new ConcurrentLinkedQueue<>();
  static final Queue<Result> RESULTS = new ConcurrentLinkedQueue<>();

  private final SluiceShuffleServiceFactory plugin = new SluiceShuffleServiceFactory();

  /** For Flink, which makes it by its name. */
  public ListeningFactory() {}

  static void forget() {
    GATES.clear();
    RESULTS.clear();
  }

  /** The gates of tasks with that in their names. */
  static List<Gate> gatesOf(String task) {
    return GATES.stream().filter(gate -> gate.task.contains(task)).collect(Collectors.toList());
  }

  @Override
  public ShuffleMaster<ShuffleDescriptor> createShuffleMaster(ShuffleMasterContext context) {
    return plugin.createShuffleMaster(context);
  }

  @Override
  @SuppressWarnings("unchecked")
  public ShuffleEnvironment<ResultPartitionWriter, IndexedInputGate> createShuffleEnvironment(
      ShuffleEnvironmentContext context) {
    ShuffleEnvironment<ResultPartitionWriter, IndexedInputGate> real =
        plugin.createShuffleEnvironment(context);
    return (ShuffleEnvironment<ResultPartitionWriter, IndexedInputGate>)
        Proxy.newProxyInstance(
            ListeningFactory.class.getClassLoader(),
            new Class<?>[] {ShuffleEnvironment.class},
            (proxy, method, arguments) -> {
              if (method.getName().equals("createInputGates")) {
                hearGates((ShuffleIOOwnerContext) arguments[0], (List<?>) arguments[2]);
              } else if (method.getName().equals("createResultPartitionWriters")) {
                hearResults((ShuffleIOOwnerContext) arguments[0], (List<?>) arguments[1]);
              }
              try {
                return method.invoke(real, arguments);
              } catch (InvocationTargetException error) {
                throw error.getCause();
              }
            });
  }

  private static void hearGates(ShuffleIOOwnerContext owner, List<?> descriptors) {
    for (Object item : descriptors) {
      InputGateDeploymentDescriptor gate = (InputGateDeploymentDescriptor) item;
      if (!gate.getConsumedPartitionType().isBlockingOrBlockingPersistentResultPartition()) {
        continue;
      }
      List<Input> inputs = new ArrayList<>();
      for (ConsumedInput input : ConsumedInputs.of(gate)) {
        int producer =
            input.descriptor.getResultPartitionID().getPartitionId().getPartitionNumber();
        inputs.add(new Input(producer, input.firstSubpartition, input.lastSubpartition));
      }
      GATES.add(
          new Gate(
              owner.getOwnerName(),
              owner.getExecutionAttemptID(),
              gate.getConsumedResultId(),
              inputs,
              gate.getShuffleDescriptors().length));
    }
  }

  private static void hearResults(ShuffleIOOwnerContext owner, List<?> descriptors) {
    for (Object item : descriptors) {
      ResultPartitionDeploymentDescriptor result = (ResultPartitionDeploymentDescriptor) item;
      if (result.getShuffleDescriptor() instanceof SluiceShuffleDescriptor) {
        RESULTS.add(
            new Result(
                owner.getOwnerName(),
                owner.getExecutionAttemptID(),
                result.getNumberOfSubpartitions()));
      }
    }
  }
}
