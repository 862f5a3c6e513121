import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.util.AbstractCollection;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.internal.MemoryRecords;

/**
 * The message classes of kafka-clients as the oracle of our codec, both ways.
 *
 * <pre>
 * fill    standard input: lines `KEY MIN MAX`; prints `KEY VERSION req|resp MODE HEX` for each
 *         version. MODE: full (nothing null, all different), null (null wherever it is legal),
 *         empty (empty lists, strings, bytes), unknown (as full, with tagged fields that nobody
 *         knows), frame (a message of defaults behind its header, correlation id 77, client id
 *         "golden", without the frame's length). An empty HEX is `-`.
 * verify  standard input: such lines, frames left out; each must be read to its last byte and be written again as it
 *         was. Prints the number of lines; exit 1 at the first difference.
 * </pre>
 */
public final class KafkaGolden {
    private enum Mode { FULL, NULL, EMPTY, UNKNOWN }

    private final Mode mode;
    private int counter = 1;

    private KafkaGolden(Mode mode) {
        this.mode = mode;
    }

    private static String plain(String name) {
        return name.replace("_", "").toLowerCase(Locale.ROOT);
    }

    /** The member that belongs to a schema's field: they differ in case and underscores. */
    private static Field member(Object message, String name) throws Exception {
        for (Field f : message.getClass().getDeclaredFields()) {
            if (!Modifier.isStatic(f.getModifiers()) && plain(f.getName()).equals(plain(name))) {
                f.setAccessible(true);
                return f;
            }
        }
        throw new IllegalStateException(message.getClass() + " has no member " + name);
    }

    private static Schema schema(Class<?> type, int version) throws Exception {
        return ((Schema[]) type.getField("SCHEMAS").get(null))[version];
    }

    private void fill(Object message, int version) throws Exception {
        for (BoundField f : schema(message.getClass(), version).fields()) {
            if (f.def.type instanceof TaggedFields) {
                for (org.apache.kafka.common.protocol.types.Field tagged : ((TaggedFields) f.def.type).fields().values()) {
                    set(message, tagged.name, tagged.type, version);
                }
                if (mode == Mode.UNKNOWN) {
                    List<RawTaggedField> unknown = ((Message) message).unknownTaggedFields();
                    unknown.add(new RawTaggedField(100, new byte[0]));
                    unknown.add(new RawTaggedField(70000, new byte[] {1, 2, 3}));
                }
            } else {
                set(message, f.def.name, f.def.type, version);
            }
        }
    }

    private void set(Object message, String name, Type type, int version) throws Exception {
        Field member = member(message, name);
        boolean bytes = member.getType() == ByteBuffer.class || member.getType() == byte[].class;
        // our encoder never writes null records, so they would not come back as they were
        boolean records = member.getType().getSimpleName().endsWith("Records");
        if (mode == Mode.NULL && type.isNullable() && !records) {
            member.set(message, null);
        } else if (Collection.class.isAssignableFrom(member.getType())) {
            member.set(message, collection(member, version));
        } else if (bytes || records) {
            byte[] b = mode == Mode.EMPTY ? new byte[0] : new byte[] {0, (byte) counter++, -1};
            member.set(message, member.getType() == byte[].class ? b
                : bytes ? ByteBuffer.wrap(b)
                : MemoryRecords.readableRecords(ByteBuffer.wrap(b)));
        } else {
            member.set(message, value(member.getType(), version));
        }
    }

    private Object collection(Field member, int version) throws Exception {
        Class<?> element;
        AbstractCollection<Object> out;
        if (member.getGenericType() instanceof ParameterizedType) {
            element = (Class<?>) ((ParameterizedType) member.getGenericType()).getActualTypeArguments()[0];
            out = new ArrayList<>();
        } else { // a generated subclass of a hash collection of its elements
            element = (Class<?>) ((ParameterizedType) member.getType().getGenericSuperclass()).getActualTypeArguments()[0];
            @SuppressWarnings("unchecked")
            AbstractCollection<Object> made = (AbstractCollection<Object>) member.getType().getConstructor().newInstance();
            out = made;
        }
        int n = mode == Mode.EMPTY ? 0 : mode == Mode.NULL ? 1 : 2;
        for (int i = 0; i < n; i++) {
            out.add(value(element, version));
        }
        return out;
    }

