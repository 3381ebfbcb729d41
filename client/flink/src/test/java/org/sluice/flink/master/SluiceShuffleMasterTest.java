package org.sluice.flink.master;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.api.common.JobID;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.jobgraph.IntermediateDataSetID;
import org.apache.flink.runtime.shuffle.NettyShuffleDescriptor;
import org.apache.flink.runtime.shuffle.ShuffleDescriptor;
import org.apache.flink.runtime.shuffle.TaskInputsOutputsDescriptor;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.util.InstantiationUtil;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.sluice.flink.SluiceShuffleDescriptor;
import org.sluice.flink.manager.KeyColumns;
import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.support.Await;
import org.sluice.flink.support.FakeManager;
import org.sluice.flink.support.FakeManager.Answer;
import org.sluice.flink.support.LogCapture;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.PartitionKey;

class SluiceShuffleMasterTest {
  private static final long LONG_MS = 60_000;
  private MasterFixture f;

  @BeforeEach
  void make() throws Exception {
    f = new MasterFixture("app", false, LONG_MS);
  }

  @AfterEach
  void end() throws Exception {
    f.close();
    assertEquals(List.of(), f.fatalErrors, "the JobManager lives on");
  }

  private void remake(String application, boolean isDetaching, long allocateForMs)
      throws Exception {
    f.close();
    f = new MasterFixture(application, isDetaching, allocateForMs);
  }

  // --- placing ---

  @Test
  @DisplayName("a job is told to the manager with its first blocking result, once, under a unique id")
  void registration() throws Exception {
    MasterFixture.Job job = f.job();
    MasterFixture.Job other = f.job();
    assertEquals(
        NettyShuffleDescriptor.class,
        f.ask(job, 0, ResultPartitionType.PIPELINED_BOUNDED)
            .get(Await.DEADLINE_MS, TimeUnit.MILLISECONDS)
            .getClass());
    assertEquals(List.of(), f.manager.calls("PUT", ""));
    f.place(job, 3);
    f.place(other, 1);
    List<FakeManager.Call> calls = f.manager.calls("PUT", "");
    assertEquals(2, calls.size());
    assertEquals("app." + job.id, calls.get(0).jobId());
    assertEquals(
        calls.get(0).body.get("clientId"), calls.get(1).body.get("clientId"), "one client");
  }

  @Test
  @DisplayName("jobs are taken over only where an application is configured; else the id is random")
  void takeOver() throws Exception {
    f.place(f.job(), 1);
    assertTrue(f.manager.await("PUT", "").body.get("takeOver").asBoolean());
    JobID jobId = new JobID();
    List<String> ids = new ArrayList<>();
    for (int count = 0; count < 2; count++) {
      remake(null, false, LONG_MS);
      MasterFixture.Job job = new MasterFixture.Job(jobId);
      f.master.registerJob(job);
      f.place(job, 1);
      assertFalse(f.manager.await("PUT", "").body.get("takeOver").asBoolean());
      ids.add(f.manager.await("PUT", "").jobId());
    }
    assertNotEquals(ids.get(0), ids.get(1), "two clusters that run the same JobID");
    assertTrue(ids.get(0).endsWith("." + jobId));
  }

  @Test
  @DisplayName("requests of a moment are one call, with the facts of the data set once")
  void batches() throws Exception {
    MasterFixture.Job job = f.job();
    List<SluiceShuffleDescriptor> placed = f.place(job, 50);
    List<FakeManager.Call> calls = f.manager.calls("POST", "/partitions/allocate");
    assertTrue(calls.size() < 10, calls.size() + " calls");
    assertEquals(4, calls.get(0).body.at("/dataSet/subpartitionCount").asInt());
    assertEquals(10, calls.get(0).body.at("/dataSet/totalPartitions").asInt());
    for (int index = 0; index < 50; index++) {
      SluiceShuffleDescriptor descriptor = placed.get(index);
      assertEquals(index, descriptor.key().partitionIndex());
      assertEquals("app." + job.id, descriptor.key().jobId());
      assertEquals(Optional.empty(), descriptor.storesLocalResourcesOn());
      assertEquals(4, descriptor.subpartitionCount());
      assertSame(placed.get(0).worker(), descriptor.worker(), "serialised once for all");
    }
  }

