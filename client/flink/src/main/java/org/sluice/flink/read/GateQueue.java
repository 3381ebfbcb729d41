package org.sluice.flink.read;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.runtime.io.AvailabilityProvider.AvailabilityHelper;
import org.apache.flink.runtime.io.network.buffer.NetworkBuffer;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.transport.WorkerConnection;
import org.sluice.flink.wire.Message;

/**
 * What has come for a gate, in order, from the threads of connections and timers to the task thread.
 * While it is empty the gate is not available.
 */
final class GateQueue {
  /** One thing that came. */
  abstract static class Item {
    /** Gives back what it holds. */
    void discard() {}
  }

  /** A body of data. */
  static final class Body extends Item {
    final ReadChannel channel;
    final NetworkBuffer buffer;

    Body(ReadChannel channel, NetworkBuffer buffer) {
      this.channel = channel;
      this.buffer = buffer;
    }

    @Override
    void discard() {
      buffer.recycleBuffer();
    }
  }

  /** PartitionFinish, PartitionFailed or ReadFinish. */
  static final class Told extends Item {
    final ReadChannel channel;
    final Message message;

    Told(ReadChannel channel, Message message) {
      this.channel = channel;
      this.message = message;
    }
  }

  /** A channel ended before its list. */
  static final class Lost extends Item {
    final ReadChannel channel;
    final ShuffleException error;

    Lost(ReadChannel channel, ShuffleException error) {
      this.channel = channel;
      this.error = error;
    }
  }

  /** A connection to the worker of a reader, or why there is none. */
  static final class Connected extends Item {
    final WorkerReader reader;
    final WorkerConnection connection;
    final ShuffleException error;

    Connected(WorkerReader reader, WorkerConnection connection, ShuffleException error) {
      this.reader = reader;
      this.connection = connection;
      this.error = error;
    }
  }

  /** The first buffers of a channel to be opened. */
  static final class Buffers extends Item {
    final WorkerReader reader;
    final List<NetworkBuffer> buffers;

    Buffers(WorkerReader reader, List<NetworkBuffer> buffers) {
      this.reader = reader;
      this.buffers = buffers;
    }

    @Override
    void discard() {
      buffers.forEach(NetworkBuffer::recycleBuffer);
    }
  }

  /** The time has come for something that the gate or a reader put off. */
  static final class Due extends Item {
    /** Null: for the gate itself. */
    final WorkerReader reader;

    Due(WorkerReader reader) {
      this.reader = reader;
    }
  }

  private final AvailabilityHelper availability;
  private final ArrayDeque<Item> items = new ArrayDeque<>();
  private boolean isClosed;

  GateQueue(AvailabilityHelper availability) {
    this.availability = availability;
  }

  void add(Item item) {
    CompletableFuture<?> toComplete = null;
    boolean isTaken;
    synchronized (this) {
      isTaken = !isClosed;
      if (isTaken) {
        items.add(item);
        toComplete = availability.getUnavailableToResetAvailable();
      }
    }
    if (isTaken) {
      toComplete.complete(null);
    } else {
      item.discard();
    }
  }

  /** Null, and the gate not available from now on, when there is nothing. */
  synchronized Item poll() {
    Item item = items.poll();
    if (item == null && !isClosed) {
      availability.resetUnavailable();
    }
    return item;
  }

  synchronized boolean isEmpty() {
    return items.isEmpty();
  }

  /** Makes the gate available for ever. */
  void wake() {
    CompletableFuture<?> toComplete;
    synchronized (this) {
      toComplete = availability.getUnavailableToResetAvailable();
    }
    toComplete.complete(null);
  }

  /** Gives back everything; nothing more is taken. Idempotent. */
  void close() {
    List<Item> left;
    synchronized (this) {
      isClosed = true;
      left = new ArrayList<>(items);
      items.clear();
    }
    left.forEach(Item::discard);
    wake();
  }
}
