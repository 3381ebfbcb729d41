package org.sluice.flink.transport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.flink.shaded.netty4.io.netty.buffer.ByteBuf;
import org.apache.flink.shaded.netty4.io.netty.buffer.Unpooled;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.sluice.flink.ShuffleException;
import org.sluice.flink.support.Await;
import org.sluice.flink.support.FakeWorker;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.Message;
import org.sluice.flink.wire.MessageType;
import org.sluice.flink.wire.Wire;

class ConnectionPoolTest {
  private static final long QUICK_HEARTBEAT_MS = 400;
  private FakeWorker worker;
  private ConnectionPool pool;

  @BeforeEach
  void make() throws Exception {
    worker = new FakeWorker("worker-1");
    pool = pool(null, 10_000);
  }

  @AfterEach
  void end() throws Exception {
    pool.close();
    worker.close();
  }

  private static ConnectionPool pool(String token, long heartbeatMs) {
    return new ConnectionPool(
        new ConnectionPool.Settings(FakeWorker.CLUSTER, token, 2, 5_000, heartbeatMs, "test"));
  }

  private static <T> T get(CompletableFuture<T> future) throws Exception {
    return future.get(Await.DEADLINE_MS, TimeUnit.MILLISECONDS);
  }

  private static ShuffleException failureOf(CompletableFuture<?> future) throws Exception {
    try {
      throw new AssertionError("it did not fail but answered " + get(future));
    } catch (ExecutionException error) {
      return ShuffleException.of(error, ErrorCode.INVALID_ARGUMENT);
    }
  }

  private ShuffleException refusal(FakeWorker.Manners manners, String token) throws Exception {
    try (FakeWorker refused = new FakeWorker("worker-1", manners);
        ConnectionPool own = pool(token, 10_000)) {
      return failureOf(own.connect(refused.address()));
    }
  }

  /** What is heard on a channel, in order. */
  private static final class Heard implements ChannelHandler {
    final LinkedBlockingQueue<Object> all = new LinkedBlockingQueue<>();
    boolean takesData = true;

    @Override
    public ByteBuf dataBody(int bodyLength) {
      return takesData ? Unpooled.buffer(bodyLength, bodyLength) : null;
    }

    @Override
    public void onData(ByteBuf body) {
      all.add(body.toString(StandardCharsets.UTF_8));
      body.release();
    }

    @Override
    public void onMessage(Message message) {
      all.add(message.type());
    }

    @Override
    public void onClosed(ShuffleException error) {
      all.add(error.code());
    }

    Object next() throws Exception {
      Object heard = all.poll(Await.DEADLINE_MS, TimeUnit.MILLISECONDS);
      assertTrue(heard != null, "nothing was heard");
      return heard;
    }
  }

  private FakeWorker.Frame openRead(WorkerConnection connection, Heard heard) throws Exception {
    connection.channel(heard).open(new Message(MessageType.OPEN_READ, 4096L, 2L));
    return worker.await(MessageType.OPEN_READ);
  }

  // --- the handshake ---

  @Test
  @DisplayName("all who ask for an address meanwhile share one connection, which knows the buffer size")
  void shared() throws Exception {
    CompletableFuture<WorkerConnection> first = pool.connect(worker.address());
    CompletableFuture<WorkerConnection> second = pool.connect(worker.address());
    assertSame(get(first), get(second));
    assertSame(get(first), get(pool.connect(worker.address())));
    assertEquals(32_768, get(first).bufferSizeBytes());
    assertEquals(1, worker.connectionCount());
  }

  @Test
  @DisplayName("a caller that gives up does not take the connection from the others")
  void givingUp() throws Exception {
    CompletableFuture<WorkerConnection> impatient = pool.connect(worker.address());
    CompletableFuture<WorkerConnection> patient = pool.connect(worker.address());
    impatient.cancel(false);
    assertEquals(32_768, get(patient).bufferSizeBytes());
  }

  @Test
  @DisplayName("another worker's id is WORKER_CHANGED, another cluster's UNAUTHENTICATED")
  void wrongPeer() throws Exception {
    WorkerAddress other = new WorkerAddress("worker-2", "127.0.0.1", worker.port());
    ShuffleException changed = failureOf(pool.connect(other));
    assertEquals(ErrorCode.WORKER_CHANGED, changed.code());
    assertTrue(changed.getMessage().contains("worker-1"), changed.getMessage());
    FakeWorker.Manners manners = new FakeWorker.Manners();
    manners.clusterId = "elsewhere";
    assertEquals(ErrorCode.UNAUTHENTICATED, refusal(manners, null).code());
  }

  @Test
  @DisplayName("no version in common is UNSUPPORTED_VERSION, no magic PROTOCOL")
  void wrongProtocol() throws Exception {
    FakeWorker.Manners newer = new FakeWorker.Manners();
    newer.versionMin = Wire.VERSION_MAX + 1;
    newer.versionMax = Wire.VERSION_MAX + 2;
    assertEquals(ErrorCode.UNSUPPORTED_VERSION, refusal(newer, null).code());
    FakeWorker.Manners stranger = new FakeWorker.Manners();
    stranger.magic = 7;
    assertEquals(ErrorCode.PROTOCOL, refusal(stranger, null).code());
  }

