package org.sluice.flink.read;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.metrics.Counter;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.transport.WorkerConnection;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.Message;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The reading from all the workers that hold input of a gate: opens a channel to each, and opens it
 * again where it was lost or where something was not ready, until the time for that is over. Belongs
 * to the task thread, but for {@link #stop}.
 */
final class WorkerReads {
  private static final Logger LOG = LoggerFactory.getLogger(WorkerReads.class);
  private static final long WATCH_MS_MIN = 100;

  /** Whom it tells what came of an input. */
  interface Listener {
    /** All of it came, and was right. */
    void onFinished(InputPartition partition);

    /** It can't be read; may throw what the task should fail with. */
    void onFailed(InputPartition partition, ShuffleException error) throws IOException;
  }

  /** For log lines. */
  private final String name;
  private final int bufferSize;
  private final ReadServices services;
  private final ReadSettings settings;
  private final GateQueue queue;
  private final GateMemory memory;
  private final Listener listener;
  private final Counter retries;
  private volatile boolean isStopped;
  private volatile Runnable stopWatching = () -> {};

  WorkerReads(
      String name,
      int bufferSize,
      ReadServices services,
      ReadSettings settings,
      GateQueue queue,
      GateMemory memory,
      Listener listener,
      Counter retries) {
    this.name = name;
    this.bufferSize = bufferSize;
    this.services = services;
    this.settings = settings;
    this.queue = queue;
    this.memory = memory;
    this.listener = listener;
    this.retries = retries;
  }

  void start(InputPartition[] inputs, int turn) {
    Map<String, WorkerReader> byWorker = new LinkedHashMap<>();
    for (InputPartition input : inputs) {
      byWorker
          .computeIfAbsent(
              input.descriptor.worker().workerId(),
              id -> new WorkerReader(input.descriptor.worker()))
          .add(input);
    }
    List<WorkerReader> readers = new ArrayList<>(byWorker.values());
    // Not all consumers of a stage begin with the same worker.
    Collections.rotate(readers, turn);
    readers.forEach(this::connect);
    watch();
  }

  /** From any thread. Idempotent. */
  void stop() {
    isStopped = true;
    stopWatching.run();
  }

  void connect(WorkerReader reader) {
    if (isStopped || !reader.hasWaiting()) {
      return;
    }
    connectionTo(reader)
        .whenComplete((connection, error) -> queue.add(connected(reader, connection, error)));
  }

  private CompletableFuture<WorkerConnection> connectionTo(WorkerReader reader) {
    return services.locator.connect(reader.worker, reader.anyWaiting().key);
  }

  private static GateQueue.Connected connected(
      WorkerReader reader, WorkerConnection connection, Throwable error) {
    return new GateQueue.Connected(
        reader,
        connection,
        error == null ? null : ShuffleException.of(error, ErrorCode.WORKER_UNREACHABLE));
  }

  void onConnected(GateQueue.Connected connected) throws IOException {
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
    // So late, that none waits for buffers whose worker can't be reached.
    memory.requestInitial(reader);
  }

  /** Connects again: it waited while others read, and a connection without a channel is closed. */
  void onBuffers(GateQueue.Buffers given) {
    WorkerReader reader = given.reader;
    CompletableFuture<WorkerConnection> connecting = connectionTo(reader);
    if (connecting.isDone() && !connecting.isCompletedExceptionally()) {
      ReadChannel channel =
          new ReadChannel(queue, memory, reader, reader.takeWaiting(), bufferSize);
      channel.open(connecting.join(), given.buffers);
      return;
    }
    connecting.whenComplete(
        (connection, error) -> {
          if (error == null) {
            queue.add(given);
          } else {
            memory.abandonOpening(given.buffers);
            queue.add(connected(reader, null, error));
          }
        });
  }

  void onTold(ReadChannel channel, Message message) throws IOException {
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

  private void onReadFinish(ReadChannel channel) throws IOException {
    if (channel.hasListed()) {
      onLost(
          channel,
          new ShuffleException(
              ErrorCode.PROTOCOL,
              "worker " + channel.reader.worker + " ends a channel before its list"));
    } else if (channel.reader.hasWaiting()) {
      // What was put off meanwhile goes on the next channel.
      later(channel.reader);
    }
  }

  private void onPartitionFinish(ReadChannel channel, Message message) throws IOException {
    InputPartition partition = channel.takeListed(message.number("partition"));
    if (partition == null) {
      return;
    }
    channel.reader.succeed();
    try {
      partition.finish(message.number("entryCount"), message.number("byteCount"));
    } catch (ShuffleException error) {
      listener.onFailed(partition, error);
      return;
    }
    listener.onFinished(partition);
  }

  private void onPartitionFailed(ReadChannel channel, Message message) throws IOException {
    InputPartition partition = channel.takeListed(message.number("partition"));
    if (partition == null) {
      return;
    }
    ShuffleException error =
        new ShuffleException(
            ErrorCode.ofWire(message.integer("code")),
            message.text("text") + " (" + partition.descriptor + ")");
    boolean isPutOff =
        error.is(ErrorCode.PARTITION_NOT_READY, ErrorCode.BUSY)
            && channel.reader.failBusy() < settings.retryMs;
    if (isPutOff) {
      retries.inc();
      channel.reader.add(partition);
    } else {
      listener.onFailed(partition, error);
    }
  }

  void onLost(ReadChannel channel, ShuffleException error) throws IOException {
    channel.takeAllListed().forEach(channel.reader::add);
    if (channel.reader.hasWaiting()) {
      retryOrFail(channel.reader, error);
    }
  }

  private void retryOrFail(WorkerReader reader, ShuffleException error) throws IOException {
    boolean mayPass = false;
    if (error.is(ErrorCode.WORKER_UNREACHABLE)) {
      mayPass = reader.failUnreachable() < settings.unreachableMs;
    } else if (error.is(ErrorCode.BUSY, ErrorCode.NO_MANAGER)) {
      mayPass = reader.failBusy() < settings.retryMs;
    }
    if (!mayPass) {
      for (InputPartition partition : reader.takeWaiting()) {
        listener.onFailed(partition, error);
      }
      return;
    }
    LOG.info("{}: reading from worker {} again: {}", name, reader.worker, error.getMessage());
    retries.inc();
    later(reader);
  }

  private void later(WorkerReader reader) {
    services.connections.schedule(
        () -> queue.add(new GateQueue.Due(reader)), reader.nextPauseMs());
  }

  /** A channel whose worker is silent for too long in its turn is given up, and opened again. */
  private void watch() {
    if (isStopped) {
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
    stopWatching =
        services.connections.schedule(this::watch, Math.max(WATCH_MS_MIN, settings.idleMs / 4));
    if (isStopped) {
      stopWatching.run();
    }
  }
}
