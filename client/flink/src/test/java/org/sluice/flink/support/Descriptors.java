package org.sluice.flink.support;

import org.apache.flink.runtime.executiongraph.ExecutionAttemptID;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.jobgraph.IntermediateDataSetID;
import org.apache.flink.runtime.jobgraph.IntermediateResultPartitionID;
import org.sluice.flink.SluiceShuffleDescriptor;
import org.sluice.flink.transport.WorkerAddress;
import org.sluice.flink.wire.AllocationId;

/** Descriptors of one data set of one job. */
public final class Descriptors {
  public static final int BUFFER_SIZE = 4096;
  private final IntermediateDataSetID dataSet = new IntermediateDataSetID();
  private int made;

  public IntermediateDataSetID dataSet() {
    return dataSet;
  }

  /** Of the next partition. */
  public SluiceShuffleDescriptor next(WorkerAddress worker, int subpartitions, String codec) {
    int index = made++;
    return new SluiceShuffleDescriptor(
        new ResultPartitionID(
            new IntermediateResultPartitionID(dataSet, index), ExecutionAttemptID.randomId()),
        "app.job",
        dataSet.toString(),
        worker,
        new AllocationId(1, 5, index),
        subpartitions,
        BUFFER_SIZE,
        codec);
  }
}
