package org.sluice.flink.wire;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** The bodies of AddPartitions: partitions to read, each coded as its difference from the one before. */
public final class PartitionList {
  private static final int BIT_JOB_ID = 1;
  private static final int BIT_DATA_SET_ID = 2;
  private static final int BIT_ATTEMPT_ID = 4;
  private static final int BIT_PARTITION_INDEX = 8;
  private static final int BIT_RANGE = 16;
  private static final int BIT_START = 32;
  private static final int BIT_PENDING = 64;
  private static final int BIT_INDEX = 128;

  private static final int PAGE_BYTES_MAX = 131_072;
  private static final int PAGE_ENTRIES_MAX = 4_096;
  private static final int ENTRY_BYTES_MAX = 1 + 4 + 3 * (2 + Wire.ID_LENGTH_MAX) + 4 + 8 + 16;

  private PartitionList() {}

  /** One line of the list. All numbers but the bytes are unsigned. */
  public static final class Entry {
    public final int index;
    public final PartitionKey key;
    public final int firstSubpartition;
    public final int lastSubpartition;
    public final int startRegion;
    public final int startSubpartition;
    public final long startBytes;
    public final boolean isPending;

    public Entry(
        int index,
        PartitionKey key,
        int firstSubpartition,
        int lastSubpartition,
        int startRegion,
        int startSubpartition,
        long startBytes,
        boolean isPending) {
      this.index = index;
      this.key = key;
      this.firstSubpartition = firstSubpartition;
      this.lastSubpartition = lastSubpartition;
      this.startRegion = startRegion;
      this.startSubpartition = startSubpartition;
      this.startBytes = startBytes;
      this.isPending = isPending;
    }
  }

  /** One frame's worth of a list. */
  public static final class Page {
    public final int partitionCount;
    public final byte[] body;

    Page(int partitionCount, byte[] body) {
      this.partitionCount = partitionCount;
      this.body = body;
    }
  }

  /** What the next entry is coded against. */
  private static final class Previous {
    long index = -1;
    String jobId = "";
    String dataSetId = "";
    long partitionIndex = -1;
    String attemptId = "";
    int firstSubpartition;
    int lastSubpartition;

    void remember(Entry entry) {
      index = entry.index & 0xffff_ffffL;
      jobId = entry.key.jobId();
      dataSetId = entry.key.dataSetId();
      partitionIndex = entry.key.partitionIndex() & 0xffff_ffffL;
      attemptId = entry.key.attemptId();
      firstSubpartition = entry.firstSubpartition;
      lastSubpartition = entry.lastSubpartition;
    }
  }

  /** Codes the entries into as many pages as they take. */
  public static List<Page> encode(Iterable<Entry> entries) {
    List<Page> pages = new ArrayList<>();
    HeaderWriter page = new HeaderWriter();
    Previous previous = new Previous();
    int count = 0;
    for (Entry entry : entries) {
      if (page.length() + ENTRY_BYTES_MAX > PAGE_BYTES_MAX || count == PAGE_ENTRIES_MAX) {
        pages.add(new Page(count, page.toByteArray()));
        page = new HeaderWriter();
        previous = new Previous();
        count = 0;
      }
      write(page, entry, previous);
      previous.remember(entry);
      count++;
    }
    if (count > 0) {
      pages.add(new Page(count, page.toByteArray()));
    }
    return pages;
  }

