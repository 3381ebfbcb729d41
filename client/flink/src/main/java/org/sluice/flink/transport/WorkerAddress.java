package org.sluice.flink.transport;

import java.io.Serializable;
import java.util.Objects;

/** Where a worker is, as far as is known: a name, resolved at each dial. */
public final class WorkerAddress implements Serializable {
  private static final long serialVersionUID = 1L;

  private final String workerId;
  private final String host;
  private final int port;

  public WorkerAddress(String workerId, String host, int port) {
    this.workerId = workerId;
    this.host = host;
    this.port = port;
  }

  public String workerId() {
    return workerId;
  }

  public String host() {
    return host;
  }

  public int port() {
    return port;
  }

  @Override
  public boolean equals(Object other) {
    if (!(other instanceof WorkerAddress)) {
      return false;
    }
    WorkerAddress that = (WorkerAddress) other;
    return port == that.port && workerId.equals(that.workerId) && host.equals(that.host);
  }

  @Override
  public int hashCode() {
    return Objects.hash(workerId, host, port);
  }

  @Override
  public String toString() {
    return workerId + " at " + host + ":" + port;
  }
}
