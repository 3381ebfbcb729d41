package org.sluice.flink.wire;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Proof that the client knows the shared token, without the token travelling. */
final class Authentication {
  private Authentication() {}

  static byte[] answer(String token, byte[] challenge, String clusterId, String workerId) {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(token.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
      byte[][] parts = {
        challenge,
        clusterId.getBytes(StandardCharsets.UTF_8),
        workerId.getBytes(StandardCharsets.UTF_8)
      };
      for (byte[] part : parts) {
        mac.update(ByteBuffer.allocate(4).putInt(0, part.length).array());
        mac.update(part);
      }
      return mac.doFinal();
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException("the JDK has no HMAC-SHA-256", error);
    }
  }
}
