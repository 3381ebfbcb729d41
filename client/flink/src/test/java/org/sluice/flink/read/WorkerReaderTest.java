package org.sluice.flink.read;

import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.sluice.flink.transport.WorkerAddress;

class WorkerReaderTest {
  private final WorkerReader reader = new WorkerReader(new WorkerAddress("worker-1", "there", 5));

  private void pauses(long fullMs) {
    long pauseMs = reader.nextPauseMs();
    assertTrue(pauseMs >= fullMs / 2 && pauseMs <= fullMs, pauseMs + " ms of " + fullMs);
  }

  @Test
  @DisplayName("the pause before a try grows with the tries, not with the partitions that are not ready")
  void pause() {
    for (long fullMs : new long[] {100, 200, 400, 800, 1600, 3200, 5000, 5000}) {
      for (int partition = 0; partition < 1000; partition++) {
        reader.failBusy();
      }
      pauses(fullMs);
    }
  }

  @Test
  @DisplayName("after something came it begins anew, and is a pause still")
  void pauseAnew() {
    for (int round = 0; round < 3; round++) {
      reader.failUnreachable();
      pauses(100);
      reader.failBusy();
      pauses(200);
      reader.failBusy();
      reader.succeed();
    }
    pauses(100);
  }
}
