/* Bodies become the bytes of a transaction: forms, faults, stamping, routing. Pure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "gateway/publish_int.h"

static const struct pub_limits limits = {1 << 20, 1 << 22};
static const char ZEROS[] = "000000000000000000000000000000000000";

static struct pub_layout *layout(size_t partitions, const char *key)
{
    struct span k = span_str(key);
    struct pub_layout *l;
    const char *why;

    assert_int_equal(
        pub_layout_plan(span_str("acme/t"), partitions, &k, key == NULL ? 0 : 1, &l, &why), 0);
    return l;
}

static void parse(const char *body, enum publish_form form, const struct pub_layout *l,
                  struct pub_parsed *out)
{
    assert_int_equal(pub_parse(span_str(body), form, l, &limits, out), 0);
}

/* What a body of one partition is stored as, UUIDs as zeros, without the ACK. */
static void stored_as(const char *body, enum publish_form form, const char *want)
{
    static struct pub_parsed p;
    struct pub_layout *l = layout(1, NULL);
    char text[4096], expect[4096];

    parse(body, form, l, &p);
    if (p.faults_total > 0)
        print_error("line %zu at %zu: %s\n", p.faults[0].line, p.faults[0].at, p.faults[0].reason);
    assert_int_equal(p.faults_total, 0);
    snprintf(text, sizeof text, "%.*s", (int)p.outs[0].last_end,
             p.docs_n == 0 ? (const uint8_t *)"" : p.outs[0].bytes->data);
    snprintf(expect, sizeof expect, "%s", "");
    for (const char *s = want; *s != '\0'; s++) { /* @ stands for the _meta member */
        size_t n = strlen(expect);

        if (*s == '@')
            snprintf(expect + n, sizeof expect - n, "\"_meta\":{\"uuid\":\"%s\"}", ZEROS);
        else
            snprintf(expect + n, sizeof expect - n, "%c", *s);
    }
    assert_string_equal(text, expect);
    pub_parsed_fini(&p);
    pub_layout_free(l);
}

static void lines_arrays_and_single_documents_are_stored_alike(void **state)
{
    (void)state;
    stored_as("{\"a\":1}\n{\"b\":2}\n", PUBLISH_AUTO, "{@,\"a\":1}\n{@,\"b\":2}\n");
    stored_as("{\"a\":1}\n{\"b\":2}", PUBLISH_AUTO, "{@,\"a\":1}\n{@,\"b\":2}\n");
    stored_as("{\"a\":1}\r\n\r\n  \t\n{\"b\":2}\r\n", PUBLISH_NDJSON, "{@,\"a\":1}\n{@,\"b\":2}\n");
    stored_as("\xEF\xBB\xBF{\"a\":1}\n", PUBLISH_NDJSON, "{@,\"a\":1}\n");
    stored_as(" [ {\"a\":1} ,\n{\"b\":2}]\n", PUBLISH_AUTO, "{@,\"a\":1}\n{@,\"b\":2}\n");
    stored_as("[]", PUBLISH_JSON, "");
    stored_as("{\"a\":1}", PUBLISH_JSON, "{@,\"a\":1}\n");
    stored_as("{}", PUBLISH_JSON, "{@}\n");
}

static void bytes_pass_through_unchanged(void **state)
{
    (void)state;
    stored_as("{\"id\":13911860366432393,\"a\":9007199254740993,\"d\":1.0,\"e\":1e3}\n",
              PUBLISH_NDJSON,
              "{@,\"id\":13911860366432393,\"a\":9007199254740993,\"d\":1.0,\"e\":1e3}\n");
    stored_as("{\"x\":1e400,\"y\":-1e400,\"z\":1e-400,\"w\":4.9e-324}\n", PUBLISH_NDJSON,
              "{@,\"x\":1e400,\"y\":-1e400,\"z\":1e-400,\"w\":4.9e-324}\n");
    stored_as("{\"s\":\"a\\u0000b\",\"x\\u0000y\":1, \"tail\" : 7}\n", PUBLISH_NDJSON,
              "{@,\"s\":\"a\\u0000b\",\"x\\u0000y\":1, \"tail\" : 7}\n");
}

