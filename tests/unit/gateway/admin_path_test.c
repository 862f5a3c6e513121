/* Targets of the admin API: routes, names with slashes, parameters. Pure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/admin_int.h"

static int parse(const char *uri, struct arena *a, struct admin_target *t)
{
    arena_init(a, 1 << 20);
    return admin_target_parse(uri, a, t);
}

static void routes_are_found_with_their_names(void **state)
{
    static const struct {
        const char *uri;
        enum admin_route route;
        const char *name;
    } rows[] = {
        {"/", ADMIN_STATUS, ""},
        {"/?x=1", ADMIN_STATUS, ""},
        {"/healthz", ADMIN_HEALTHZ, ""},
        {"/readyz", ADMIN_READYZ, ""},
        {"/metrics", ADMIN_METRICS, ""},
        {"/v1/connections", ADMIN_CONNECTIONS, ""},
        {"/v1/groups", ADMIN_GROUPS, ""},
        {"/v1/groups/a%2Fb", ADMIN_GROUP, "a/b"},
        {"/v1/groups/a/b/reset?to=latest", ADMIN_GROUP_RESET, "a/b"},
        {"/v1/collections", ADMIN_COLLECTIONS, ""},
        {"/v1/collections/acme/things", ADMIN_COLLECTION, "acme/things"},
        {"/v1/collections/acme/things/documents", ADMIN_DOCUMENTS, "acme/things"},
        {"/v1/collections/acme%2Fthings/documents?key=/id", ADMIN_DOCUMENTS, "acme/things"},
        {"/v1/collections/acme/documents/documents", ADMIN_DOCUMENTS, "acme/documents"},
        {"/v1/collections/acme%2Fdocuments", ADMIN_COLLECTION, "acme/documents"},
        {"/v1/collections/acme%2fdocuments/documents#x", ADMIN_DOCUMENTS, "acme/documents"},
        {"/v1/journals", ADMIN_JOURNALS, ""},
        {"/v1/journals/a/pivot=00", ADMIN_JOURNAL, "a/pivot=00"},
        {"/v1/journals/a/pivot=00/content?offset=3", ADMIN_CONTENT, "a/pivot=00"},
        {"/v1/journals/a%2Fcontent", ADMIN_JOURNAL, "a/content"},
        {"/v1/journals/a/pivot=00/close", ADMIN_CLOSE, "a/pivot=00"},
        {"/v1/journals/a/close/fragments?end=7", ADMIN_FRAGMENTS, "a/close"},
        {"/v1/journals/a%2Fclose", ADMIN_JOURNAL, "a/close"},
        {"/v1/journals/close", ADMIN_JOURNAL, "close"},
        {"/v1/topics", ADMIN_TOPICS, ""},
        {"/v1/topics/acme/things", ADMIN_TOPIC, "acme/things"},
        {"http://host:1/healthz", ADMIN_HEALTHZ, ""},
        {"HTTP://host", ADMIN_STATUS, ""},
        {"/v1/collections/a+b", ADMIN_COLLECTION, "a+b"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct admin_target t;
        struct arena a;

        assert_int_equal(parse(rows[i].uri, &a, &t), 0);
        assert_int_equal(t.route, rows[i].route);
        assert_int_equal(t.name.n, strlen(rows[i].name));
        assert_memory_equal(t.name.p, rows[i].name, t.name.n);
        arena_fini(&a);
    }
}

static void other_targets_are_refused(void **state)
{
    static const struct {
        const char *uri;
        int err;
    } rows[] = {
        {"", E_NOTFOUND},
        {"*", E_NOTFOUND},
        {"/x", E_NOTFOUND},
        {"/healthz/", E_NOTFOUND},
        {"/v1", E_NOTFOUND},
        {"/v1/collectionsx", E_NOTFOUND},
        {"/v1/collections/", E_NOTFOUND},
        {"/v1/collections/a%", E_SYNTAX},
        {"/v1/collections/a%2", E_SYNTAX},
        {"/v1/collections/a%zz", E_SYNTAX},
        {"/v1/collections/a%00b", E_SYNTAX},
        {"/metrics?a=%00", E_SYNTAX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct admin_target t;
        struct arena a;

        assert_int_equal(parse(rows[i].uri, &a, &t), rows[i].err);
        arena_fini(&a);
    }
}

static void parameters_are_decoded_and_the_last_one_counts(void **state)
{
    struct admin_target t;
    struct arena a;
    struct span v;

    (void)state;
    assert_int_equal(parse("/metrics?key=%2Fa%2Bb&&key=/c+d&flag&e=", &a, &t), 0);
    assert_int_equal(t.params_n, 4);
    assert_true(span_eq_str(t.params[0].value, "/a+b"));
    assert_true(admin_param(&t, "key", &v));
    assert_true(span_eq_str(v, "/c d"));
    assert_true(admin_param(&t, "flag", &v));
    assert_int_equal(v.n, 0);
    assert_false(admin_param(&t, "ke", &v));
    arena_fini(&a);
}

static void too_many_parameters_are_refused(void **state)
{
    struct admin_target t;
    struct arena a;
    char uri[1024] = "/?";

    (void)state;
    for (size_t i = 0; i < ADMIN_PARAMS_MAX + 1; i++)
        memcpy(uri + 2 + 4 * i, "a=1&", 5);
    assert_int_equal(parse(uri, &a, &t), E_SYNTAX);
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_are_found_with_their_names),
        cmocka_unit_test(other_targets_are_refused),
        cmocka_unit_test(parameters_are_decoded_and_the_last_one_counts),
        cmocka_unit_test(too_many_parameters_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
