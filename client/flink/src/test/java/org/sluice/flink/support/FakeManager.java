package org.sluice.flink.support;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Function;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.transport.WorkerAddress;
import org.sluice.flink.wire.ErrorCode;

/**
 * A manager that takes everything and places all on one worker, unless the test says otherwise. It
 * keeps every call.
 */
public final class FakeManager implements AutoCloseable {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int HEARTBEAT_MS = 20;

  /** One call that came. */
  public static final class Call {
    public final String method;
    public final String path;
    public final JsonNode body;

    Call(String method, String path, JsonNode body) {
      this.method = method;
      this.path = path;
      this.body = body;
    }

    public boolean is(String wantedMethod, String pathEnd) {
      return method.equals(wantedMethod) && path.endsWith(pathEnd);
    }

    /** Of a path /v1/jobs/JOB…. */
    public String jobId() {
      return path.split("[/?]")[3];
    }
  }

  /** What is answered instead of the usual. */
  public static final class Answer {
    final int status;
    final String body;
    /** Bytes that are announced and never come. */
    final int missing;

    private Answer(int status, String body, int missing) {
      this.status = status;
      this.body = body;
      this.missing = missing;
    }

    public static Answer of(JsonNode body) {
      return new Answer(200, body.toString(), 0);
    }

    /** What someone who is no manager says. */
    public static Answer text(int status, String body) {
      return new Answer(status, body, 0);
    }

    /** It begins, and then nothing more comes. */
    public static Answer stuck() {
      return new Answer(200, "{", 1);
    }

    public static Answer error(int status, ErrorCode code, String message) {
      ObjectNode body = JSON.createObjectNode();
      body.putObject("error").put("code", code.name()).put("message", message);
      return new Answer(status, body.toString(), 0);
    }
  }

  /** 0: answers do not say, as those of something that is no manager. */
  public volatile long epoch = 1;
  /** Null: the usual. */
  public volatile Function<Call, Answer> instead = call -> null;
  public volatile WorkerAddress worker = new WorkerAddress("worker-1", "127.0.0.1", 9);

  private final HttpServer server;
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final List<Call> calls = new CopyOnWriteArrayList<>();
  /** For the next heartbeat of a job, by its id. */
  private final Map<String, List<ObjectNode>> commands = new HashMap<>();
  private long sequence;

  public FakeManager() throws IOException {
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 50);
    server.setExecutor(threads);
    server.createContext("/", this::handle);
    server.start();
  }

  public URI address() {
    return URI.create("http://127.0.0.1:" + server.getAddress().getPort());
  }

  public ManagerClient client() {
    return new ManagerClient(address(), FakeWorker.CLUSTER, null);
  }

  /** All calls so far, or those that end so. */
  public List<Call> calls(String method, String pathEnd) {
    List<Call> found = new ArrayList<>(calls);
    found.removeIf(call -> !call.is(method, pathEnd));
    return found;
  }

  public Call await(String method, String pathEnd) throws Exception {
    Await.until(method + " " + pathEnd, () -> !calls(method, pathEnd).isEmpty());
    return calls(method, pathEnd).get(0);
  }

  /** With the next heartbeat of the job. */
  public synchronized void command(String jobId, ObjectNode command) {
    commands.computeIfAbsent(jobId, id -> new ArrayList<>()).add(command);
    notifyAll();
  }

  private void handle(HttpExchange exchange) throws IOException {
    byte[] bytes = exchange.getRequestBody().readAllBytes();
    Call call =
        new Call(
            exchange.getRequestMethod(),
            URLDecoder.decode(exchange.getRequestURI().toString(), StandardCharsets.UTF_8),
            bytes.length == 0 ? JSON.createObjectNode() : JSON.readTree(bytes));
    calls.add(call);
    Answer answer = instead.apply(call);
    if (answer == null) {
      answer = Answer.of(usual(call));
    }
    byte[] body = answer.body.getBytes(StandardCharsets.UTF_8);
    if (epoch > 0) {
      exchange.getResponseHeaders().add("sluice-manager-epoch", String.valueOf(epoch));
    }
    exchange.sendResponseHeaders(answer.status, body.length + answer.missing);
    exchange.getResponseBody().write(body);
    exchange.getResponseBody().flush();
    if (answer.missing == 0) {
      exchange.close();
    }
  }

  private ObjectNode usual(Call call) throws IOException {
    ObjectNode answer = JSON.createObjectNode();
    if (call.is("POST", "/v1/jobs/heartbeat")) {
      return heartbeat(call, answer);
    }
    if (call.is("POST", "/partitions/allocate")) {
      return allocate(call, answer);
    }
    if (call.is("POST", "/partitions/locate")) {
      answer.putArray("holders").add(0);
      answer.putArray("workers").add(workerNode());
      return answer;
    }
    if (call.method.equals("PUT")) {
      answer.put("jobEpoch", call.body.path("jobEpoch").asLong(100));
      answer.put("heartbeatIntervalMs", HEARTBEAT_MS);
    }
    return answer;
  }

  private ObjectNode workerNode() {
    ObjectNode node = JSON.createObjectNode();
    node.put("workerId", worker.workerId());
    return node.put("host", worker.host()).put("port", worker.port());
  }

  private synchronized ObjectNode allocate(Call call, ObjectNode answer) {
    answer.put("managerEpoch", epoch);
    answer.put("jobEpoch", call.body.path("jobEpoch").asLong());
    answer.putArray("workers").add(workerNode());
    ArrayNode holders = answer.putArray("holders");
    ArrayNode sequences = answer.putArray("sequences");
    for (int row = 0; row < call.body.path("partitionIndices").size(); row++) {
      holders.add(0);
      sequences.add(++sequence);
    }
    return answer;
  }

  private synchronized ObjectNode heartbeat(Call call, ObjectNode answer) throws IOException {
    awaitNews(call.body);
    ArrayNode jobs = answer.putArray("jobs");
    for (JsonNode beat : call.body.path("jobs")) {
      String jobId = beat.path("jobId").asText();
      ObjectNode job = jobs.addObject().put("jobId", jobId).put("status", "ok");
      List<ObjectNode> news = commands.remove(jobId);
      job.putArray("commands").addAll(news == null ? List.of() : news);
    }
    return answer;
  }

  /** A long poll. */
  private void awaitNews(JsonNode body) throws IOException {
    long deadline = System.nanoTime() + body.path("waitMs").asLong() * 1_000_000;
    try {
      for (JsonNode beat : body.path("jobs")) {
        long leftMs = (deadline - System.nanoTime()) / 1_000_000;
        while (leftMs > 0 && !commands.containsKey(beat.path("jobId").asText())) {
          wait(leftMs);
          leftMs = (deadline - System.nanoTime()) / 1_000_000;
        }
      }
    } catch (InterruptedException error) {
      throw new IOException(error);
    }
  }

  @Override
  public void close() {
    server.stop(0);
    threads.shutdownNow();
  }
}
