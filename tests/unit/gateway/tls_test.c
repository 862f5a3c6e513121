/* How a certificate's fields name a task. Handshakes are tested by tests/integration/test_tls.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/tls.h"

/* The task, or "" when the rule does not fit. */
static const char *apply(const char *rule_text, const char *value, size_t n)
{
    static char out[64];
    struct tls_rule rule;
    struct writer w;

    assert_int_equal(tls_rule_parse(rule_text, &rule), 0);
    wr_init(&w, sizeof out - 1);
    memset(out, 0, sizeof out);
    if (tls_rule_apply(&rule, span_of(value, n), &w) == 0)
        memcpy(out, w.b->data, w.b->len);
    wr_fini(&w);
    return out;
}

#define APPLY(rule, value) apply(rule, value, sizeof(value) - 1)

static void a_rule_takes_what_stands_for_its_star(void **state)
{
    (void)state;
    assert_string_equal(APPLY("cn", "acme/task-1"), "acme/task-1");
    assert_string_equal(APPLY("cn:*", "acme/task-1"), "acme/task-1");
    assert_string_equal(APPLY("uri:spiffe://acme.test/*", "spiffe://acme.test/acme/t"), "acme/t");
    assert_string_equal(APPLY("dns:*.tasks.test", "a.tasks.test"), "a");
    assert_string_equal(APPLY("EMAIL:*@acme.test", "t@acme.test"), "t");
}

static void what_does_not_fit_names_nobody(void **state)
{
    (void)state;
    assert_string_equal(APPLY("cn", ""), "");
    assert_string_equal(APPLY("uri:spiffe://acme.test/*", "spiffe://acme.test/"), "");
    assert_string_equal(APPLY("uri:spiffe://acme.test/*", "spiffe://other.test/t"), "");
    assert_string_equal(APPLY("dns:*.tasks.test", "a.tasks.test.evil"), "");
    assert_string_equal(APPLY("dns:*.tasks.test", ".tasks.test"), "");
    assert_string_equal(APPLY("dns:aa*aa", "aaa"), ""); /* the two ends may not overlap */
    assert_string_equal(APPLY("cn", "acme\0.evil"), "");
}

static void rules_have_one_star_and_a_known_field(void **state)
{
    static const char *const bad[] = {"",  "cn:", "cn:x", "cn:**", "cn:*x*",
                                      "o", "o:*", ":*",   "cn2"};
    struct tls_rule rule;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(tls_rule_parse(bad[i], &rule), E_SYNTAX);
}

static void a_missing_file_is_named(void **state)
{
    const struct gw_tls_opts opts = {.cert = "/no/such/cert", .key = "/no/such/key"};
    struct tls_server *ts;
    char why[200] = "";

    (void)state;
    assert_int_equal(tls_server_new(&opts, &ts, why, sizeof why), E_INVALID);
    assert_null(ts);
    assert_non_null(strstr(why, "/no/such/cert: No such file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_takes_what_stands_for_its_star),
        cmocka_unit_test(what_does_not_fit_names_nobody),
        cmocka_unit_test(rules_have_one_star_and_a_known_field),
        cmocka_unit_test(a_missing_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
