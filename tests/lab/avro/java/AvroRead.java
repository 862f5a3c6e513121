import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.*;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.*;
import org.apache.avro.io.*;

/** Apache Avro for Java: the strictest of the parsers (names and defaults are checked). */
public class AvroRead {
  static final ObjectMapper M = new ObjectMapper();

  static byte[] bytes(String hex) {
    byte[] b = new byte[hex.length() / 2];
    for (int i = 0; i < b.length; i++) b[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
    return b;
  }

  static String hex(byte[] b) {
    StringBuilder s = new StringBuilder();
    for (byte x : b) s.append(String.format("%02x", x));
    return s.toString();
  }

  static JsonNode plain(Object v) {
    JsonNodeFactory f = JsonNodeFactory.instance;
    if (v == null) return f.nullNode();
    if (v instanceof Boolean) return f.booleanNode((Boolean) v);
    if (v instanceof Integer) return f.numberNode((Integer) v);
    if (v instanceof Long) return f.numberNode((Long) v);
    if (v instanceof Double) return f.textNode(String.format("d:%016x", Double.doubleToRawLongBits((Double) v)));
    if (v instanceof CharSequence) return f.textNode("s:" + v);
    if (v instanceof GenericFixed) return f.textNode("b:" + hex(((GenericFixed) v).bytes()));
    if (v instanceof Map) {
      ObjectNode o = f.objectNode();
      for (Map.Entry<?, ?> e : ((Map<?, ?>) v).entrySet()) o.set(e.getKey().toString(), plain(e.getValue()));
      return o;
    }
    if (v instanceof Iterable && !(v instanceof IndexedRecord)) {
      ArrayNode a = f.arrayNode();
      for (Object x : (Iterable<?>) v) a.add(plain(x));
      return a;
    }
    IndexedRecord r = (IndexedRecord) v;
    ObjectNode o = f.objectNode();
    for (Schema.Field x : r.getSchema().getFields()) o.set(x.name(), plain(r.get(x.pos())));
    return o;
  }

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
    for (String line; (line = in.readLine()) != null; ) {
      ObjectNode answer = M.createObjectNode();
      try {
        JsonNode c = M.readTree(line);
        Schema s = new Schema.Parser().setValidateDefaults(true).parse(c.get("schema").asText());
        ArrayNode values = answer.putArray("values");
        GenericDatumReader<Object> reader = new GenericDatumReader<>(s, s, new GenericData());
        for (JsonNode d : c.get("data")) {
          BinaryDecoder dec = DecoderFactory.get().binaryDecoder(bytes(d.asText()), null);
          values.add(plain(reader.read(null, dec)));
          if (!dec.isEnd()) throw new IOException("bytes left over");
        }
        if (c.has("parsing_form"))
          answer.put("parsing_form", org.apache.avro.SchemaNormalization.toParsingForm(s))
              .put("fingerprint", String.format("%016x", org.apache.avro.SchemaNormalization.parsingFingerprint64(s)));
        answer.put("ok", true);
      } catch (Exception | StackOverflowError e) {
        answer.removeAll();
        answer.put("ok", false).put("error", e.toString());
      }
      out.println(M.writeValueAsString(answer));
      out.flush();
    }
  }
}
