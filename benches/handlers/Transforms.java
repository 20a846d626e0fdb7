// The jobs of the benchmark as Kafka Connect does them: converter, transform, converter. Prints CPU nanoseconds
// of the thread per record, the median of several rounds after the compiler has warmed up.

import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;
import org.apache.kafka.connect.transforms.ExtractField;
import org.apache.kafka.connect.transforms.InsertField;
import org.apache.kafka.connect.transforms.MaskField;
import org.apache.kafka.connect.transforms.RegexRouter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.ValueToKey;
import org.apache.kafka.connect.transforms.predicates.HasHeaderKey;

public class Transforms {
    static final int WARM_UP = 150_000;
    static final int RECORDS = 30_000;
    static final int ROUNDS = 9;
    static final byte[] KEY = "1001".getBytes(StandardCharsets.UTF_8);
    static final String[][] HEADERS = {{"trace", "00-4bf92f35"}, {"region", "pt"}, {"kind", "order"}, {"v", "2"}};
    static Object sink;

    public static void main(String[] args) {
        byte[] value = args[0].getBytes(StandardCharsets.UTF_8);
        JsonConverter values = new JsonConverter();
        values.configure(Map.of("schemas.enable", false), false);
        JsonConverter keys = new JsonConverter();
        keys.configure(Map.of("schemas.enable", false), true);

        Transformation<SourceRecord> rename = configured(new RegexRouter<>(), Map.of("regex", "(.*)", "replacement", "eu.$1"));
        report("rename", () -> sink = rename.apply(record(bytes(value))).topic());

        HasHeaderKey<SourceRecord> hasHeader = new HasHeaderKey<>();
        hasHeader.configure(Map.of("name", "region"));
        SimpleHeaderConverter headerConverter = new SimpleHeaderConverter();
        report("header-filter", () -> {
            SourceRecord record = record(bytes(value));
            for (String[] header : HEADERS) {
                byte[] text = header[1].getBytes(StandardCharsets.UTF_8);
                SchemaAndValue converted = headerConverter.toConnectHeader("orders", header[0], text);
                record.headers().add(header[0], converted);
            }
            sink = hasHeader.test(record) ? record : null;
        });

        Transformation<SourceRecord> mask = configured(new MaskField.Value<>(), Map.of("fields", "email", "replacement", "***"));
        report("mask", () -> sink = written(mask.apply(record(values.toConnectData("orders", value))), values));

        Transformation<SourceRecord> insert =
                configured(new InsertField.Value<>(), Map.of("static.field", "dc", "static.value", "lisbon"));
        report("insert", () -> sink = written(insert.apply(record(values.toConnectData("orders", value))), values));

        Transformation<SourceRecord> valueToKey = configured(new ValueToKey<>(), Map.of("fields", "customer_id"));
        Transformation<SourceRecord> extract = configured(new ExtractField.Key<>(), Map.of("field", "customer_id"));
        report("rekey", () -> {
            SourceRecord record = record(values.toConnectData("orders", value));
            SourceRecord rekeyed = extract.apply(valueToKey.apply(record));
            sink = keys.fromConnectData("orders", rekeyed.keySchema(), rekeyed.key());
            sink = written(rekeyed, values);
        });
    }

    static SchemaAndValue bytes(byte[] value) {
        return new SchemaAndValue(Schema.OPTIONAL_BYTES_SCHEMA, value);
    }

    static SourceRecord record(SchemaAndValue value) {
        return new SourceRecord(null, null, "orders", 3, Schema.OPTIONAL_BYTES_SCHEMA, KEY, value.schema(), value.value(),
                1_764_500_000_000L, new ConnectHeaders());
    }

    static byte[] written(ConnectRecord<?> record, JsonConverter converter) {
        return converter.fromConnectData(record.topic(), record.valueSchema(), record.value());
    }

    static <T extends Transformation<SourceRecord>> T configured(T transformation, Map<String, ?> settings) {
        transformation.configure(settings);
        return transformation;
    }

    static void report(String name, Runnable once) {
        run(once, WARM_UP);
        double[] times = new double[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) {
            times[round] = run(once, RECORDS);
        }
        Arrays.sort(times);
        System.out.println(name + " " + times[ROUNDS / 2]);
    }

    static double run(Runnable once, int records) {
        var threads = ManagementFactory.getThreadMXBean();
        long before = threads.getCurrentThreadCpuTime();
        for (int i = 0; i < records; i++) {
            once.run();
        }
        return (double) (threads.getCurrentThreadCpuTime() - before) / records;
    }
}
