/* /_meta/uuid: found where sc_json_find finds it, whatever the document tries; and stamped in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "schema/json_reader.h"

#define U1 "11111111-1111-1111-1111-111111111111"
#define U2 "22222222-2222-2222-2222-222222222222"
#define Z  "000000000000000000000000000000000000"

static const char *const adversarial[] = {
    "{\"_meta\":{\"uuid\":\"" U1 "\"},\"id\":1}",
    "{\"_meta\":{\"uuid\":\"" U1 "\"}}",
    "{\"_meta\":{\"uuid\":\"" U1 "\",\"ack\":true}}",
    "{\"_meta\":{\"op\":\"c\",\"uuid\":\"" U1 "\"},\"id\":1}",
    "{\"id\":1,\"_meta\":{\"uuid\":\"" U1 "\"}}",
    "{ \"_meta\" : { \"uuid\" : \"" U1 "\" } , \"id\" : 1 }",
    " {\"_meta\":{\"uuid\":\"" U1 "\"}}\r\n",
    /* duplicates: the last wins, on both levels */
    "{\"_meta\":{\"uuid\":\"" U1 "\"},\"_meta\":{\"uuid\":\"" U2 "\"}}",
    "{\"_meta\":{\"uuid\":\"" U1 "\"},\"_meta\":{}}",
    "{\"_meta\":{\"uuid\":\"" U1 "\"},\"_meta\":null}",
    "{\"_meta\":{\"uuid\":\"" U1 "\",\"uuid\":\"" U2 "\"}}",
    "{\"_meta\":{\"uuid\":\"" U1 "\",\"uuid\":7},\"x\":1}",
    "{\"_meta\":{\"uuid\":\"" U1 "\"},\"x\":1,\"_meta\" : {\"uuid\":\"" U2 "\"}}",
    "{\"_meta\":null,\"_meta\":{\"uuid\":\"" U2 "\"}}",
    /* escaped spellings of the keys */
    "{\"_meta\":{\"uuid\":\"" U1 "\"},\"\\u005fmeta\":{\"uuid\":\"" U2 "\"}}",
    "{\"_meta\":{\"uuid\":\"" U1 "\"},\"_m\\u0065ta\":{\"uuid\":\"" U2 "\"}}",
    "{\"_meta\":{\"uuid\":\"" U1 "\"},\"_met\\u0061\":{\"uuid\":\"" U2 "\"}}",
    "{\"_meta\":{\"uuid\":\"" U1 "\"},\"\\u005F\\u006D\\u0065\\u0074\\u0061\":{\"uuid\":\"" U2
    "\"}}",
    "{\"_meta\":{\"uuid\":\"" U1 "\",\"\\u0075uid\":\"" U2 "\"}}",
    "{\"\\u005fmeta\":{\"uuid\":\"" U1 "\"}}",
    "{\"_meta\":{\"u\\u0075id\":\"" U1 "\"}}",
    "{\"_meta\":{\"uuid\":\"" U1 "\"},\"\\\\u005fmeta\":{\"uuid\":\"" U2 "\"}}",
    "{\"_meta\":{\"uuid\":\"" U1 "\"},\"t\":\"\\u00e9\\u4e2d\\u005f\"}",
    /* decoys: in strings, in nested objects, in arrays, as values */
    "{\"t\":\"\\\"_meta\\\":{\\\"uuid\\\":\\\"" U2 "\\\"}\",\"_meta\":{\"uuid\":\"" U1 "\"}}",
    "{\"t\":\"{\\\"_meta\\\":{\\\"uuid\\\":\\\"" U2 "\\\"\"}",
    "{\"row\":{\"_meta\":{\"uuid\":\"" U2 "\"}},\"_meta\":{\"uuid\":\"" U1 "\"}}",
    "{\"_meta\":{\"uuid\":\"" U1 "\"},\"row\":{\"_meta\":{\"uuid\":\"" U2 "\"}}}",
    "{\"row\":{\"_meta\":{\"uuid\":\"" U2 "\"}}}",
    "{\"a\":[{\"_meta\":{\"uuid\":\"" U2 "\"}}],\"uuid\":\"" U2 "\"}",
    "{\"_meta\":{\"before\":{\"uuid\":\"" U2 "\"},\"uuid\":\"" U1 "\"}}",
    "{\"_meta\":{\"before\":{\"uuid\":\"" U2 "\"}}}",
    "{\"_meta\":{\"uuid\":\"" U1 "\"},\"t\":\"_meta\"}",
    "{\"x\":\"_meta\",\"y\":{\"uuid\":\"" U2 "\"}}",
    "[{\"_meta\":{\"uuid\":\"" U2 "\"}}]",
    /* not what it should be */
    "{\"_meta\":{\"uuid\":\"short\"}}",
    "{\"_meta\":{\"uuid\":\"" U1 "1\"}}",
    "{\"_meta\":{\"uuid\":\"\"}}",
    "{\"_meta\":{\"uuid\":12}}",
    "{\"_meta\":{\"uuid\":{\"uuid\":\"" U2 "\"}}}",
    "{\"_meta\":{\"uuid\":null}}",
    "{\"_meta\":[\"uuid\",\"" U2 "\"]}",
    "{\"_meta\":\"uuid\"}",
    "{\"_meta\":{}}",
    "{\"_meta\":{\"uuid\":\"111111111111111111111111111111111\\\",\"},\"a\":1}",
    "{\"_meta\":{\"uuid\":\"1111111111111111111111111111111111\\\\\"}}",
    "{}",
    "[]",
    "1",
    "\"_meta\"",
    "{\"_meta\":{\"uuid\":\"" U1 "\"},\"pad\":\"0123456789abcdef0123456789abc\",\"_meta\":{}}",
};
#define CASES (sizeof adversarial / sizeof adversarial[0])

