package org.sluice.flink.manager;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.support.Await;
import org.sluice.flink.support.FakeManager;
import org.sluice.flink.support.FakeManager.Answer;
import org.sluice.flink.support.FakeWorker;
import org.sluice.flink.transport.WorkerAddress;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.PartitionKey;

class ManagerClientTest {
  private static final long LONG_MS = 60_000;
  private final PartitionKey key = new PartitionKey("app.job", "data-set", 3, "attempt");
  private FakeManager manager;
  private ManagerClient client;

  @BeforeEach
  void make() throws Exception {
    manager = new FakeManager();
    client = manager.client();
  }

  @AfterEach
  void end() {
    client.close();
    manager.close();
  }

  private CompletableFuture<JsonNode> call(long retryForMs) {
    return client.call("POST", "/v1/anything", ManagerClient.object(), retryForMs, 0);
  }

  private static ErrorCode failure(CompletableFuture<?> call) throws Exception {
    try {
      throw new AssertionError(
          "it was answered: " + call.get(Await.DEADLINE_MS, TimeUnit.MILLISECONDS));
    } catch (ExecutionException error) {
      return ((ShuffleException) error.getCause()).code();
    }
  }

  @Test
  @DisplayName("an error of the manager comes with its code and words")
  void errors() throws Exception {
    manager.instead = call -> Answer.error(409, ErrorCode.SUPERSEDED, "another one");
    CompletableFuture<JsonNode> call = call(LONG_MS);
    assertEquals(ErrorCode.SUPERSEDED, failure(call));
    assertTrue(call.handle((answer, error) -> error.getMessage()).get().contains("another one"));
  }

  @Test
  @DisplayName("a busy or absent manager is asked again until the time is over")
  void repeated() throws Exception {
    AtomicInteger refusals = new AtomicInteger(3);
    manager.instead =
        call ->
            refusals.getAndDecrement() > 0
                ? Answer.error(503, ErrorCode.BUSY, "just now")
                : null;
    call(LONG_MS).get(Await.DEADLINE_MS, TimeUnit.MILLISECONDS);
    assertEquals(4, manager.calls("POST", "/v1/anything").size());
    manager.close();
    assertEquals(ErrorCode.NO_MANAGER, failure(call(0)));
  }

  @Test
  @DisplayName("who answers and is no manager is PROTOCOL")
  void stranger() throws Exception {
    for (int status : new int[] {200, 404, 500}) {
      manager.instead = call -> Answer.text(status, "<html>hello</html>");
      assertEquals(ErrorCode.PROTOCOL, failure(call(LONG_MS)));
    }
    manager.instead = call -> Answer.text(404, "{}");
    assertEquals(ErrorCode.PROTOCOL, failure(call(LONG_MS)));
  }

  @Test
  @DisplayName("a success is taken from a manager only, and only as an object")
  void strangersSuccess() throws Exception {
    for (String said : List.of("null", "[]", "\"text\"")) {
      manager.instead = call -> Answer.text(200, said);
      assertEquals(ErrorCode.PROTOCOL, failure(call(LONG_MS)));
    }
    manager.epoch = 0;
    for (int status : new int[] {200, 302}) {
      manager.instead = call -> Answer.text(status, "{}");
      assertEquals(ErrorCode.PROTOCOL, failure(call(LONG_MS)));
    }
  }

  @Test
  @DisplayName("a proxy that answers for a manager that is away is waited out")
  void proxy() throws Exception {
    for (int status : new int[] {502, 503, 504}) {
      for (String said : List.of("<html>Bad gateway</html>", "{\"message\":\"no upstream\"}", "")) {
        manager.instead = call -> Answer.text(status, said);
        CompletableFuture<JsonNode> refused = call(0);
        assertEquals(ErrorCode.NO_MANAGER, failure(refused));
        String words = refused.handle((answer, error) -> error.getMessage()).get();
        assertTrue(words.contains("a proxy") && words.contains("status " + status), words);
      }
    }
    AtomicInteger refusals = new AtomicInteger(2);
    manager.instead =
        call -> refusals.getAndDecrement() > 0 ? Answer.text(502, "<html>") : null;
    call(LONG_MS).get(Await.DEADLINE_MS, TimeUnit.MILLISECONDS);
  }

