package org.sluice.flink;

import java.io.IOException;
import java.io.InputStream;
import java.util.Properties;

/** The line of Flink that the jar was built for; the build writes it into the jar. */
public final class FlinkLine {
  /** The beginning of its versions: 1.20. */
  public static final String NAME = read();

  private FlinkLine() {}

  private static String read() {
    Properties properties = new Properties();
    try (InputStream stream = FlinkLine.class.getResourceAsStream("line.properties")) {
      properties.load(stream);
    } catch (IOException error) {
      throw new IllegalStateException("the jar is damaged: line.properties can't be read", error);
    }
    return properties.getProperty("flink.line");
  }
}
