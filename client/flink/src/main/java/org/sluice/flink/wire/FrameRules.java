package org.sluice.flink.wire;

import java.util.EnumSet;
import java.util.Set;

/** Which frames may come at what moment: the order of the handshake, directions, channel numbers. */
final class FrameRules {
  /** What has been exchanged so far. */
  enum Phase {
    HELLO,
    AUTHENTICATION,
    READY
  }

  private static final Set<MessageType> ONLY_IN_HANDSHAKE =
      EnumSet.of(
          MessageType.HELLO,
          MessageType.HELLO_ACK,
          MessageType.AUTHENTICATE,
          MessageType.AUTHENTICATED);

  private final boolean isClient;
  private Phase phase = Phase.HELLO;
  private long lastOpened;

  /** Of the side that receives. */
  FrameRules(boolean isClient) {
    this.isClient = isClient;
  }

  void enter(Phase next) {
    phase = next;
  }

  Phase phase() {
    return phase;
  }

  /** Throws PROTOCOL when such a frame may not come now. A null type is one that is not known. */
  void admit(MessageType type, int channelId) {
    if (type == null) {
      if (phase != Phase.READY) {
        throw new ProtocolException("a frame of unknown type came before the handshake was done");
      }
      return;
    }
    MessageType.Direction incoming =
        isClient
            ? MessageType.Direction.WORKER_TO_CLIENT
            : MessageType.Direction.CLIENT_TO_WORKER;
    if (type.direction() != MessageType.Direction.BOTH && type.direction() != incoming) {
      throw fail(type, channelId, "from the wrong side");
    }
    admitInPhase(type, channelId);
    admitChannel(type, channelId);
  }

  private void admitInPhase(MessageType type, int channelId) {
    if (phase == Phase.READY) {
      if (ONLY_IN_HANDSHAKE.contains(type)) {
        throw fail(type, channelId, "after the handshake");
      }
      return;
    }
    if (type == MessageType.ERROR && channelId == 0) {
      return;
    }
    boolean isExpected;
    if (phase == Phase.HELLO) {
      isExpected = type == (isClient ? MessageType.HELLO_ACK : MessageType.HELLO);
    } else {
      isExpected =
          type == MessageType.PING
              || type == MessageType.PONG
              || type == (isClient ? MessageType.AUTHENTICATED : MessageType.AUTHENTICATE);
    }
    if (!isExpected) {
      throw fail(type, channelId, "before the handshake was done");
    }
  }

  private void admitChannel(MessageType type, int channelId) {
    switch (type.channelUse()) {
      case CONNECTION:
        if (channelId != 0) {
          throw fail(type, channelId, "on a channel");
        }
        break;
      case CHANNEL:
        if (channelId == 0) {
          throw fail(type, channelId, "without a channel");
        }
        break;
      case OPENS:
        long number = channelId & 0xffff_ffffL;
        if (number <= lastOpened) {
          throw fail(type, channelId, "although numbers ascend");
        }
        lastOpened = number;
        break;
      default:
        break;
    }
  }

  private static ProtocolException fail(MessageType type, int channelId, String what) {
    return new ProtocolException(
        type.wireName() + " came on channel " + Integer.toUnsignedString(channelId) + ' ' + what);
  }
}
