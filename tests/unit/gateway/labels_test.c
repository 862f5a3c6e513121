/* Labels that the view and the publisher read alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "gateway/labels.h"

static void values_decode_strictly_and_encode_back(void **state)
{
    static const char *const good[] = {"/id", "/a%7E1b%20c", "", "/%C3%BC", "/x+y_-."};
    static const char *const texts[] = {"/id", "/a~1b c", "", "/\xc3\xbc", "/x+y_-."};
    static const char *const bad[] = {"/a%",  "/a%2", "/a%zz",     "/a b",
                                      "/a~b", "/%00", "/\xc3\xbc", "%"};
    struct arena a;
    struct span out;

    (void)state;
    arena_init(&a, 65536);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(gw_label_decode(span_str(good[i]), &a, &out), 0);
        assert_true(span_eq_str(out, texts[i]));
        assert_string_equal((const char *)out.p, texts[i]);
        assert_string_equal(gw_label_encode(&a, texts[i]), good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(gw_label_decode(span_str(bad[i]), &a, &out), E_SYNTAX);
    arena_fini(&a);
}

static int key_of(struct jc_label *labels, size_t n, size_t *parts)
{
    const struct jc_spec spec = {.name = "j", .labels = labels, .labels_n = n};
    struct span pointers[GW_KEY_PARTS_MAX];
    struct arena a;

    arena_init(&a, 65536);
    int err = gw_label_key(&spec, &a, pointers, parts);
    if (err == 0 && *parts > 1)
        assert_true(span_eq_str(pointers[1], "/b c"));
    arena_fini(&a);
    return err;
}

static void a_key_ends_at_the_first_index_that_is_missing(void **state)
{
    struct jc_label labels[] = {
        {GW_LABEL_KEY "0", "/a"}, {GW_LABEL_KEY "1", "/b%20c"}, {GW_LABEL_KEY "3", "/d"}};
    struct jc_label twice[] = {{GW_LABEL_KEY "0", "/a"}, {GW_LABEL_KEY "0", "/b"}};
    struct jc_label odd[] = {{GW_LABEL_KEY "0", "/a b"}};
    size_t n;

    (void)state;
    assert_int_equal(key_of(labels, 3, &n), 0);
    assert_int_equal(n, 2);
    assert_int_equal(key_of(labels, 0, &n), 0);
    assert_int_equal(n, 0);
    assert_int_equal(key_of(twice, 2, &n), E_SYNTAX);
    assert_int_equal(key_of(odd, 1, &n), E_SYNTAX);
    assert_int_equal(n, 0);
    mem_fail_after(0, 0);
    assert_int_equal(key_of(labels, 3, &n), E_NOMEM); /* never "no key" */
    mem_fail_after(-1, 0);
}

static void a_key_that_is_too_long_is_none(void **state)
{
    static char text[GW_KEY_BYTES_MAX + 2];
    struct jc_label labels[] = {{GW_LABEL_KEY "0", text}};
    size_t n;

    (void)state;
    memset(text, 'a', sizeof text - 1);
    assert_int_equal(key_of(labels, 1, &n), E_LIMIT);
    text[GW_KEY_BYTES_MAX] = '\0';
    assert_int_equal(key_of(labels, 1, &n), 0);
    assert_int_equal(n, 1);
}

/* O13. */
static void partitions_are_ranked_by_revision_then_name(void **state)
{
    static const struct {
        const char *name;
        int64_t revision;
    } rows[] = {{"j/b", 1}, {"j/c", 1}, {"j/a", 2}};
    const struct jc_journal *j[3];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const struct jc_spec spec = {.name = rows[i].name};
        assert_int_equal(jc_journal_new(&spec, rows[i].revision, 9, &j[i]), 0);
    }
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < 3; k++) {
            int order = gw_rank_cmp(j[i], j[k]);
            assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
        }
    }
    for (size_t i = 0; i < 3; i++)
        jc_journal_unref(j[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_decode_strictly_and_encode_back),
        cmocka_unit_test(a_key_ends_at_the_first_index_that_is_missing),
        cmocka_unit_test(a_key_that_is_too_long_is_none),
        cmocka_unit_test(partitions_are_ranked_by_revision_then_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
