package org.sluice.flink.read;

import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import org.apache.flink.metrics.SimpleCounter;
import org.apache.flink.runtime.checkpoint.channel.ChannelStateWriter;
import org.apache.flink.runtime.clusterframework.types.ResourceID;
import org.apache.flink.runtime.executiongraph.IndexRange;
import org.apache.flink.runtime.io.network.ConnectionID;
import org.apache.flink.runtime.io.network.LocalConnectionManager;
import org.apache.flink.runtime.io.network.partition.ResultSubpartitionIndexSet;
import org.apache.flink.runtime.io.network.partition.consumer.InputChannel;
import org.apache.flink.runtime.io.network.partition.consumer.RemoteInputChannel;
import org.apache.flink.runtime.io.network.partition.consumer.SingleInputGate;

/** An object that stands for a channel, as it is made from Flink 2.3 on. */
final class StandInChannel {
  private StandInChannel() {}

  static InputChannel of(SingleInputGate gate, int channelIndex, InputPartition input) {
    return new RemoteInputChannel(
        gate,
        channelIndex,
        input.descriptor.getResultPartitionID(),
        new ResultSubpartitionIndexSet(
            new IndexRange(input.firstSubpartition, input.lastSubpartition)),
        new ConnectionID(
            ResourceID.generate(), InetSocketAddress.createUnresolved("nowhere", 1), 0),
        new LocalConnectionManager(),
        0,
        0,
        0,
        0,
        new SimpleCounter(),
        new SimpleCounter(),
        ChannelStateWriter.NO_OP,
        new ArrayDeque<>());
  }
}
