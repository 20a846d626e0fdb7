import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;

/**
 * Writes a log in the formats from before Kafka 0.11, as Kafka's own code does it: a line for each message set, with what
 * it is and its bytes in hexadecimal. What stands in a record follows from its offset.
 */
public class OldFormats {
    /** Between the records of a set: compaction has taken some. */
    private static final long[] DISTANCES = {0, 1, 4, 5};

    public static void main(String[] args) {
        long base = 0;
        for (byte magic = 0; magic <= 1; magic++) {
            for (String codec : new String[] {"none", "gzip", "snappy", "lz4"}) {
                base = write(magic, codec, TimestampType.CREATE_TIME, base);
                if (magic == 1) {
                    base = write(magic, codec, TimestampType.LOG_APPEND_TIME, base);
                }
            }
        }
    }

    private static long write(byte magic, String codec, TimestampType times, long base) {
        Compression compression = Compression.of(CompressionType.forName(codec)).build();
        long appended = 1_600_000_000_000L + base;
        MemoryRecordsBuilder builder = MemoryRecords.builder(
                ByteBuffer.allocate(1 << 16), magic, compression, magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE : times, base, appended);
        for (long distance : DISTANCES) {
            long offset = base + distance;
            long timestamp = magic == 0 ? -1 : 1_500_000_000_000L + offset;
            builder.appendWithOffset(offset, timestamp, key(offset), value(offset));
        }
        ByteBuffer set = builder.build().buffer();
        byte[] bytes = new byte[set.remaining()];
        set.get(bytes);
        System.out.println(magic + " " + codec + " " + times.name + " " + base + " " + HexFormat.of().formatHex(bytes));
        return base + DISTANCES[DISTANCES.length - 1] + 1;
    }

    private static byte[] key(long offset) {
        return offset % 3 == 2 ? null : bytes(offset % 7 == 1 ? "" : "key " + offset);
    }

    private static byte[] value(long offset) {
        return offset % 5 == 4 ? null : bytes(("value " + offset + " ").repeat((int) (offset % 4) * 5));
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
