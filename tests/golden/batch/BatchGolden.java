// Writes java_<codec>.hex with kafka-clients, and reads batches of ours with it. Made for kafka-clients 4.3.1:
//   java -cp '<kafka>/libs/*' BatchGolden.java write DIR     writes DIR/java_<codec>.hex
//   java -cp '<kafka>/libs/*' BatchGolden.java read DIR      reads DIR/*.batch, exit 1 at the first difference
// The 40 records are those of tests/unit/kafka_proto/batch_golden_test.c.
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.record.internal.Record;

public class BatchGolden {
    static final String TEXT = "the quick brown fox jumps over the lazy dog, the quick brown fox";

    static byte[] utf8(String s) {
        return s == null ? null : s.getBytes(StandardCharsets.UTF_8);
    }

    static SimpleRecord make(int i) {
        String value = i % 10 == 4 ? "" : i % 10 == 3 ? null : "{\"i\":" + i + ",\"text\":\"" + TEXT + "\"}";
        List<Header> headers = new ArrayList<>();
        if (i % 3 > 0)
            headers.add(new RecordHeader("\u00fc", (byte[]) null));
        if (i % 3 > 1)
            headers.add(new RecordHeader("h1", utf8(i % 2 == 0 ? "" : "x")));
        return new SimpleRecord(1700000000000L + 10 * (i % 5) - i % 3, utf8(i % 4 == 0 ? null : "key-" + i), utf8(value),
                headers.toArray(new Header[0]));
    }

    static void write(Path dir) throws Exception {
        for (String codec : new String[] {"none", "gzip", "snappy", "lz4", "zstd"}) {
            Compression c = Compression.of(codec).build();
            MemoryRecordsBuilder b = MemoryRecords.builder(ByteBuffer.allocate(1 << 16), RecordBatch.MAGIC_VALUE_V2, c,
                    TimestampType.CREATE_TIME, 100L, RecordBatch.NO_TIMESTAMP, RecordBatch.NO_PARTITION_LEADER_EPOCH);
            for (int i = 0; i < 40; i++)
                b.appendWithOffset(100 + 7 * i, make(i));
            ByteBuffer out = b.build().buffer();
            byte[] bytes = new byte[out.remaining()];
            out.get(bytes);
            StringBuilder s = new StringBuilder();
            for (int i = 0; i < bytes.length; i++)
                s.append(String.format("%02x", bytes[i])).append(i % 60 == 59 || i == bytes.length - 1 ? "\n" : "");
            Files.writeString(dir.resolve("java_" + codec + ".hex"), s);
        }
    }

    static void need(boolean ok, String what) {
        if (!ok)
            throw new IllegalStateException(what);
    }

    static void read(Path file) throws Exception {
        String name = file.getFileName().toString().replace(".batch", "");
        RecordBatch batch = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(file))).batchIterator().next();
        batch.ensureValid();
        if (name.equals("control")) {
            Record r = batch.iterator().next();
            need(batch.isControlBatch() && ControlRecordType.parse(r.key()) == ControlRecordType.UNKNOWN && !r.hasValue()
                    && batch.lastOffset() == 4711, "control batch");
            return;
        }
        need(batch.compressionType().name.equals(name), name + ": codec");
        need(batch.lastOffset() == 100 + 7 * 39 && batch.countOrNull() == 40, name + ": head");
        int i = 0;
        for (Record r : batch) {
            SimpleRecord want = make(i);
            need(r.offset() == 100 + 7 * i && new SimpleRecord(r).equals(want), name + ": record " + i);
            i++;
        }
        need(i == 40, name + ": count");
    }

    public static void main(String[] args) throws Exception {
        Path dir = Path.of(args[1]);
        if (args[0].equals("write")) {
            write(dir);
            return;
        }
        int n = 0;
        try (DirectoryStream<Path> files = Files.newDirectoryStream(dir, "*.batch")) {
            for (Path f : files) {
                read(f);
                n++;
            }
        }
        need(n > 0, "no batches in " + dir);
        System.out.println(n + " batches read by kafka-clients");
    }
}