/* The definition: sc_json_find, a string of exactly 36 bytes. */
static int by_definition(struct span doc, struct span *out)
{
    struct sc_pointer *p;
    struct sc_json_value v;
    int err;

    assert_int_equal(sc_pointer_new(span_str("/_meta/uuid"), &p), 0);
    err = sc_json_find(doc, p, &v);
    sc_pointer_free(p);
    if (err < 0 || v.kind != SC_JSON_STRING || v.text.n != 38)
        return E_NOTFOUND;
    *out = span_of(v.text.p + 1, 36);
    return 0;
}

static void same_answer(struct span doc, struct sc_uuid_hint *hint)
{
    struct span want = {NULL, 0}, got;
    int r = by_definition(doc, &want);

    if (sc_uuid_find(doc, hint, &got) != r || got.p != want.p || got.n != want.n) {
        print_error("%.*s\n", SPAN_FMT(doc));
        fail();
    }
}

static void the_uuid_is_the_one_that_find_finds(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        struct sc_json_error err;
        struct sc_uuid_hint cold = {0}, hot = {5};

        assert_int_equal(sc_json_check(span_str(adversarial[i]), &err), 0);
        same_answer(span_str(adversarial[i]), &cold);
        same_answer(span_str(adversarial[i]), &hot);
    }
}

static void a_hint_of_any_stream_changes_no_answer(void **state)
{
    struct sc_uuid_hint hint = {0};
    uint32_t x = 1;
    (void)state;

    for (int i = 0; i < 20000; i++) {
        x = x * 1664525 + 1013904223;
        same_answer(span_str(adversarial[(x >> 16) % CASES]), &hint);
    }
}

/* Documents put together from traps at random: members of every spelling in any order. */
static void random_documents_agree_with_find(void **state)
{
    static const char *const members[] = {
        "\"_meta\":{\"uuid\":\"" U1 "\"}",
        "\"_meta\":{\"uuid\":\"" U2 "\",\"x\":1}",
        "\"_meta\" : { \"a\":{\"uuid\":\"" U2 "\"}, \"uuid\":\"" U1 "\"}",
        "\"\\u005fmeta\":{\"uuid\":\"" U2 "\"}",
        "\"_meta\":7",
        "\"row\":{\"_meta\":{\"uuid\":\"" U2 "\"}}",
        "\"t\":\"\\\"_meta\\\":{\"",
        "\"t\":\"\\\\\"",
        "\"uuid\":\"" U2 "\"",
        "\"_met\":{}",
        "\"_m\":\"_meta\"",
        "\"e\":[[],{},\"]\"]",
        "\"_meta\":{\"\\u0075uid\":\"" U1 "\"}",
        "\"k\":\"\\u00e9\"",
    };
    struct sc_uuid_hint hint = {0};
    uint32_t x = 7;
    char doc[1024];
    (void)state;

    for (int i = 0; i < 20000; i++) {
        size_t n = 0, count;
        struct sc_json_error err;

        x = x * 1664525 + 1013904223;
        count = (x >> 20) % 5;
        n += (size_t)snprintf(doc + n, sizeof doc - n, "{");
        for (size_t k = 0; k < count; k++) {
            x = x * 1664525 + 1013904223;
            n += (size_t)snprintf(doc + n, sizeof doc - n, "%s%s", k > 0 ? "," : "",
                                  members[(x >> 16) % (sizeof members / sizeof members[0])]);
        }
        n += (size_t)snprintf(doc + n, sizeof doc - n, "}");
        assert_int_equal(sc_json_check(span_of(doc, n), &err), 0);
        same_answer(span_of(doc, n), &hint);
    }
}