static void an_existing_uuid_is_replaced_in_place(void **state)
{
    (void)state;
    stored_as(
        "{\"a\":1,\"_meta\":{\"op\":\"c\",\"uuid\":\"x\"}}\n", PUBLISH_NDJSON,
        "{\"a\":1,\"_meta\":{\"op\":\"c\",\"uuid\":\"000000000000000000000000000000000000\"}}\n");
}

static void every_fault_has_its_line_and_byte(void **state)
{
    static struct pub_parsed p;
    struct pub_layout *l = layout(1, "/id");

    (void)state;
    parse("{\"id\":1}\n"
          "{\"id\":2\n"
          "\n"
          "[3]\n"
          "{\"x\":4}\n"
          "{\"id\":{}}\n"
          "{\"id\":5,\"_meta\":7}\n",
          PUBLISH_NDJSON, l, &p);
    assert_int_equal(p.seen, 6);
    assert_int_equal(p.faults_total, 5);
    assert_int_equal(p.faults[0].line, 2);
    assert_int_equal(p.faults[0].at, 7);
    assert_int_equal(p.faults[1].line, 4);
    assert_string_equal(p.faults[1].reason, "a document must be an object");
    assert_int_equal(p.faults[2].line, 5);
    assert_string_equal(p.faults[2].reason, "key /id is missing");
    assert_int_equal(p.faults[3].line, 6);
    assert_non_null(strstr(p.faults[3].reason, "key /id is not a string"));
    assert_int_equal(p.faults[4].line, 7);
    pub_parsed_fini(&p);
    pub_layout_free(l);
}

static void faults_in_a_pretty_printed_array_name_the_line_of_the_body(void **state)
{
    static struct pub_parsed p;
    struct pub_layout *l = layout(1, NULL);

    (void)state;
    parse("[\n  {\"a\": 1},\n  {\n    \"b\": 2\n  },\n  7,\n  {\"c\": }\n]", PUBLISH_AUTO, l, &p);
    assert_int_equal(p.faults_total, 2);
    assert_int_equal(p.faults[0].line, 6);
    assert_int_equal(p.faults[0].at, 2);
    assert_int_equal(p.faults[1].line, 7);
    pub_parsed_fini(&p);
    pub_layout_free(l);
}

static void many_faults_are_counted_and_the_first_kept(void **state)
{
    static struct pub_parsed p;
    struct pub_layout *l = layout(1, NULL);
    char body[1001];

    (void)state;
    memset(body, '\n', sizeof body);
    for (size_t i = 0; i < 1000; i += 2)
        body[i] = 'x';
    body[1000] = '\0';
    parse(body, PUBLISH_NDJSON, l, &p);
    assert_int_equal(p.faults_total, 500);
    assert_int_equal(p.faults_n, PUB_FAULTS_MAX);
    assert_int_equal(p.faults[99].line, 100);
    pub_parsed_fini(&p);
    pub_layout_free(l);
}

static void deep_nesting_is_a_fault_of_that_line_only(void **state)
{
    static struct pub_parsed p;
    struct pub_layout *l = layout(1, NULL);
    const size_t depth = 200000;
    char *body = mem_alloc(2 * depth + 100);

    (void)state;
    assert_non_null(body);
    size_t n = (size_t)snprintf(body, 100, "{\"a\":1}\n{\"a\":");
    memset(body + n, '[', depth);
    memset(body + n + depth, ']', depth);
    memcpy(body + n + 2 * depth, "}\n", 3);
    parse(body, PUBLISH_NDJSON, l, &p);
    assert_int_equal(p.faults_total, 1);
    assert_int_equal(p.faults[0].line, 2);
    pub_parsed_fini(&p);
    memset(body, '[', depth);
    body[depth] = '\0';
    parse(body, PUBLISH_AUTO, l, &p);
    assert_int_equal(p.faults_total, 1);
    pub_parsed_fini(&p);
    mem_free(body);
    pub_layout_free(l);
}

static void raw_control_characters_are_refused(void **state)
{
    static struct pub_parsed p;
    struct pub_layout *l = layout(1, NULL);
    static const char body[] = "{\"a\":\"x\0y\"}\n{\"b\":1}\n";

    (void)state;
    assert_int_equal(pub_parse(span_of(body, sizeof body - 1), PUBLISH_NDJSON, l, &limits, &p), 0);
    assert_int_equal(p.faults_total, 1);
    assert_int_equal(p.faults[0].line, 1);
    assert_int_equal(p.faults[0].at, 7);
    pub_parsed_fini(&p);
    pub_layout_free(l);
}

