/*
 * Requests to the schema registry: method, target, Accept, Content-Type and body of any bytes, over
 * a task that has had two Avro schemas, and one with a JSON schema. Every answer is valid JSON with
 * a status that the interface knows, and errors say their code. What is an Avro schema is the same
 * as itself, and comparing it ends.
 *
 * Input: one byte (bits 0-2 method, 3 the task, 4-6 the level), then four parts, the first three
 * ending with a newline: target, Accept, Content-Type, body.
 */
#include <stdint.h>
#include <stdlib.h>

#include "tests/unit/gateway/plain_asserts.h"

#include "base/assert.h"
#include "base/mem.h"
#include "gateway/catalog.h"
#include "gateway/registry_answer.h"
#include "schema/avro_compat.h"
#include "schema/json_reader.h"

#define ANSWER_MAX ((size_t)16 << 20)

static const char catalog_text[] =
    "collections:\n  c:\n    schema: {type: object, required: [id],\n"
    "      properties: {id: {type: integer}, s: {type: [string, integer]}}}\n    key: [/id]\n"
    "  d:\n    schema: {type: object, required: [id],\n"
    "      properties: {id: {type: integer}, s: {type: string}, at: {type: string, format: "
    "date-time}}}\n    key: [/id]\n"
    "materializations:\n"
    "  a: {endpoint: {dekaf: {config: {}}}, bindings: [{source: c, resource: {topic_name: x/y}}]}\n"
    "  b: {endpoint: {dekaf: {config: {}}}, bindings: [{source: d, resource: {topic_name: x/y}}]}\n"
    "  j: {endpoint: {dekaf: {config: {sluice: {value_format: json}}}}, bindings: [\n"
    "    {source: c, resource: {topic_name: z}}]}\n";

static const struct catalog *catalog;
static struct gw_encoder encoders[3];
static struct gw_topic topics[3];
static struct gw_task tasks[2];
static struct registry_history history;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Task "a" shows binding `which`; "j" its own. */
static void show(size_t which)
{
    tasks[0] = (struct gw_task){.name = "a", .topics = &topics[which], .topics_n = 1};
    tasks[1] = (struct gw_task){.name = "j", .topics = &topics[2], .topics_n = 1};
    const struct gw_view view = {.tasks = tasks, .tasks_n = 2};
    ASSERT(registry_history_take(&history, &view, 1) == 0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static struct catalog_faults faults;

    (void)argc;
    (void)argv;
    ASSERT(catalog_parse(span_str(catalog_text), "c.yaml", &faults, &catalog) == 0);
    for (size_t i = 0; i < 3; i++) {
        const struct catalog_binding *b = &catalog->tasks[i].bindings[0];

        encoders[i] = (struct gw_encoder){
            .avro = b->avro, .avro_key = b->avro != NULL, .avro_value = b->avro != NULL};
        topics[i] = (struct gw_topic){.name = b->topic, .binding = b, .encoder = &encoders[i]};
    }
    registry_history_init(&history);
    show(1);
    show(0);
    return 0;
}

static bool known(int status)
{
    static const int list[] = {200, 400, 404, 405, 406, 415, 422};

    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        if (status == list[i])
            return true;
    }
    return false;
}

static void ask(const struct registry_ask *a)
{
    struct sc_json_error why;
    struct writer w;

    wr_init(&w, ANSWER_MAX);
    int status = registry_answer(a, &w);
    if (wr_err(&w) == 0) {
        ASSERT(known(status) && w.b != NULL);
        struct span body = blob_span(w.b);
        ASSERT(sc_json_check(body, &why) == 0);
        ASSERT((status != 200) == span_has_prefix(body, span_str("{\"error_code\":")));
    }
    wr_fini(&w);
}

static void compare(struct span text)
{
    static struct sc_incompats list;
    struct sc_schema_error why;
    struct sc_avro_model *a, *b;
    bool same;

    if (sc_avro_model_new(text, &why, &a) < 0) {
        ASSERT(a == NULL);
        return;
    }
    ASSERT(sc_avro_model_new(text, &why, &b) == 0);
    int err = sc_avro_reads(a, b, &list);
    ASSERT(err == 0 || err == E_LIMIT);
    ASSERT(sc_avro_model_same(a, b, &same) == 0);
    ASSERT(same || sc_avro_model_types(a) > 1000); /* chains of names end somewhere */
    sc_avro_model_free(a);
    sc_avro_model_free(b);
}

/* The part up to the newline, as a string; NULL when it is empty. */
static const char *part(char **at)
{
    char *text = *at, *end = strchr(text, '\n');

    if (end == NULL) {
        *at = text + strlen(text);
    } else {
        *end = '\0';
        *at = end + 1;
    }
    return *text == '\0' ? NULL : text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct registry_history other;

    if (size == 0 || size > (size_t)1 << 20)
        return 0;
    char *text = mem_strndup((const char *)data + 1, size - 1), *at = text;
    ASSERT(text != NULL);
    const char *target = part(&at), *accept = part(&at), *type = part(&at);
    const size_t used = (size_t)(at - text);
    const struct span body = span_of(data + 1 + used, size - 1 - used);
    const struct registry_ask a = {.method = (enum http_method)(data[0] & 7),
                                   .target = target == NULL ? "/" : target,
                                   .body = body,
                                   .accept = accept,
                                   .content_type = type,
                                   .task = &tasks[data[0] >> 3 & 1],
                                   .history = &history,
                                   .level = (enum registry_level)((data[0] >> 4 & 7) % 7),
                                   .cluster_id = "c"};
    ask(&a);
    compare(body);
    registry_history_init(&other);
    int err = registry_history_load(&other, span_str(a.target), body);
    ASSERT(err == 0 || err == E_CORRUPT);
    registry_history_fini(&other);
    mem_free(text);
    return 0;
}
