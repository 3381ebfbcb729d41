package org.sluice.flink.master;

import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.sluice.flink.SluiceShuffleDescriptor;

/** One partition of a job's list: of what should exist. */
final class ListedPartition {
  final SluiceShuffleDescriptor descriptor;
  /** What is the same for all partitions of its data set, as the manager's calls carry it. */
  final ObjectNode facts;
  boolean isCommitted;

  ListedPartition(SluiceShuffleDescriptor descriptor, ObjectNode facts) {
    this.descriptor = descriptor;
    this.facts = facts;
  }
}
