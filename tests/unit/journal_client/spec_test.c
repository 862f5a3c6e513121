/* Names, labels, selectors and the counted values made of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "journal_client/spec.h"

static void good_names_pass(void **state)
{
    static const char *const names[] = {"acme", "acme/orders/pivot=00",   "a.b-c_d+e%20/x",
                                        "a...", "acme/\xc3\xbcn\xc3\xaf", "a/..b/c"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(jc_name_check(span_str(names[i]), NULL), 0);
}

static void bad_names_are_refused_with_a_reason(void **state)
{
    static const char *const names[] = {
        "",         "abc",          "/acme",       "acme/",
        "acme//x",  "acme/./x",     "acme/../x",   "../acme",
        "acme/..",  "acme x",       "acme\nx",     "acme:x",
        "acme\\x",  "acme*",        "acme\xffxxx", "acme\xe2\x80\xa9",
        "acme\xc3", "acme\xc0\xaf",
    };
    char longer[514];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *why = NULL;
        assert_int_equal(jc_name_check(span_str(names[i]), &why), E_INVALID);
        assert_non_null(why);
    }
    memset(longer, 'a', sizeof longer);
    assert_int_equal(jc_name_check(span_of(longer, 512), NULL), 0);
    assert_int_equal(jc_name_check(span_of(longer, 513), NULL), E_INVALID);
    assert_int_equal(jc_name_check(span_of("acme\0x", 6), NULL), E_INVALID);
}

static int check(const struct jc_label *labels, size_t n)
{
    const struct jc_spec spec = {.name = "acme/a", .labels = labels, .labels_n = n};

    return jc_spec_check(&spec, NULL);
}

static void labels_are_a_sorted_set(void **state)
{
    const struct jc_label good[] = {{"aa", "1"}, {"aa", "2"}, {"bb", ""}, {"cc", "x=%"}};
    const struct jc_label by_name[] = {{"bb", "1"}, {"aa", "1"}};
    const struct jc_label by_value[] = {{"aa", "2"}, {"aa", "1"}};
    const struct jc_label twice[] = {{"aa", "1"}, {"aa", "1"}};
    const struct jc_label empty_beside[] = {{"aa", ""}, {"aa", "1"}};
    const struct jc_label reserved[] = {{"name", "x"}};
    const struct jc_label spaced[] = {{"aa", "a b"}};
    const struct jc_label shorter[] = {{"a", "1"}};

    (void)state;
    assert_int_equal(check(good, 4), 0);
    assert_int_equal(check(by_name, 2), E_INVALID);
    assert_int_equal(check(by_value, 2), E_INVALID);
    assert_int_equal(check(twice, 2), E_INVALID);
    assert_int_equal(check(empty_beside, 2), E_INVALID);
    assert_int_equal(check(reserved, 1), E_INVALID);
    assert_int_equal(check(spaced, 1), E_INVALID);
    assert_int_equal(check(shorter, 1), E_INVALID);
}

static void numbers_of_a_spec_have_their_ranges(void **state)
{
    struct jc_spec spec = {.name = "acme/a", .fragment_bytes = INT64_C(16) << 30};

    (void)state;
    assert_int_equal(jc_spec_check(&spec, NULL), 0);
    spec.fragment_bytes++;
    assert_int_equal(jc_spec_check(&spec, NULL), E_INVALID);
    spec.fragment_bytes = 0;
    spec.retention_ms = -1;
    assert_int_equal(jc_spec_check(&spec, NULL), E_INVALID);
}

static void a_label_is_had_only_when_it_is_there_once(void **state)
{
    const struct jc_label labels[] = {{"aa", "1"}, {"bb", "2"}, {"bb", "3"}};
    const struct jc_spec spec = {.name = "acme/a", .labels = labels, .labels_n = 3};
    const char *v;

    (void)state;
    assert_int_equal(jc_spec_label(&spec, "aa", &v), 0);
    assert_string_equal(v, "1");
    assert_int_equal(jc_spec_label(&spec, "bb", &v), E_CONFLICT);
    assert_null(v);
    assert_int_equal(jc_spec_label(&spec, "cc", &v), E_NOTFOUND);
}

static void selectors_include_and_exclude(void **state)
{
    const struct jc_label labels[] = {{"color", "red"}, {"size", "10"}, {"size", "20"}};
    const struct jc_spec spec = {.name = "acme/orders/p0", .labels = labels, .labels_n = 3};
    static const struct {
        struct jc_match m[3];
        size_t n;
        bool want;
    } cases[] = {
        {.n = 0, .want = true},
        {{{.name = "color", .value = "red"}}, 1, true},
        {{{.name = "color", .value = "blue"}}, 1, false},
        {{{.name = "color", .value = "blue"}, {.name = "color", .value = "red"}}, 2, true},
        {{{.name = "color", .value = "red"}, {.name = "size", .value = "30"}}, 2, false},
        {{{.name = "color", .value = ""}}, 1, true},
        {{{.name = "weight", .value = ""}}, 1, false},
        {{{.name = "size", .value = "2", .prefix = true}}, 1, true},
        {{{.name = "name", .value = "acme/orders/", .prefix = true}}, 1, true},
        {{{.name = "name", .value = "acme/orders/"}}, 1, false},
        {{{.name = "name", .value = "acme/orders/p0"}}, 1, true},
        {{{.name = "size", .value = "10", .exclude = true}}, 1, false},
        {{{.name = "size", .value = "", .exclude = true}}, 1, false},
        {{{.name = "size", .value = "11", .exclude = true}}, 1, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct jc_selector sel = {cases[i].m, cases[i].n};
        struct jc_selector *copy;
        assert_int_equal(jc_selector_matches(&sel, &spec), cases[i].want);
        assert_int_equal(jc_selector_copy(&sel, &copy), 0);
        assert_int_equal(jc_selector_matches(copy, &spec), cases[i].want);
        mem_free(copy);
    }
}

static int released;

static void release(void *impl)
{
    released += *(int *)impl;
}

static void a_journal_is_a_deep_copy_and_releases_its_store_once(void **state)
{
    char name[] = "acme/a", value[] = "v1";
    struct jc_label label = {"aa", value};
    const struct jc_spec spec = {.name = name, .labels = &label, .labels_n = 1};
    const struct jc_journal *j;
    const struct jc_listing *l;
    int impl = 1;

    (void)state;
    released = 0;
    assert_int_equal(jc_journal_new_impl(&spec, 3, 4, &impl, release, &j), 0);
    name[0] = value[0] = 'x';
    assert_string_equal(j->spec.name, "acme/a");
    assert_string_equal(j->spec.labels[0].value, "v1");
    assert_int_equal(jc_listing_new(9, &j, 1, &l), 0);
    jc_journal_unref(j);
    assert_int_equal(released, 0); /* the listing holds it */
    assert_ptr_equal(jc_listing_find(l, span_str("acme/a")), j);
    assert_null(jc_listing_find(l, span_str("acme/b")));
    assert_null(jc_listing_find(l, span_str("acme")));
    (void)jc_listing_ref(l);
    jc_listing_unref(l);
    jc_listing_unref(l);
    assert_int_equal(released, 1);
    jc_journal_unref(NULL);
    jc_listing_unref(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_names_pass),
        cmocka_unit_test(bad_names_are_refused_with_a_reason),
        cmocka_unit_test(labels_are_a_sorted_set),
        cmocka_unit_test(numbers_of_a_spec_have_their_ranges),
        cmocka_unit_test(a_label_is_had_only_when_it_is_there_once),
        cmocka_unit_test(selectors_include_and_exclude),
        cmocka_unit_test(a_journal_is_a_deep_copy_and_releases_its_store_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