  @Test
  @DisplayName("the right token is accepted, a wrong or missing one UNAUTHENTICATED")
  void token() throws Exception {
    FakeWorker.Manners manners = new FakeWorker.Manners();
    manners.token = "secret";
    assertEquals(ErrorCode.UNAUTHENTICATED, refusal(manners, "guess").code());
    ShuffleException missing = refusal(manners, null);
    assertEquals(ErrorCode.UNAUTHENTICATED, missing.code());
    assertTrue(missing.getMessage().contains("remote-shuffle.token-file"), missing.getMessage());
    try (FakeWorker guarded = new FakeWorker("worker-1", manners);
        ConnectionPool own = pool("secret", 10_000)) {
      assertEquals(32_768, get(own.connect(guarded.address())).bufferSizeBytes());
    }
  }

  @Test
  @DisplayName("nobody there, and a name that nobody knows, are WORKER_UNREACHABLE")
  void unreachable() throws Exception {
    int port = worker.port();
    worker.close();
    assertEquals(
        ErrorCode.WORKER_UNREACHABLE,
        failureOf(pool.connect(new WorkerAddress("worker-1", "127.0.0.1", port))).code());
    assertEquals(
        ErrorCode.WORKER_UNREACHABLE,
        failureOf(pool.connect(new WorkerAddress("worker-1", "no.such.host.invalid", 1))).code());
    Await.until("failed connections are forgotten", () -> pool.connectionCount() == 0);
  }

  @Test
  @DisplayName("a worker that accepts and says nothing is given up after three heartbeats")
  void silentHandshake() throws Exception {
    FakeWorker.Manners silent = new FakeWorker.Manners();
    silent.isSilent = true;
    try (FakeWorker mute = new FakeWorker("worker-1", silent);
        ConnectionPool own = pool(null, 50)) {
      assertEquals(ErrorCode.WORKER_UNREACHABLE, failureOf(own.connect(mute.address())).code());
    }
  }

  // --- channels ---

  @Test
  @DisplayName("channels of one connection hear what is theirs; numbers ascend")
  void channels() throws Exception {
    WorkerConnection connection = get(pool.connect(worker.address()));
    Heard one = new Heard();
    Heard two = new Heard();
    FakeWorker.Frame first = openRead(connection, one);
    FakeWorker.Frame second = openRead(connection, two);
    assertEquals(1, first.channelId);
    assertEquals(2, second.channelId);
    second.reply("two".getBytes(StandardCharsets.UTF_8), MessageType.READ_DATA);
    first.reply("one".getBytes(StandardCharsets.UTF_8), MessageType.READ_DATA);
    first.reply(MessageType.BACKLOG, 3L);
    assertEquals("two", two.next());
    assertEquals("one", one.next());
    assertEquals(MessageType.BACKLOG, one.next());
  }

  @Test
  @DisplayName("frames for a channel that is closed or unknown are skipped, and the others go on")
  void strangers() throws Exception {
    WorkerConnection connection = get(pool.connect(worker.address()));
    Heard gone = new Heard();
    WorkerChannel closed = connection.channel(gone);
    closed.open(new Message(MessageType.OPEN_READ, 4096L, 2L));
    FakeWorker.Frame first = worker.await(MessageType.OPEN_READ);
    closed.close();
    worker.await(MessageType.CLOSE_CHANNEL);
    Heard living = new Heard();
    FakeWorker.Frame second = openRead(connection, living);
    first.reply(new byte[3000], MessageType.READ_DATA);
    first.reply(MessageType.BACKLOG, 3L);
    worker.sendOn(99, new byte[3000], MessageType.READ_DATA);
    living.takesData = false;
    second.reply(new byte[3000], MessageType.READ_DATA);
    second.reply(MessageType.BACKLOG, 3L);
    assertEquals(MessageType.BACKLOG, living.next());
    assertEquals(0, gone.all.size());
  }

  @Test
  @DisplayName("a lost connection is heard by each channel once, and the next one dials anew")
  void lost() throws Exception {
    WorkerConnection connection = get(pool.connect(worker.address()));
    Heard one = new Heard();
    Heard two = new Heard();
    openRead(connection, one);
    openRead(connection, two).cutConnection();
    assertEquals(ErrorCode.WORKER_UNREACHABLE, one.next());
    assertEquals(ErrorCode.WORKER_UNREACHABLE, two.next());
    Await.until("the connection is forgotten", () -> pool.connectionCount() == 0);
    Heard late = new Heard();
    connection.channel(late).open(new Message(MessageType.OPEN_READ, 4096L, 2L));
    assertEquals(ErrorCode.WORKER_UNREACHABLE, late.next());
    assertNotSame(connection, get(pool.connect(worker.address())));
    assertEquals(0, one.all.size() + two.all.size());
  }

