package org.sluice.flink.master;

import java.time.Duration;
import java.util.UUID;
import org.apache.flink.configuration.MemorySize;

/** What of Flink's configuration and the plugin's options the ShuffleMaster needs. */
public final class MasterSettings {
  final String application;
  final boolean isTakeOverAllowed;
  final boolean isDetaching;
  final boolean hasRestartStrategy;
  final int bufferSizeBytes;
  final String codec;
  final long allocateForMs;
  final MemorySize memoryPerPartition;
  final MemorySize memoryPerGate;

  /** No application configured: null, and one is made at random. */
  public MasterSettings(
      String application,
      boolean isDetaching,
      boolean hasRestartStrategy,
      int bufferSizeBytes,
      String codec,
      Duration allocateFor,
      MemorySize memoryPerPartition,
      MemorySize memoryPerGate) {
    this.isTakeOverAllowed = application != null;
    this.application =
        application == null
            ? "flink-" + UUID.randomUUID().toString().replace("-", "").substring(0, 16)
            : application;
    this.isDetaching = isDetaching;
    this.hasRestartStrategy = hasRestartStrategy;
    this.bufferSizeBytes = bufferSizeBytes;
    this.codec = codec;
    this.allocateForMs = allocateFor.toMillis();
    this.memoryPerPartition = memoryPerPartition;
    this.memoryPerGate = memoryPerGate;
  }
}
