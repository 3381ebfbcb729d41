package org.sluice.flink.read;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.core.memory.MemorySegment;
import org.apache.flink.core.memory.MemorySegmentFactory;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.runtime.checkpoint.channel.ChannelStateWriter;
import org.apache.flink.runtime.checkpoint.channel.InputChannelInfo;
import org.apache.flink.runtime.clusterframework.types.ResourceID;
import org.apache.flink.runtime.event.AbstractEvent;
import org.apache.flink.runtime.event.TaskEvent;
import org.apache.flink.runtime.execution.CancelTaskException;
import org.apache.flink.runtime.io.network.ConnectionID;
import org.apache.flink.runtime.io.network.api.CheckpointBarrier;
import org.apache.flink.runtime.io.network.api.EndOfData;
import org.apache.flink.runtime.io.network.api.EndOfPartitionEvent;
import org.apache.flink.runtime.io.network.api.StopMode;
import org.apache.flink.runtime.io.network.api.serialization.EventSerializer;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.buffer.BufferPool;
import org.apache.flink.runtime.io.network.buffer.NetworkBuffer;
import org.apache.flink.runtime.io.network.partition.PartitionNotFoundException;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.io.network.partition.consumer.BufferOrEvent;
import org.apache.flink.runtime.io.network.partition.consumer.IndexedInputGate;
import org.apache.flink.runtime.io.network.partition.consumer.InputChannel;
import org.apache.flink.runtime.io.network.partition.consumer.PartitionConnectionException;
import org.apache.flink.runtime.io.network.partition.consumer.SingleInputGate;
import org.apache.flink.runtime.jobgraph.IntermediateDataSetID;
import org.apache.flink.runtime.throughput.ThroughputCalculator;
import org.apache.flink.util.clock.SystemClock;
import org.apache.flink.util.function.SupplierWithException;
import org.sluice.flink.BlockCodec;
import org.sluice.flink.FlinkLine;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.transport.ConnectionPool;
import org.sluice.flink.transport.Locator;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.Message;
import org.sluice.flink.wire.Wire;
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

  /** Times of the plugin's options, in milliseconds. */
  public static final class Settings {
    final long unreachableMs;
    final long retryMs;
    final long idleMs;
    final long failureDelayMs;

    public Settings(long unreachableMs, long retryMs, long idleMs, long failureDelayMs) {
      this.unreachableMs = unreachableMs;
      this.retryMs = retryMs;
      this.idleMs = idleMs;
      this.failureDelayMs = failureDelayMs;
    }
  }

  /** What gates of a TaskManager share. */
  public static final class Services {
    final ConnectionPool connections;
    final Locator locator;
    final ManagerClient manager;

    public Services(ConnectionPool connections, Locator locator, ManagerClient manager) {
      this.connections = connections;
      this.locator = locator;
      this.manager = manager;
    }
  }

  private final String owningTaskName;
  private final int gateIndex;
  private final IntermediateDataSetID consumedResultId;
  private final ResultPartitionType consumedType;
  private final InputPartition[] inputs;
  private final InputChannel[] channels;
  private final int bufferSize;
  private final SupplierWithException<BufferPool, IOException> poolFactory;
  private final Services services;
  private final Settings settings;
  private final Counter retries;
  private final Counter waitForDataMs;

  private final GateQueue queue = new GateQueue(availabilityHelper);
  private final Object pollLock = new Object();
  private final List<WorkerReader> readers = new ArrayList<>();
  private final ArrayDeque<BufferOrEvent> ready = new ArrayDeque<>();
  private final Map<InputPartition, BufferOrEvent> heldEnds = new LinkedHashMap<>();
  private final ArrayDeque<MemorySegment> uncompressedSegments = new ArrayDeque<>();
  private final Map<String, BlockCodec> codecs = new LinkedHashMap<>();

  private BufferPool pool;
  private GateMemory memory;
  private SingleInputGate channelOwner;
  private boolean isStarted;
  private volatile boolean isClosed;
  private volatile Runnable stopWatching = () -> {};
  private BodyReader current;
  private int channelsWithEndOfData;
  private boolean isDraining = true;
  private volatile int endedChannels;
  private long unavailableSinceNanos;

  private InputPartition failedPartition;
  private ShuffleException failure;
  private long failureDueNanos;

  public SluiceInputGate(
      String owningTaskName,
      int gateIndex,
      IntermediateDataSetID consumedResultId,
      ResultPartitionType consumedType,
      List<InputPartition> inputs,
      int bufferSize,
      SupplierWithException<BufferPool, IOException> poolFactory,
      Services services,
      Settings settings,
      MetricGroup metrics) {
    this.owningTaskName = owningTaskName;
    this.gateIndex = gateIndex;
    this.consumedResultId = consumedResultId;
    this.consumedType = consumedType;
    this.inputs = inputs.toArray(new InputPartition[0]);
    this.channels = new InputChannel[this.inputs.length];
    this.bufferSize = bufferSize;
    this.poolFactory = poolFactory;
    this.services = services;
    this.settings = settings;
    this.retries = metrics.counter("readRetries");
    this.waitForDataMs = metrics.counter("waitForDataMs");
  }

  @Override
  public void setup() throws IOException {
    pool = poolFactory.get();
    memory = new GateMemory(pool, queue);
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
        start();
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
        throwIfFailureIsDue();
        GateQueue.Item item = queue.poll();
        if (item == null) {
          if (unavailableSinceNanos == 0) {
            unavailableSinceNanos = System.nanoTime();
          }
          return Optional.empty();
        }
        if (unavailableSinceNanos != 0) {
          waitForDataMs.inc((System.nanoTime() - unavailableSinceNanos) / 1_000_000);
          unavailableSinceNanos = 0;
        }
        take(item);
      }
    }
  }

  private BufferOrEvent nextReady() throws IOException {
    while (true) {
      BufferOrEvent next = ready.poll();
      if (next != null) {
        if (next.isEvent() && next.getEvent() instanceof EndOfPartitionEvent) {
          endedChannels++;
        }
        return next;
      }
      if (current == null) {
        return null;
      }
      if (!current.step()) {
        current.release();
        current = null;
      }
    }
  }

  private void take(GateQueue.Item item) throws IOException {
    if (item instanceof GateQueue.Body) {
      GateQueue.Body body = (GateQueue.Body) item;
      body.channel.reader.succeed();
      current = new BodyReader(body);
    } else if (item instanceof GateQueue.Told) {
      GateQueue.Told told = (GateQueue.Told) item;
      onTold(told.channel, told.message);
    } else if (item instanceof GateQueue.Lost) {
      GateQueue.Lost lost = (GateQueue.Lost) item;
      onLost(lost.channel, lost.error);
    } else if (item instanceof GateQueue.Connected) {
      onConnected((GateQueue.Connected) item);
    } else if (item instanceof GateQueue.Buffers) {
      onBuffers((GateQueue.Buffers) item);
    } else if (item instanceof GateQueue.Due && ((GateQueue.Due) item).reader != null) {
      connect(((GateQueue.Due) item).reader);
    }
  }

  // --- channels ---

  private void start() {
    Map<String, WorkerReader> byWorker = new LinkedHashMap<>();
    for (InputPartition input : inputs) {
      byWorker
          .computeIfAbsent(
              input.descriptor.worker().workerId(),
              id -> new WorkerReader(input.descriptor.worker()))
          .add(input);
    }
    readers.addAll(byWorker.values());
    // Not all consumers of a stage begin with the same worker.
    Collections.rotate(readers, Math.floorMod(owningTaskName.hashCode(), readers.size()));
    readers.forEach(this::connect);
    watch();
  }

  private void connect(WorkerReader reader) {
    if (isClosed || !reader.hasWaiting()) {
      return;
    }
    services
        .locator
        .connect(reader.worker, reader.anyWaiting().key)
        .whenComplete(
            (connection, error) ->
                queue.add(
                    new GateQueue.Connected(
                        reader,
                        connection,
                        error == null
                            ? null
                            : ShuffleException.of(error, ErrorCode.WORKER_UNREACHABLE))));
  }

  private void onConnected(GateQueue.Connected connected) throws IOException {
    WorkerReader reader = connected.reader;
    if (connected.error != null) {
      retryOrFail(reader, connected.error);
      return;
    }
    if (bufferSize > connected.connection.bufferSizeBytes()) {
      retryOrFail(
          reader,
          new ShuffleException(
              ErrorCode.LIMIT_EXCEEDED,
              "taskmanager.memory.segment-size is above the buffer-size of worker "
                  + reader.worker));
      return;
    }
    reader.connection = connected.connection;
    memory.requestInitial(reader);
  }

  private void onBuffers(GateQueue.Buffers given) {
    WorkerReader reader = given.reader;
    List<InputPartition> partitions = reader.takeWaiting();
    ReadChannel channel = new ReadChannel(queue, memory, reader, partitions, bufferSize);
    reader.channel = channel;
    channel.open(reader.connection, given.buffers);
  }

  private void onTold(ReadChannel channel, Message message) throws IOException {
    switch (message.type()) {
      case PARTITION_FINISH:
        onPartitionFinish(channel, message);
        break;
      case PARTITION_FAILED:
        onPartitionFailed(channel, message);
        break;
      default:
        onReadFinish(channel);
        break;
    }
  }

  private InputPartition listed(ReadChannel channel, long index) throws ShuffleException {
    InputPartition partition =
        index < channel.listed.length ? channel.listed[(int) index] : null;
    if (partition == null) {
      throw new ShuffleException(
          ErrorCode.PROTOCOL, "the worker names partition " + index + ", which is not listed");
    }
    return partition;
  }

  private void onPartitionFinish(ReadChannel channel, Message message) throws IOException {
    InputPartition partition = listed(channel, message.number("partition"));
    channel.listed[message.integer("partition")] = null;
    channel.reader.succeed();
    try {
      partition.finish(message.number("entryCount"), message.number("byteCount"));
    } catch (ShuffleException error) {
      fail(partition, error);
      return;
    }
    BufferOrEvent end = heldEnds.remove(partition);
    if (end != null) {
      ready.add(end);
    }
  }

  private void onPartitionFailed(ReadChannel channel, Message message) throws IOException {
    InputPartition partition = listed(channel, message.number("partition"));
    channel.listed[message.integer("partition")] = null;
    ShuffleException error =
        new ShuffleException(
            ErrorCode.ofWire(message.integer("code")),
            message.text("text") + " (" + partition.descriptor + ")");
    if (error.is(ErrorCode.PARTITION_NOT_READY, ErrorCode.BUSY)) {
      if (channel.reader.fail() < settings.retryMs) {
        retries.inc();
        channel.reader.add(partition);
        return;
      }
    }
    fail(partition, error);
  }

  private void onReadFinish(ReadChannel channel) {
    channel.reader.channel = null;
    if (channel.reader.hasWaiting()) {
      later(channel.reader);
    }
  }

  private void onLost(ReadChannel channel, ShuffleException error) throws IOException {
    channel.reader.channel = null;
    for (InputPartition partition : channel.listed) {
      if (partition != null) {
        channel.reader.add(partition);
      }
    }
    if (channel.reader.hasWaiting()) {
      retryOrFail(channel.reader, error);
    }
  }

  private void retryOrFail(WorkerReader reader, ShuffleException error) throws IOException {
    long failingMs = reader.fail();
    long limitMs = 0;
    if (error.is(ErrorCode.WORKER_UNREACHABLE)) {
      limitMs = settings.unreachableMs;
    } else if (error.is(ErrorCode.BUSY, ErrorCode.NO_MANAGER)) {
      limitMs = settings.retryMs;
    }
    if (failingMs >= limitMs) {
      for (InputPartition partition : reader.takeWaiting()) {
        fail(partition, error);
      }
      return;
    }
    LOG.info("{}: reading from worker {} again: {}", this, reader.worker, error.getMessage());
    retries.inc();
    later(reader);
  }

  private void later(WorkerReader reader) {
    services.connections.schedule(
        () -> queue.add(new GateQueue.Due(reader)), Math.max(10, reader.pauseMs()));
  }

  /** A channel that has credit and is silent for too long is given up, and opened again. */
  private void watch() {
    if (isClosed) {
      return;
    }
    for (ReadChannel channel : memory.openChannels()) {
      if (channel.silentMs() > settings.idleMs) {
        channel.expire(
            new ShuffleException(
                ErrorCode.WORKER_UNREACHABLE,
                "worker " + channel.reader.worker + " sent nothing for " + settings.idleMs + " ms"));
      }
    }
    stopWatching = services.connections.schedule(this::watch, Math.max(100, settings.idleMs / 4));
    if (isClosed) {
      stopWatching.run();
    }
  }

  // --- failing ---

  /** Losses are held back for a while: the job master is to hear of all of them first. */
  private void fail(InputPartition partition, ShuffleException error) throws IOException {
    LOG.warn("{}: {}", this, error.getMessage());
    services.manager.reportFailure(
        partition.key, partition.descriptor.worker().workerId(), error.code());
    boolean isLoss = error.code().action() == ErrorCode.Action.PRODUCE_AGAIN;
    boolean isLocal = error.is(ErrorCode.DATA_CORRUPT, ErrorCode.COUNT_MISMATCH);
    if (!isLoss || isLocal || settings.failureDelayMs == 0) {
      throw failureOf(partition, error);
    }
    if (failure == null) {
      failedPartition = partition;
      failure = error;
      failureDueNanos = System.nanoTime() + settings.failureDelayMs * 1_000_000;
      services.connections.schedule(
          () -> queue.add(new GateQueue.Due(null)), settings.failureDelayMs + 1);
    }
  }

  private void throwIfFailureIsDue() throws IOException {
    if (failure != null && System.nanoTime() - failureDueNanos >= 0) {
      throw failureOf(failedPartition, failure);
    }
  }

  /** The exception that makes Flink do what the code says. */
  private static IOException failureOf(InputPartition partition, ShuffleException error) {
    if (error.code().action() != ErrorCode.Action.PRODUCE_AGAIN) {
      return error;
    }
    ResultPartitionID id = partition.descriptor.getResultPartitionID();
    if (error.is(ErrorCode.WORKER_UNREACHABLE, ErrorCode.WORKER_CHANGED)) {
      return new PartitionConnectionException(id, error);
    }
    PartitionNotFoundException notFound = new PartitionNotFoundException(id);
    notFound.addSuppressed(error);
    return notFound;
  }

  // --- bodies ---

  /** Walks over the segments and entries of one body, one entry a step. */
  private final class BodyReader {
    private final ReadChannel channel;
    private final NetworkBuffer buffer;
    private final MemorySegment memorySegment;
    private final ByteBuffer bytes;
    private final int end;
    private int next;
    private int segmentEnd;
    private InputPartition partition;

    BodyReader(GateQueue.Body body) {
      channel = body.channel;
      buffer = body.buffer;
      memorySegment = buffer.getMemorySegment();
      end = buffer.getSize();
      bytes = memorySegment.wrap(0, memorySegment.size());
    }

    /** False when nothing is left; else something may have become ready. */
    boolean step() throws IOException {
      if (next == segmentEnd) {
        if (next == end) {
          return false;
        }
        enterSegment();
      }
      try {
        readEntry();
      } catch (ShuffleException error) {
        // What follows of it in this body is of no use either.
        fail(partition, error);
        throw failureOf(partition, error);
      }
      return true;
    }

    private void enterSegment() throws IOException {
      if (end - next < Wire.SEGMENT_HEADER_LENGTH) {
        throw malformed("a segment's header is cut off");
      }
      partition = listed(channel, memorySegment.getIntBigEndian(next) & 0xffff_ffffL);
      int region = memorySegment.getIntBigEndian(next + 4);
      int served = memorySegment.getIntBigEndian(next + 8);
      int length = memorySegment.getIntBigEndian(next + 12);
      next += Wire.SEGMENT_HEADER_LENGTH;
      if (length < Wire.ENTRY_HEADER_LENGTH || length > end - next) {
        throw malformed("a segment's length does not fit");
      }
      segmentEnd = next + length;
      try {
        partition.enterRun(region, served);
      } catch (ShuffleException error) {
        throw failureOf(partition, error);
      }
    }

    private void readEntry() throws IOException {
      if (segmentEnd - next < Wire.ENTRY_HEADER_LENGTH) {
        throw malformed("an entry's header is cut off");
      }
      int length = memorySegment.getIntBigEndian(next);
      int start = next + Wire.ENTRY_HEADER_LENGTH;
      if (length < 0 || length > segmentEnd - start) {
        throw partition.corrupt("an entry's length does not fit");
      }
      int flags = memorySegment.get(next + 8);
      int type = memorySegment.get(next + 9) & 0xff;
      int known = Wire.FLAG_COMPRESSED | Wire.FLAG_LAST_OF_RUN;
      if ((flags & ~known) != 0 || memorySegment.getShortBigEndian(next + 10) != 0) {
        throw partition.corrupt("a reserved bit of an entry is set");
      }
      int subpartition = memorySegment.getIntBigEndian(next + 4);
      int sum = memorySegment.getIntBigEndian(next + 12);
      ByteBuffer payload = bytes.duplicate();
      payload.limit(start + length).position(start);
      partition.accept(subpartition, flags, type, sum, payload);
      next = start + length;
      if (type != Wire.TYPE_DATA) {
        payload.limit(start + length).position(start);
        onEvent(partition, payload, type);
      } else if ((flags & Wire.FLAG_COMPRESSED) != 0) {
        ready.add(dataOf(partition, uncompress(start, length)));
      } else if (length > 0) {
        buffer.retainBuffer();
        ready.add(dataOf(partition, buffer.readOnlySlice(start, length)));
      }
    }

    private Buffer uncompress(int start, int length) throws IOException {
      int blockLength = length - Wire.COMPRESSED_PREFIX_LENGTH;
      int size = blockLength > 0 ? memorySegment.getIntBigEndian(start) : 0;
      if (size <= 0 || size > bufferSize - Wire.ENTRY_RESERVE_BYTES) {
        throw partition.corrupt("a compressed entry has an impossible size");
      }
      BlockCodec codec = codecOf(partition);
      if (codec == null) {
        throw partition.corrupt("an entry is compressed although its partition is not");
      }
      MemorySegment target = takeUncompressedSegment();
      boolean isDone = false;
      try {
        codec.decompress(
            bytes,
            start + Wire.COMPRESSED_PREFIX_LENGTH,
            blockLength,
            target.getArray(),
            size);
        isDone = true;
      } finally {
        if (!isDone) {
          giveUncompressedSegment(target);
        }
      }
      NetworkBuffer result =
          new NetworkBuffer(target, SluiceInputGate.this::giveUncompressedSegment);
      result.setSize(size);
      return result;
    }

    void release() {
      buffer.recycleBuffer();
      memory.divide();
    }

    private ShuffleException malformed(String what) {
      return new ShuffleException(
          ErrorCode.PROTOCOL, "worker " + channel.reader.worker + ": " + what);
    }
  }

  private BlockCodec codecOf(InputPartition partition) throws ShuffleException {
    String name = partition.descriptor.codec();
    BlockCodec codec = codecs.get(name);
    if (codec == null && !codecs.containsKey(name)) {
      codec = BlockCodec.of(name, bufferSize - Wire.ENTRY_RESERVE_BYTES);
      codecs.put(name, codec);
    }
    return codec;
  }

  /** The task has one or two at a time, which go round. */
  private MemorySegment takeUncompressedSegment() {
    synchronized (uncompressedSegments) {
      MemorySegment segment = uncompressedSegments.poll();
      return segment == null
          ? MemorySegmentFactory.allocateUnpooledSegment(bufferSize)
          : segment;
    }
  }

  private void giveUncompressedSegment(MemorySegment segment) {
    synchronized (uncompressedSegments) {
      if (uncompressedSegments.size() < 4 && !isClosed) {
        uncompressedSegments.add(segment);
      }
    }
  }

  private BufferOrEvent dataOf(InputPartition partition, Buffer buffer) {
    return new BufferOrEvent(buffer, channelInfo(partition.channelIndex), false, false);
  }

  /** Ends are counted, and told once for all subpartitions; the last one only after the totals. */
  private void onEvent(InputPartition partition, ByteBuffer bytes, int type) throws IOException {
    AbstractEvent event;
    int size = bytes.remaining();
    try {
      ByteBuffer copy = ByteBuffer.allocate(size);
      copy.put(bytes).flip();
      event = EventSerializer.fromSerializedEvent(copy, getClass().getClassLoader());
    } catch (IOException | RuntimeException error) {
      throw partition.corrupt("an event of type " + type + " can't be read: " + error);
    }
    BufferOrEvent item =
        new BufferOrEvent(event, false, channelInfo(partition.channelIndex), false, size, false);
    if (event instanceof EndOfPartitionEvent) {
      if (partition.countEndOfPartition()) {
        heldEnds.put(partition, item);
      }
    } else if (event instanceof EndOfData) {
      isDraining &= ((EndOfData) event).getStopMode() == StopMode.DRAIN;
      if (partition.countEndOfData()) {
        channelsWithEndOfData++;
        ready.add(item);
      }
    } else {
      ready.add(item);
    }
  }

  // --- the rest of the contract ---

  @Override
  public boolean isFinished() {
    return endedChannels == inputs.length;
  }

  @Override
  public EndOfDataStatus hasReceivedEndOfData() {
    if (channelsWithEndOfData < inputs.length) {
      return EndOfDataStatus.NOT_END_OF_DATA;
    }
    return isDraining ? EndOfDataStatus.DRAINED : EndOfDataStatus.STOPPED;
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
      stopWatching.run();
      queue.close();
      if (memory != null) {
        memory.close();
      }
    }
    synchronized (pollLock) {
      if (current != null) {
        current.buffer.recycleBuffer();
        current = null;
      }
      for (BufferOrEvent left : ready) {
        if (left.isBuffer()) {
          left.getBuffer().recycleBuffer();
        }
      }
      ready.clear();
      // A channel may have been opened while this began.
      if (memory != null) {
        memory.close();
      }
      if (pool != null) {
        pool.lazyDestroy();
      }
    }
  }

  private InputChannelInfo channelInfo(int channelIndex) {
    return new InputChannelInfo(gateIndex, channelIndex);
  }

  @Override
  public List<InputChannelInfo> getChannelInfos() {
    List<InputChannelInfo> infos = new ArrayList<>(inputs.length);
    for (int index = 0; index < inputs.length; index++) {
      infos.add(channelInfo(index));
    }
    return infos;
  }

  /** Flink wants an object of its own class; see the shim. */
  @Override
  public synchronized InputChannel getChannel(int channelIndex) {
    if (channels[channelIndex] == null) {
      if (channelOwner == null) {
        channelOwner =
            new SingleInputGate(
                owningTaskName,
                gateIndex,
                consumedResultId,
                consumedType,
                inputs.length,
                (jobId, resultId, partitionId) -> {},
                () -> null,
                null,
                new NoSegments(),
                1,
                new ThroughputCalculator(SystemClock.getInstance()),
                null);
      }
      channels[channelIndex] =
          FlinkLine.inputChannel(
              channelOwner,
              channelIndex,
              inputs[channelIndex].descriptor.getResultPartitionID(),
              inputs[channelIndex].firstSubpartition,
              inputs[channelIndex].lastSubpartition,
              new ConnectionID(
                  ResourceID.generate(), InetSocketAddress.createUnresolved("sluice", 1), 0));
    }
    return channels[channelIndex];
  }

  /** The object that stands for a channel never asks for memory. */
  private static final class NoSegments
      implements org.apache.flink.core.memory.MemorySegmentProvider {
    @Override
    public java.util.Collection<MemorySegment> requestUnpooledMemorySegments(int count) {
      return Collections.emptyList();
    }

    @Override
    public void recycleUnpooledMemorySegments(java.util.Collection<MemorySegment> segments) {}
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
