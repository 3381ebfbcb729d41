package org.sluice.flink.wire;

import org.apache.flink.shaded.netty4.io.netty.buffer.ByteBuf;

/** For tests: finds the frames of a client, as a worker does. */
public final class WorkerSide {
  private final FrameRules rules = new FrameRules(false);
  private final FrameDecoder decoder;

  public WorkerSide(FrameDecoder.Handler handler) {
    decoder = new FrameDecoder(rules, handler);
  }

  public void push(ByteBuf bytes) {
    decoder.push(bytes);
  }

  /** The client has to authenticate next. */
  public void expectAuthentication() {
    rules.enter(FrameRules.Phase.AUTHENTICATION);
  }

  public void ready() {
    rules.enter(FrameRules.Phase.READY);
  }

  /** What a client that knows the token answers. */
  public static byte[] answer(String token, byte[] challenge, String clusterId, String workerId) {
    return Authentication.answer(token, challenge, clusterId, workerId);
  }
}
