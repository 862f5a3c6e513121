/* What an operator sends for a journal: members, labels, faults. Pure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/admin_int.h"

static struct admin_spec got;
static const char *why;

static int parse(struct arena *a, const char *json, const struct jc_journal *now)
{
    arena_init(a, (size_t)1 << 20);
    why = NULL;
    return admin_spec_parse(span_str(json), "acme/a/pivot=00", now, a, &got, &why);
}

static const struct jc_journal *present(void)
{
    static const struct jc_label labels[] = {{"a/1", "x"}, {"a/2", "y"}};
    const struct jc_spec spec = {.name = "acme/a/pivot=00",
                                 .labels = labels,
                                 .labels_n = 2,
                                 .fragment_bytes = 1000,
                                 .fragment_age_ms = 2000,
                                 .retention_ms = 3000,
                                 .retention_bytes = 4000};
    const struct jc_journal *j;

    assert_int_equal(jc_journal_new(&spec, 3, 7, &j), 0);
    return j;
}

static void a_new_journal_starts_from_defaults(void **state)
{
    struct arena a;

    (void)state;
    assert_int_equal(parse(&a, "{}", NULL), 0);
    assert_string_equal(got.spec.name, "acme/a/pivot=00");
    assert_int_equal(got.spec.labels_n, 0);
    assert_int_equal(got.spec.fragment_bytes, 0);
    assert_int_equal(got.expect_mod_revision, -1);
    arena_fini(&a);
}

static void labels_have_one_value_or_several_and_are_sorted(void **state)
{
    struct arena a;

    (void)state;
    assert_int_equal(
        parse(&a, "{\"labels\":{\"b/2\":[\"z\",\"y\"],\"b/1\":\"x\",\"b/3\":[]}}", NULL), 0);
    assert_int_equal(got.spec.labels_n, 3);
    assert_string_equal(got.spec.labels[0].name, "b/1");
    assert_string_equal(got.spec.labels[1].value, "y");
    assert_string_equal(got.spec.labels[2].value, "z");
    arena_fini(&a);
}

static void absent_members_keep_what_the_journal_has(void **state)
{
    const struct jc_journal *now = present();
    struct arena a;

    (void)state;
    assert_int_equal(parse(&a, "{\"retention_ms\":5,\"expect_mod_revision\":7}", now), 0);
    assert_int_equal(got.spec.retention_ms, 5);
    assert_int_equal(got.spec.retention_bytes, 4000);
    assert_int_equal(got.spec.fragment_bytes, 1000);
    assert_int_equal(got.spec.fragment_age_ms, 2000);
    assert_int_equal(got.spec.labels_n, 2);
    assert_int_equal(got.expect_mod_revision, 7);
    arena_fini(&a);
    assert_int_equal(parse(&a, "{\"labels\":{\"c/1\":\"v\"}}", now), 0);
    assert_int_equal(got.spec.labels_n, 1);
    assert_int_equal(got.spec.retention_ms, 3000);
    arena_fini(&a);
    assert_int_equal(parse(&a, "{\"labels\":{}}", now), 0);
    assert_int_equal(got.spec.labels_n, 0);
    arena_fini(&a);
    jc_journal_unref(now);
}

static void faults_are_told_with_their_reason(void **state)
{
    static const struct {
        const char *json;
        const char *why; /* a part of it */
    } rows[] = {
        {"", "not JSON"},
        {"{\"labels\":{}} x", "not JSON"},
        {"{\"retention_ms\":1,\"retention_ms\":2}", "twice"},
        {"[]", "one JSON object"},
        {"{\"retention\":1}", "unknown member"},
        {"{\"retention_ms\":\"1\"}", "whole numbers"},
        {"{\"retention_ms\":1.5}", "whole numbers"},
        {"{\"retention_ms\":-1}", "not negative"},
        {"{\"retention_ms\":99999999999999999999}", "not JSON"},
        {"{\"fragment_bytes\":99999999999999}", "fragment_bytes"},
        {"{\"expect_mod_revision\":-2}", "expect_mod_revision"},
        {"{\"labels\":[]}", "\"labels\""},
        {"{\"labels\":null}", "\"labels\""},
        {"{\"labels\":{\"a/b\":1}}", "value is a string"},
        {"{\"labels\":{\"a/b\":[\"x\",null]}}", "value is a string"},
        {"{\"labels\":{\"a/b\":[\"x\",\"x\"]}}", "without repeats"},
        {"{\"labels\":{\"name\":\"x\"}}", "name or prefix"},
        {"{\"labels\":{\"a b\":\"x\"}}", "label name"},
        {"{\"labels\":{\"a/b\":\"x\\u0000y\"}}", "not JSON"},
    };
    struct arena a;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(parse(&a, rows[i].json, NULL), E_INVALID);
        assert_non_null(why);
        if (strstr(why, rows[i].why) == NULL)
            fail_msg("%s: %s", rows[i].json, why);
        arena_fini(&a);
    }
}

static void a_bad_name_is_refused(void **state)
{
    static const char *const names[] = {"", "abc", "/acme/a", "acme//a", "acme/../a", "acme/a b"};
    struct arena a;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        arena_init(&a, 1000);
        assert_int_equal(admin_spec_parse(span_str("{}"), names[i], NULL, &a, &got, &why),
                         E_INVALID);
        arena_fini(&a);
    }
}

static void too_many_labels_are_refused_and_little_memory_is_an_error(void **state)
{
    char json[8192] = "{\"labels\":{\"a/b\":[\"x\"";
    size_t n = strlen(json);
    struct arena a;

    (void)state;
    for (int i = 0; i < 1000; i++, n += 4)
        memcpy(json + n, ",\"y\"", 5);
    memcpy(json + n, "]}}", 4);
    assert_int_equal(parse(&a, json, NULL), E_INVALID);
    assert_non_null(strstr(why, "1000"));
    arena_fini(&a);
    arena_init(&a, 8);
    assert_int_equal(
        admin_spec_parse(span_str("{\"labels\":{\"a/b\":\"x\"}}"), "acme/a", NULL, &a, &got, &why),
        E_NOMEM);
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_journal_starts_from_defaults),
        cmocka_unit_test(labels_have_one_value_or_several_and_are_sorted),
        cmocka_unit_test(absent_members_keep_what_the_journal_has),
        cmocka_unit_test(faults_are_told_with_their_reason),
        cmocka_unit_test(a_bad_name_is_refused),
        cmocka_unit_test(too_many_labels_are_refused_and_little_memory_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