static void damaged_documents_get_one_answer_for_any_hint(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        size_t n = strlen(adversarial[i]);

        for (size_t cut = 0; cut <= n; cut++) {
            uint8_t *copy = mem_alloc(cut + 1);
            struct sc_uuid_hint cold = {0}, hot = {5};
            struct span a, b;
            int ra, rb;

            assert_non_null(copy);
            memcpy(copy, adversarial[i], cut);
            ra = sc_uuid_find(span_of(copy, cut), &cold, &a);
            rb = sc_uuid_find(span_of(copy, cut), &hot, &b);
            assert_int_equal(ra, rb);
            assert_ptr_equal(a.p, b.p);
            mem_free(copy);
        }
    }
}

static void stamped(const char *doc, const char *want)
{
    struct writer w;
    struct sc_json_error err;
    size_t at;

    wr_init(&w, 100000);
    wr_str(&w, "before");
    assert_int_equal(sc_json_stamp(span_str(doc), &w, &at, &err), 0);
    if (!span_eq_str(span_of(w.b->data + 6, w.b->len - 6), want))
        print_error("%s\n-> %.*s\n", doc, SPAN_FMT(blob_span(w.b)));
    assert_true(span_eq_str(span_of(w.b->data + 6, w.b->len - 6), want));
    assert_true(at + 36 <= w.b->len);
    assert_memory_equal(w.b->data + at, Z, 36);
    assert_int_equal(sc_json_check(span_of(w.b->data + 6, w.b->len - 6), &err), 0);
    wr_fini(&w);
}

static void a_document_is_stamped_at_its_place(void **state)
{
    (void)state;
    stamped("{}", "{\"_meta\":{\"uuid\":\"" Z "\"}}");
    stamped("{ }", "{\"_meta\":{\"uuid\":\"" Z "\"} }");
    stamped("{\"a\":1}", "{\"_meta\":{\"uuid\":\"" Z "\"},\"a\":1}");
    stamped("{\"a\": 1.50 , \"b\":\"\\u0041\"}",
            "{\"_meta\":{\"uuid\":\"" Z "\"},\"a\": 1.50 , \"b\":\"\\u0041\"}");
    stamped("{\"_meta\":{}}", "{\"_meta\":{\"uuid\":\"" Z "\"}}");
    stamped("{\"a\":1,\"_meta\":{\"op\":\"c\"}}",
            "{\"a\":1,\"_meta\":{\"uuid\":\"" Z "\",\"op\":\"c\"}}");
    stamped("{\"_meta\":{\"op\":\"c\",\"uuid\":\"" U1 "\"},\"b\":2}",
            "{\"_meta\":{\"op\":\"c\",\"uuid\":\"" Z "\"},\"b\":2}");
}

static void a_uuid_that_is_no_string_is_replaced_as_a_whole(void **state)
{
    (void)state;
    stamped("{\"_meta\":{\"uuid\":17}}", "{\"_meta\":{\"uuid\":\"" Z "\"}}");
    stamped("{\"_meta\":{\"uuid\":{\"a\":[1]},\"b\":2}}",
            "{\"_meta\":{\"uuid\":\"" Z "\",\"b\":2}}");
    stamped("{\"_meta\":{\"uuid\":null}}", "{\"_meta\":{\"uuid\":\"" Z "\"}}");
    stamped("{\"_meta\":{\"uuid\":\"short\"}}", "{\"_meta\":{\"uuid\":\"" Z "\"}}");
}

