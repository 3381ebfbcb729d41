package org.sluice.flink.write;

/** How long what a producer waits for may take: times of the plugin's options, in milliseconds. */
public final class WriteSettings {
  final long openMs;
  final long regionMs;
  final long commitMs;

  public WriteSettings(long openMs, long regionMs, long commitMs) {
    this.openMs = openMs;
    this.regionMs = regionMs;
    this.commitMs = commitMs;
  }
}
