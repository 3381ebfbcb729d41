package org.sluice.flink.write;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import javax.annotation.Nullable;
import org.apache.flink.core.memory.MemorySegment;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.runtime.checkpoint.CheckpointException;
import org.apache.flink.runtime.event.AbstractEvent;
import org.apache.flink.runtime.execution.CancelTaskException;
import org.apache.flink.runtime.io.network.api.EndOfData;
import org.apache.flink.runtime.io.network.api.EndOfPartitionEvent;
import org.apache.flink.runtime.io.network.api.EndOfSuperstepEvent;
import org.apache.flink.runtime.io.network.api.StopMode;
import org.apache.flink.runtime.io.network.api.serialization.EventSerializer;
import org.apache.flink.runtime.io.network.buffer.BufferPool;
import org.apache.flink.runtime.io.network.partition.BufferAvailabilityListener;
import org.apache.flink.runtime.io.network.partition.ResultPartition;
import org.apache.flink.runtime.io.network.partition.ResultPartitionManager;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.io.network.partition.ResultSubpartitionView;
import org.apache.flink.util.function.SupplierWithException;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.SluiceShuffleDescriptor;
import org.sluice.flink.transport.Locator;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.Wire;

/**
 * The output of one producer attempt. Records go into a sort buffer; when it is full it leaves as one
 * data region. What is broadcast is stored once. The worker is asked for nothing before the first
 * region, so a task that is deployed and idle costs it nothing. The task thread works; {@link #fail}
 * may come from any other and ends its waits.
 */
public final class SluiceResultPartition extends ResultPartition {
  /** Fewer buffers leave no room to sort beside what is under way. */
  public static final int BUFFERS_MIN = 16;

  private static final int TRANSPORT_BUFFERS_MIN = 4;
  private static final long BUFFER_TIMEOUT_MS = TimeUnit.MINUTES.toMillis(3);
  private static final CompletableFuture<Void> DONE = CompletableFuture.completedFuture(null);

  private final SluiceShuffleDescriptor descriptor;
  private final SupplierWithException<BufferPool, IOException> poolFactory;
  private final WriteChannel channel;
  private final long[] bytesBySubpartition;

  private RegionCollector region;
  private long broadcastBytes;
  private long recordCount;
  private boolean hasNotifiedEndOfData;
  private volatile boolean isFailed;

  public SluiceResultPartition(
      String owningTaskName,
      int partitionIndex,
      SluiceShuffleDescriptor descriptor,
      ResultPartitionType type,
      int subpartitionCount,
      int numTargetKeyGroups,
      SupplierWithException<BufferPool, IOException> bufferPoolFactory,
      Locator locator,
      WriteSettings settings,
      MetricGroup metrics) {
    super(
        owningTaskName,
        partitionIndex,
        descriptor.getResultPartitionID(),
        type,
        subpartitionCount,
        numTargetKeyGroups,
        new ResultPartitionManager(),
        null,
        bufferPoolFactory);
    this.descriptor = descriptor;
    this.poolFactory = bufferPoolFactory;
    this.bytesBySubpartition = new long[subpartitionCount];
    this.channel =
        new WriteChannel(
            descriptor,
            locator,
            settings,
            metrics.counter("waitForCreditMs"),
            metrics.counter("openRetries"));
  }

  /** Not that of the superclass, which registers it with a manager that nobody asks to release it. */
  @Override
  public void setup() throws IOException {
    setupInternal();
  }

  @Override
  protected void setupInternal() throws IOException {
    bufferPool = poolFactory.get();
    int total = bufferPool.getMaxNumberOfMemorySegments();
    int transport = Math.max(TRANSPORT_BUFFERS_MIN, total / 8);
    SortBuffer sortBuffer =
        new SortBuffer(
            numSubpartitions, total - transport, descriptor.bufferSizeBytes(), this::takeSegment);
    RegionWriter writer = new RegionWriter(descriptor, channel, this::takeSegment, bufferPool);
    region = new RegionCollector(numSubpartitions, sortBuffer, writer, this::count);
  }

  private MemorySegment takeSegment() throws IOException, InterruptedException {
    MemorySegment segment = bufferPool.requestMemorySegment();
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(BUFFER_TIMEOUT_MS);
    while (segment == null) {
      throwIfFailed();
      try {
        bufferPool
            .getAvailableFuture()
            .get(Math.max(1, deadline - System.nanoTime()), TimeUnit.NANOSECONDS);
      } catch (TimeoutException error) {
        throw new ShuffleException(
            ErrorCode.LIMIT_EXCEEDED,
            "no buffer within "
                + BUFFER_TIMEOUT_MS
                + " ms for "
                + this
                + "; raise taskmanager.memory.network.max or lower"
                + " remote-shuffle.job.memory-per-partition",
            error);
      } catch (ExecutionException error) {
        throw new IOException("no buffer for " + this, error.getCause());
      }
      segment = bufferPool.requestMemorySegment();
    }
    return segment;
  }

