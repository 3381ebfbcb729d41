package org.sluice.flink.support;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.SimpleCounter;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;

/** A metric group that keeps its counters. */
public final class Metrics extends UnregisteredMetricsGroup {
  private final Map<String, Counter> counters = new ConcurrentHashMap<>();

  @Override
  public Counter counter(String name) {
    return counters.computeIfAbsent(name, key -> new SimpleCounter());
  }

  /** Fails where there is none of that name. */
  public long count(String name) {
    Counter counter = counters.get(name);
    if (counter == null) {
      throw new AssertionError(name + " is not among " + counters.keySet());
    }
    return counter.getCount();
  }
}