  private static void write(HeaderWriter page, Entry entry, Previous previous) {
    PartitionKey key = entry.key;
    int bits = 0;
    bits |= key.jobId().equals(previous.jobId) ? 0 : BIT_JOB_ID;
    bits |= key.dataSetId().equals(previous.dataSetId) ? 0 : BIT_DATA_SET_ID;
    bits |= key.attemptId().equals(previous.attemptId) ? 0 : BIT_ATTEMPT_ID;
    bits |=
        (key.partitionIndex() & 0xffff_ffffL) == previous.partitionIndex + 1
            ? 0
            : BIT_PARTITION_INDEX;
    boolean isRangeSame =
        entry.firstSubpartition == previous.firstSubpartition
            && entry.lastSubpartition == previous.lastSubpartition;
    bits |= isRangeSame ? 0 : BIT_RANGE;
    boolean isFromBeginning =
        entry.startRegion == 0 && entry.startSubpartition == 0 && entry.startBytes == 0;
    bits |= isFromBeginning ? 0 : BIT_START;
    bits |= entry.isPending ? BIT_PENDING : 0;
    bits |= (entry.index & 0xffff_ffffL) == previous.index + 1 ? 0 : BIT_INDEX;
    page.u8(bits);
    if ((bits & BIT_INDEX) != 0) {
      page.u32(entry.index);
    }
    if ((bits & BIT_JOB_ID) != 0) {
      writeId(page, key.jobId(), previous.jobId);
    }
    if ((bits & BIT_DATA_SET_ID) != 0) {
      writeId(page, key.dataSetId(), previous.dataSetId);
    }
    if ((bits & BIT_PARTITION_INDEX) != 0) {
      page.u32(key.partitionIndex());
    }
    if ((bits & BIT_ATTEMPT_ID) != 0) {
      writeId(page, key.attemptId(), previous.attemptId);
    }
    if ((bits & BIT_RANGE) != 0) {
      page.u32(entry.firstSubpartition);
      page.u32(entry.lastSubpartition);
    }
    if ((bits & BIT_START) != 0) {
      page.u32(entry.startRegion);
      page.u32(entry.startSubpartition);
      page.u64(entry.startBytes);
    }
  }

  private static void writeId(HeaderWriter page, String id, String before) {
    int shared = 0;
    while (shared < id.length()
        && shared < before.length()
        && id.charAt(shared) == before.charAt(shared)) {
      shared++;
    }
    byte[] rest = id.substring(shared).getBytes(StandardCharsets.ISO_8859_1);
    page.u8(shared);
    page.u8(rest.length);
    page.raw(rest, rest.length);
  }

  /** The inverse, for one page. */
  public static List<Entry> decode(byte[] body, long partitionCount) {
    if (partitionCount == 0 || partitionCount > Wire.PARTITION_LIST_ENTRIES_MAX) {
      throw new ProtocolException("a partition list of " + partitionCount + " entries");
    }
    HeaderReader reader = new HeaderReader(body, 0, body.length, "partition list");
    Previous previous = new Previous();
    List<Entry> entries = new ArrayList<>();
    for (long count = 0; count < partitionCount; count++) {
      Entry entry = read(reader, previous);
      previous.remember(entry);
      entries.add(entry);
    }
    if (!reader.isAtEnd()) {
      throw reader.fail("bytes follow the last entry");
    }
    return entries;
  }

  private static Entry read(HeaderReader reader, Previous previous) {
    int bits = reader.u8();
    long index = (bits & BIT_INDEX) != 0 ? reader.u32() : previous.index + 1;
    if (previous.index != -1 && index <= previous.index) {
      throw reader.fail("an index does not ascend");
    }
    String jobId = (bits & BIT_JOB_ID) != 0 ? readId(reader, previous.jobId) : previous.jobId;
    String dataSetId =
        (bits & BIT_DATA_SET_ID) != 0 ? readId(reader, previous.dataSetId) : previous.dataSetId;
    long partitionIndex =
        (bits & BIT_PARTITION_INDEX) != 0 ? reader.u32() : previous.partitionIndex + 1;
    if (partitionIndex > 0xffff_ffffL) {
      throw reader.fail("a partition index is past 2^32 - 1");
    }
    String attemptId =
        (bits & BIT_ATTEMPT_ID) != 0 ? readId(reader, previous.attemptId) : previous.attemptId;
    PartitionKey key = new PartitionKey(jobId, dataSetId, (int) partitionIndex, attemptId);
    boolean isRangeGiven = (bits & BIT_RANGE) != 0;
    int first = isRangeGiven ? (int) reader.u32() : previous.firstSubpartition;
    int last = isRangeGiven ? (int) reader.u32() : previous.lastSubpartition;
    if (Integer.compareUnsigned(first, last) > 0) {
      throw reader.fail("a range ends before it begins");
    }
    boolean isStartGiven = (bits & BIT_START) != 0;
    int region = isStartGiven ? (int) reader.u32() : 0;
    int subpartition = isStartGiven ? (int) reader.u32() : 0;
    long bytes = isStartGiven ? reader.u64() : 0;
    boolean isPending = (bits & BIT_PENDING) != 0;
    return new Entry((int) index, key, first, last, region, subpartition, bytes, isPending);
  }

  private static String readId(HeaderReader reader, String before) {
    int shared = reader.u8();
    if (shared > before.length()) {
      throw reader.fail("an id shares what is not there");
    }
    return before.substring(0, shared) + reader.shortText();
  }
}
