/* Documents in collections: order, duplicates, errors with their places, keys, frames, bounds,
 * memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "avro_lab.h"
#include "base/mem.h"
#include "base/writer.h"

static void members_come_in_any_order_and_the_last_of_duplicates_counts(void **state)
{
    const char *text =
        OBJECT(ID ",\"o\":{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":{"
                  "\"type\":\"integer\"},\"b\":{\"type\":\"string\"}},"
                  "\"additionalProperties\":{\"type\":\"integer\"}}",
               NEEDS_ID);

    (void)state;
    lab_compile(text, "/id", SC_DELETE_TOMBSTONE);
    lab_value_is("{\"o\":{\"z\":1,\"b\":\"B\",\"y\":2,\"a\":1},\"id\":\"1\"}",
                 "{\"id\":\"1\",\"o\":{\"a\":1,\"b\":\"B\",\"_flow_extra\":{\"z\":1,\"y\":2}}}");
    lab_value_is("{\"o\":{\"a\":\"bad\",\"\\u0061\":2,\"b\":[],\"b\":\"B\"},\"id\":5,\"id\":\"1\"}",
                 "{\"id\":\"1\",\"o\":{\"a\":2,\"b\":\"B\",\"_flow_extra\":{}}}");
    lab_value_is("{\"o\":{\"a\":[[1]]},\"o\":{\"b\":\"B\",\"a\":7},\"id\":\"1\"}",
                 "{\"id\":\"1\",\"o\":{\"a\":7,\"b\":\"B\",\"_flow_extra\":{}}}");
    lab_misfits("{\"id\":\"1\",\"o\":{\"a\":1},\"o\":{\"b\":\"B\"}}", E_INVALID, "/o/a");
    lab_misfits("{\"id\":\"1\",\"o\":{\"a\":1,\"a\":null}}", E_INVALID, "/o/a");
    lab_misfits("{\"id\":\"1\",\"o\":{\"a\":1,\"zz\":\"x\"}}", E_INVALID, "/o/zz");
    lab_misfits("{\"id\":null}", E_INVALID, "/id");
    lab_misfits("{}", E_INVALID, "/id");
    lab_misfits("7", E_INVALID, "/id");
    lab_misfits("[{\"id\":\"1\"}]", E_INVALID, "/id");
}

static void nested_selections_of_one_place_all_get_their_value(void **state)
{
    const struct span want[] = {span_str("/o/a"), span_str("/o"), span_str("/l/1"),
                                span_str("/l/1/b")};
    const char *text =
        OBJECT(ID ",\"o\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},"
                  "\"additionalProperties\":false},\"l\":{\"type\":\"array\",\"items\":{"
                  "\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"integer\"}},"
                  "\"additionalProperties\":false}}",
               NEEDS_ID);

    (void)state;
    lab_sel = (struct sc_selection){.require = want, .require_n = 4};
    lab_compile(text, "/id", SC_DELETE_TOMBSTONE);
    lab_value_is("{\"l\":[{\"b\":1},{\"b\":2},{\"b\":3}],\"o\":{\"a\":9},\"id\":\"1\"}",
                 "{\"id\":\"1\",\"l_1\":{\"b\":2},\"l_1_b\":2,\"o\":{\"a\":9},\"o_a\":9}");
    lab_value_is("{\"o\":{\"a\":9},\"o\":{},\"id\":\"1\",\"l\":[{\"b\":1},{\"b\":2}],\"l\":[]}",
                 "{\"id\":\"1\",\"l_1\":null,\"l_1_b\":null,\"o\":{\"a\":null},\"o_a\":null}");
    lab_value_is("{\"o\":{\"a\":9},\"o\":null,\"id\":\"1\"}",
                 "{\"id\":\"1\",\"l_1\":null,\"l_1_b\":null,\"o\":null,\"o_a\":null}");
    lab_misfits("{\"o\":{\"a\":\"x\"},\"id\":\"1\"}", E_INVALID, "/o/a");
    lab_misfits("{\"l\":[{},{\"b\":\"x\"}],\"id\":\"1\"}", E_INVALID, "/l/1/b");
}

static void pointers_of_errors_name_the_innermost_place(void **state)
{
    char doc[2000], *p = doc;
    struct sc_avro_record rec;
    struct sc_transcode_error err;

    (void)state;
    lab_compile(
        OBJECT(
            ID
            ",\"l\":{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"type\":"
            "\"object\",\"properties\":{\"a~/b\":{\"type\":\"integer\"},\"r\":{\"type\":\"object\","
            "\"required\":[\"q\"],\"properties\":{\"q\":{\"type\":\"boolean\"}}}},"
            "\"additionalProperties\":{\"type\":\"integer\"}}}}",
            NEEDS_ID),
        "/id", SC_DELETE_TOMBSTONE);
    lab_misfits("{\"id\":\"1\",\"l\":[[],[{},{\"r\":{}}]]}", E_INVALID, "/l/1/1/r/q");
    lab_misfits("{\"id\":\"1\",\"l\":[[],[{},{\"a~/b\":\"x\"}]]}", E_INVALID, "/l/1/1/a~0~1b");
    lab_misfits("{\"id\":\"1\",\"l\":[[],[{},{\"r\":{\"q\":null}}]]}", E_INVALID, "/l/1/1/r/q");
    lab_misfits("{\"id\":\"1\",\"l\":[[],7]}", E_INVALID, "/l/1");
    p += snprintf(p, 100, "{\"id\":\"1\",\"l\":[[{\"");
    memset(p, 'k', 900);
    (void)snprintf(p + 900, 100, "\":\"x\"}]]}");
    assert_int_equal(sc_transcode(lab_av, lab_scratch, span_str(doc), &rec, &err), E_INVALID);
    assert_string_equal(err.pointer, "/l/0/0...");
}

static void keys_are_scalars_and_have_defaults(void **state)
{
    (void)state;
    assert_int_equal(
        lab_try_compile(OBJECT("\"id\":{\"type\":\"array\"}", ""), "/id", SC_DELETE_CDC, false),
        E_INVALID);
    assert_int_equal(lab_try_compile(OBJECT(ID, ",\"additionalProperties\":false"), "/other",
                                     SC_DELETE_CDC, false),
                     E_INVALID);
    assert_int_equal(lab_try_compile("{\"type\":\"string\"}", "/id", SC_DELETE_CDC, false),
                     E_INVALID);
    assert_int_equal(lab_try_compile(OBJECT(ID, ""), "id", SC_DELETE_CDC, false), E_INVALID);
    lab_compile(OBJECT("\"id\":{\"type\":\"integer\",\"default\":7}", ""), "/id",
                SC_DELETE_TOMBSTONE);
    lab_key_is("{}", "{\"_flow_key\":{\"p1\":7}}");
    lab_compile(OBJECT("\"id\":{\"type\":[\"integer\",\"null\"]}", ""), "/id", SC_DELETE_TOMBSTONE);
    lab_key_is("{}", "{\"_flow_key\":{\"p1\":null}}");
    lab_compile(OBJECT(ID, ""), "/id", SC_DELETE_TOMBSTONE);
    lab_misfits("{}", E_INVALID, "/id");
}

static void frames_carry_the_ids(void **state)
{
    struct sc_avro_record rec;

    (void)state;
    lab_compile(OBJECT(ID, NEEDS_ID), "/id", SC_DELETE_TOMBSTONE);
    sc_avro_set_ids(lab_av, 0x01020304, 0x7fffffff);
    rec = lab_encode(span_str("{\"id\":\"ab\"}"));
    assert_memory_equal(rec.key.p, "\0\1\2\3\4\4ab", 8);
    assert_memory_equal(rec.value.p, "\0\x7f\xff\xff\xff\4ab", 8);
    assert_int_equal(rec.key.n, 8);
}

static void too_large_or_too_deep_a_part_is_served_as_text(void **state)
{
    struct writer w;

    (void)state;
    wr_init(&w, 1 << 20);
    wr_str(
        &w,
        "{\"type\":\"object\",\"required\":[\"id\"],\"properties\":{\"id\":{\"type\":\"string\"},"
        "\"big\":{\"$ref\":\"#/$defs/d0\"}},\"$defs\":{");
    for (int i = 0; i < 30; i++)
        wr_printf(
            &w,
            "\"d%d\":{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/d%d\"},\"b\":{"
            "\"$ref\":\"#/$defs/d%d\"}}},",
            i, i + 1, i + 1);
    wr_str(&w, "\"d30\":{\"type\":\"string\"}}}");
    wr_u8(&w, 0);
    lab_compile((const char *)w.b->data, "/id", SC_DELETE_TOMBSTONE);
    wr_fini(&w);
    assert_true(lab_noted("root.big"));
    lab_value_is("{\"id\":\"1\",\"big\":{\"a\": 1}}",
                 "{\"id\":\"1\",\"big\":{\"json\":\"{\\\"a\\\":1}\"}}");
}

static void compiling_and_encoding_without_memory_is_an_answer(void **state)
{
    const char *text =
        OBJECT(ID ",\"o\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\","
                  "\"default\":5}}}",
               NEEDS_ID);
    const struct span doc = span_str("{\"o\":{\"z\":[1, 2],\"a\":1},\"id\":\"a\\u0000\\\"b\"}");
    const struct span all = span_str("flow_document");
    struct sc_avro_record rec;
    struct sc_transcode_error err;
    struct span whole;
    char want[4096];
    int r = -1;

    (void)state;
    lab_sel = (struct sc_selection){.depth = 2, .include = &all, .include_n = 1};
    lab_compile(text, "/id", SC_DELETE_TOMBSTONE);
    whole = sc_avro_value_schema(lab_av);
    assert_true(whole.n < sizeof want);
    memcpy(want, whole.p, whole.n);
    whole.p = (const uint8_t *)want;
    /* no memory once: refused, or the whole of it; never with a part left out */
    for (long i = 0, good = 0; good < 50; i++) {
        mem_fail_after(i, 0);
        r = lab_try_compile(text, "/id", SC_DELETE_TOMBSTONE, false);
        mem_fail_after(-1, 0);
        assert_true(r == 0 || r == E_NOMEM);
        if (r == 0)
            assert_true(span_eq(sc_avro_value_schema(lab_av), whole));
        good = r == 0 ? good + 1 : 0;
        assert_true(i < 1000);
    }
    r = -1;
    for (long i = 0; r < 0; i++) {
        sc_scratch_free(lab_scratch);
        assert_int_equal(sc_scratch_new(&lab_scratch), 0);
        mem_fail_after(i, 0);
        r = sc_transcode(lab_av, lab_scratch, doc, &rec, &err);
        mem_fail_after(-1, 0);
        assert_true(r == 0 || r == E_NOMEM);
        assert_true(i < 100);
    }
    /* grown once, it allocates no more */
    mem_fail_after(0, 1);
    r = sc_transcode(lab_av, lab_scratch, doc, &rec, &err);
    mem_fail_after(-1, 0);
    assert_int_equal(r, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(members_come_in_any_order_and_the_last_of_duplicates_counts),
        T(nested_selections_of_one_place_all_get_their_value),
        T(pointers_of_errors_name_the_innermost_place),
        T(keys_are_scalars_and_have_defaults),
        T(frames_carry_the_ids),
        T(too_large_or_too_deep_a_part_is_served_as_text),
        T(compiling_and_encoding_without_memory_is_an_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
