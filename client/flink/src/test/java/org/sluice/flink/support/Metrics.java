package org.sluice.flink.support;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.metrics.SimpleCounter;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;

/** A metric group that keeps its counters and those of the groups in it, by their path. */
public final class Metrics extends UnregisteredMetricsGroup {
  private final String prefix;
  private final Map<String, Counter> counters;

  public Metrics() {
    this("", new ConcurrentHashMap<>());
  }

  private Metrics(String prefix, Map<String, Counter> counters) {
    this.prefix = prefix;
    this.counters = counters;
  }

  @Override
  public MetricGroup addGroup(String name) {
    return new Metrics(prefix + name + ".", counters);
  }

  @Override
  public Counter counter(String name) {
    return counters.computeIfAbsent(prefix + name, path -> new SimpleCounter());
  }

  /** Fails where there is none of that name. */
  public long count(String path) {
    Counter counter = counters.get(path);
    if (counter == null) {
      throw new AssertionError(path + " is not among " + counters.keySet());
    }
    return counter.getCount();
  }
}
