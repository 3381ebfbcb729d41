package org.sluice.flink.transport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.support.Await;
import org.sluice.flink.support.FakeManager;
import org.sluice.flink.support.FakeWorker;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.PartitionKey;

class LocatorTest {
  private final PartitionKey key = new PartitionKey("app.job", "data-set", 0, "attempt");
  private FakeManager manager;
  private ManagerClient client;
  private ConnectionPool pool;
  private Locator locator;
  private FakeWorker worker;
  private WorkerAddress old;

  @BeforeEach
  void make() throws Exception {
    manager = new FakeManager();
    client = manager.client();
    pool =
        new ConnectionPool(
            new ConnectionPool.Settings(FakeWorker.CLUSTER, null, 1, 5_000, 10_000, "test"));
    locator = new Locator(pool, client);
    worker = new FakeWorker("worker-1");
    try (FakeWorker before = new FakeWorker("worker-1")) {
      old = before.address();
    }
    manager.worker = worker.address();
  }

  @AfterEach
  void end() throws Exception {
    pool.close();
    client.close();
    worker.close();
    manager.close();
  }

  private WorkerConnection connect(WorkerAddress hint) throws Exception {
    return locator.connect(hint, key).get(Await.DEADLINE_MS, TimeUnit.MILLISECONDS);
  }

  private ShuffleException failure(WorkerAddress hint) throws Exception {
    CompletableFuture<WorkerConnection> connecting = locator.connect(hint, key);
    try {
      connecting.get(Await.DEADLINE_MS, TimeUnit.MILLISECONDS);
    } catch (ExecutionException error) {
      return ShuffleException.of(error, ErrorCode.INVALID_ARGUMENT);
    }
    throw new AssertionError("it did not fail");
  }

  private int questions() {
    return manager.calls("POST", "/partitions/locate").size();
  }

  @Test
  @DisplayName("a worker that answers where it was is not asked about")
  void there() throws Exception {
    connect(worker.address());
    assertEquals(0, questions());
  }

  @Test
  @DisplayName("a worker that moved is found by the manager, and its new address is remembered")
  void moved() throws Exception {
    assertEquals(worker.address().toString(), connect(old).toString());
    assertEquals(1, questions());
    connect(old);
    assertEquals(1, questions());
  }

  @Test
  @DisplayName("where another worker answers at the old address, the manager is asked too")
  void otherWorkerThere() throws Exception {
    try (FakeWorker stranger = new FakeWorker("worker-2")) {
      WorkerAddress hint = new WorkerAddress("worker-1", "127.0.0.1", stranger.port());
      assertEquals(worker.address().toString(), connect(hint).toString());
    }
  }

  @Test
  @DisplayName("where something else altogether answers at the old address, the manager is asked too")
  void somethingElseThere() throws Exception {
    FakeWorker.Manners manners = new FakeWorker.Manners();
    manners.clusterId = "elsewhere";
    try (FakeWorker stranger = new FakeWorker("worker-1", manners)) {
      assertEquals(worker.address().toString(), connect(stranger.address()).toString());
    }
  }

  @Test
  @DisplayName("when the manager knows no other place, what was seen counts")
  void noOtherPlace() throws Exception {
    manager.worker = old;
    assertEquals(ErrorCode.WORKER_UNREACHABLE, failure(old).code());
    try (FakeWorker stranger = new FakeWorker("worker-2")) {
      WorkerAddress hint = new WorkerAddress("worker-1", "127.0.0.1", stranger.port());
      manager.worker = hint;
      assertEquals(ErrorCode.WORKER_CHANGED, failure(hint).code());
    }
  }

  @Test
  @DisplayName("when another worker holds the partition now, that is WORKER_CHANGED")
  void heldElsewhere() throws Exception {
    manager.worker = new WorkerAddress("worker-7", "127.0.0.1", worker.port());
    ShuffleException error = failure(old);
    assertEquals(ErrorCode.WORKER_CHANGED, error.code());
    assertTrue(error.getMessage().contains("worker-7"), error.getMessage());
  }

  @Test
  @DisplayName("without the manager nothing is decided: unreachable, so that it is tried again")
  void noManager() throws Exception {
    manager.close();
    try (FakeWorker stranger = new FakeWorker("worker-2")) {
      WorkerAddress hint = new WorkerAddress("worker-1", "127.0.0.1", stranger.port());
      assertEquals(ErrorCode.WORKER_UNREACHABLE, failure(hint).code());
    }
  }
}