  @Test
  @DisplayName("an answer that begins and never ends is given up as none")
  void stuck() throws Exception {
    manager.instead = call -> Answer.stuck();
    try (ManagerClient impatient =
        new ManagerClient(manager.address(), FakeWorker.CLUSTER, null, 50)) {
      assertEquals(
          ErrorCode.NO_MANAGER, failure(impatient.call("GET", "/v1/cluster", null, 0, 0)));
    }
  }

  @Test
  @DisplayName("the answer of an older manager counts as none")
  void older() throws Exception {
    manager.epoch = 7;
    call(0).get(Await.DEADLINE_MS, TimeUnit.MILLISECONDS);
    assertEquals(7, client.managerEpoch());
    manager.epoch = 6;
    assertEquals(ErrorCode.NO_MANAGER, failure(call(0)));
    assertEquals(7, client.managerEpoch());
  }

  @Test
  @DisplayName("a partition is located, and one that nobody has is nowhere")
  void locate() throws Exception {
    manager.worker = new WorkerAddress("worker-9", "there", 5);
    assertEquals(
        manager.worker, client.locate(key).get(Await.DEADLINE_MS, TimeUnit.MILLISECONDS));
    manager.instead =
        call -> {
          ObjectNode answer = ManagerClient.object();
          answer.putArray("workers");
          answer.putArray("holders").add(-1);
          return Answer.of(answer);
        };
    assertNull(client.locate(key).get(Await.DEADLINE_MS, TimeUnit.MILLISECONDS));
  }

  @Test
  @DisplayName("a report names the partition, the worker and the code, and troubles nobody when it fails")
  void report() throws Exception {
    client.reportFailure(key, "worker-1", ErrorCode.DATA_CORRUPT);
    JsonNode failure = manager.await("POST", "/v1/jobs/app.job/reports").body.at("/failures/0");
    assertEquals("DATA_CORRUPT", failure.get("code").asText());
    assertEquals(3, failure.get("partitionIndex").asInt());
    client.close();
    client.reportFailure(key, "worker-1", ErrorCode.DATA_CORRUPT);
  }

  @Test
  @DisplayName("many failures of a moment are one report of a job, which is bounded")
  void reports() throws Exception {
    PartitionKey other = new PartitionKey("app.other", "data-set", 3, "attempt");
    client.reportFailure(other, "worker-1", ErrorCode.DISK_FAILED);
    for (int count = 0; count < 1000; count++) {
      client.reportFailure(key, "worker-1", ErrorCode.WORKER_UNREACHABLE);
    }
    manager.await("POST", "/v1/jobs/app.other/reports");
    manager.await("POST", "/v1/jobs/app.job/reports");
    List<FakeManager.Call> calls = manager.calls("POST", "/v1/jobs/app.job/reports");
    assertTrue(calls.size() < 100, calls.size() + " calls");
    for (FakeManager.Call call : calls) {
      int failures = call.body.path("failures").size();
      assertTrue(failures > 0 && failures <= 256, failures + " failures");
    }
  }

  @Test
  @DisplayName("what HTTP can't carry fails the call at once, with the reason")
  void unsayable() throws Exception {
    try (ManagerClient odd =
        new ManagerClient(manager.address(), FakeWorker.CLUSTER, "two\nlines")) {
      assertEquals(
          ErrorCode.INVALID_ARGUMENT,
          failure(odd.call("GET", "/v1/cluster", null, LONG_MS, 0)));
    }
  }

  @Test
  @DisplayName("an address that can't be dialled is an absent manager")
  void wrongAddress() throws Exception {
    try (ManagerClient lost =
        new ManagerClient(URI.create("http://no.such.host.invalid:1"), "test", null)) {
      assertEquals(
          ErrorCode.NO_MANAGER,
          failure(lost.call("GET", "/v1/cluster", null, 0, 0)));
    }
  }

  @Test
  @DisplayName("who can't be reached is named with the bare reason and what to check")
  void unreachable() throws Exception {
    manager.close();
    ExecutionException failure =
        assertThrows(
            ExecutionException.class,
            () -> call(0).get(Await.DEADLINE_MS, TimeUnit.MILLISECONDS));
    String said = failure.getCause().getMessage();
    assertTrue(said.contains("does not answer (java.net.ConnectException"), said);
    assertTrue(said.contains("check remote-shuffle.manager.address"), said);
  }
}