    private Object value(Class<?> type, int version) throws Exception {
        int n = counter++;
        if (type == boolean.class) {
            return n % 2 == 0;
        } else if (type == byte.class || type == Byte.class) {
            return (byte) (n * 37);
        } else if (type == short.class || type == Short.class) {
            return (short) (n * 2741);
        } else if (type == int.class || type == Integer.class) {
            return n * 123456789;
        } else if (type == long.class || type == Long.class) {
            return n * 1234567890123456789L;
        } else if (type == Uuid.class) {
            return new Uuid(n * 0x0123456789abcdefL, n);
        } else if (type == String.class) {
            return mode == Mode.EMPTY ? "" : n % 5 == 0 ? "\u00fc\u20ac" + n : "s" + n;
        }
        Object nested = type.getConstructor().newInstance();
        fill(nested, version);
        return nested;
    }

    private static byte[] bytes(Message message, int version) {
        ByteBuffer b = MessageUtil.toByteBufferAccessor(message, (short) version).buffer();
        byte[] out = new byte[b.remaining()];
        b.get(out);
        return out;
    }

    private static ApiMessage create(int key, boolean request) {
        ApiMessageType type = ApiMessageType.fromApiKey((short) key);
        return request ? type.newRequest() : type.newResponse();
    }

    private static void print(int key, int version, boolean request, String mode, byte[] b) {
        String hex = b.length == 0 ? "-" : HexFormat.of().formatHex(b);
        System.out.println(key + " " + version + (request ? " req " : " resp ") + mode + " " + hex);
    }

    private static byte[] frame(int key, int version, boolean request) {
        ApiMessageType type = ApiMessageType.fromApiKey((short) key);
        short headerVersion = request ? type.requestHeaderVersion((short) version) : type.responseHeaderVersion((short) version);
        Message header = request
            ? new RequestHeaderData().setRequestApiKey((short) key).setRequestApiVersion((short) version)
                .setCorrelationId(77).setClientId("golden")
            : new ResponseHeaderData().setCorrelationId(77);
        byte[] head = bytes(header, headerVersion);
        byte[] body = bytes(create(key, request), version);
        return ByteBuffer.allocate(head.length + body.length).put(head).put(body).array();
    }

    private static void fillAll(BufferedReader in) throws Exception {
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] w = line.split(" ");
            int key = Integer.parseInt(w[0]);
            for (int v = Integer.parseInt(w[1]); v <= Integer.parseInt(w[2]); v++) {
                for (boolean request : new boolean[] {true, false}) {
                    boolean tags = false;
                    for (BoundField f : schema(create(key, request).getClass(), v).fields()) {
                        tags |= f.def.type instanceof TaggedFields;
                    }
                    for (Mode mode : Mode.values()) {
                        if (mode == Mode.UNKNOWN && !tags) {
                            continue;
                        }
                        ApiMessage message = create(key, request);
                        new KafkaGolden(mode).fill(message, v);
                        print(key, v, request, mode.name().toLowerCase(Locale.ROOT), bytes(message, v));
                    }
                    print(key, v, request, "frame", frame(key, v, request));
                }
            }
        }
    }

    private static void verify(BufferedReader in) throws Exception {
        int n = 0;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] w = line.split(" ");
            if (w[3].equals("frame")) {
                continue;
            }
            n++;
            byte[] b = w[4].equals("-") ? new byte[0] : HexFormat.of().parseHex(w[4]);
            ByteBuffer buffer = ByteBuffer.wrap(b);
            ApiMessage message = create(Integer.parseInt(w[0]), w[2].equals("req"));
            short version = Short.parseShort(w[1]);
            String fault = null;
            try {
                message.read(new ByteBufferAccessor(buffer), version);
                if (buffer.hasRemaining()) {
                    fault = buffer.remaining() + " bytes left";
                } else if (!java.util.Arrays.equals(bytes(message, version), b)) {
                    fault = "written as " + HexFormat.of().formatHex(bytes(message, version));
                }
            } catch (RuntimeException e) {
                fault = e.toString();
            }
            if (fault != null) {
                System.out.println("differs: " + line + ": " + fault);
                System.exit(1);
            }
        }
        System.out.println(n);
        System.exit(n == 0 ? 1 : 0);
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        if (args.length == 1 && args[0].equals("fill")) {
            fillAll(in);
        } else if (args.length == 1 && args[0].equals("verify")) {
            verify(in);
        } else {
            System.err.println("usage: KafkaGolden fill|verify");
            System.exit(2);
        }
    }
}
