package org.sluice.flink.read;

/** Times of the plugin's options, in milliseconds. */
public final class ReadSettings {
  final long unreachableMs;
  final long retryMs;
  final long idleMs;
  final long failureDelayMs;

  public ReadSettings(long unreachableMs, long retryMs, long idleMs, long failureDelayMs) {
    this.unreachableMs = unreachableMs;
    this.retryMs = retryMs;
    this.idleMs = idleMs;
    this.failureDelayMs = failureDelayMs;
  }
}
