package org.sluice.flink;

import java.util.Optional;
import org.apache.flink.runtime.clusterframework.types.ResourceID;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.shuffle.ShuffleDescriptor;
import org.sluice.flink.transport.WorkerAddress;
import org.sluice.flink.wire.AllocationId;
import org.sluice.flink.wire.PartitionKey;

/**
 * What the JobManager hands to producers and consumers so that they find a partition. It carries no
 * epoch of the worker: one that comes back with its data is as good as before. Consumers get the
 * descriptors of a whole stage in one piece, so what they share (job, data set, worker) should be
 * the same objects.
 */
public final class SluiceShuffleDescriptor implements ShuffleDescriptor {
  private static final long serialVersionUID = 1L;

  private final ResultPartitionID resultPartitionId;
  private final String jobId;
  private final String dataSetId;
  private final WorkerAddress worker;
  private final AllocationId allocation;
  private final int subpartitionCount;
  private final int bufferSizeBytes;
  private final String codec;

  public SluiceShuffleDescriptor(
      ResultPartitionID resultPartitionId,
      String jobId,
      String dataSetId,
      WorkerAddress worker,
      AllocationId allocation,
      int subpartitionCount,
      int bufferSizeBytes,
      String codec) {
    this.resultPartitionId = resultPartitionId;
    this.jobId = jobId;
    this.dataSetId = dataSetId;
    this.worker = worker;
    this.allocation = allocation;
    this.subpartitionCount = subpartitionCount;
    this.bufferSizeBytes = bufferSizeBytes;
    this.codec = codec;
  }

  /** Identity at the service: Flink's ids, under a job id that is unique among all clusters. */
  public static PartitionKey keyOf(String jobId, String dataSetId, ResultPartitionID id) {
    return new PartitionKey(
        jobId,
        dataSetId,
        id.getPartitionId().getPartitionNumber(),
        id.getProducerId().toString());
  }

  public PartitionKey key() {
    return keyOf(jobId, dataSetId, resultPartitionId);
  }

  public WorkerAddress worker() {
    return worker;
  }

  public AllocationId allocation() {
    return allocation;
  }

  public int subpartitionCount() {
    return subpartitionCount;
  }

  public int bufferSizeBytes() {
    return bufferSizeBytes;
  }

  /** How compressed data is compressed; "none": not at all. */
  public String codec() {
    return codec;
  }

  @Override
  public ResultPartitionID getResultPartitionID() {
    return resultPartitionId;
  }

  /** None: that is why the loss of a TaskManager loses no data. */
  @Override
  public Optional<ResourceID> storesLocalResourcesOn() {
    return Optional.empty();
  }

  @Override
  public String toString() {
    return "partition " + key() + " on worker " + worker;
  }
}
