package org.sluice.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class SluiceShuffleServiceFactoryTest {
  @Test
  @DisplayName("the jar of this line starts in the Flink that it was built against")
  void rightLine() {
    assertTrue(
        EnvironmentInformation.getVersion().startsWith(FlinkLine.NAME + "."),
        EnvironmentInformation.getVersion());
    new SluiceShuffleServiceFactory();
    new SluiceShuffleServiceFactory(FlinkLine.NAME + ".9");
    new SluiceShuffleServiceFactory(FlinkLine.NAME + "-SNAPSHOT");
  }

  @Test
  @DisplayName("in another line of Flink the jar is refused, and the right one named")
  void wrongLine() {
    for (String version : new String[] {"1.7.2", "1.2.0", "3.0-SNAPSHOT", "2.30.1"}) {
      IllegalStateException refusal =
          assertThrows(
              IllegalStateException.class, () -> new SluiceShuffleServiceFactory(version));
      assertTrue(refusal.getMessage().contains("Flink is " + version), refusal.getMessage());
      assertTrue(refusal.getMessage().contains(FlinkLine.NAME), refusal.getMessage());
      String line = version.replaceAll("^(\\d+\\.\\d+).*", "$1");
      assertTrue(
          refusal.getMessage().contains("sluice-flink-" + line + " into lib/"),
          refusal.getMessage());
    }
  }

  @Test
  @DisplayName("a restart strategy is one that restarts")
  void restartStrategy() {
    Configuration configuration = new Configuration();
    assertFalse(SluiceShuffleServiceFactory.hasRestartStrategy(configuration));
    for (String none : List.of("none", "off", "disable", "NONE")) {
      configuration.set(RestartStrategyOptions.RESTART_STRATEGY, none);
      assertFalse(SluiceShuffleServiceFactory.hasRestartStrategy(configuration), none);
    }
    configuration.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
    assertTrue(SluiceShuffleServiceFactory.hasRestartStrategy(configuration));
    assertEquals("restart-strategy.type", RestartStrategyOptions.RESTART_STRATEGY.key());
  }
}