static void the_last_of_duplicate_keys_is_stamped(void **state)
{
    (void)state;
    stamped("{\"_meta\":1,\"_meta\":{\"a\":1}}",
            "{\"_meta\":1,\"_meta\":{\"uuid\":\"" Z "\",\"a\":1}}");
    stamped("{\"_meta\":{\"uuid\":1,\"uuid\":2}}", "{\"_meta\":{\"uuid\":1,\"uuid\":\"" Z "\"}}");
    stamped("{\"\\u005fmeta\":{}}", "{\"\\u005fmeta\":{\"uuid\":\"" Z "\"}}");
}

static void pretty_print_and_crlf_become_one_line(void **state)
{
    (void)state;
    stamped("\r\n{\r\n  \"a\": [\r\n    1,\n    2\n  ]\r\n}\r\n",
            "{\"_meta\":{\"uuid\":\"" Z "\"},  \"a\": [    1,    2  ]}");
    stamped("{\n\t\"_meta\": {\n\t\t\"uuid\":\n\"x\"\n\t}\n}\n",
            "{\t\"_meta\": {\t\t\"uuid\":\"" Z "\"\t}}");
    stamped("{\"a\":1}\r", "{\"_meta\":{\"uuid\":\"" Z "\"},\"a\":1}");
}

static void what_cannot_be_stamped_is_named(void **state)
{
    static const struct {
        const char *doc;
        const char *reason;
    } rows[] = {
        {"[]", "not an object"},
        {"1", "not an object"},
        {"", "not an object"},
        {"  ", "not an object"},
        {"\xef\xbb\xbf{}", "not an object"},
        {"{\"_meta\":1}", "_meta is not an object"},
        {"{\"_meta\":null}", "_meta is not an object"},
        {"{\"_meta\":[]}", "_meta is not an object"},
        {"{\"_meta\":{},\"_meta\":\"x\"}", "_meta is not an object"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct writer w;
        struct sc_json_error err;
        size_t at;

        wr_init(&w, 1000);
        assert_int_equal(sc_json_stamp(span_str(rows[i].doc), &w, &at, &err), E_INVALID);
        assert_string_equal(err.reason, rows[i].reason);
        assert_int_equal(wr_len(&w), 0);
        wr_fini(&w);
    }
}

static void every_adversarial_object_carries_its_stamp(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        struct writer w;
        struct sc_json_error err;
        struct sc_uuid_hint hint = {0};
        struct span uuid;
        size_t at;
        int r;

        wr_init(&w, 10000);
        r = sc_json_stamp(span_str(adversarial[i]), &w, &at, &err);
        if (r == 0) {
            assert_int_equal(sc_json_check(blob_span(w.b), &err), 0);
            assert_int_equal(sc_uuid_find(blob_span(w.b), &hint, &uuid), 0);
            assert_ptr_equal(uuid.p, w.b->data + at);
        } else {
            assert_int_equal(r, E_INVALID);
        }
        wr_fini(&w);
    }
}

static void a_full_writer_is_an_error(void **state)
{
    struct writer w;
    struct sc_json_error err;
    size_t at;
    (void)state;

    wr_init(&w, 20);
    assert_int_equal(sc_json_stamp(span_str("{\"a\":1}"), &w, &at, &err), E_LIMIT);
    wr_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_uuid_is_the_one_that_find_finds),
        cmocka_unit_test(a_hint_of_any_stream_changes_no_answer),
        cmocka_unit_test(random_documents_agree_with_find),
        cmocka_unit_test(damaged_documents_get_one_answer_for_any_hint),
        cmocka_unit_test(a_document_is_stamped_at_its_place),
        cmocka_unit_test(a_uuid_that_is_no_string_is_replaced_as_a_whole),
        cmocka_unit_test(the_last_of_duplicate_keys_is_stamped),
        cmocka_unit_test(pretty_print_and_crlf_become_one_line),
        cmocka_unit_test(what_cannot_be_stamped_is_named),
        cmocka_unit_test(every_adversarial_object_carries_its_stamp),
        cmocka_unit_test(a_full_writer_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
