package org.sluice.flink.read;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.runtime.checkpoint.channel.ChannelStateWriter;
import org.apache.flink.runtime.checkpoint.channel.InputChannelInfo;
import org.apache.flink.runtime.event.TaskEvent;
import org.apache.flink.runtime.execution.CancelTaskException;
import org.apache.flink.runtime.io.network.api.CheckpointBarrier;
import org.apache.flink.runtime.io.network.buffer.BufferPool;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.io.network.partition.consumer.BufferOrEvent;
import org.apache.flink.runtime.io.network.partition.consumer.IndexedInputGate;
import org.apache.flink.runtime.io.network.partition.consumer.InputChannel;
import org.apache.flink.runtime.jobgraph.IntermediateDataSetID;
import org.apache.flink.util.function.SupplierWithException;
import org.sluice.flink.ShuffleException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The input of one consumer task: ranges of subpartitions of many partitions, read over one channel
 * for each worker. All of its state belongs to the task thread; what others have to say comes through
 * a queue. Nothing is opened before the task thread first polls. {@link #close} may come from any
 * thread.
 */
public final class SluiceInputGate extends IndexedInputGate {
  private static final Logger LOG = LoggerFactory.getLogger(SluiceInputGate.class);

  private final String owningTaskName;
  private final int gateIndex;
  private final IntermediateDataSetID consumedResultId;
  private final ResultPartitionType consumedType;
  private final InputPartition[] inputs;
  private final int bufferSize;
  private final SupplierWithException<BufferPool, IOException> poolFactory;
  private final ReadServices services;
  private final ReadSettings settings;
  private final Counter retries;
  private final Counter waitForDataMs;

  private final GateQueue queue = new GateQueue(availabilityHelper);
  private final Object pollLock = new Object();
  private final ReadyItems ready;
  private final Uncompressor uncompressor;
  private final ReadFailure failure;

  private BufferPool pool;
  private volatile GateMemory memory;
  private volatile WorkerReads reads;
  private StandInChannels standIns;
  private boolean isStarted;
  private volatile boolean isClosed;
  private BodyReader current;
  private long unavailableSinceNanos;

  public SluiceInputGate(
      String owningTaskName,
      int gateIndex,
      IntermediateDataSetID consumedResultId,
      ResultPartitionType consumedType,
      List<InputPartition> inputs,
      int bufferSize,
      SupplierWithException<BufferPool, IOException> poolFactory,
      ReadServices services,
      ReadSettings settings,
      MetricGroup metrics) {
    this.owningTaskName = owningTaskName;
    this.gateIndex = gateIndex;
    this.consumedResultId = consumedResultId;
    this.consumedType = consumedType;
    this.inputs = inputs.toArray(new InputPartition[0]);
    this.bufferSize = bufferSize;
    this.poolFactory = poolFactory;
    this.services = services;
    this.settings = settings;
    this.retries = metrics.counter("readRetries");
    this.waitForDataMs = metrics.counter("waitForDataMs");
    this.ready = new ReadyItems(gateIndex, this.inputs.length);
    this.uncompressor = new Uncompressor(bufferSize);
    this.failure = new ReadFailure(settings.failureDelayMs);
  }

  @Override
  public void setup() throws IOException {
    pool = poolFactory.get();
    memory = new GateMemory(pool, queue);
    reads =
        new WorkerReads(
            toString(), bufferSize, services, settings, queue, memory, new Outcomes(), retries);
    queue.wake();
  }

  /** Nothing: tasks that don't run yet must not hold memory of workers. */
  @Override
  public void requestPartitions() {}

  // --- polling ---

  @Override
  public Optional<BufferOrEvent> pollNext() throws IOException {
    synchronized (pollLock) {
      throwIfClosed();
      if (!isStarted) {
        isStarted = true;
        reads.start(inputs, owningTaskName.hashCode());
      }
      while (true) {
        BufferOrEvent next = nextReady();
        if (next != null) {
          next.setMoreAvailable(
              !isFinished() && (!ready.isEmpty() || current != null || !queue.isEmpty()));
          return Optional.of(next);
        }
        if (isFinished()) {
          queue.wake();
          return Optional.empty();
        }
        failure.throwIfDue();
        GateQueue.Item item = queue.poll();
        if (item == null) {
          if (unavailableSinceNanos == 0) {
            unavailableSinceNanos = System.nanoTime();
          }
          return Optional.empty();
        }
        countWait();
        take(item);
      }
    }
  }

  private void countWait() {
    if (unavailableSinceNanos != 0) {
      waitForDataMs.inc((System.nanoTime() - unavailableSinceNanos) / 1_000_000);
      unavailableSinceNanos = 0;
    }
  }

  private BufferOrEvent nextReady() throws IOException {
    while (true) {
      BufferOrEvent next = ready.poll();
      if (next != null || current == null) {
        return next;
      }
      if (!step()) {
        current.release();
        current = null;
        memory.divide();
      }
    }
  }

  private boolean step() throws IOException {
    try {
      return current.step();
    } catch (BodyReader.BadEntry bad) {
      fail(bad.partition, bad.error);
      // Kept back: nothing of it can follow.
      throw ReadFailure.exceptionFor(bad.partition.descriptor.getResultPartitionID(), bad.error);
    }
  }

  private void take(GateQueue.Item item) throws IOException {
    if (item instanceof GateQueue.Body) {
      GateQueue.Body body = (GateQueue.Body) item;
      body.channel.reader.succeed();
      current = new BodyReader(body, uncompressor, ready);
    } else if (item instanceof GateQueue.Told) {
      GateQueue.Told told = (GateQueue.Told) item;
      reads.onTold(told.channel, told.message);
    } else if (item instanceof GateQueue.Lost) {
      GateQueue.Lost lost = (GateQueue.Lost) item;
      reads.onLost(lost.channel, lost.error);
    } else if (item instanceof GateQueue.Connected) {
      reads.onConnected((GateQueue.Connected) item);
    } else if (item instanceof GateQueue.Buffers) {
      reads.onBuffers((GateQueue.Buffers) item);
    } else if (item instanceof GateQueue.Due && ((GateQueue.Due) item).reader != null) {
      reads.connect(((GateQueue.Due) item).reader);
    }
  }

  private final class Outcomes implements WorkerReads.Listener {
    @Override
    public void onFinished(InputPartition partition) {
      ready.finish(partition);
    }

    @Override
    public void onFailed(InputPartition partition, ShuffleException error) throws IOException {
      fail(partition, error);
    }
  }

  private void fail(InputPartition partition, ShuffleException error) throws IOException {
    LOG.debug("{}: {}", this, error.getMessage());
    services.manager.reportFailure(
        partition.key, partition.descriptor.worker().workerId(), error.code());
    if (failure.add(partition, error)) {
      LOG.warn(
          "{}: {}; the task fails in {} ms, when the JobManager has heard of all that is lost",
          this,
          error.getMessage(),
          failure.delayMs());
      services.connections.schedule(
          () -> queue.add(new GateQueue.Due(null)), failure.delayMs() + 1);
    }
  }

  // --- the rest of the contract ---

  @Override
  public boolean isFinished() {
    return ready.isFinished();
  }

  @Override
  public EndOfDataStatus hasReceivedEndOfData() {
    return ready.endOfData();
  }

  private void throwIfClosed() {
    if (isClosed) {
      throw new CancelTaskException("input gate of " + owningTaskName + " is closed");
    }
  }

  @Override
  public void close() {
    if (!isClosed) {
      isClosed = true;
      if (reads != null) {
        reads.stop();
      }
      queue.close();
      if (memory != null) {
        memory.close();
      }
    }
    synchronized (pollLock) {
      if (current != null) {
        current.release();
        current = null;
      }
      ready.release();
      uncompressor.close();
      // A channel may have been opened while this began.
      if (memory != null) {
        memory.close();
      }
      if (pool != null) {
        pool.lazyDestroy();
      }
    }
  }

  @Override
  public List<InputChannelInfo> getChannelInfos() {
    List<InputChannelInfo> infos = new ArrayList<>(inputs.length);
    for (int index = 0; index < inputs.length; index++) {
      infos.add(new InputChannelInfo(gateIndex, index));
    }
    return infos;
  }

  @Override
  public synchronized InputChannel getChannel(int channelIndex) {
    if (standIns == null) {
      standIns =
          new StandInChannels(owningTaskName, gateIndex, consumedResultId, consumedType, inputs);
    }
    return standIns.get(channelIndex);
  }

  @Override
  public int getGateIndex() {
    return gateIndex;
  }

  @Override
  public int getNumberOfInputChannels() {
    return inputs.length;
  }

  @Override
  public List<InputChannelInfo> getUnfinishedChannels() {
    return Collections.emptyList();
  }

  @Override
  public Optional<BufferOrEvent> getNext() {
    throw new UnsupportedOperationException("tasks poll");
  }

  @Override
  public void sendTaskEvent(TaskEvent event) throws IOException {
    throw new UnsupportedOperationException("the producers have ended");
  }

  @Override
  public void resumeConsumption(InputChannelInfo channelInfo) {
    throw new UnsupportedOperationException("blocking results have no checkpoints");
  }

  // Declared by some lines of Flink only, hence without @Override.

  public void resumeGateConsumption() {}

  public ResultPartitionType getConsumedPartitionType() {
    return consumedType;
  }

  public CompletableFuture<Void> getBufferFilteringCompleteFuture() {
    return CompletableFuture.completedFuture(null);
  }

  public void setCheckpointingDuringRecoveryEnabled(boolean isEnabled) {}

  public boolean isCheckpointingDuringRecoveryEnabled() {
    return false;
  }

  @Override
  public void acknowledgeAllRecordsProcessed(InputChannelInfo channelInfo) {}

  @Override
  public void triggerDebloating() {}

  @Override
  public CompletableFuture<Void> getStateConsumedFuture() {
    return CompletableFuture.completedFuture(null);
  }

  @Override
  public void finishReadRecoveredState() {}

  @Override
  public void setChannelStateWriter(ChannelStateWriter channelStateWriter) {}

  @Override
  public void checkpointStarted(CheckpointBarrier barrier) {}

  @Override
  public void checkpointStopped(long cancelledCheckpointId) {}

  @Override
  public String toString() {
    return "input gate " + gateIndex + " of " + owningTaskName;
  }
}