  @Override
  public void emitRecord(ByteBuffer record, int targetSubpartition) throws IOException {
    add(record, targetSubpartition, false);
  }

  @Override
  public void broadcastRecord(ByteBuffer record) throws IOException {
    // Where there is one subpartition, nothing tells broadcast from unicast.
    add(record, 0, numSubpartitions > 1);
  }

  private void add(ByteBuffer record, int subpartition, boolean toAll) throws IOException {
    checkInProduceState();
    throwIfFailed();
    interruptible(
        () -> {
          recordCount++;
          region.addRecord(record, subpartition, toAll);
        });
  }

  @Override
  public void broadcastEvent(AbstractEvent event, boolean isPriorityEvent) throws IOException {
    checkInProduceState();
    throwIfFailed();
    ByteBuffer bytes = EventSerializer.toSerializedEvent(event);
    interruptible(() -> region.addEvent(bytes, typeOf(event), numSubpartitions > 1));
  }

  private static int typeOf(AbstractEvent event) {
    if (event instanceof EndOfData) {
      return Wire.TYPE_END_OF_DATA;
    }
    if (event instanceof EndOfPartitionEvent) {
      return Wire.TYPE_END_OF_PARTITION;
    }
    if (event instanceof EndOfSuperstepEvent) {
      return Wire.TYPE_END_OF_SUPERSTEP;
    }
    return Wire.TYPE_RUNTIME_EVENT;
  }

  /** Flink's counters; AdaptiveBatch decides by the bytes of each subpartition. */
  private void count(long bytes, int buffers, int subpartition, boolean isToAll) {
    if (isToAll) {
      broadcastBytes += bytes;
      resultPartitionBytes.incAll(bytes);
      numBytesOut.inc(bytes * numSubpartitions);
      numBuffersOut.inc((long) buffers * numSubpartitions);
    } else {
      bytesBySubpartition[subpartition] += bytes;
      resultPartitionBytes.inc(subpartition, bytes);
      numBytesOut.inc(bytes);
      numBuffersOut.inc(buffers);
    }
  }

  @Override
  public void notifyEndOfData(StopMode mode) throws IOException {
    if (!hasNotifiedEndOfData) {
      hasNotifiedEndOfData = true;
      broadcastEvent(new EndOfData(mode), false);
    }
  }

  /** Returns when the partition is committed: only then has the task produced anything. */
  @Override
  public void finish() throws IOException {
    broadcastEvent(EndOfPartitionEvent.INSTANCE, false);
    interruptible(
        () -> {
          region.flush();
          for (int index = 0; index < bytesBySubpartition.length; index++) {
            bytesBySubpartition[index] += broadcastBytes;
          }
          channel.finish(recordCount, bytesBySubpartition);
        });
    super.finish();
  }

  private interface Work {
    void run() throws IOException, InterruptedException;
  }

  private void interruptible(Work work) throws IOException {
    try {
      work.run();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new CancelTaskException(error);
    } catch (ShuffleException error) {
      error.throwIfFinal();
      throw error;
    }
  }

  private void throwIfFailed() {
    if (isFailed) {
      throw new CancelTaskException(this + " has been cancelled");
    }
  }

  /** From any thread. */
  @Override
  public void fail(@Nullable Throwable throwable) {
    isFailed = true;
    channel.cancel();
    super.fail(throwable);
  }

  /** In the task thread, after it has done with the partition. */
  @Override
  public void close() {
    channel.cancel();
    try {
      if (region != null) {
        region.close().forEach(bufferPool::recycle);
      }
    } finally {
      super.close();
    }
  }

  @Override
  protected void releaseInternal() {
    channel.cancel();
  }

  @Override
  public CompletableFuture<?> getAvailableFuture() {
    return AVAILABLE;
  }

  @Override
  public CompletableFuture<Void> getAllDataProcessedFuture() {
    return DONE;
  }

  /** Nobody reads before the end, so a region is never sent before it is full. */
  @Override
  public void flushAll() {}

  @Override
  public void flush(int targetSubpartition) {}

  @Override
  public int getNumberOfQueuedBuffers() {
    return 0;
  }

  @Override
  public long getSizeOfQueuedBuffersUnsafe() {
    return 0;
  }

  @Override
  public int getNumberOfQueuedBuffers(int targetSubpartition) {
    return 0;
  }

  @Override
  protected ResultSubpartitionView createSubpartitionView(
      int index, BufferAvailabilityListener availabilityListener) {
    throw new UnsupportedOperationException("the data lies on a shuffle worker");
  }

  @Override
  public void alignedBarrierTimeout(long checkpointId) {}

  @Override
  public void abortCheckpoint(long checkpointId, CheckpointException cause) {}
}