static void equal_keys_meet_in_one_partition(void **state)
{
    static struct pub_parsed p;
    struct pub_layout *l = layout(16, "/id");

    (void)state;
    parse("{\"id\":1}\n{\"id\":1.0}\n{\"x\":0,\"id\":1e0}\n{\"id\":\"\\u0061\"}\n{\"id\":\"a\"}\n",
          PUBLISH_NDJSON, l, &p);
    assert_int_equal(p.faults_total, 0);
    assert_int_equal(p.docs[0].part, p.docs[1].part);
    assert_int_equal(p.docs[0].part, p.docs[2].part);
    assert_int_equal(p.docs[3].part, p.docs[4].part);
    pub_parsed_fini(&p);
    pub_layout_free(l);
}

static void only_touched_partitions_get_an_ack(void **state)
{
    static struct pub_parsed p;
    struct pub_layout *l = layout(64, "/id");
    size_t touched = 0;

    (void)state;
    parse("{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n", PUBLISH_NDJSON, l, &p);
    for (size_t i = 0; i < p.outs_n; i++) {
        if (p.outs[i].docs == 0) {
            assert_null(p.outs[i].bytes);
            continue;
        }
        touched++;
        assert_non_null(
            memmem(p.outs[i].bytes->data, p.outs[i].bytes->len, "\",\"ack\":true}}\n", 15));
    }
    assert_in_range(touched, 1, 3);
    pub_parsed_fini(&p);
    pub_layout_free(l);
}

static void tiny_documents_cannot_blow_up_memory(void **state)
{
    static struct pub_parsed p;
    struct pub_layout *l = layout(1, NULL);
    struct pub_limits small = {1000, 1000};
    char body[301];

    (void)state;
    for (size_t i = 0; i < 300; i += 3)
        memcpy(body + i, "{}\n", 3);
    assert_int_equal(pub_parse(span_of(body, 300), PUBLISH_NDJSON, l, &small, &p), E_LIMIT);
    pub_parsed_fini(&p);
    pub_layout_free(l);
}

static void any_allocation_may_fail(void **state)
{
    static struct pub_parsed p;
    struct pub_layout *l = layout(2, "/id");

    (void)state;
    for (long n = 0; n < 200; n++) {
        mem_fail_after(n, 0);
        int err = pub_parse(span_str("{\"id\":1}\n{\"id\":2}\n{\"id\":\"x\"}\n"), PUBLISH_NDJSON, l,
                            &limits, &p);
        mem_fail_after(-1, 0);
        assert_true(err == 0 || err == E_NOMEM);
        pub_parsed_fini(&p);
        if (err == 0)
            break;
        assert_true(n < 199);
    }
    pub_layout_free(l);
}

static void json_answers_bad_form_with_a_hint(void **state)
{
    static struct pub_parsed p;
    struct pub_layout *l = layout(1, NULL);

    (void)state;
    parse("{\"a\":1}\n{\"b\":2}\n", PUBLISH_JSON, l, &p);
    assert_int_equal(p.faults_total, 1);
    assert_non_null(strstr(p.faults[0].reason, "application/x-ndjson"));
    pub_parsed_fini(&p);
    pub_layout_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_arrays_and_single_documents_are_stored_alike),
        cmocka_unit_test(bytes_pass_through_unchanged),
        cmocka_unit_test(an_existing_uuid_is_replaced_in_place),
        cmocka_unit_test(every_fault_has_its_line_and_byte),
        cmocka_unit_test(faults_in_a_pretty_printed_array_name_the_line_of_the_body),
        cmocka_unit_test(many_faults_are_counted_and_the_first_kept),
        cmocka_unit_test(deep_nesting_is_a_fault_of_that_line_only),
        cmocka_unit_test(raw_control_characters_are_refused),
        cmocka_unit_test(equal_keys_meet_in_one_partition),
        cmocka_unit_test(only_touched_partitions_get_an_ack),
        cmocka_unit_test(tiny_documents_cannot_blow_up_memory),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(json_answers_bad_form_with_a_hint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
