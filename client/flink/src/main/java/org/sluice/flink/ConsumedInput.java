package org.sluice.flink;

import org.apache.flink.runtime.executiongraph.IndexRange;
import org.apache.flink.runtime.shuffle.ShuffleDescriptor;

/** A descriptor that a gate consumes, and the subpartitions of it, both ends included. */
public final class ConsumedInput {
  public final ShuffleDescriptor descriptor;
  public final int firstSubpartition;
  public final int lastSubpartition;

  ConsumedInput(ShuffleDescriptor descriptor, IndexRange range) {
    this.descriptor = descriptor;
    this.firstSubpartition = range.getStartIndex();
    this.lastSubpartition = range.getEndIndex();
  }
}
