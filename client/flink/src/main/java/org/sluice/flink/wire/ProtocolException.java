package org.sluice.flink.wire;

/** The peer broke the protocol, or the handshake was refused: the connection is of no use. */
public final class ProtocolException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final ErrorCode code;

  public ProtocolException(String message) {
    this(ErrorCode.PROTOCOL, message);
  }

  public ProtocolException(ErrorCode code, String message) {
    super(message);
    this.code = code;
  }

  public ErrorCode code() {
    return code;
  }
}
