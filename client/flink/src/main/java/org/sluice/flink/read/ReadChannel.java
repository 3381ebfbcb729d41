package org.sluice.flink.read;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.apache.flink.runtime.io.network.buffer.NetworkBuffer;
import org.apache.flink.shaded.netty4.io.netty.buffer.ByteBuf;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.transport.ChannelHandler;
import org.sluice.flink.transport.WorkerChannel;
import org.sluice.flink.transport.WorkerConnection;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.Message;
import org.sluice.flink.wire.MessageType;
import org.sluice.flink.wire.PartitionList;
import org.sluice.flink.wire.Wire;

/**
 * One read channel of a gate. The thread of the connection only takes bodies into the buffers that
 * were granted for them and puts everything into the gate's queue, in order; the task thread does
 * the rest. Credit and buffers are guarded by the gate's lock.
 */
final class ReadChannel implements ChannelHandler {
  final GateQueue queue;
  final GateMemory memory;
  final WorkerReader reader;
  /** By index in the list of the channel; null once it has ended. Belongs to the task thread. */
  private final InputPartition[] listed;

  private final int bufferSize;
  private volatile WorkerChannel channel;
  /** Granted and not consumed: one buffer each. */
  private final ArrayDeque<NetworkBuffer> reserved = new ArrayDeque<>();
  private long backlogLeft;
  private boolean isDead;
  /** Since its last frame, or since it has had credit again. */
  private volatile long silentSinceNanos = System.nanoTime();

  ReadChannel(
      GateQueue queue,
      GateMemory memory,
      WorkerReader reader,
      List<InputPartition> partitions,
      int bufferSize) {
    this.queue = queue;
    this.memory = memory;
    this.reader = reader;
    this.listed = partitions.toArray(new InputPartition[0]);
    this.bufferSize = bufferSize;
  }

  /** Opens it with the buffers of its first credit, which are its own from here on. */
  void open(WorkerConnection connection, List<NetworkBuffer> buffers) {
    channel = connection.channel(this);
    synchronized (memory.lock()) {
      reserved.addAll(buffers);
    }
    // Before the connection can say that it is lost, and before it can be closed.
    memory.register(this);
    channel.open(new Message(MessageType.OPEN_READ, (long) bufferSize, (long) buffers.size()));
    PartitionList.Entry[] entries = new PartitionList.Entry[listed.length];
    for (int index = 0; index < entries.length; index++) {
      entries[index] = listed[index].listEntry(index);
    }
    for (PartitionList.Page page : PartitionList.encode(List.of(entries))) {
      channel.send(
          new Message(MessageType.ADD_PARTITIONS, (long) page.partitionCount), page.body);
    }
    channel.send(new Message(MessageType.READ_END, (long) listed.length));
  }

  /** The input that the worker means by the index; null when it has ended on this channel. */
  InputPartition listed(long index) throws ShuffleException {
    if (index >= listed.length) {
      throw new ShuffleException(
          ErrorCode.PROTOCOL, "the worker names partition " + index + ", which is not listed");
    }
    return listed[(int) index];
  }

  /** The same, and it has ended from now on. */
  InputPartition takeListed(long index) throws ShuffleException {
    InputPartition partition = listed(index);
    listed[(int) index] = null;
    return partition;
  }

  boolean hasListed() {
    return Arrays.stream(listed).anyMatch(Objects::nonNull);
  }

  /** All that have not ended. */
  List<InputPartition> takeAllListed() {
    List<InputPartition> taken = new ArrayList<>();
    for (int index = 0; index < listed.length; index++) {
      if (listed[index] != null) {
        taken.add(listed[index]);
        listed[index] = null;
      }
    }
    return taken;
  }

  // --- with the gate's lock ---

  int outstanding() {
    return reserved.size();
  }

  long backlogLeft() {
    return isDead ? 0 : backlogLeft;
  }

  /** Only while it has backlog, and is therefore alive. */
  void reserve(NetworkBuffer buffer) {
    if (reserved.isEmpty()) {
      silentSinceNanos = System.nanoTime();
    }
    reserved.add(buffer);
  }

  void grant(int credit) {
    channel.send(new Message(MessageType.ADD_CREDIT, (long) credit, Wire.NO_REGION));
  }

  // --- any thread ---

  /**
   * How long nothing came while it was the worker's turn: not while a consumer without memory gives
   * no credit for what the worker has. A worker that says it has nothing more owes the end.
   */
  long silentMs() {
    boolean isWorkersTurn;
    synchronized (memory.lock()) {
      isWorkersTurn = !reserved.isEmpty() || backlogLeft == 0;
    }
    return isWorkersTurn ? TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - silentSinceNanos) : 0;
  }

  /** Gives it up; what it reserved goes back. Idempotent. */
  void close() {
    if (die() && channel != null) {
      channel.close();
    }
  }

  /** It has had credit, and nothing came for too long. */
  void expire(ShuffleException error) {
    lose(error);
    channel.close();
  }

  private boolean die() {
    ArrayDeque<NetworkBuffer> unused;
    synchronized (memory.lock()) {
      if (isDead) {
        return false;
      }
      isDead = true;
      unused = new ArrayDeque<>(reserved);
      reserved.clear();
    }
    memory.unregister(this);
    unused.forEach(NetworkBuffer::recycleBuffer);
    return true;
  }

  private void lose(ShuffleException error) {
    if (die()) {
      queue.add(new GateQueue.Lost(this, error));
    }
  }

  // --- the thread of the connection ---

  @Override
  public ByteBuf dataBody(int bodyLength) {
    NetworkBuffer buffer;
    boolean wasDead;
    synchronized (memory.lock()) {
      wasDead = isDead;
      buffer = bodyLength > bufferSize ? null : reserved.poll();
    }
    if (buffer == null && !wasDead) {
      lose(
          new ShuffleException(
              ErrorCode.PROTOCOL, "data of " + bodyLength + " bytes came beyond credit or buffer"));
      channel.close();
    }
    return buffer;
  }

  @Override
  public void onData(ByteBuf body) {
    silentSinceNanos = System.nanoTime();
    boolean wasDead;
    synchronized (memory.lock()) {
      wasDead = isDead;
      backlogLeft = Math.max(0, backlogLeft - 1);
    }
    if (wasDead) {
      body.release();
    } else {
      queue.add(new GateQueue.Body(this, (NetworkBuffer) body));
    }
  }

  @Override
  public void onMessage(Message message) {
    silentSinceNanos = System.nanoTime();
    switch (message.type()) {
      case READ_OPENED:
        break;
      case BACKLOG:
        synchronized (memory.lock()) {
          backlogLeft = message.number("bufferCount");
        }
        memory.divide();
        break;
      case PARTITION_FINISH:
      case PARTITION_FAILED:
        queue.add(new GateQueue.Told(this, message));
        break;
      case READ_FINISH:
        channel.forget();
        if (die()) {
          queue.add(new GateQueue.Told(this, message));
        }
        break;
      case ERROR:
        channel.forget();
        lose(
            new ShuffleException(
                ErrorCode.ofWire(message.integer("code")), message.text("text")));
        break;
      default:
        lose(
            new ShuffleException(
                ErrorCode.PROTOCOL, message.type().wireName() + " came on a read channel"));
        channel.close();
        break;
    }
  }

  @Override
  public void onClosed(ShuffleException error) {
    lose(error);
  }
}
