package org.sluice.flink.transport;

import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.apache.flink.shaded.netty4.io.netty.bootstrap.Bootstrap;
import org.apache.flink.shaded.netty4.io.netty.buffer.PooledByteBufAllocator;
import org.apache.flink.shaded.netty4.io.netty.channel.ChannelFuture;
import org.apache.flink.shaded.netty4.io.netty.channel.ChannelOption;
import org.apache.flink.shaded.netty4.io.netty.channel.nio.NioEventLoopGroup;
import org.apache.flink.shaded.netty4.io.netty.channel.socket.nio.NioSocketChannel;
import org.apache.flink.util.concurrent.ExecutorThreadFactory;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.wire.ClientHandshake;
import org.sluice.flink.wire.ErrorCode;

/** The connections of a TaskManager, one per worker address; and the threads that serve them. */
public final class ConnectionPool implements AutoCloseable {
  /** What all connections have in common. */
  public static final class Settings {
    final String clusterId;
    final String token;
    final int threadCount;
    final int connectTimeoutMs;
    final long heartbeatIntervalMs;
    final String software;

    /** No token: null. */
    public Settings(
        String clusterId,
        String token,
        int threadCount,
        int connectTimeoutMs,
        long heartbeatIntervalMs,
        String software) {
      this.clusterId = clusterId;
      this.token = token;
      this.threadCount = threadCount;
      this.connectTimeoutMs = connectTimeoutMs;
      this.heartbeatIntervalMs = heartbeatIntervalMs;
      this.software = software;
    }
  }

  private static final int PAGE_BYTES = 8192;
  /** 8 KiB, doubled seven times: 1 MiB. */
  private static final int CHUNK_ORDER = 7;

  private final Settings settings;
  private final NioEventLoopGroup loops;
  /** Small chunks: what it takes is not counted in Flink's network memory. */
  private final PooledByteBufAllocator allocator;
  /** Names are looked up here, since a look-up blocks. */
  private final ExecutorService resolver;
  private final Map<WorkerAddress, CompletableFuture<WorkerConnection>> connections =
      new HashMap<>();
  private boolean isClosed;

  public ConnectionPool(Settings settings) {
    this.settings = settings;
    this.loops =
        new NioEventLoopGroup(
            settings.threadCount, new ExecutorThreadFactory("sluice-shuffle-client"));
    this.allocator =
        new PooledByteBufAllocator(true, 0, settings.threadCount, PAGE_BYTES, CHUNK_ORDER);
    this.resolver =
        Executors.newSingleThreadExecutor(new ExecutorThreadFactory("sluice-shuffle-resolver"));
  }

  /** A connection that is ready; all who ask for an address meanwhile get the same. */
  public CompletableFuture<WorkerConnection> connect(WorkerAddress address) {
    CompletableFuture<WorkerConnection> result = new CompletableFuture<>();
    synchronized (this) {
      if (isClosed) {
        return CompletableFuture.failedFuture(closedError());
      }
      CompletableFuture<WorkerConnection> present = connections.get(address);
      if (present != null) {
        return present.copy();
      }
      connections.put(address, result);
    }
    result.whenComplete(
        (connection, error) -> {
          if (error != null) {
            forget(address, result);
          }
        });
    try {
      resolver.execute(() -> dial(address, result));
    } catch (RejectedExecutionException error) {
      result.completeExceptionally(closedError());
    }
    return result.copy();
  }

  private static ShuffleException closedError() {
    return new ShuffleException(ErrorCode.CANCELLED, "the shuffle environment was closed");
  }

  private void dial(WorkerAddress address, CompletableFuture<WorkerConnection> result) {
    InetSocketAddress resolved = new InetSocketAddress(address.host(), address.port());
    if (resolved.isUnresolved()) {
      result.completeExceptionally(
          new ShuffleException(
              ErrorCode.WORKER_UNREACHABLE, "worker " + address + ": its name is not known"));
      return;
    }
    ClientHandshake.Facts facts =
        new ClientHandshake.Facts(
            settings.clusterId,
            address.workerId(),
            settings.token,
            settings.heartbeatIntervalMs,
            settings.software);
    WorkerConnection connection =
        new WorkerConnection(
            address, facts, settings.heartbeatIntervalMs, () -> forget(address, result));
    connection
        .ready()
        .whenComplete(
            (ready, error) -> {
              if (error == null) {
                result.complete(ready);
              } else {
                result.completeExceptionally(error);
              }
            });
    ChannelFuture dialled =
        new Bootstrap()
            .group(loops)
            .channel(NioSocketChannel.class)
            .option(ChannelOption.ALLOCATOR, allocator)
            .option(ChannelOption.TCP_NODELAY, true)
            .option(ChannelOption.SO_KEEPALIVE, true)
            .option(ChannelOption.CONNECT_TIMEOUT_MILLIS, settings.connectTimeoutMs)
            .handler(connection)
            .connect(resolved);
    dialled.addListener(
        done -> {
          if (!done.isSuccess()) {
            result.completeExceptionally(
                new ShuffleException(
                    ErrorCode.WORKER_UNREACHABLE,
                    "worker " + address + ": " + done.cause().getMessage(),
                    done.cause()));
          }
        });
  }

  private synchronized void forget(
      WorkerAddress address, CompletableFuture<WorkerConnection> connection) {
    connections.remove(address, connection);
  }

  /**
   * Runs something later in one of the threads, where it must not block. Answers how to prevent it;
   * after the end of the threads it never runs.
   */
  public Runnable schedule(Runnable action, long delayMs) {
    try {
      ScheduledFuture<?> scheduled = loops.schedule(action, delayMs, TimeUnit.MILLISECONDS);
      return () -> scheduled.cancel(false);
    } catch (RejectedExecutionException error) {
      return () -> {};
    }
  }

  /** Connections that are there or being made. */
  public synchronized int connectionCount() {
    return connections.size();
  }

  @Override
  public void close() {
    ArrayList<CompletableFuture<WorkerConnection>> open;
    synchronized (this) {
      isClosed = true;
      open = new ArrayList<>(connections.values());
    }
    ShuffleException reason = closedError();
    for (CompletableFuture<WorkerConnection> connection : open) {
      connection.thenAccept(ready -> ready.close(reason));
      connection.completeExceptionally(reason);
    }
    resolver.shutdownNow();
    loops.shutdownGracefully(0, 5, TimeUnit.SECONDS);
  }
}
