package org.sluice.flink.write;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.Random;
import org.apache.flink.core.memory.MemorySegmentFactory;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class SortBufferTest {
  private static SortBuffer buffer(int subpartitions, int segments) {
    return new SortBuffer(
        subpartitions,
        segments,
        4096,
        () -> MemorySegmentFactory.allocateUnpooledOffHeapMemory(4096));
  }

  @Test
  @DisplayName("each chain gives back what was added to it, region after region")
  void chains() throws Exception {
    Random random = new Random(5);
    for (int subpartitions : new int[] {1, 7, 300}) {
      SortBuffer buffer = buffer(subpartitions, 16);
      for (int region = 0; region < 3; region++) {
        ByteArrayOutputStream[] model = new ByteArrayOutputStream[subpartitions];
        boolean isFull = false;
        while (!isFull) {
          int subpartition = random.nextInt(subpartitions);
          byte[] record = new byte[random.nextInt(300)];
          random.nextBytes(record);
          isFull = !buffer.append(subpartition, ByteBuffer.wrap(record));
          if (!isFull) {
            if (model[subpartition] == null) {
              model[subpartition] = new ByteArrayOutputStream();
            }
            model[subpartition].write(record);
          }
        }
        assertFalse(buffer.isEmpty());
        for (int subpartition = 0; subpartition < subpartitions; subpartition++) {
          byte[] expected =
              model[subpartition] == null ? new byte[0] : model[subpartition].toByteArray();
          assertEquals(expected.length, buffer.byteCount(subpartition));
          byte[] found = new byte[expected.length];
          SortBuffer.Reader reader = buffer.reader(subpartition);
          int half = found.length / 2;
          reader.read(found, half);
          byte[] rest = new byte[found.length - half];
          reader.read(rest, rest.length);
          System.arraycopy(rest, 0, found, half, rest.length);
          assertArrayEquals(expected, found);
        }
        buffer.clear();
        assertTrue(buffer.isEmpty());
      }
      assertEquals(16, buffer.release().size());
    }
  }

  @Test
  @DisplayName("a record larger than all of it is refused and changes nothing")
  void tooLarge() throws Exception {
    SortBuffer buffer = buffer(3, 4);
    ByteBuffer record = ByteBuffer.allocate(4 * 4096 + 1);
    assertFalse(buffer.append(1, record));
    assertEquals(4 * 4096 + 1, record.remaining());
    assertTrue(buffer.isEmpty());
    assertTrue(buffer.append(1, ByteBuffer.allocate(4 * 4096)));
  }

  @Test
  @DisplayName("with 32,768 subpartitions it holds what its memory holds")
  void manySubpartitions() throws Exception {
    SortBuffer buffer = buffer(32_768, 64);
    int added = 0;
    while (buffer.append(added * 7919 % 32_768, ByteBuffer.allocate(20))) {
      added++;
    }
    assertTrue(added >= 64 * 4096 / 64, added + " records");
  }
}
