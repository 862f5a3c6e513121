import java.io.PrintWriter;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * The lab's Java client: partitions assigned by hand, no group.
 *   LabClient direct BOOTSTRAP TOPIC            reads every partition until position == end offset
 *   LabClient times BOOTSTRAP TOPIC MS...       offsetsForTimes: a line "partition time offset timestamp|none" each
 *   LabClient seek BOOTSTRAP TOPIC PARTITION OFFSET...  the first record after each seek: "offset first-offset|none"
 *   LabClient ends BOOTSTRAP TOPIC              "partition beginning end lag-after-reading"
 *   LabClient loop BOOTSTRAP TOPIC SECONDS      reads on for so long; "records N" at the end
 * LAB_DUMP=FILE: one line a record, see py/consume.py. LAB_X="k=v k=v": consumer properties; LAB_CONFIG=FILE: more of them.
 */
public class LabClient {
    static KafkaConsumer<byte[], byte[]> consumer(String bootstrap) {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("client.id", "lab-java");
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", "none"); // a position that is not served must fail, not move
        p.put("default.api.timeout.ms", "15000");
        String x = System.getenv("LAB_X");
        if (x != null)
            for (String kv : x.trim().split("\\s+"))
                if (kv.contains("=")) p.put(kv.substring(0, kv.indexOf('=')), kv.substring(kv.indexOf('=') + 1));
        String config = System.getenv("LAB_CONFIG");
        if (config != null)
            try (var r = new java.io.FileReader(config)) {
                p.load(r);
            } catch (java.io.IOException e) {
                throw new RuntimeException(e);
            }
        return new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static List<TopicPartition> partitions(KafkaConsumer<?, ?> c, String topic) {
        List<TopicPartition> l = new ArrayList<>();
        for (var i : c.partitionsFor(topic)) l.add(new TopicPartition(topic, i.partition()));
        l.sort(Comparator.comparingInt(TopicPartition::partition));
        return l;
    }

    static String b64(byte[] b) {
        return b == null ? "-" : b.length == 0 ? "=" : Base64.getEncoder().encodeToString(b);
    }

    /** Reads all assigned partitions up to the end offsets; fails after 20 s without progress. */
    static long[] readAll(KafkaConsumer<byte[], byte[]> c, List<TopicPartition> tps, PrintWriter dump) {
        Map<TopicPartition, Long> end = c.endOffsets(tps);
        long n = 0, bytes = 0, last = System.nanoTime();
        while (true) {
            boolean done = true;
            for (TopicPartition tp : tps) done &= c.position(tp) >= end.get(tp);
            if (done) break;
            ConsumerRecords<byte[], byte[]> rs = c.poll(Duration.ofMillis(200));
            for (ConsumerRecord<byte[], byte[]> r : rs) {
                n++;
                bytes += (r.key() == null ? 0 : r.key().length) + (r.value() == null ? 0 : r.value().length);
                if (dump != null)
                    dump.println(r.partition() + "\t" + r.offset() + "\t" + r.timestamp() + "\t" + b64(r.key()) + "\t" + b64(r.value()));
            }
            if (!rs.isEmpty()) last = System.nanoTime();
            if (System.nanoTime() - last > 20_000_000_000L) {
                for (TopicPartition tp : tps) System.err.println("stuck " + tp + " position " + c.position(tp) + " end " + end.get(tp));
                System.exit(1);
            }
        }
        return new long[] {n, bytes};
    }

    public static void main(String[] a) throws Exception {
        long t0 = System.nanoTime();
        String topic = a[2], file = System.getenv("LAB_DUMP");
        try (KafkaConsumer<byte[], byte[]> c = consumer(a[1]); PrintWriter dump = file == null ? null : new PrintWriter(file, "UTF-8")) {
            List<TopicPartition> tps = partitions(c, topic);
            c.assign(tps);
            switch (a[0]) {
                case "direct": {
                    c.seekToBeginning(tps);
                    long[] r = readAll(c, tps, dump);
                    double s = (System.nanoTime() - t0) / 1e9;
                    System.out.printf("java direct records=%d bytes=%d secs=%.3f%n", r[0], r[1], s);
                    break;
                }
                case "loop": {
                    c.seekToBeginning(tps);
                    long n = 0, until = System.nanoTime() + Long.parseLong(a[3]) * 1_000_000_000L;
                    while (System.nanoTime() < until) n += c.poll(Duration.ofMillis(200)).count();
                    System.out.println("records " + n);
                    break;
                }
                case "times":
                    for (int i = 3; i < a.length; i++) {
                        Map<TopicPartition, Long> q = new HashMap<>();
                        for (TopicPartition tp : tps) q.put(tp, Long.parseLong(a[i]));
                        Map<TopicPartition, OffsetAndTimestamp> got = c.offsetsForTimes(q);
                        for (TopicPartition tp : tps) {
                            OffsetAndTimestamp o = got.get(tp);
                            System.out.println(tp.partition() + " " + a[i] + " " + (o == null ? "none" : o.offset() + " " + o.timestamp()));
                        }
                    }
                    break;
                case "seek": {
                    TopicPartition tp = new TopicPartition(topic, Integer.parseInt(a[3]));
                    c.assign(List.of(tp));
                    for (int i = 4; i < a.length; i++) {
                        long off = Long.parseLong(a[i]), end = c.endOffsets(List.of(tp)).get(tp);
                        c.seek(tp, off);
                        String first = "none";
                        long until = System.nanoTime() + 10_000_000_000L;
                        while (c.position(tp) < end && first.equals("none") && System.nanoTime() < until)
                            for (ConsumerRecord<byte[], byte[]> r : c.poll(Duration.ofMillis(200))) { first = "" + r.offset(); break; }
                        System.out.println(off + " " + first);
                    }
                    break;
                }
                case "ends": {
                    Map<TopicPartition, Long> b = c.beginningOffsets(tps), e = c.endOffsets(tps);
                    c.seekToBeginning(tps);
                    readAll(c, tps, dump);
                    c.poll(Duration.ofMillis(700));
                    for (TopicPartition tp : tps)
                        System.out.println(tp.partition() + " " + b.get(tp) + " " + e.get(tp) + " " + (c.currentLag(tp).isPresent() ? c.currentLag(tp).getAsLong() : -1));
                    break;
                }
                default:
                    System.err.println("unknown mode " + a[0]);
                    System.exit(2);
            }
        }
    }
}