  @Test
  @DisplayName("a channel that is closed before it was opened is never opened")
  void closedBeforeOpen() throws Exception {
    WorkerConnection connection = get(pool.connect(worker.address()));
    WorkerChannel early = connection.channel(new Heard());
    early.close();
    early.open(new Message(MessageType.OPEN_READ, 4096L, 2L));
    Heard next = new Heard();
    assertEquals(1, openRead(connection, next).channelId);
  }

  @Test
  @DisplayName("data for a dead channel is released")
  void deadChannelData() throws Exception {
    WorkerConnection connection = get(pool.connect(worker.address()));
    WorkerChannel channel = connection.channel(new Heard());
    channel.open(new Message(MessageType.OPEN_READ, 4096L, 2L));
    worker.await(MessageType.OPEN_READ);
    channel.close();
    ByteBuf body = Unpooled.buffer(8).writeLong(1);
    channel.send(new Message(MessageType.WRITE_DATA, 0L), body);
    Await.until("the body is released", () -> body.refCnt() == 0);
  }

  @Test
  @DisplayName("after GoAway channels that run are finished, and new ones get another connection")
  void goAway() throws Exception {
    WorkerConnection old = get(pool.connect(worker.address()));
    Heard running = new Heard();
    FakeWorker.Frame opened = openRead(old, running);
    worker.send(MessageType.GO_AWAY, "upgrade");
    Await.until("the old one is given up", () -> pool.connectionCount() == 0);
    WorkerConnection next = get(pool.connect(worker.address()));
    assertNotSame(old, next);
    opened.reply(MessageType.BACKLOG, 1L);
    assertEquals(MessageType.BACKLOG, running.next());
  }

  @Test
  @DisplayName("a worker that closes a channel is answered, and the channel hears it")
  void closedByWorker() throws Exception {
    WorkerConnection connection = get(pool.connect(worker.address()));
    Heard heard = new Heard();
    FakeWorker.Frame opened = openRead(connection, heard);
    opened.reply(MessageType.CLOSE_CHANNEL, (long) ErrorCode.CANCELLED.wireCode());
    worker.await(MessageType.CHANNEL_CLOSED);
    assertEquals(ErrorCode.WORKER_UNREACHABLE, heard.next());
  }

  @Test
  @DisplayName("an error of the connection reaches its channels with its code")
  void connectionError() throws Exception {
    WorkerConnection connection = get(pool.connect(worker.address()));
    Heard heard = new Heard();
    openRead(connection, heard);
    worker.send(MessageType.ERROR, (long) ErrorCode.PROTOCOL.wireCode(), false, "no", "");
    assertEquals(ErrorCode.PROTOCOL, heard.next());
  }

  @Test
  @DisplayName("a frame against the rules ends the connection as PROTOCOL")
  void brokenFrame() throws Exception {
    WorkerConnection connection = get(pool.connect(worker.address()));
    Heard heard = new Heard();
    openRead(connection, heard);
    worker.sendOn(1, new byte[0], MessageType.READ_END, 1L);
    assertEquals(ErrorCode.PROTOCOL, heard.next());
  }

  @Test
  @DisplayName("a worker that falls silent is given up after three heartbeats, one that answers pings not")
  void silence() throws Exception {
    try (FakeWorker quick = new FakeWorker("worker-1", quickManners());
        ConnectionPool own = pool(null, QUICK_HEARTBEAT_MS)) {
      WorkerConnection connection = get(own.connect(quick.address()));
      Heard heard = new Heard();
      connection.channel(heard).open(new Message(MessageType.OPEN_READ, 4096L, 2L));
      quick.await(MessageType.OPEN_READ).reply(MessageType.BACKLOG, 1L);
      assertEquals(MessageType.BACKLOG, heard.next());
      // Pings keep it for as long as they are answered; then only silence can end it.
      quick.manners.isDeafToPings = true;
      assertEquals(ErrorCode.WORKER_UNREACHABLE, heard.next());
    }
  }

  private static FakeWorker.Manners quickManners() {
    FakeWorker.Manners manners = new FakeWorker.Manners();
    manners.heartbeatIntervalMs = QUICK_HEARTBEAT_MS;
    return manners;
  }

  // --- the end ---

  @Test
  @DisplayName("closing the pool ends connections and refuses new ones")
  void close() throws Exception {
    WorkerConnection connection = get(pool.connect(worker.address()));
    Heard heard = new Heard();
    openRead(connection, heard);
    pool.close();
    assertEquals(ErrorCode.CANCELLED, heard.next());
    assertEquals(ErrorCode.CANCELLED, failureOf(pool.connect(worker.address())).code());
    Heard late = new Heard();
    connection.channel(late).open(new Message(MessageType.OPEN_READ, 4096L, 2L));
    assertTrue(late.next() instanceof ErrorCode);
  }
}
