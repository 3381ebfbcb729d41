package org.sluice.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class MemoryPlanTest {
  @Test
  @DisplayName("all slots together never take more than there is")
  void withinBudget() {
    for (int slots : new int[] {1, 2, 8, 16}) {
      for (int each : new int[] {1, 2, 3}) {
        MemoryPlan plan = new MemoryPlan(new Configuration(), 2048, 32_768, slots);
        int perSlot = each * (plan.resultBuffers(each) + plan.gateBuffersMax(each));
        assertTrue(slots * perSlot <= 2048, slots + " slots, " + each + " results and gates");
      }
    }
  }

  @Test
  @DisplayName("a result has at least 16 buffers and a gate 8")
  void minimums() {
    MemoryPlan plan = new MemoryPlan(new Configuration(), 64, 32_768, 8);
    assertEquals(16, plan.resultBuffers(3));
    assertEquals(8, plan.gateBuffersMax(3));
  }

  @Test
  @DisplayName("what is configured holds, whatever the slots and the task")
  void configured() {
    Configuration configuration = new Configuration();
    configuration.set(SluiceOptions.MEMORY_PER_PARTITION, MemorySize.parse("1mb"));
    configuration.set(SluiceOptions.MEMORY_PER_GATE, MemorySize.parse("2mb"));
    MemoryPlan plan = new MemoryPlan(configuration, 2048, 32_768, 8);
    assertEquals(32, plan.resultBuffers(2));
    assertEquals(64, plan.gateBuffersMax(2));
  }
}
