package org.sluice.flink.manager;

import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.util.concurrent.ExecutorThreadFactory;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.transport.WorkerAddress;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.PartitionKey;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The shuffle manager as its callers see it: calls that are repeated while it is away. */
public final class ManagerClient implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ManagerClient.class);
  private static final long CALL_TIMEOUT_MS = 5_000;
  private static final long BACK_OFF_FIRST_MS = 50;
  private static final long BACK_OFF_MAX_MS = 2_000;
  /** What a proxy says while the manager behind it is away. */
  private static final Set<Integer> PROXY_STATUSES = Set.of(502, 503, 504);

  static final ObjectMapper JSON = new ObjectMapper();

  private final URI base;
  private final String clusterId;
  private final String token;
  private final long callTimeoutMs;
  private final HttpClient http;
  private final ScheduledExecutorService executor;
  private final FailureReports reports = new FailureReports(this);
  private long highestEpoch;
  private volatile boolean isClosed;

  /** No token: null. */
  public ManagerClient(URI base, String clusterId, String token) {
    this(base, clusterId, token, CALL_TIMEOUT_MS);
  }

  ManagerClient(URI base, String clusterId, String token, long callTimeoutMs) {
    this.callTimeoutMs = callTimeoutMs;
    this.base = base;
    this.clusterId = clusterId;
    this.token = token;
    ScheduledThreadPoolExecutor pool =
        new ScheduledThreadPoolExecutor(2, new ExecutorThreadFactory("sluice-shuffle-manager"));
    pool.setRemoveOnCancelPolicy(true);
    this.executor = pool;
    this.http =
        HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(Duration.ofMillis(CALL_TIMEOUT_MS))
            .executor(executor)
            .build();
  }

  public static ObjectNode object() {
    return JSON.createObjectNode();
  }

  public static ArrayNode array() {
    return JSON.createArrayNode();
  }

  /** One segment of a path, escaped. */
  public static String segment(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
  }

  /** The highest epoch of a manager that has answered; 0 before the first answer. */
  public synchronized long managerEpoch() {
    return highestEpoch;
  }

  /**
   * One call; fails with a {@link ShuffleException}. It is repeated while the manager is away or
   * busy, until {@code retryForMs} has passed. The answer may wait for {@code waitMs} on purpose.
   */
  public CompletableFuture<JsonNode> call(
      String method, String path, JsonNode body, long retryForMs, long waitMs) {
    CompletableFuture<JsonNode> result = new CompletableFuture<>();
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(retryForMs);
    attempt(result, method, path, body, deadline, waitMs, 0);
    return result;
  }

  private void attempt(
      CompletableFuture<JsonNode> result,
      String method,
      String path,
      JsonNode body,
      long deadlineNanos,
      long waitMs,
      int tries) {
    once(method, path, body, waitMs)
        .whenComplete(
            (answer, error) -> {
              if (error == null) {
                result.complete(answer);
                return;
              }
              ShuffleException failure = ShuffleException.of(error, ErrorCode.NO_MANAGER);
              long pauseMs = pauseMs(tries);
              boolean isLast =
                  System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(pauseMs) - deadlineNanos > 0;
              if (isClosed || isLast || !failure.is(ErrorCode.NO_MANAGER, ErrorCode.BUSY)) {
                result.completeExceptionally(failure);
                return;
              }
              LOG.debug("{} {} is repeated: {}", method, path, failure.getMessage());
              schedule(
                  () -> attempt(result, method, path, body, deadlineNanos, waitMs, tries + 1),
                  pauseMs);
            });
  }

  private CompletableFuture<JsonNode> once(
      String method, String path, JsonNode body, long waitMs) {
    try {
      return sent(request(method, path, body), callTimeoutMs + waitMs)
          .handle(
              (response, error) -> {
                if (error != null) {
                  throw new java.util.concurrent.CompletionException(
                      new ShuffleException(
                          ErrorCode.NO_MANAGER,
                          "the shuffle manager at "
                              + base
                              + " does not answer ("
                              + reason(error, callTimeoutMs + waitMs)
                              + "): check remote-shuffle.manager.address, and that the manager runs",
                          error));
                }
                try {
                  return understand(response);
                } catch (ShuffleException failure) {
                  throw new java.util.concurrent.CompletionException(failure);
                }
              });
    } catch (IllegalArgumentException error) {
      return CompletableFuture.failedFuture(
          new ShuffleException(
              ErrorCode.INVALID_ARGUMENT, "this can't be sent to " + base + ": " + error, error));
    } catch (RuntimeException error) {
      return CompletableFuture.failedFuture(
          new ShuffleException(ErrorCode.NO_MANAGER, String.valueOf(error.getMessage()), error));
    }
  }

  private HttpRequest request(String method, String path, JsonNode body) {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(base.resolve(path))
            .header("sluice-cluster", clusterId)
            .method(
                method,
                body == null
                    ? HttpRequest.BodyPublishers.noBody()
                    : HttpRequest.BodyPublishers.ofString(body.toString()));
    if (body != null) {
      request.header("content-type", "application/json");
    }
    if (token != null) {
      request.header("authorization", "Bearer " + token);
    }
    long epoch = managerEpoch();
    if (epoch > 0) {
      request.header("sluice-manager-epoch", String.valueOf(epoch));
    }
    return request.build();
  }

  /** Cancelled after so long: the time-out of a request itself ends with the head of its answer. */
  private CompletableFuture<HttpResponse<String>> sent(HttpRequest request, long timeoutMs) {
    CompletableFuture<HttpResponse<String>> response =
        http.sendAsync(request, HttpResponse.BodyHandlers.ofString());
    ScheduledFuture<?> end =
        executor.schedule(() -> response.cancel(true), timeoutMs, TimeUnit.MILLISECONDS);
    response.whenComplete((answer, error) -> end.cancel(false));
    return response;
  }

  /** The failure itself, without what a future wraps it in. */
  private static String reason(Throwable error, long timeoutMs) {
    Throwable bare =
        error instanceof java.util.concurrent.CompletionException && error.getCause() != null
            ? error.getCause()
            : error;
    return bare instanceof CancellationException
        ? "nothing within " + timeoutMs + " ms"
        : bare.toString();
  }

  private JsonNode understand(HttpResponse<String> response) throws ShuffleException {
    noteEpoch(response.headers().firstValueAsLong("sluice-manager-epoch").orElse(0));
    JsonNode content;
    try {
      content = response.body().isEmpty() ? object() : JSON.readTree(response.body());
    } catch (IOException error) {
      throw noManagers(response.statusCode(), error);
    }
    if (response.statusCode() < 400) {
      // Every answer of a manager says whose it is; a proxy's page does not.
      if (response.headers().firstValue("sluice-manager-epoch").isEmpty() || !content.isObject()) {
        throw noManagers(response.statusCode(), null);
      }
      return content;
    }
    JsonNode error = content.path("error");
    if (!error.isObject()) {
      throw noManagers(response.statusCode(), null);
    }
    throw new ShuffleException(
        ErrorCode.ofName(error.path("code").asText()), error.path("message").asText());
  }

  /** The answer is not that of a shuffle manager. */
  private ShuffleException noManagers(int status, IOException cause) {
    if (PROXY_STATUSES.contains(status)) {
      return new ShuffleException(
          ErrorCode.NO_MANAGER,
          "a proxy before the shuffle manager answers at "
              + base
              + " with status "
              + status
              + ": the manager does not run, or can't be reached from there",
          cause);
    }
    return new ShuffleException(
        ErrorCode.PROTOCOL,
        "what answers at "
            + base
            + " with status "
            + status
            + " is not a shuffle manager: check remote-shuffle.manager.address, and the proxies on the"
            + " way to it",
        cause);
  }

  private synchronized void noteEpoch(long epoch) throws ShuffleException {
    if (epoch == 0) {
      return;
    }
    if (epoch < highestEpoch) {
      throw new ShuffleException(
          ErrorCode.NO_MANAGER, "an older shuffle manager answered; it is not obeyed");
    }
    highestEpoch = epoch;
  }

  private static long pauseMs(int tries) {
    long full = Math.min(BACK_OFF_MAX_MS, BACK_OFF_FIRST_MS << Math.min(tries, 10));
    return full / 2 + ThreadLocalRandom.current().nextLong(full / 2 + 1);
  }

  /** Not after the end of the client. */
  void schedule(Runnable action, long delayMs) {
    try {
      executor.schedule(action, delayMs, TimeUnit.MILLISECONDS);
    } catch (RejectedExecutionException error) {
      LOG.debug("the client of the shuffle manager is closed", error);
    }
  }

  /** Where a partition is now; null when the manager knows no place. */
  public CompletableFuture<WorkerAddress> locate(PartitionKey key) {
    ObjectNode body = object();
    body.set("dataSets", KeyColumns.groups(List.of(key)));
    String path = "/v1/jobs/" + segment(key.jobId()) + "/partitions/locate";
    return call("POST", path, body, 0, 0)
        .thenApply(
            answer -> {
              int holder = answer.path("holders").path(0).asInt(-1);
              JsonNode worker = answer.path("workers").path(holder);
              return worker.isObject() ? address(worker) : null;
            });
  }

  public static WorkerAddress address(JsonNode worker) {
    return new WorkerAddress(
        worker.path("workerId").asText(),
        worker.path("host").asText(),
        worker.path("port").asInt());
  }

  /** What a task saw, for the events of the manager. Best effort: never waited for. */
  public void reportFailure(PartitionKey key, String workerId, ErrorCode code) {
    reports.add(key, workerId, code);
  }

  @Override
  public void close() {
    isClosed = true;
    executor.shutdownNow();
  }
}
