package org.sluice.flink.read;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import org.apache.flink.runtime.checkpoint.channel.InputChannelInfo;
import org.apache.flink.runtime.event.AbstractEvent;
import org.apache.flink.runtime.io.PullingAsyncDataInput.EndOfDataStatus;
import org.apache.flink.runtime.io.network.api.EndOfData;
import org.apache.flink.runtime.io.network.api.EndOfPartitionEvent;
import org.apache.flink.runtime.io.network.api.StopMode;
import org.apache.flink.runtime.io.network.api.serialization.EventSerializer;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.partition.consumer.BufferOrEvent;

/**
 * What the task is to get next: data and events. Ends are told once for all subpartitions of an
 * input, as Flink's own gate does: the end of data with the last subpartition, the end of the
 * partition only after the worker's totals were right too. Belongs to the task thread.
 */
final class ReadyItems {
  private final int gateIndex;
  private final int inputCount;
  private final ArrayDeque<BufferOrEvent> items = new ArrayDeque<>();
  private final Map<InputPartition, BufferOrEvent> heldEnds = new HashMap<>();
  private int inputsWithEndOfData;
  private boolean isDraining = true;
  private volatile int endedInputs;

  ReadyItems(int gateIndex, int inputCount) {
    this.gateIndex = gateIndex;
    this.inputCount = inputCount;
  }

  /** The buffer is the task's. */
  void addData(InputPartition partition, Buffer buffer) {
    items.add(new BufferOrEvent(buffer, channelInfo(partition), false, false));
  }

  /** From a copy of the bytes. */
  void addEvent(InputPartition partition, ByteBuffer bytes, int type) throws IOException {
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
        new BufferOrEvent(event, false, channelInfo(partition), false, size, false);
    if (event instanceof EndOfPartitionEvent) {
      if (partition.countEndOfPartition()) {
        heldEnds.put(partition, item);
      }
    } else if (event instanceof EndOfData) {
      isDraining &= ((EndOfData) event).getStopMode() == StopMode.DRAIN;
      if (partition.countEndOfData()) {
        inputsWithEndOfData++;
        items.add(item);
      }
    } else {
      items.add(item);
    }
  }

  /** All of the input has come, and was right. */
  void finish(InputPartition partition) {
    BufferOrEvent end = heldEnds.remove(partition);
    if (end != null) {
      items.add(end);
    }
  }

  /** Null: nothing just now. */
  BufferOrEvent poll() {
    BufferOrEvent next = items.poll();
    if (next != null && next.isEvent() && next.getEvent() instanceof EndOfPartitionEvent) {
      endedInputs++;
    }
    return next;
  }

  boolean isEmpty() {
    return items.isEmpty();
  }

  /** Whether the ends of all inputs were handed out. Any thread may ask. */
  boolean isFinished() {
    return endedInputs == inputCount;
  }

  EndOfDataStatus endOfData() {
    if (inputsWithEndOfData < inputCount) {
      return EndOfDataStatus.NOT_END_OF_DATA;
    }
    return isDraining ? EndOfDataStatus.DRAINED : EndOfDataStatus.STOPPED;
  }

  /** Gives back what was not fetched. Idempotent. */
  void release() {
    for (BufferOrEvent left : items) {
      if (left.isBuffer()) {
        left.getBuffer().recycleBuffer();
      }
    }
    items.clear();
  }

  private InputChannelInfo channelInfo(InputPartition partition) {
    return new InputChannelInfo(gateIndex, partition.channelIndex);
  }
}
