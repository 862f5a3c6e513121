/* What the registry answers, by text alone; Basic credentials. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "gateway/catalog.h"
#include "gateway/registry_answer.h"
#include "gateway/registry_login.h"
#include "schema/json_reader.h"

static const char catalog_text[] =
    "collections:\n  c:\n    schema: {type: object, required: [id],\n"
    "      properties: {id: {type: integer}}}\n    key: [/id]\n"
    "materializations:\n"
    "  a: {endpoint: {dekaf: {config: {}}}, bindings: [\n"
    "    {source: c, resource: {topic_name: x/y}, fields: {recommended: false}}]}\n"
    "  j: {endpoint: {dekaf: {config: {sluice: {value_format: json}}}}, bindings: [\n"
    "    {source: c, resource: {topic_name: z}}]}\n";

static const struct catalog *catalog;
static struct gw_encoder encoders[2];
static struct gw_topic topics[2];
static struct gw_task tasks[2];
static struct registry_history history;
static const char *accepts, *content_type;
static enum registry_level level; /* of the requests that follow */
static char text[16384];

static int setup(void **state)
{
    static struct catalog_faults faults;

    (void)state;
    assert_int_equal(catalog_parse(span_str(catalog_text), "c.yaml", &faults, &catalog), 0);
    for (size_t i = 0; i < 2; i++) {
        const struct catalog_binding *b = &catalog->tasks[i].bindings[0];
        encoders[i] = (struct gw_encoder){
            .avro = b->avro, .avro_key = b->avro != NULL, .avro_value = b->avro != NULL};
        topics[i] = (struct gw_topic){.name = b->topic, .binding = b, .encoder = &encoders[i]};
        tasks[i] =
            (struct gw_task){.name = catalog->tasks[i].name, .topics = &topics[i], .topics_n = 1};
    }
    const struct gw_view view = {.tasks = tasks, .tasks_n = 2};
    registry_history_init(&history);
    return registry_history_take(&history, &view, 1);
}

static int teardown(void **state)
{
    (void)state;
    registry_history_fini(&history);
    catalog_unref(catalog);
    return 0;
}

/* The status; the body is in `text`. */
static int ask(size_t task, enum http_method method, const char *target, const char *body)
{
    const struct registry_ask a = {.method = method,
                                   .target = target,
                                   .body = span_str(body),
                                   .accept = accepts,
                                   .content_type = content_type,
                                   .task = &tasks[task],
                                   .history = &history,
                                   .level = level,
                                   .cluster_id = "c"};
    struct writer w;

    wr_init(&w, sizeof text - 1);
    int status = registry_answer(&a, &w);
    assert_int_equal(wr_err(&w), 0);
    memcpy(text, w.b->data, w.b->len);
    text[w.b->len] = '\0';
    wr_fini(&w);
    return status;
}

static int get(const char *target)
{
    return ask(0, HTTP_GET, target, "");
}

static void subjects_are_split_before_they_are_decoded(void **state)
{
    (void)state;
    assert_int_equal(get("/subjects"), 200);
    assert_string_equal(text, "[\"x/y-key\",\"x/y-value\"]");
    assert_int_equal(get("/subjects/x%2Fy-value/versions"), 200);
    assert_string_equal(text, "[1]");
    assert_int_equal(get("/subjects/x%2fy-key/versions/latest/schema"), 200);
    assert_non_null(strstr(text, "\"p1\""));
    assert_int_equal(get("/subjects/:.:x%2Fy-value/versions/-1"), 200);
    assert_non_null(strstr(text, "\"version\":1,"));
    assert_int_equal(get("/subjects/x/y-value/versions"), 404);
    assert_int_equal(get("/subjects/%zz/versions"), 400);
    assert_int_equal(get("/subjects/x%00/versions"), 400);
}

/* What a client sends that was told of a proxy. */
static void targets_may_name_their_scheme_and_host(void **state)
{
    (void)state;
    assert_int_equal(get("http://registry:8081/subjects/x%2Fy-value/versions"), 200);
    assert_string_equal(text, "[1]");
    assert_int_equal(get("HTTPS://u@[::1]/subjects?deleted=true"), 200);
    assert_string_equal(text, "[\"x/y-key\",\"x/y-value\"]");
    assert_int_equal(get("http://registry"), 200);
    assert_string_equal(text, "{}");
    assert_int_equal(get("http://registry?x=/subjects"), 200);
    assert_string_equal(text, "{}");
    assert_int_equal(get("/http://registry/subjects"), 404);
}

