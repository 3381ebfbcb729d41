package org.sluice.flink.read;

import org.sluice.flink.manager.ManagerClient;
import org.sluice.flink.transport.ConnectionPool;
import org.sluice.flink.transport.Locator;

/** What the gates of a TaskManager share. */
public final class ReadServices {
  final ConnectionPool connections;
  final Locator locator;
  final ManagerClient manager;

  public ReadServices(ConnectionPool connections, Locator locator, ManagerClient manager) {
    this.connections = connections;
    this.locator = locator;
    this.manager = manager;
  }
}
