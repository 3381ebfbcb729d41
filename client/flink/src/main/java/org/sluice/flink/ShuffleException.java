package org.sluice.flink;

import java.io.IOException;
import org.apache.flink.runtime.execution.SuppressRestartsException;
import org.sluice.flink.wire.ErrorCode;
import org.sluice.flink.wire.ProtocolException;

/** What can go wrong with a shuffle service; its code says what to do. */
public final class ShuffleException extends IOException {
  private static final long serialVersionUID = 1L;

  private final ErrorCode code;

  public ShuffleException(ErrorCode code, String message) {
    this(code, message, null);
  }

  public ShuffleException(ErrorCode code, String message, Throwable cause) {
    super(code + ": " + message, cause);
    this.code = code;
  }

  public ErrorCode code() {
    return code;
  }

  public boolean is(ErrorCode... codes) {
    for (ErrorCode candidate : codes) {
      if (candidate == code) {
        return true;
      }
    }
    return false;
  }

  /** Throws what keeps Flink from trying again, where only another configuration helps. */
  public void throwIfFinal() {
    if (is(
        ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNSUPPORTED_CODEC, ErrorCode.UNAUTHENTICATED)) {
      throw new SuppressRestartsException(this);
    }
  }

  /** As it is, or as what it means that something unforeseen happened. */
  public static ShuffleException of(Throwable error, ErrorCode otherwise) {
    Throwable root = error;
    while ((root instanceof java.util.concurrent.CompletionException
            || root instanceof java.util.concurrent.ExecutionException)
        && root.getCause() != null) {
      root = root.getCause();
    }
    if (root instanceof ShuffleException) {
      return (ShuffleException) root;
    }
    if (root instanceof ProtocolException) {
      return new ShuffleException(((ProtocolException) root).code(), root.getMessage(), root);
    }
    return new ShuffleException(otherwise, String.valueOf(root.getMessage()), root);
  }
}