  @Test
  @DisplayName("descriptors of a stage, serialised together, carry what they share once")
  void serialised() throws Exception {
    List<SluiceShuffleDescriptor> placed = f.place(f.job(), 50);
    byte[] one = InstantiationUtil.serializeObject(placed.subList(0, 1).toArray());
    byte[] all = InstantiationUtil.serializeObject(placed.toArray());
    Object[] again =
        InstantiationUtil.deserializeObject(all, SluiceShuffleDescriptor.class.getClassLoader());
    for (int index = 0; index < 50; index++) {
      SluiceShuffleDescriptor descriptor = (SluiceShuffleDescriptor) again[index];
      assertEquals(placed.get(index).key(), descriptor.key());
      assertEquals(placed.get(index).worker(), descriptor.worker());
      assertEquals(placed.get(index).allocation(), descriptor.allocation());
      assertSame(((SluiceShuffleDescriptor) again[0]).worker(), descriptor.worker());
    }
    int each = (all.length - one.length) / 49;
    assertTrue(each < one.length / 3, each + " bytes each, the first " + one.length);
  }

  @Test
  @DisplayName("a manager that says nothing fails the request before Flink's own timeout")
  void silentManager() throws Exception {
    remake("app", false, 100);
    CountDownLatch end = new CountDownLatch(1);
    f.manager.instead =
        call -> {
          await(end);
          return null;
        };
    assertEquals(ErrorCode.NO_MANAGER, MasterFixture.failure(f.ask(f.job(), 0)).code());
    end.countDown();
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await(Await.DEADLINE_MS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  @Test
  @DisplayName("what the manager places after the request was failed is released")
  void latePlace() throws Exception {
    remake("app", false, 1_000);
    CountDownLatch end = new CountDownLatch(1);
    f.manager.instead =
        call -> {
          if (call.is("POST", "/allocate")) {
            await(end);
          }
          return null;
        };
    CompletableFuture<ShuffleDescriptor> asked = f.ask(f.job(), 0);
    f.manager.await("POST", "/allocate");
    assertEquals(ErrorCode.NO_MANAGER, MasterFixture.failure(asked).code());
    // Once since it may have been placed, and once more when it has been.
    f.manager.await("POST", "/release");
    int before = MasterFixture.rows(f.manager.calls("POST", "/release"), "keys");
    end.countDown();
    Await.until(
        "it is released",
        () -> MasterFixture.rows(f.manager.calls("POST", "/release"), "keys") > before);
  }

  @Test
  @DisplayName("no worker just now is asked again; in the end the reason is told")
  void noWorker() throws Exception {
    AtomicInteger refusals = new AtomicInteger(2);
    f.manager.instead =
        call ->
            call.is("POST", "/allocate") && refusals.getAndDecrement() > 0
                ? Answer.error(503, ErrorCode.NO_WORKER, "none is registered")
                : null;
    MasterFixture.placed(f.ask(f.job(), 0));
    remake("app", false, 300);
    f.manager.instead =
        call ->
            call.is("POST", "/allocate")
                ? Answer.error(503, ErrorCode.NO_WORKER, "none is registered")
                : null;
    assertTrue(
        MasterFixture.failure(f.ask(f.job(), 0)).getMessage().contains("none is registered"));
  }

  @Test
  @DisplayName("what no repetition cures fails at once, and the job can ask again")
  void refused() throws Exception {
    f.manager.instead =
        call ->
            call.is("PUT", "")
                ? Answer.error(409, ErrorCode.JOB_ID_IN_USE, "another client holds it")
                : null;
    MasterFixture.Job job = f.job();
    assertEquals(ErrorCode.JOB_ID_IN_USE, MasterFixture.failure(f.ask(job, 0)).code());
    f.manager.instead = call -> null;
    MasterFixture.placed(f.ask(job, 0));
  }

  @Test
  @DisplayName("a job that is not registered, or not any more, gets nothing")
  void unknownJob() throws Exception {
    assertEquals(
        ErrorCode.JOB_UNKNOWN,
        MasterFixture.failure(f.ask(new MasterFixture.Job(), 0)).code());
    MasterFixture.Job job = f.job();
    f.master.unregisterJob(job.id);
    assertEquals(ErrorCode.JOB_UNKNOWN, MasterFixture.failure(f.ask(job, 0)).code());
  }

  @Test
  @DisplayName("a request that can't be made is answered with the reason")
  void impossible() throws Exception {
    remake("two words", false, LONG_MS);
    String said = MasterFixture.failure(f.ask(f.job(), 0)).getMessage();
    assertTrue(said.contains("'two words."), said);
  }

  // --- the manager restarts ---

  @Test
  @DisplayName("a manager that has restarted is told every job again, with its whole list and epoch")
  void managerRestarted() throws Exception {
    MasterFixture.Job job = f.job();
    f.place(job, 3);
    Await.until(
        "it heartbeats", () -> !f.manager.calls("POST", "/v1/jobs/heartbeat").isEmpty());
    int before = f.manager.calls("POST", "/partitions/report").size();
    f.manager.epoch = 2;
    Await.until(
        "the list is told again",
        () -> f.manager.calls("POST", "/partitions/report").size() > before);
    List<FakeManager.Call> registrations = f.manager.calls("PUT", "");
    FakeManager.Call again = registrations.get(registrations.size() - 1);
    assertEquals(100, again.body.get("jobEpoch").asLong());
    List<FakeManager.Call> reports = f.manager.calls("POST", "/partitions/report");
    assertEquals(3, MasterFixture.rows(List.of(reports.get(reports.size() - 1)), "groups"));
    f.place(job, 1);
  }

  @Test
  @DisplayName("a manager that does not know the job when it is to place is told, and asked again")
  void jobUnknown() throws Exception {
    MasterFixture.Job job = f.job();
    f.place(job, 1);
    AtomicInteger refusals = new AtomicInteger(1);
    f.manager.instead =
        call ->
            call.is("POST", "/allocate") && refusals.getAndDecrement() > 0
                ? Answer.error(404, ErrorCode.JOB_UNKNOWN, "it restarted")
                : null;
    int before = f.manager.calls("PUT", "").size();
    MasterFixture.placed(f.ask(job, 1));
    assertTrue(f.manager.calls("PUT", "").size() > before);
  }

  @Test
  @DisplayName("an older manager that still answers is not obeyed")
  void olderManager() throws Exception {
    f.manager.epoch = 5;
    MasterFixture.Job job = f.job();
    f.place(job, 1);
    f.manager.epoch = 4;
    CompletableFuture<ShuffleDescriptor> asked = f.ask(job, 1);
    int before = f.manager.calls("POST", "/allocate").size();
    Await.until(
        "it is asked more than once",
        () -> f.manager.calls("POST", "/allocate").size() > before + 1);
    assertFalse(asked.isDone());
    f.manager.epoch = 5;
    MasterFixture.placed(asked);
  }

  @Test
  @DisplayName("a manager that is away for a while costs nothing but time")
  void managerAway() throws Exception {
    MasterFixture.Job job = f.job();
    f.place(job, 1);
    f.manager.instead = call -> Answer.error(503, ErrorCode.NO_MANAGER, "starting");
    CompletableFuture<ShuffleDescriptor> asked = f.ask(job, 1);
    int before = f.manager.calls("POST", "/allocate").size();
    Await.until("it is asked", () -> f.manager.calls("POST", "/allocate").size() > before);
    f.manager.instead = call -> null;
    MasterFixture.placed(asked);
  }

  // --- losses ---

  private static ObjectNode lost(List<SluiceShuffleDescriptor> descriptors) {
    List<PartitionKey> keys = new ArrayList<>();
    descriptors.forEach(descriptor -> keys.add(descriptor.key()));
    ObjectNode command = ManagerClient.object();
    command.put("type", "lost");
    command.set("groups", KeyColumns.groups(keys));
    return command;
  }

  @Test
  @DisplayName("all partitions that are lost are given up in one call, and dropped at the manager")
  void losses() throws Exception {
    MasterFixture.Job job = f.job();
    List<SluiceShuffleDescriptor> placed = f.place(job, 50);
    List<SluiceShuffleDescriptor> gone = placed.subList(0, 49);
    f.manager.command("app." + job.id, lost(gone));
    Await.until("Flink is told", () -> !job.stopped.isEmpty());
    assertEquals(1, job.stopped.size());
    List<ResultPartitionID> ids = new ArrayList<>();
    gone.forEach(descriptor -> ids.add(descriptor.getResultPartitionID()));
    assertEquals(ids, List.copyOf(job.stopped.get(0)));
    Await.until(
        "the manager may release them",
        () -> {
          int dropped = 0;
          for (FakeManager.Call call : f.manager.calls("POST", "/v1/jobs/heartbeat")) {
            dropped =
                Math.max(
                    dropped,
                    KeyColumns.keys("app", call.body.at("/jobs/0/dropped")).size());
          }
          return dropped == 49;
        });
    assertEquals(1, job.stopped.size(), "told once");
    f.manager.epoch = 2;
    Await.until("the list is told again", () -> lastReport() == 1);
  }

  private int lastReport() {
    List<FakeManager.Call> reports = f.manager.calls("POST", "/partitions/report");
    return MasterFixture.rows(List.of(reports.get(reports.size() - 1)), "groups");
  }

  @Test
  @DisplayName("a JobMaster that can't be told at once is told again")
  void lossesAgain() throws Exception {
    MasterFixture.Job job = f.job();
    job.failures = 2;
    List<SluiceShuffleDescriptor> placed = f.place(job, 2);
    f.manager.command("app." + job.id, lost(placed));
    Await.until("it was told", () -> job.stopped.size() == 3);
  }

  @Test
  @DisplayName("a JobMaster that throws what it is told ends no heartbeat")
  void lossesThrown() throws Exception {
    MasterFixture.Job throwing = f.job();
    MasterFixture.Job other = f.job();
    throwing.isThrowing = true;
    f.manager.command("app." + throwing.id, lost(f.place(throwing, 1)));
    Await.until("it was told", () -> throwing.stopped.size() == 3);
    f.manager.command("app." + other.id, lost(f.place(other, 1)));
    Await.until("the other is told", () -> !other.stopped.isEmpty());
  }

  @Test
  @DisplayName("a command that makes no sense ends no heartbeat")
  void senseless() throws Exception {
    MasterFixture.Job job = f.job();
    List<SluiceShuffleDescriptor> placed = f.place(job, 1);
    ObjectNode senseless = lost(placed);
    senseless.withArray("groups").forEach(group -> ((ObjectNode) group).put("dataSetId", "a b"));
    f.manager.command("app." + job.id, senseless);
    f.manager.command("app." + job.id, lost(placed));
    Await.until(
        "both came",
        () -> {
          f.manager.command("app." + job.id, lost(placed));
          return !job.stopped.isEmpty();
        });
  }

  @Test
  @DisplayName("after a failover of the JobMaster losses go to the new one, without a conflict with oneself")
  void registeredAgain() throws Exception {
    MasterFixture.Job before = f.job();
    List<SluiceShuffleDescriptor> placed = f.place(before, 1);
    MasterFixture.Job after = new MasterFixture.Job(before.id);
    f.master.registerJob(after);
    f.place(after, 1);
    f.manager.command("app." + after.id, lost(placed));
    Await.until("the new one is told", () -> !after.stopped.isEmpty());
    assertEquals(0, before.stopped.size());
    assertEquals(1, f.manager.calls("PUT", "").size());
  }

  @Test
  @DisplayName("a job that another client took over is given up, and others go on")
  void superseded() throws Exception {
    MasterFixture.Job taken = f.job();
    f.place(taken, 1);
    f.manager.instead =
        call -> {
          if (!call.is("POST", "/v1/jobs/heartbeat")) {
            return null;
          }
          ObjectNode answer = ManagerClient.object();
          for (var beat : call.body.path("jobs")) {
            answer
                .withArray("jobs")
                .addObject()
                .put("jobId", beat.path("jobId").asText())
                .put("status", "superseded");
          }
          return Answer.of(answer);
        };
    Await.until("it is given up", () -> isGivenUp(taken));
    f.manager.instead = call -> null;
    f.place(f.job(), 1);
  }

  private boolean isGivenUp(MasterFixture.Job job) throws Exception {
    CompletableFuture<ShuffleDescriptor> asked = f.ask(job, 1);
    Await.until("it is answered", asked::isDone);
    return asked.isCompletedExceptionally()
        && MasterFixture.failure(asked).is(ErrorCode.JOB_UNKNOWN);
  }

  @Test
  @DisplayName("so is one that a manager which has restarted does not take from this client any more")
  void supersededAtRegistration() throws Exception {
    MasterFixture.Job taken = f.job();
    MasterFixture.Job other = f.job();
    f.place(taken, 1);
    f.place(other, 1);
    f.manager.instead =
        call ->
            call.is("PUT", taken.id.toString())
                ? Answer.error(409, ErrorCode.SUPERSEDED, "another client took it over")
                : null;
    f.manager.epoch = 2;
    Await.until("it is given up", () -> isGivenUp(taken));
    int before = f.manager.calls("PUT", taken.id.toString()).size();
    int heartbeats = f.manager.calls("POST", "/v1/jobs/heartbeat").size();
    Await.until(
        "the other goes on",
        () -> f.manager.calls("POST", "/v1/jobs/heartbeat").size() > heartbeats + 3);
    assertEquals(before, f.manager.calls("PUT", taken.id.toString()).size());
    f.place(other, 1);
  }

  // --- releasing ---

  @Test
  @DisplayName("partitions are released together, and again until the manager has heard it")
  void release() throws Exception {
    MasterFixture.Job job = f.job();
    List<SluiceShuffleDescriptor> placed = f.place(job, 20);
    f.manager.instead =
        call ->
            call.is("POST", "/release")
                ? Answer.error(503, ErrorCode.NO_MANAGER, "away")
                : null;
    placed.forEach(f.master::releasePartitionExternally);
    f.manager.await("POST", "/release");
    f.manager.instead = call -> null;
    int refused = f.manager.calls("POST", "/release").size();
    Await.until(
        "it is said again", () -> f.manager.calls("POST", "/release").size() > refused);
    assertTrue(refused < 20, refused + " calls");
    f.manager.epoch = 2;
    Await.until("the list is told again", () -> lastReport() == 0);
  }

  @Test
  @DisplayName("what is released twice, or of a job that has ended, troubles nobody")
  void releaseLate() throws Exception {
    MasterFixture.Job job = f.job();
    SluiceShuffleDescriptor placed = f.place(job, 1).get(0);
    f.master.releasePartitionExternally(placed);
    f.master.releasePartitionExternally(placed);
    f.master.unregisterJob(job.id);
    f.master.releasePartitionExternally(placed);
    f.master.unregisterJob(job.id);
    f.place(f.job(), 1);
  }

  // --- the end of a job ---

  @Test
  @DisplayName("the data of a job that has ended is released")
  void delete() throws Exception {
    MasterFixture.Job job = f.job();
    f.place(job, 1);
    f.master.unregisterJob(job.id);
    assertEquals("app." + job.id, f.manager.await("DELETE", "?jobEpoch=100").jobId());
    assertEquals(List.of(), f.manager.calls("POST", "/detach"));
  }

  @Test
  @DisplayName("a job that has ended is let go, however long its requests might have waited")
  void letGo() throws Exception {
    remake("app", false, TimeUnit.HOURS.toMillis(1));
    WeakReference<MasterFixture.Job> job = runOne();
    Await.until(
        "the job is collected",
        () -> {
          System.gc();
          return job.get() == null;
        });
  }

  private WeakReference<MasterFixture.Job> runOne() throws Exception {
    MasterFixture.Job job = f.job();
    f.place(job, 3);
    f.master.unregisterJob(job.id);
    f.manager.await("DELETE", "");
    return new WeakReference<>(job);
  }

  @Test
  @DisplayName("with Flink's batch job recovery the data is kept: the job is detached")
  void detach() throws Exception {
    remake("app", true, LONG_MS);
    MasterFixture.Job job = f.job();
    f.place(job, 1);
    f.master.unregisterJob(job.id);
    assertEquals("app." + job.id, f.manager.await("POST", "/detach").jobId());
    f.master.close();
    assertEquals(List.of(), f.manager.calls("DELETE", ""));
  }

  @Test
  @DisplayName("what Flink released of such a job is released before it is detached")
  void releaseBeforeDetaching() throws Exception {
    remake("app", true, LONG_MS);
    MasterFixture.Job job = f.job();
    f.place(job, 3).subList(0, 2).forEach(f.master::releasePartitionExternally);
    f.master.unregisterJob(job.id);
    f.manager.await("POST", "/detach");
    assertEquals(2, MasterFixture.rows(f.manager.calls("POST", "/release"), "keys"));
  }

  @Test
  @DisplayName("a job that comes again is registered when the manager has heard that it had ended")
  void comesAgain() throws Exception {
    CountDownLatch hold = new CountDownLatch(1);
    f.manager.instead =
        call -> {
          if (call.is("DELETE", "")) {
            await(hold);
          }
          return null;
        };
    MasterFixture.Job job = f.job();
    f.place(job, 1);
    f.master.unregisterJob(job.id);
    f.manager.await("DELETE", "");
    MasterFixture.Job again = new MasterFixture.Job(job.id);
    f.master.registerJob(again);
    CompletableFuture<ShuffleDescriptor> asked = f.ask(again, 0);
    f.place(f.job(), 1);
    assertEquals(1, f.manager.calls("PUT", job.id.toString()).size());
    hold.countDown();
    MasterFixture.placed(asked);
    assertEquals(2, f.manager.calls("PUT", job.id.toString()).size());
  }

  @Test
  @DisplayName("without a restart strategy a job that stores results here is warned of by name, once")
  void restartStrategy() throws Exception {
    try (LogCapture log = new LogCapture(SluiceShuffleMaster.class)) {
      f.place(f.job(), 1);
      assertEquals(List.of(), log.lines());
      f.close();
      f = new MasterFixture("app", false, LONG_MS, false);
      MasterFixture.Job streaming = f.job();
      f.ask(streaming, 0, ResultPartitionType.PIPELINED_BOUNDED)
          .get(Await.DEADLINE_MS, TimeUnit.MILLISECONDS);
      MasterFixture.Job batch = f.job();
      f.place(batch, 2);
      assertEquals(1, log.lines().size(), log.lines().toString());
      String warning = log.lines().get(0);
      assertTrue(warning.startsWith("WARN restart-strategy.type is not set"), warning);
      assertTrue(warning.contains(batch.id.toString()), warning);
    }
  }

  @Test
  @DisplayName("a job that used nothing here is not mentioned at its end")
  void unused() throws Exception {
    MasterFixture.Job job = f.job();
    f.master.unregisterJob(job.id);
    f.master.close();
    assertEquals(List.of(), f.manager.calls("DELETE", ""));
    assertEquals(List.of(), f.manager.calls("PUT", ""));
  }

  @Test
  @DisplayName("a job that ends while it is being registered is told of, too")
  void endsWhileRegistering() throws Exception {
    CountDownLatch hold = new CountDownLatch(1);
    f.manager.instead =
        call -> {
          if (call.is("PUT", "")) {
            await(hold);
          }
          return null;
        };
    MasterFixture.Job job = f.job();
    CompletableFuture<ShuffleDescriptor> asked = f.ask(job, 0);
    f.manager.await("PUT", "");
    f.master.unregisterJob(job.id);
    hold.countDown();
    f.manager.await("DELETE", "?jobEpoch=100");
    Await.until("the request is answered", asked::isDone);
  }

  @Test
  @DisplayName("the end of the cluster waits until the manager knows of the jobs that have just ended")
  void closeTells() throws Exception {
    MasterFixture.Job job = f.job();
    f.place(job, 1);
    f.master.unregisterJob(job.id);
    f.master.close();
    assertEquals(1, f.manager.calls("DELETE", "?jobEpoch=100").size());
  }

  @Test
  @DisplayName("the end of the cluster answers what is open, and refuses what comes later")
  void closeAnswers() throws Exception {
    f.manager.instead = call -> Answer.error(503, ErrorCode.NO_MANAGER, "away");
    MasterFixture.Job job = f.job();
    CompletableFuture<ShuffleDescriptor> open = f.ask(job, 0);
    f.manager.await("PUT", "");
    f.master.close();
    assertEquals(ErrorCode.CANCELLED, MasterFixture.failure(open).code());
    assertEquals(ErrorCode.CANCELLED, MasterFixture.failure(f.ask(job, 1)).code());
  }

  // --- fine-grained resources ---

  @Test
  @DisplayName("a task's network memory is what its results and gates take, Flink's own added")
  void memory() {
    IntermediateDataSetID in = new IntermediateDataSetID();
    IntermediateDataSetID out = new IntermediateDataSetID();
    assertEquals(MemorySize.ofMebiBytes(5), memoryOf(in, out, ResultPartitionType.BLOCKING));
    MemorySize mixed = memoryOf(in, out, ResultPartitionType.PIPELINED_BOUNDED);
    assertTrue(mixed.compareTo(MemorySize.ofMebiBytes(3)) > 0, mixed.toString());
  }

  private MemorySize memoryOf(
      IntermediateDataSetID in, IntermediateDataSetID out, ResultPartitionType outType) {
    return f.master.computeShuffleMemorySizeForTask(
        TaskInputsOutputsDescriptor.from(
            1,
            Map.of(in, 10),
            Map.of(in, 1),
            Map.of(out, 4),
            Map.of(in, ResultPartitionType.BLOCKING),
            Map.of(out, outType)));
  }

  @Test
  @DisplayName("only plain blocking results are placed here")
  void kinds() {
    Set<ResultPartitionType> remote = new java.util.HashSet<>();
    for (ResultPartitionType type : ResultPartitionType.values()) {
      if (SluiceShuffleMaster.isRemote(type)) {
        remote.add(type);
      }
    }
    assertEquals(Set.of(ResultPartitionType.BLOCKING), remote);
  }
}
