package org.sluice.flink.write;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
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

  /** Times of the plugin's options, in milliseconds. */
  public static final class Settings {
    final long openMs;
    final long regionMs;
    final long commitMs;

    public Settings(long openMs, long regionMs, long commitMs) {
      this.openMs = openMs;
      this.regionMs = regionMs;
      this.commitMs = commitMs;
    }
  }

  /** An event, in its place among the bytes of its region. */
  private static final class PlacedEvent {
    final long afterBytes;
    final int type;
    final ByteBuffer bytes;

    PlacedEvent(long afterBytes, int type, ByteBuffer bytes) {
      this.afterBytes = afterBytes;
      this.type = type;
      this.bytes = bytes;
    }
  }

  private final SluiceShuffleDescriptor descriptor;
  private final SupplierWithException<BufferPool, IOException> poolFactory;
  private final WriteChannel channel;
  private final long[] bytesBySubpartition;
  private final List<PlacedEvent> events = new ArrayList<>();

  private SortBuffer sortBuffer;
  private RegionWriter writer;
  private boolean isBroadcast;
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
      Settings settings,
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
            new WriteChannel.Deadlines(settings.openMs, settings.regionMs, settings.commitMs),
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
    sortBuffer =
        new SortBuffer(
            numSubpartitions, total - transport, descriptor.bufferSizeBytes(), this::takeSegment);
    writer = new RegionWriter(descriptor, channel, this::takeSegment, bufferPool);
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
          enter(toAll);
          recordCount++;
          if (sortBuffer.append(subpartition, record)) {
            return;
          }
          flushRegion();
          enter(toAll);
          if (!sortBuffer.append(subpartition, record)) {
            writeLargeRecord(record, subpartition);
          }
        });
  }

  /** Regions are broadcast or not as a whole. */
  private void enter(boolean toAll) throws IOException, InterruptedException {
    if (isBroadcast != toAll) {
      flushRegion();
      isBroadcast = toAll;
    }
  }

  @Override
  public void broadcastEvent(AbstractEvent event, boolean isPriorityEvent) throws IOException {
    checkInProduceState();
    throwIfFailed();
    interruptible(
        () -> {
          enter(numSubpartitions > 1);
          ByteBuffer bytes = EventSerializer.toSerializedEvent(event);
          if (bytes.remaining() > writer.payloadMax()) {
            throw new IOException("an event of " + bytes.remaining() + " bytes fits no buffer");
          }
          events.add(new PlacedEvent(sortBuffer.byteCount(0), typeOf(event), bytes));
        });
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

  /** Sends what has been collected as one region. */
  private void flushRegion() throws IOException, InterruptedException {
    if (sortBuffer.isEmpty() && events.isEmpty()) {
      return;
    }
    int chains = isBroadcast ? 1 : numSubpartitions;
    long eventBytes = 0;
    for (PlacedEvent event : events) {
      eventBytes += event.bytes.remaining();
    }
    long bound = 0;
    for (int chain = 0; chain < chains; chain++) {
      boolean hasEvents = chain == 0;
      bound +=
          writer.boundBytes(
              sortBuffer.byteCount(chain),
              hasEvents ? events.size() : 0,
              hasEvents ? eventBytes : 0);
    }
    writer.startRegion(isBroadcast, bound);
    for (int chain = 0; chain < chains; chain++) {
      writeRun(chain);
    }
    writer.finishRegion();
    sortBuffer.clear();
    events.clear();
  }

  private void writeRun(int chain) throws IOException, InterruptedException {
    int mark = isBroadcast ? Wire.BROADCAST_SUBPARTITION : chain;
    long dataBytes = sortBuffer.byteCount(chain);
    SortBuffer.Reader reader = sortBuffer.reader(chain);
    writer.startRun();
    long written = 0;
    if (chain == 0) {
      for (int index = 0; index < events.size(); index++) {
        PlacedEvent event = events.get(index);
        writer.writeData(reader::read, event.afterBytes - written, mark, false);
        written = event.afterBytes;
        boolean isLast = index == events.size() - 1 && written == dataBytes;
        writer.writeEvent(event.bytes, event.type, mark, isLast);
        count(event.bytes.remaining(), chain);
      }
    }
    writer.writeData(reader::read, dataBytes - written, mark, true);
    count(dataBytes, chain);
  }

  private void count(long bytes, int subpartition) {
    if (bytes == 0) {
      return;
    }
    int buffers = (int) ((bytes + writer.payloadMax() - 1) / writer.payloadMax());
    if (isBroadcast) {
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

  /** A record larger than the whole sort buffer is a region of its own. */
  private void writeLargeRecord(ByteBuffer record, int subpartition)
      throws IOException, InterruptedException {
    int length = record.remaining();
    writer.startRegion(isBroadcast, writer.boundBytes(length, 0, 0));
    writer.startRun();
    writer.writeData(
        (target, part) -> record.get(target, 0, part),
        length,
        isBroadcast ? Wire.BROADCAST_SUBPARTITION : subpartition,
        true);
    writer.finishRegion();
    count(length, subpartition);
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
          flushRegion();
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
      if (writer != null) {
        writer.close();
      }
      if (sortBuffer != null) {
        sortBuffer.release().forEach(bufferPool::recycle);
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
