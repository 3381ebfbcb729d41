package org.sluice.flink;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.flink.configuration.NettyShuffleEnvironmentOptions.CompressionCodec;
import org.apache.flink.runtime.io.compression.BlockCompressionFactory;
import org.apache.flink.runtime.io.compression.BlockCompressor;
import org.apache.flink.runtime.io.compression.BlockDecompressor;
import org.apache.flink.runtime.io.compression.BufferCompressionException;
import org.apache.flink.runtime.io.compression.BufferDecompressionException;
import org.sluice.flink.wire.ErrorCode;

/**
 * Compresses payloads of entries with Flink's compressors. Flink puts two little-endian lengths
 * before a block; in an entry one big-endian length stands there, so that "lz4" is what it is for
 * every client. Not thread-safe.
 */
public final class BlockCodec {
  /** Flink's lengths before a block: compressed, uncompressed. */
  private static final int FLINK_HEADER_LENGTH = 8;

  public static final String NONE = "none";

  private final BlockCompressor compressor;
  private final BlockDecompressor decompressor;
  private final byte[] compressed;

  private BlockCodec(CompressionCodec codec, int payloadMax) {
    BlockCompressionFactory factory =
        BlockCompressionFactory.createBlockCompressionFactory(codec);
    compressor = factory.getCompressor();
    decompressor = factory.getDecompressor();
    compressed = new byte[compressor.getMaxCompressedSize(payloadMax)];
  }

  /** The name that goes into descriptors. */
  public static String nameOf(CompressionCodec codec) {
    return codec == CompressionCodec.LZ4 ? "lz4" : "flink-" + codec.name().toLowerCase();
  }

  /** Null for "none". Throws UNSUPPORTED_CODEC for a name that this plugin does not know. */
  public static BlockCodec of(String name, int payloadMax) throws ShuffleException {
    if (name.equals(NONE)) {
      return null;
    }
    for (CompressionCodec codec : CompressionCodec.values()) {
      if (nameOf(codec).equals(name)) {
        return new BlockCodec(codec, payloadMax);
      }
    }
    throw new ShuffleException(
        ErrorCode.UNSUPPORTED_CODEC, "data is compressed with '" + name + "', which is not known");
  }

  /** Compresses; answers the length of the block, which {@link #copyBlock} gives. */
  public int compress(byte[] source, int length) throws ShuffleException {
    try {
      return compressor.compress(source, 0, length, compressed, 0) - FLINK_HEADER_LENGTH;
    } catch (BufferCompressionException error) {
      throw new ShuffleException(ErrorCode.INVALID_ARGUMENT, "data could not be compressed", error);
    }
  }

  /** The block of the last {@link #compress}. */
  public void copyBlock(byte[] target, int offset, int length) {
    System.arraycopy(compressed, FLINK_HEADER_LENGTH, target, offset, length);
  }

  /**
   * Uncompresses the block at {@code offset}, whose eight bytes before it may be overwritten. Throws
   * DATA_CORRUPT unless it gives exactly {@code uncompressedLength} bytes.
   */
  public void decompress(
      ByteBuffer source, int offset, int length, byte[] target, int uncompressedLength)
      throws ShuffleException {
    ByteBuffer block = source.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    block.putInt(offset - FLINK_HEADER_LENGTH, length);
    block.putInt(offset - FLINK_HEADER_LENGTH + 4, uncompressedLength);
    block.clear();
    block.limit(offset + length);
    block.position(offset - FLINK_HEADER_LENGTH);
    try {
      int written =
          decompressor.decompress(
              block, 0, FLINK_HEADER_LENGTH + length, ByteBuffer.wrap(target), 0);
      if (written != uncompressedLength) {
        throw new BufferDecompressionException("it has another length");
      }
    } catch (RuntimeException error) {
      throw new ShuffleException(
          ErrorCode.DATA_CORRUPT, "a block could not be uncompressed", error);
    }
  }
}
