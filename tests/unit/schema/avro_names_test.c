/* Names of an Avro schema: of fields, and of the types that are defined in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "avro_lab.h"
#include "base/mem.h"
#include "base/writer.h"
#include "schema/avro_model.h"

/* A strict reading of the value schema: a name that is defined twice is refused. */
static void schema_is_one(void)
{
    struct sc_schema_error why = {"", ""};
    struct sc_avro_model *model;

    assert_int_equal(sc_avro_model_new(sc_avro_value_schema(lab_av), &why, &model), 0);
    sc_avro_model_free(model);
}

#define CLOSED(member)                                                                             \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"" member                \
    "\":{\"type\":\"integer\"}}}"

static void names_that_avro_keeps_stay_apart_from_those_with_a_bar(void **state)
{
    (void)state;
    lab_compile(
        OBJECT(ID ",\"string\":" CLOSED("a") ",\"string_\":" CLOSED("b") ",\"string__\":" CLOSED(
                   "c") ",\"r\":{\"type\":\"object\",\"properties\":{"
                        "\"int\":" CLOSED("d") ",\"int_\":" CLOSED("e") "}}",
               NEEDS_ID),
        "/id", SC_DELETE_TOMBSTONE);
    schema_is_one();
    lab_schema_has("{\"name\":\"string\",\"type\":[\"null\",{\"type\":\"record\",\"name\":"
                   "\"string_\",\"namespace\":\"root\"");
    lab_value_is("{\"id\":\"1\",\"string\":{\"a\":1},\"string_\":{\"b\":2},\"string__\":{\"c\":3},"
                 "\"r\":{\"int\":{\"d\":4},\"int_\":{\"e\":5}}}",
                 "{\"id\":\"1\",\"r\":{\"int\":{\"d\":4},\"int_\":{"
                 "\"e\":5},\"_flow_extra\":{}},\"string\":{\"a\":1},\"string_\":{\"b\":2},"
                 "\"string__\":{\"c\":3}}");
}

/* Columns in a script that Avro's names do not know all fold to the same name. The numbers were
 * once tried from 2 on for each: minutes, then no memory. */
static void thousands_of_names_that_fold_alike_are_numbered_in_order(void **state)
{
    struct writer w;

    (void)state;
    wr_init(&w, (size_t)1 << 20);
    wr_str(&w, "{\"type\":\"object\",\"required\":[\"id\"],\"properties\":{\"id\":{\"type\":"
               "\"string\"},\"____7\":{\"type\":\"integer\"}");
    for (unsigned i = 0; i < 5000; i++) /* three ideographs each, in byte order */
        wr_printf(&w, ",\"\xe4\xb8%c\xe4\xb8%c\xe4\xb8%c\":{\"type\":\"integer\"}",
                  (int)(0x80 + i / 2500), (int)(0x80 + i / 50 % 50), (int)(0x80 + i % 50));
    wr_str(&w, "}}");
    wr_u8(&w, 0);
    assert_int_equal(wr_err(&w), 0);
    lab_sel = (struct sc_selection){.depth = 1};
    lab_compile((const char *)w.b->data, "/id", SC_DELETE_TOMBSTONE);
    wr_fini(&w);
    schema_is_one();
    lab_schema_has("{\"name\":\"____7\",\"type\":[\"null\",\"long\"],\"default\":null}");
    lab_schema_has("{\"name\":\"___\",\"type\":[\"null\",\"long\"],\"default\":null},"
                   "{\"name\":\"____2\",\"type\":[\"null\",\"long\"],\"default\":null}");
    lab_schema_has("{\"name\":\"____6\",\"type\":[\"null\",\"long\"],\"default\":null},"
                   "{\"name\":\"____8\",\"type\":[\"null\",\"long\"],\"default\":null}");
    lab_schema_has("{\"name\":\"____5001\",");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(names_that_avro_keeps_stay_apart_from_those_with_a_bar),
        T(thousands_of_names_that_fold_alike_are_numbered_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
