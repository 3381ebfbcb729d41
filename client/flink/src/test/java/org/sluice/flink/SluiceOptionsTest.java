package org.sluice.flink;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.IllegalConfigurationException;
import org.apache.flink.util.TimeUtils;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

class SluiceOptionsTest {
  @Test
  @DisplayName("the table of the README says what the code does")
  void readme() throws Exception {
    List<String> expected = new ArrayList<>();
    for (ConfigOption<?> option : SluiceOptions.all()) {
      Object value = option.defaultValue();
      String text = value == null ? "(none)" : String.valueOf(value);
      if (value instanceof Duration) {
        text = TimeUtils.formatWithHighestUnit((Duration) value);
      }
      String description = descriptionOf(option);
      expected.add("| `" + option.key() + "` | " + text + " | " + description + " |");
    }
    List<String> actual = new ArrayList<>();
    for (String line : Files.readAllLines(Path.of("README.md"))) {
      if (line.startsWith("| `remote-shuffle.")) {
        actual.add(line);
      }
    }
    assertEquals(expected, actual);
  }

  private static String descriptionOf(ConfigOption<?> option) {
    return new org.apache.flink.configuration.description.HtmlFormatter()
        .format(option.description())
        .replace("&#39;", "'");
  }

  @Test
  @DisplayName("a name that is no id is refused by the option's name, before a job asks for anything")
  void names() {
    Configuration configuration = new Configuration();
    assertNull(SluiceOptions.application(configuration));
    assertEquals("sluice", SluiceOptions.clusterId(configuration));
    String longest = "a".repeat(167);
    configuration.set(SluiceOptions.APPLICATION, longest);
    assertEquals(longest, SluiceOptions.application(configuration));
    for (String wrong : List.of("", "two words", "zürich", longest + "a")) {
      configuration.set(SluiceOptions.APPLICATION, wrong);
      refused("remote-shuffle.application", () -> SluiceOptions.application(configuration));
    }
    configuration.set(SluiceOptions.CLUSTER_ID, "two words");
    refused("remote-shuffle.cluster.id", () -> SluiceOptions.clusterId(configuration));
  }

  private static void refused(String option, Executable getting) {
    String said = assertThrows(IllegalConfigurationException.class, getting).getMessage();
    assertTrue(said.startsWith(option + ": "), said);
  }

  @Test
  @DisplayName("a missing or wrong address of the manager is named")
  void managerAddress() {
    Configuration configuration = new Configuration();
    assertThrows(
        IllegalConfigurationException.class, () -> SluiceOptions.managerAddress(configuration));
    configuration.set(SluiceOptions.MANAGER_ADDRESS, "host:9700");
    assertEquals("http://host:9700", SluiceOptions.managerAddress(configuration).toString());
    for (String wrong : List.of("http://:9700", "ftp://host:9700", "two words", "")) {
      configuration.set(SluiceOptions.MANAGER_ADDRESS, wrong);
      refused("remote-shuffle.manager.address", () -> SluiceOptions.managerAddress(configuration));
    }
  }

  @Test
  @DisplayName("a token is one line of its file; none, more and what no header carries are refused")
  void token(@TempDir Path folder) throws Exception {
    Configuration configuration = new Configuration();
    assertNull(SluiceOptions.token(configuration));
    Path file = folder.resolve("token");
    configuration.set(SluiceOptions.TOKEN_FILE, file.toString());
    refused("remote-shuffle.token-file", () -> SluiceOptions.token(configuration));
    Files.writeString(file, "a secret\n");
    assertEquals("a secret", SluiceOptions.token(configuration));
    for (String wrong : List.of("\n", "two\nlines", "\u2713")) {
      Files.writeString(file, wrong);
      refused("remote-shuffle.token-file", () -> SluiceOptions.token(configuration));
    }
  }
}
