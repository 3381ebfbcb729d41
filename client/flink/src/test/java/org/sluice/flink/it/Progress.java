package org.sluice.flink.it;

import java.util.Optional;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.TestWatcher;

/** Says of each test how it ended, at once: a class of them takes minutes. */
final class Progress implements TestWatcher {
  private static void say(String what, ExtensionContext test) {
    System.out.println("[" + what + "] " + test.getRequiredTestMethod().getName());
  }

  @Override
  public void testSuccessful(ExtensionContext test) {
    say("passed", test);
  }

  @Override
  public void testFailed(ExtensionContext test, Throwable cause) {
    say("FAILED", test);
    System.out.println(cause);
  }

  @Override
  public void testAborted(ExtensionContext test, Throwable cause) {
    say("aborted", test);
  }

  @Override
  public void testDisabled(ExtensionContext test, Optional<String> reason) {
    say("disabled", test);
  }
}
