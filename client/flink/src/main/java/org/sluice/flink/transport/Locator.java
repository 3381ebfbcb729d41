package org.sluice.flink.transport;

import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.PartitionKey;

/**
 * Finds the worker that holds a partition. A location is a hint: when nobody answers there, or
 * someone else does, the manager is asked for the present address before a failure counts.
 */
public final class Locator {
  private final ConnectionPool pool;
  private final ManagerClient manager;
  private final Map<String, WorkerAddress> known = new ConcurrentHashMap<>();

  public Locator(ConnectionPool pool, ManagerClient manager) {
    this.pool = pool;
    this.manager = manager;
  }

  /** A connection to the worker of the hint, wherever it is; the key is of a partition it holds. */
  public CompletableFuture<WorkerConnection> connect(WorkerAddress hint, PartitionKey key) {
    WorkerAddress tried = known.getOrDefault(hint.workerId(), hint);
    return pool.connect(tried)
        .handle(
            (connection, error) -> {
              if (error == null) {
                return CompletableFuture.completedFuture(connection);
              }
              ShuffleException failure =
                  ShuffleException.of(error, ErrorCode.WORKER_UNREACHABLE);
              if (failure.is(ErrorCode.CANCELLED)) {
                return CompletableFuture.<WorkerConnection>failedFuture(failure);
              }
              return ask(hint, tried, key, failure);
            })
        .thenCompose(connection -> connection);
  }

  private CompletableFuture<WorkerConnection> ask(
      WorkerAddress hint, WorkerAddress tried, PartitionKey key, ShuffleException failure) {
    return manager
        .locate(key)
        .handle(
            (present, error) -> {
              if (error != null) {
                // Without the manager nothing is decided: the caller tries again.
                return CompletableFuture.<WorkerConnection>failedFuture(
                    new ShuffleException(
                        ErrorCode.WORKER_UNREACHABLE,
                        failure.getMessage() + "; " + error.getMessage(),
                        failure));
              }
              if (present == null || present.equals(tried)) {
                return CompletableFuture.<WorkerConnection>failedFuture(failure);
              }
              if (!present.workerId().equals(hint.workerId())) {
                return CompletableFuture.<WorkerConnection>failedFuture(
                    new ShuffleException(
                        ErrorCode.WORKER_CHANGED,
                        "worker " + present.workerId() + " holds the partition now",
                        failure));
              }
              if (known.size() > 4096) {
                known.clear();
              }
              known.put(hint.workerId(), present);
              return pool.connect(present);
            })
        .thenCompose(connection -> connection);
  }
}