static void errors_have_confluents_codes(void **state)
{
    static const struct {
        enum http_method method;
        const char *target;
        int status;
        const char *code;
    } rows[] = {
        {HTTP_GET, "/subjects/z-value/versions", 404, ":40401,"},
        {HTTP_GET, "/subjects/x%2Fy/versions/1", 404, ":40401,"},
        {HTTP_GET, "/subjects/x%2Fy-value/versions/2", 404, ":40402,"},
        {HTTP_GET, "/subjects/x%2Fy-value/versions/0", 422, ":42202,"},
        {HTTP_GET, "/subjects/x%2Fy-value/versions/x", 422, ":42202,"},
        {HTTP_GET, "/schemas/ids/1", 404, ":40403,"},
        {HTTP_GET, "/schemas/ids/x", 404, ":404,"},
        {HTTP_GET, "/associations/x", 404, ":404,"},
        {HTTP_POST, "/subjects/x%2Fy-value/versions", 422, ":42205,"},
        {HTTP_DELETE, "/subjects/x%2Fy-value", 422, ":42205,"},
        {HTTP_PUT, "/config", 422, ":42205,"},
        {HTTP_PUT, "/mode/s", 422, ":42205,"},
        {HTTP_DELETE, "/config/s", 422, ":42205,"},
        {HTTP_DELETE, "/subjects/x%2Fy-value/versions/1", 422, ":42205,"},
        {HTTP_DELETE, "/contexts/c", 422, ":42205,"},
        {HTTP_GET, "/subjects/x%2Fy-value", 405, ":405,"},
        {HTTP_POST, "/mode", 405, ":405,"},
        {HTTP_GET, "/compatibility/subjects/x%2Fy-value/versions/1", 405, ":405,"},
        {HTTP_GET, "/subjects/x%2Fy-value/versions/2147483648", 422, ":42202,"},
        {HTTP_GET, "/subjects/x%2Fy-value/versions/-2", 422, ":42202,"},
        {HTTP_GET, "/subjects/x%2Fy-value/versions/1/nothing", 404, ":404,"},
        {HTTP_GET, "/subjects/x%2Fy-value/versions?offset=x", 404, ":404,"},
        {HTTP_GET, "/subjects/x%2Fy-value/metadata?key=k&value=v", 404, ":40403,"},
        {HTTP_GET, "/schemas/ids/4294967296", 404, ":404,"},
        {HTTP_GET, "/schemas/guids/x", 404, ":40403,"},
        {HTTP_GET, "/schemas/x", 404, ":404,"},
        {HTTP_GET, "/v1/metadata/x", 404, ":404,"},
        {HTTP_POST, "/schemas/types", 405, ":405,"},
        {HTTP_POST, "/subjects/x%2Fy-value", 422, ":42201,"},
        {HTTP_GET, "/config/s", 404, ":40408,"},
        {HTTP_GET, "/mode/s", 404, ":40409,"},
        {HTTP_GET, "/a/b/c/d/e/f/g", 404, ":404,"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(ask(0, rows[i].method, rows[i].target, ""), rows[i].status);
        assert_non_null(strstr(text, rows[i].code));
        assert_non_null(strstr(text, "\"message\":\""));
    }
}

static void schemas_are_found_by_id_and_by_text(void **state)
{
    char target[64];
    const uint32_t id = sc_avro_value_id(encoders[0].avro->avro);

    (void)state;
    (void)snprintf(target, sizeof target, "/schemas/ids/%u", (unsigned)id);
    assert_int_equal(get(target), 200);
    assert_int_equal(strncmp(text, "{\"schema\":\"{", 12), 0);
    (void)snprintf(target, sizeof target, "/schemas/ids/%u/versions", (unsigned)id);
    assert_int_equal(get(target), 200);
    assert_string_equal(text, "[{\"subject\":\"x/y-value\",\"version\":1}]");
    (void)snprintf(target, sizeof target, "/schemas/ids/%u/subjects", (unsigned)id);
    assert_int_equal(get(target), 200);
    assert_string_equal(text, "[\"x/y-value\"]");
    assert_int_equal(
        ask(0, HTTP_POST, "/subjects/x%2Fy-value",
            "{\"schema\":\"{\\\"name\\\": \\\"root\\\", \\\"type\\\":\\\"record\\\","
            "\\\"fields\\\":[{\\\"name\\\":\\\"id\\\",\\\"type\\\":\\\"long\\\"}]}\"}"),
        200);
    assert_int_equal(ask(0, HTTP_POST, "/subjects/x%2Fy-value", "{\"schema\":\"\\\"string\\\"\"}"),
                     404);
    assert_non_null(strstr(text, ":40403,"));
    assert_int_equal(ask(0, HTTP_POST, "/subjects/x%2Fy-value", "{\"schema\":\"{\"}"), 422);
    assert_int_equal(ask(0, HTTP_POST, "/subjects/x%2Fy-value", "{"), 400);
    assert_int_equal(
        ask(0, HTTP_POST, "/subjects/x%2Fy-value", "{\"schema\":\"{}\",\"schemaType\":\"NOPE\"}"),
        422);
    assert_non_null(strstr(text, ":42201,"));
    assert_int_equal(ask(0, HTTP_POST, "/compatibility/subjects/x%2Fy-value/versions/latest",
                         "{\"schema\":\"\\\"string\\\"\"}"),
                     200);
    assert_string_equal(text, "{\"is_compatible\":true}");
}

#define V "/subjects/x%2Fy-value/versions"

/* The body that holds this schema. */
static const char *body_of(const char *schema)
{
    static char body[4096];
    struct writer w;

    wr_init(&w, sizeof body - 1);
    wr_str(&w, "{\"schema\":");
    sc_json_quote(span_str(schema), &w);
    wr_str(&w, "}");
    assert_int_equal(wr_err(&w), 0);
    memcpy(body, w.b->data, w.b->len);
    body[w.b->len] = '\0';
    wr_fini(&w);
    return body;
}

static int compatible(const char *target, const char *schema)
{
    char path[256];

    (void)snprintf(path, sizeof path, "/compatibility%s", target);
    return ask(0, HTTP_POST, path, body_of(schema));
}

static int ask_once(enum http_method method, const char *target, const char *body, struct writer *w)
{
    const struct registry_ask a = {.method = method,
                                   .target = target,
                                   .body = span_str(body),
                                   .accept = accepts,
                                   .content_type = content_type,
                                   .task = &tasks[0],
                                   .history = &history,
                                   .level = REGISTRY_FULL_TRANSITIVE,
                                   .cluster_id = "c"};

    wr_init(w, sizeof text - 1);
    return registry_answer(&a, w);
}

/* Never "no schema", or "not found": clients keep such an answer. */
static void without_memory_the_answer_is_none_or_the_right_one(void **state)
{
    static const struct {
        enum http_method method;
        const char *target, *schema;
    } rows[] = {
        {HTTP_GET, "/subjects", NULL},
        {HTTP_GET, "/schemas", NULL},
        {HTTP_GET, "/subjects/x%2Fy-value/versions/latest", NULL},
        {HTTP_GET, "/subjects/none/versions/latest", NULL},
        {HTTP_POST, "/subjects/x%2Fy-value", "\"long\""},
        {HTTP_POST, "/subjects/x%2Fy-value",
         "{\"type\":\"record\",\"name\":\"root\",\"fields\":[]}"},
        {HTTP_POST, "/compatibility/subjects/x%2Fy-value/versions?verbose=true",
         "{\"type\":\"record\",\"name\":\"root\",\"fields\":[{\"name\":\"n\",\"type\":\"int\"}]}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct writer want, got;
        char body[512] = "";

        if (rows[i].schema != NULL)
            (void)snprintf(body, sizeof body, "{\"schemaType\":\"AVRO\",%s",
                           body_of(rows[i].schema) + 1);
        int status = ask_once(rows[i].method, rows[i].target, body, &want);
        assert_int_equal(wr_err(&want), 0);
        for (long after = 0, good = 0; good < 20; after++) {
            mem_fail_after(after, 0);
            int other = ask_once(rows[i].method, rows[i].target, body, &got);
            mem_fail_after(-1, 0);
            good++;
            if (wr_err(&got) < 0) {
                assert_int_equal(wr_err(&got), E_NOMEM);
                good = 0;
            } else {
                assert_int_equal(other, status);
                assert_true(span_eq(blob_span(got.b), blob_span(want.b)));
            }
            wr_fini(&got);
            assert_true(after < 1000);
        }
        wr_fini(&want);
    }
}

/* What is served is a record of one long, id. */
static void compatibility_is_by_level(void **state)
{
    static const char more[] =
        "{\"type\":\"record\",\"name\":\"root\",\"fields\":[{\"name\":\"id\",\"type\":"
        "\"long\"},{\"name\":\"n\",\"type\":\"int\"}]}";
    static const char less[] = "{\"type\":\"record\",\"name\":\"root\",\"fields\":[]}";
    static const char wider[] = "{\"type\":\"record\",\"name\":\"root\",\"fields\":[{"
                                "\"name\":\"id\",\"type\":\"double\"}]}";
    static const struct {
        enum registry_level level;
        const char *schema;
        bool good;
    } rows[] = {
        {REGISTRY_NONE, more, true},
        {REGISTRY_BACKWARD, more, false},
        {REGISTRY_FORWARD, more, true},
        {REGISTRY_FULL, more, false},
        {REGISTRY_BACKWARD, less, true},
        {REGISTRY_FORWARD, less, false},
        {REGISTRY_FULL, less, false},
        {REGISTRY_BACKWARD, wider, true},
        {REGISTRY_FORWARD, wider, false},
        {REGISTRY_BACKWARD_TRANSITIVE, wider, true},
        {REGISTRY_FORWARD_TRANSITIVE, more, true},
        {REGISTRY_FULL_TRANSITIVE, wider, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        level = rows[i].level;
        for (int one = 0; one < 2; one++) {
            assert_int_equal(compatible(one == 1 ? V "/latest" : V, rows[i].schema), 200);
            assert_string_equal(text, rows[i].good ? "{\"is_compatible\":true}"
                                                   : "{\"is_compatible\":false}");
        }
    }
    level = REGISTRY_BACKWARD;
    assert_int_equal(get("/config"), 200);
    assert_string_equal(text, "{\"compatibilityLevel\":\"BACKWARD\"}");
    assert_int_equal(compatible(V "?verbose=true", less), 200);
    assert_string_equal(text, "{\"is_compatible\":true,\"messages\":[]}");
    assert_int_equal(compatible(V "/1?verbose=TRUE", more), 200);
    assert_non_null(strstr(text,
                           "{\"is_compatible\":false,\"messages\":[\"{errorType:'READER_FIELD_"
                           "MISSING_DEFAULT_VALUE', description:'The field 'n' at path "
                           "'/fields/1' in the new schema has no default value and is "
                           "missing in the old schema', additionalInfo:'n'}\","));
    assert_non_null(strstr(text, "\"{oldSchemaVersion: 1}\",\"{oldSchema: '{"));
    assert_non_null(strstr(text, ",\"{validateFields: 'false', compatibility: 'BACKWARD'}\"]}"));
    assert_int_equal(compatible(V, "{\"type\":\"nothing\"}"), 422);
    assert_non_null(strstr(text, ":42201,"));
    assert_int_equal(compatible(V "?verbose=true", "{\"type\":\"nothing\"}"), 200);
    assert_non_null(strstr(text, "{\"is_compatible\":false,\"messages\":[\"Invalid schema: "));
    assert_int_equal(compatible(V "/2", less), 404);
    assert_int_equal(compatible(V "/x", less), 422);
    assert_int_equal(compatible("/subjects/none/versions/latest", less), 404);
    assert_int_equal(compatible("/subjects/none/versions", less), 200);
    assert_string_equal(text, "{\"is_compatible\":true}");
    level = REGISTRY_NONE;
}

static void of_json_schemas_equal_ones_are_known_to_be_compatible(void **state)
{
    static const char equal[] =
        "{\"schemaType\":\"JSON\",\"schema\":\"{\\\"required\\\":[\\\"id\\\"],"
        "\\\"type\\\":\\\"object\\\",\\\"properties\\\":{\\\"id\\\":{\\\"type\\\":"
        "\\\"integer\\\"}}}\"}";

    (void)state;
    level = REGISTRY_FULL;
    assert_int_equal(ask(1, HTTP_POST, "/compatibility/subjects/z-value/versions", equal), 200);
    assert_string_equal(text, "{\"is_compatible\":true}");
    assert_int_equal(ask(1, HTTP_POST, "/subjects/z-value", equal), 200);
    assert_int_equal(ask(1, HTTP_POST, "/compatibility/subjects/z-value/versions/1",
                         "{\"schemaType\":\"JSON\",\"schema\":\"{}\"}"),
                     422);
    assert_non_null(strstr(text, "Compatibility is not known"));
    assert_int_equal(ask(1, HTTP_POST, "/compatibility/subjects/z-value/versions/1",
                         "{\"schema\":\"\\\"int\\\"\"}"),
                     200);
    assert_string_equal(text, "{\"is_compatible\":false}");
    level = REGISTRY_NONE;
    assert_int_equal(ask(1, HTTP_POST, "/compatibility/subjects/z-value/versions/1",
                         "{\"schemaType\":\"JSON\",\"schema\":\"{}\"}"),
                     200);
}

static void a_json_topic_has_its_collections_schema(void **state)
{
    (void)state;
    assert_int_equal(ask(1, HTTP_GET, "/subjects", ""), 200);
    assert_string_equal(text, "[\"z-value\"]");
    assert_int_equal(ask(1, HTTP_HEAD, "/subjects/z-value/versions/1", ""), 200);
    assert_non_null(strstr(text, "\"schemaType\":\"JSON\""));
    assert_int_equal(ask(1, HTTP_GET, "/subjects/x%2Fy-value/versions", ""), 404);
}

static void media_types_are_negotiated(void **state)
{
    static const char json[] = "application/json", plain[] = "application/vnd.schemaregistry+json";
    static const struct {
        const char *accept, *type;
    } rows[] = {
        {NULL, REGISTRY_JSON},
        {"", REGISTRY_JSON},
        {"*/*", REGISTRY_JSON},
        {"application/*", REGISTRY_JSON},
        {"application/json", json},
        {"Application/JSON; charset=utf-8", json},
        {"application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, "
         "application/json",
         REGISTRY_JSON},
        {"application/json, application/vnd.schemaregistry+json;q=0.9", json},
        {"application/vnd.schemaregistry+json", plain},
        {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", REGISTRY_JSON},
        {"*/*;q=0.1, application/json;q=0.5", json},
        {"application/json;q=0, */*", REGISTRY_JSON},
        {"text/html", NULL},
        {"application/json;q=0", NULL},
        {"application/json;q=0.000", NULL},
        {",,;", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *got = registry_accepts(rows[i].accept);
        if (rows[i].type == NULL ? got != NULL : got == NULL || strcmp(got, rows[i].type) != 0)
            fail_msg("%s", rows[i].accept);
    }
    accepts = "text/html";
    assert_int_equal(get("/subjects"), 406);
    assert_string_equal(text, "{\"error_code\":406,\"message\":\"HTTP 406 Not Acceptable\"}");
    assert_int_equal(get("/nowhere"), 404);
    assert_int_equal(ask(0, HTTP_PUT, "/subjects", ""), 405);
    accepts = NULL;
    content_type = "application/x-www-form-urlencoded";
    assert_int_equal(get("/subjects"), 200);
    assert_int_equal(ask(0, HTTP_POST, V, body_of("\"int\"")), 415);
    assert_int_equal(compatible(V, "\"int\""), 415);
    assert_non_null(strstr(text, ":415,"));
    assert_int_equal(ask(0, HTTP_POST, "/schemas", ""), 405);
    content_type = "application/octet-stream";
    assert_int_equal(compatible(V, "\"int\""), 200);
    content_type = "application/json;charset=UTF-8";
    assert_int_equal(compatible(V, "\"int\""), 200);
    content_type = NULL;
}

static void passwords_are_split_at_the_first_colon(void **state)
{
    struct span user, password;
    struct writer w;

    (void)state;
    wr_init(&w, 1024);
    assert_int_equal(registry_basic("basic YTpiOmM=", &w, &user, &password), 0);
    assert_true(span_eq_str(user, "a") && span_eq_str(password, "b:c"));
    wr_fini(&w);
    static const char *const bad[] = {
        "Bearer YTpi", "Basic ", "Basic YWI=", "Basic YTp", "Basic ====", "Basic Y!pi"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        wr_init(&w, 1024);
        assert_int_equal(registry_basic(bad[i], &w, &user, &password), E_SYNTAX);
        wr_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subjects_are_split_before_they_are_decoded),
        cmocka_unit_test(targets_may_name_their_scheme_and_host),
        cmocka_unit_test(without_memory_the_answer_is_none_or_the_right_one),
        cmocka_unit_test(errors_have_confluents_codes),
        cmocka_unit_test(schemas_are_found_by_id_and_by_text),
        cmocka_unit_test(compatibility_is_by_level),
        cmocka_unit_test(of_json_schemas_equal_ones_are_known_to_be_compatible),
        cmocka_unit_test(a_json_topic_has_its_collections_schema),
        cmocka_unit_test(media_types_are_negotiated),
        cmocka_unit_test(passwords_are_split_at_the_first_colon),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
