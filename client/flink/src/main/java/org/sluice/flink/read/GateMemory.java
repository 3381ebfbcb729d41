package org.sluice.flink.read;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.runtime.execution.CancelTaskException;
import org.apache.flink.runtime.io.network.buffer.BufferPool;
import org.apache.flink.runtime.io.network.buffer.NetworkBuffer;

/**
 * Who of a gate's channels may have how much of its buffer pool, which floats. Two buffers belong to
 * each open channel, and no more channels are open than that gives; the rest is divided evenly among
 * the channels that have backlog. Whoever is granted credit has the buffers in hand.
 */
final class GateMemory {
  /** What a channel begins with, and keeps. */
  static final int INITIAL_CREDIT = 2;

  private final Object lock = new Object();
  private final BufferPool pool;
  private final GateQueue queue;
  private final List<ReadChannel> channels = new ArrayList<>();
  private final ArrayDeque<WorkerReader> opening = new ArrayDeque<>();
  /** Collected for the next channel to be opened. */
  private final ArrayDeque<NetworkBuffer> collected = new ArrayDeque<>();
  private int reservedForOpening;
  private int nextChannel;
  private boolean isAwaiting;
  private boolean isDividing;
  private boolean isStale;
  private boolean isClosed;

  GateMemory(BufferPool pool, GateQueue queue) {
    this.pool = pool;
    this.queue = queue;
  }

  /** Guards the credit of the channels too. */
  Object lock() {
    return lock;
  }

  /** The reader gets its first buffers by the queue, as soon as it is its turn. */
  void requestInitial(WorkerReader reader) {
    synchronized (lock) {
      opening.add(reader);
    }
    divide();
  }

  /** The channel that is being opened with them. */
  void register(ReadChannel channel) {
    synchronized (lock) {
      reservedForOpening--;
      channels.add(channel);
    }
    divide();
  }

  /** No channel is opened with them now. */
  void abandonOpening(List<NetworkBuffer> buffers) {
    synchronized (lock) {
      reservedForOpening--;
    }
    buffers.forEach(NetworkBuffer::recycleBuffer);
    divide();
  }

  void unregister(ReadChannel channel) {
    synchronized (lock) {
      channels.remove(channel);
    }
    divide();
  }

  /** Divides what is free; called whenever anything has changed. */
  void divide() {
    List<GateQueue.Item> opened = new ArrayList<>();
    List<NetworkBuffer> unwanted = new ArrayList<>();
    synchronized (lock) {
      isStale = true;
      if (isDividing) {
        return;
      }
      isDividing = true;
      try {
        while (isStale && !isClosed) {
          isStale = false;
          divideOnce(opened);
        }
      } catch (CancelTaskException error) {
        // The pool was destroyed: the task is being cancelled.
        isClosed = true;
      } finally {
        isDividing = false;
      }
      if (isClosed || opening.isEmpty()) {
        unwanted.addAll(collected);
        collected.clear();
      }
    }
    // Outside the lock: whoever waits for the gate goes on in this thread.
    opened.forEach(queue::add);
    unwanted.forEach(NetworkBuffer::recycleBuffer);
  }

  private void divideOnce(List<GateQueue.Item> opened) {
    boolean isOpening = false;
    while (!opening.isEmpty() && !isOpening && hasRoomToOpen()) {
      while (collected.size() < INITIAL_CREDIT) {
        NetworkBuffer buffer = acquire();
        if (buffer == null) {
          isOpening = true;
          break;
        }
        collected.add(buffer);
      }
      if (!isOpening) {
        reservedForOpening++;
        opened.add(new GateQueue.Buffers(opening.poll(), new ArrayList<>(collected)));
        collected.clear();
      }
    }
    grant(isOpening);
  }

  private boolean hasRoomToOpen() {
    int openCount = channels.size() + reservedForOpening;
    return openCount == 0 || INITIAL_CREDIT * (openCount + 1) <= pool.getNumBuffers();
  }

  /** While a channel is being opened nobody takes more than its own two. */
  private void grant(boolean isOpening) {
    int withBacklog = 0;
    for (ReadChannel channel : channels) {
      withBacklog += channel.backlogLeft() > 0 ? 1 : 0;
    }
    int openCount = channels.size() + reservedForOpening;
    int floating = Math.max(0, pool.getNumBuffers() - INITIAL_CREDIT * openCount);
    int share =
        isOpening ? INITIAL_CREDIT : INITIAL_CREDIT + floating / Math.max(1, withBacklog);
    boolean isShort = false;
    for (int step = 0; step < channels.size() && !isShort; step++) {
      ReadChannel channel = channels.get((nextChannel + step) % channels.size());
      long wanted = Math.min(share, channel.backlogLeft()) - channel.outstanding();
      int granted = 0;
      while (granted < wanted && !isShort) {
        NetworkBuffer buffer = acquire();
        isShort = buffer == null;
        if (!isShort) {
          channel.reserve(buffer);
          granted++;
        }
      }
      if (granted > 0) {
        channel.grant(granted);
      }
    }
    nextChannel = channels.isEmpty() ? 0 : (nextChannel + 1) % channels.size();
  }

  private NetworkBuffer acquire() {
    while (true) {
      NetworkBuffer buffer = (NetworkBuffer) pool.requestBuffer();
      if (buffer != null) {
        return buffer;
      }
      CompletableFuture<?> available = pool.getAvailableFuture();
      if (available.isDone()) {
        continue;
      }
      if (!isAwaiting) {
        isAwaiting = true;
        available.thenRun(this::onAvailable);
      }
      return null;
    }
  }

  private void onAvailable() {
    synchronized (lock) {
      isAwaiting = false;
    }
    divide();
  }

  void close() {
    List<NetworkBuffer> left;
    List<ReadChannel> open;
    synchronized (lock) {
      isClosed = true;
      opening.clear();
      left = new ArrayList<>(collected);
      collected.clear();
      open = new ArrayList<>(channels);
    }
    left.forEach(NetworkBuffer::recycleBuffer);
    open.forEach(ReadChannel::close);
  }

  List<ReadChannel> openChannels() {
    synchronized (lock) {
      return new ArrayList<>(channels);
    }
  }
}
