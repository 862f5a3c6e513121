/* A view of one topic, for the tests of the registry's versions. */
#pragma once

#include "gateway/avro.h"
#include "gateway/catalog.h"

/* One task with one Avro topic whose value schema is chosen by a number. */
struct world {
    struct sc_avro *avro;
    struct gw_avro counted;
    struct gw_encoder encoder;
    struct gw_topic topic;
    struct gw_task task;
    struct gw_view view;
};

static inline void world_init(struct world *w, int which, bool shown)
{
    const struct span key = span_str("/id");
    struct sc_schema_error why;
    struct sc_schema *schema;
    char text[256];

    (void)snprintf(text, sizeof text,
                   "{\"type\":\"object\",\"required\":[\"id\"],\"properties\":{\"id\":{\"type\":"
                   "\"integer\"},\"f%d\":{\"type\":\"string\"}}}",
                   which);
    assert_int_equal(sc_schema_new(span_str(text), NULL, 0, &why, &schema), 0);
    const struct sc_avro_opts opts = {.key = &key, .key_n = 1};
    assert_int_equal(sc_avro_new(schema, &opts, &why, &w->avro), 0);
    sc_schema_free(schema);
    sc_avro_set_ids(w->avro, 5, 100 + (uint32_t)which);
    w->counted = (struct gw_avro){.avro = w->avro};
    w->encoder = (struct gw_encoder){.avro = &w->counted, .avro_key = true, .avro_value = true};
    w->topic = (struct gw_topic){.name = "a/b%", .encoder = &w->encoder};
    w->task = (struct gw_task){.name = "t/1", .topics = &w->topic, .topics_n = shown ? 1 : 0};
    w->view = (struct gw_view){.revision = which, .tasks = &w->task, .tasks_n = 1};
}
