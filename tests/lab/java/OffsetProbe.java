import java.io.*;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.*;
import java.util.zip.CRC32;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.requests.ResponseHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * One long-running process that answers many questions about offsets, a line each.
 *   OffsetProbe seek BOOTSTRAP TOPIC PARTITION   stdin: an offset a line; stdout: "offset first timestamp bytes crc32",
 *                                                "offset none position" when position reached the end, "offset stuck position"
 *   OffsetProbe follow BOOTSTRAP TOPIC           reads all partitions from the beginning for ever: "partition offset" a record
 *   OffsetProbe parse                            stdin: "version hex" of Fetch answers from the correlation id on; stdout: what
 *                                                Kafka's own parser makes of it, one line each
 * LAB_X="k=v k=v": consumer properties.
 */
public class OffsetProbe {
    static KafkaConsumer<byte[], byte[]> consumer(String bootstrap) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("client.id", "probe-java");
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", "none"); // a position that is not served must fail, not move
        p.put("max.poll.records", "1000");
        p.put("default.api.timeout.ms", "15000");
        String x = System.getenv("LAB_X");
        if (x != null)
            for (String kv : x.trim().split("\\s+"))
                if (kv.contains("=")) p.put(kv.substring(0, kv.indexOf('=')), kv.substring(kv.indexOf('=') + 1));
        return new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static long crc(byte[] b) {
        CRC32 c = new CRC32();
        if (b != null) c.update(b);
        return c.getValue();
    }

    static void seek(String bootstrap, TopicPartition tp, BufferedReader in, PrintStream out) throws IOException {
        try (KafkaConsumer<byte[], byte[]> c = consumer(bootstrap)) {
            c.assign(List.of(tp));
            for (String line; (line = in.readLine()) != null; ) {
                long off = Long.parseLong(line.trim()), end = c.endOffsets(List.of(tp)).get(tp);
                c.seek(tp, off);
                ConsumerRecord<byte[], byte[]> first = null;
                long until = System.nanoTime() + 15_000_000_000L;
                while (first == null && c.position(tp) < end && System.nanoTime() < until)
                    for (ConsumerRecord<byte[], byte[]> r : c.poll(Duration.ofMillis(200))) { first = r; break; }
                if (first != null)
                    out.println(off + " " + first.offset() + " " + first.timestamp() + " " + first.value().length + " " + crc(first.value()));
                else
                    out.println(off + (c.position(tp) >= end ? " none " : " stuck ") + c.position(tp));
                out.flush();
            }
        }
    }

    static void follow(String bootstrap, String topic, PrintStream out) {
        try (KafkaConsumer<byte[], byte[]> c = consumer(bootstrap)) {
            List<TopicPartition> tps = new ArrayList<>();
            for (var i : c.partitionsFor(topic)) tps.add(new TopicPartition(topic, i.partition()));
            c.assign(tps);
            c.seekToBeginning(tps);
            while (true) {
                for (ConsumerRecord<byte[], byte[]> r : c.poll(Duration.ofMillis(500))) out.println(r.partition() + " " + r.offset());
                out.flush();
            }
        }
    }

    static String text(byte[] b) {
        return b == null ? "null" : b.length == 0 ? "empty" : b.length + ":" + crc(b);
    }

    /** topics of "partition error hwm lso logstart aborted replica [base-last epoch codec control count records]" */
    static void parse(BufferedReader in, PrintStream out) throws IOException {
        for (String line; (line = in.readLine()) != null; ) {
            String[] f = line.trim().split(" ");
            short v = Short.parseShort(f[0]);
            ByteBuffer b = ByteBuffer.wrap(HexFormat.of().parseHex(f[1]));
            ResponseHeader.parse(b, ApiKeys.FETCH.responseHeaderVersion(v));
            FetchResponseData d = new FetchResponseData(new ByteBufferAccessor(b), v);
            StringBuilder s = new StringBuilder();
            s.append(b.remaining()).append(" left, error ").append(d.errorCode());
            for (var t : d.responses())
                for (var p : t.partitions()) {
                    s.append(" | ").append(p.partitionIndex()).append(' ').append(p.errorCode()).append(' ').append(p.highWatermark()).append(' ')
                        .append(p.lastStableOffset()).append(' ').append(p.logStartOffset()).append(' ')
                        .append(p.abortedTransactions() == null ? "null" : "" + p.abortedTransactions().size()).append(' ').append(p.preferredReadReplica());
                    if (p.records() == null) { s.append(" null"); continue; }
                    for (RecordBatch rb : ((MemoryRecords) p.records()).batches()) {
                        rb.ensureValid();
                        s.append(" [").append(rb.baseOffset()).append('-').append(rb.lastOffset()).append(' ').append(rb.partitionLeaderEpoch()).append(' ')
                            .append(rb.compressionType().id).append(' ').append(rb.isControlBatch() ? 1 : 0).append(' ').append(rb.countOrNull());
                        for (Record r : rb) {
                            byte[] k = r.hasKey() ? new byte[r.keySize()] : null, val = r.hasValue() ? new byte[r.valueSize()] : null;
                            if (k != null) r.key().get(k);
                            if (val != null) r.value().get(val);
                            s.append(' ').append(r.offset()).append(',').append(r.timestamp()).append(',').append(text(k)).append(',').append(text(val));
                            for (Header h : r.headers()) s.append(',').append(h.key()).append('=').append(text(h.value()));
                        }
                        s.append(']');
                    }
                }
            out.println(s);
            out.flush();
        }
    }

    public static void main(String[] a) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in), 1 << 16);
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false, "UTF-8");
        switch (a[0]) {
            case "seek": seek(a[1], new TopicPartition(a[2], Integer.parseInt(a[3])), in, out); break;
            case "follow": follow(a[1], a[2], out); break;
            case "parse": parse(in, out); break;
            default:
                System.err.println("unknown mode " + a[0]);
                System.exit(2);
        }
    }
}
