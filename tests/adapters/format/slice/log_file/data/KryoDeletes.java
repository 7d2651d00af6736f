/*
 * Prints the deletes of kryo_deletes.json: the bytes that Hudi 0.15.0 and 1.1.1 hold in DELETE blocks of versions 1 and 2.
 * Needs the jars of a Hudi bundle and of Spark 3.5 on its class path.
 */
import java.math.BigDecimal;
import java.util.Collections;
import org.apache.hudi.common.model.DeleteRecord;
import org.apache.hudi.common.model.HoodieKey;
import org.apache.hudi.common.util.SerializationUtils;

public class KryoDeletes {
  static void print(String name, Object deletes) throws Exception {
    StringBuilder text = new StringBuilder();
    for (byte one : SerializationUtils.serialize(deletes)) {
      text.append(String.format("%02x", one));
    }
    System.out.println(name + " " + text);
  }

  static void ordered(String name, Comparable... values) throws Exception {
    DeleteRecord[] deletes = new DeleteRecord[values.length];
    for (int i = 0; i < values.length; i++) {
      deletes[i] = values[i] == null
          ? DeleteRecord.create("k" + i, "part=a")
          : DeleteRecord.create("k" + i, "part=a", values[i]);
    }
    print(name, deletes);
  }

  public static void main(String[] none) throws Exception {
    print("keys", new HoodieKey[] {
        new HoodieKey("k1", "part=a"), new HoodieKey("k2", "part=a"), new HoodieKey("k1", "")});
    print("keysutf", new HoodieKey[] {
        new HoodieKey("k\u00e9", "part=a"),
        new HoodieKey("\u65e5\ud83d\ude00", "p"),
        new HoodieKey(String.join("", Collections.nCopies(70, "x")), "part=a")});
    HoodieKey key = new HoodieKey("k1", "part=a");
    print("sameobj", new HoodieKey[] {key, key});
    print("nullkey", new HoodieKey[] {new HoodieKey("k1", null), new HoodieKey("a", "b")});
    print("empty", new HoodieKey[0]);
    ordered("default", (Comparable) null);
    ordered("int", 1, -1, 0, 300);
    ordered("long", 5L, 1700000000000L, -3L);
    ordered("float", 1.5f);
    ordered("double", 0.1);
    ordered("string", "abc", "\u00e9", "a", "");
    ordered("bool", true, false);
    ordered("bigdec", new BigDecimal("12.50"), new BigDecimal("-1.5"));
    ordered("sqlts", new java.sql.Timestamp(1700000000123L));
    ordered("localdate", java.time.LocalDate.of(2026, 1, 1));
    ordered("instant", java.time.Instant.ofEpochMilli(1700000000123L));
    ordered("mixed", 5L, 0, 6L, null);
    String text = new String("dup");
    ordered("refs", text, text);
    ordered("sqldate", java.sql.Date.valueOf("2026-01-01"));
    ordered("utf8", new org.apache.avro.util.Utf8("abc"));
    ordered("bytebuffer", java.nio.ByteBuffer.wrap(new byte[] {1, 2}));
  }
}
