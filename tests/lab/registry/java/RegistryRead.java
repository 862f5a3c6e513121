import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.*;
import java.io.*;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.*;
import javax.net.ssl.*;
import org.apache.avro.Schema;
import org.apache.avro.generic.*;
import org.apache.avro.io.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.springframework.cloud.stream.schema.registry.client.ConfluentSchemaRegistryClient;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.web.client.RestTemplate;

/**
 * Reads Avro topics with Kafka's consumer, Java Avro and one of two ways to the registry: plain HTTP as Confluent's client
 * speaks it (http), or Spring Cloud Stream's ConfluentSchemaRegistryClient (spring). RegistryRead http|spring KAFKA REGISTRY TOPIC,.. COUNT;
 * the protocol is that of ../README.md.
 */
public class RegistryRead {
  interface Source {
    String schema(int id) throws Exception;
  }

  static final ObjectMapper M = new ObjectMapper();
  static final Map<Integer, GenericDatumReader<Object>> READERS = new HashMap<>();
  static final PrintStream OUT = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
  static Source source;

  static String hex(byte[] b) {
    return HexFormat.of().formatHex(b);
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
    if (v instanceof IndexedRecord) {
      IndexedRecord r = (IndexedRecord) v;
      ObjectNode o = f.objectNode();
      for (Schema.Field x : r.getSchema().getFields()) o.set(x.name(), plain(r.get(x.pos())));
      return o;
    }
    ArrayNode a = f.arrayNode();
    for (Object x : (Iterable<?>) v) a.add(plain(x));
    return a;
  }

  static JsonNode decode(byte[] b) throws Exception {
    if (b == null) return NullNode.instance;
    int id = ByteBuffer.wrap(b).getInt(1);
    GenericDatumReader<Object> reader = READERS.get(id);
    if (reader == null) {
      Schema s = new Schema.Parser().setValidateDefaults(true).parse(source.schema(id));
      READERS.put(id, reader = new GenericDatumReader<>(s, s, new GenericData()));
    }
    BinaryDecoder dec = DecoderFactory.get().binaryDecoder(b, 5, b.length - 5, null);
    JsonNode v = plain(reader.read(null, dec));
    if (b[0] != 0 || !dec.isEnd()) throw new IOException("not framed, or bytes left over: " + hex(b));
    return v;
  }

  static Integer idOf(byte[] b) {
    return b == null ? null : ByteBuffer.wrap(b).getInt(1);
  }

  static SSLContext trust(String file) throws Exception {
    KeyStore ks = KeyStore.getInstance("PKCS12");
    ks.load(null, null);
    try (InputStream in = Files.newInputStream(Path.of(file))) {
      ks.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
    }
    TrustManagerFactory t = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    t.init(ks);
    SSLContext c = SSLContext.getInstance("TLS");
    c.init(null, t.getTrustManagers(), null);
    return c;
  }

  /** As Confluent's RestService asks: the JDK's old connection, whose Accept is for browsers, and a Content-Type on GET too. */
  static JsonNode get(SSLContext tls, String url, String auth) throws Exception {
    HttpURLConnection c = (HttpURLConnection) URI.create(url).toURL().openConnection();
    if (c instanceof HttpsURLConnection && tls != null) ((HttpsURLConnection) c).setSSLSocketFactory(tls.getSocketFactory());
    c.setRequestProperty("Authorization", auth);
    c.setRequestProperty("Content-Type", "application/vnd.schemaregistry.v1+json");
    c.setUseCaches(false);
    try {
      int status = c.getResponseCode();
      try (InputStream in = status == 200 ? c.getInputStream() : c.getErrorStream()) {
        JsonNode body = M.readTree(in);
        if (status != 200) throw new IOException(url + ": " + status + " " + body.get("error_code").asInt() + " " + body.get("message").asText());
        return body;
      }
    } finally {
      c.disconnect();
    }
  }

  public static void main(String[] args) throws Exception {
    JsonNode w = M.readTree(System.getenv("LAB_LOGIN"));
    String user = w.get("user").asText(), password = w.get("password").asText(), ca = w.path("ca").asText(null);
    String lib = args[0], kafka = args[1], registry = args[2], topics = args[3];
    int left = Integer.parseInt(args[4]);
    String auth = "Basic " + Base64.getEncoder().encodeToString((user + ":" + password).getBytes(StandardCharsets.UTF_8));
    SSLContext tls = ca == null ? null : trust(ca);
    if (lib.equals("spring")) {
      HttpClient.Builder hb = HttpClient.newBuilder();
      if (tls != null) hb.sslContext(tls);
      RestTemplate t = new RestTemplate(new JdkClientHttpRequestFactory(hb.build()));
      t.getInterceptors().add((rq, body, ex) -> { rq.getHeaders().setBasicAuth(user, password); return ex.execute(rq, body); });
      ConfluentSchemaRegistryClient c = new ConfluentSchemaRegistryClient(t);
      c.setEndpoint(registry);
      source = c::fetch;
    } else {
      source = id -> get(tls, registry + "/schemas/ids/" + id, auth).get("schema").asText();
    }
    if (kafka.equals("-")) {
      BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
      for (String line; (line = in.readLine()) != null; ) {
        byte[] b = HexFormat.of().parseHex(line);
        ObjectNode o = M.createObjectNode().put("id", idOf(b));
        o.set("value", decode(b));
        OUT.println(M.writeValueAsString(o));
      }
      return;
    }
    String first = URLEncoder.encode(topics.split(",")[0] + "-value", StandardCharsets.UTF_8);
    ObjectNode head = M.createObjectNode();
    head.set("subjects", get(tls, registry + "/subjects", auth));
    head.set("latest", get(tls, registry + "/subjects/" + first + "/versions/latest", auth).get("id"));
    OUT.println(M.writeValueAsString(head));
    Properties p = new Properties();
    p.put("bootstrap.servers", kafka);
    p.put("group.id", "registry-" + ProcessHandle.current().pid() + "-" + System.currentTimeMillis());
    p.put("auto.offset.reset", "earliest");
    p.put("security.protocol", ca == null ? "SASL_PLAINTEXT" : "SASL_SSL");
    p.put("sasl.mechanism", "PLAIN");
    p.put("sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"" + user + "\" password=\"" + password + "\";");
    if (ca != null) {
      p.put("ssl.truststore.type", "PEM");
      p.put("ssl.truststore.location", ca);
    }
    try (KafkaConsumer<byte[], byte[]> c = new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      c.subscribe(List.of(topics.split(",")));
      while (left > 0) {
        for (ConsumerRecord<byte[], byte[]> r : c.poll(Duration.ofMillis(200))) {
          ObjectNode o = M.createObjectNode().put("topic", r.topic()).put("partition", r.partition()).put("offset", r.offset());
          o.put("key_id", idOf(r.key())).set("key", decode(r.key()));
          o.put("id", idOf(r.value())).set("value", decode(r.value()));
          ArrayNode hs = o.putArray("headers");
          for (Header h : r.headers()) hs.addArray().add(h.key()).add(new String(h.value(), StandardCharsets.UTF_8));
          OUT.println(M.writeValueAsString(o));
          left--;
        }
      }
    }
  }
}
