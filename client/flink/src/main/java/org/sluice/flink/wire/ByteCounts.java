package org.sluice.flink.wire;

import java.util.ArrayList;
import java.util.List;

/** The bodies of WriteFinish: pages of bytes per subpartition. */
public final class ByteCounts {
  private static final int COUNTS_PER_PAGE = 65_536;

  private ByteCounts() {}

  /** One page; its first subpartition is its place in the list times {@link #countsPerPage()}. */
  public static List<byte[]> pages(long[] counts) {
    List<byte[]> pages = new ArrayList<>();
    int first = 0;
    do {
      int end = Math.min(counts.length, first + COUNTS_PER_PAGE);
      HeaderWriter page = new HeaderWriter();
      for (int index = first; index < end; index++) {
        page.u64(counts[index]);
      }
      pages.add(page.toByteArray());
      first = end;
    } while (first < counts.length);
    return pages;
  }

  public static int countsPerPage() {
    return COUNTS_PER_PAGE;
  }
}
