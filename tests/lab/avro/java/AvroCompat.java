import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.*;
import java.io.*;
import java.nio.charset.StandardCharsets;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;

/** Java Avro's verdict on pairs of schemas: what other registries answer with. Lines as of tests/avro/avro_compat_dump.c. */
public class AvroCompat {
  public static void main(String[] args) throws Exception {
    ObjectMapper m = new ObjectMapper();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
    for (String line; (line = in.readLine()) != null; ) {
      ObjectNode answer = m.createObjectNode();
      try {
        JsonNode c = m.readTree(line);
        Schema r = new Schema.Parser().parse(c.get("reader").asText()), w = new Schema.Parser().parse(c.get("writer").asText());
        SchemaCompatibility.SchemaCompatibilityResult got = SchemaCompatibility.checkReaderWriterCompatibility(r, w).getResult();
        answer.put("ok", true).put("compatible", got.getCompatibility() == SchemaCompatibility.SchemaCompatibilityType.COMPATIBLE);
        ArrayNode list = answer.putArray("list");
        for (SchemaCompatibility.Incompatibility i : got.getIncompatibilities())
          list.addObject().put("type", i.getType().toString()).put("path", i.getLocation()).put("text", i.getMessage());
      } catch (Exception | StackOverflowError e) {
        answer.removeAll();
        answer.put("ok", false).put("error", e.toString());
      }
      out.println(m.writeValueAsString(answer));
      out.flush();
    }
  }
}
