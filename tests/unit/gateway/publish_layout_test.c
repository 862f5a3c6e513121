/* Layouts of collections: planned, read back from labels, routed by. Pure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "gateway/publish_int.h"

static struct pub_layout *plan(size_t partitions, const char *a, const char *b)
{
    struct span keys[] = {span_str(a), span_str(b)};
    struct pub_layout *l;
    const char *why;
    size_t n = a == NULL ? 0 : b == NULL ? 1 : 2;

    assert_int_equal(pub_layout_plan(span_str("acme/t"), partitions, keys, n, &l, &why), 0);
    return l;
}

static void ranges_are_even_and_leave_no_gap(void **state)
{
    static const size_t counts[] = {1, 2, 3, 7, 1000, PUBLISH_MAX_PARTITIONS};

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct pub_layout *l = plan(counts[i], NULL, NULL);
        uint64_t next = 0;

        for (size_t k = 0; k < l->n; k++) {
            assert_true(l->parts[k].begin == next);
            assert_true(l->parts[k].end >= l->parts[k].begin);
            next = (uint64_t)l->parts[k].end + 1;
            assert_ptr_equal(pub_layout_route(l, l->parts[k].begin), &l->parts[k]);
            assert_ptr_equal(pub_layout_route(l, l->parts[k].end), &l->parts[k]);
        }
        assert_true(next == (uint64_t)1 << 32);
        pub_layout_free(l);
    }
}

static void journals_are_named_by_pivot_and_rank_like_their_ranges(void **state)
{
    struct pub_layout *l = plan(PUBLISH_MAX_PARTITIONS, NULL, NULL);

    (void)state;
    assert_string_equal(l->parts[0].name, "acme/t/pivot=00");
    assert_string_equal(l->parts[512].name, "acme/t/pivot=80000000");
    for (size_t k = 1; k < l->n; k++)
        assert_true(strcmp(l->parts[k - 1].name, l->parts[k].name) < 0);
    pub_layout_free(l);
}

/* Makes journals of a planned layout, in the order of `order`, and reads them back. */
static struct pub_layout *read_back(const struct pub_layout *l)
{
    const struct jc_journal *items[PUBLISH_MAX_PARTITIONS];
    const struct jc_listing *listing;
    const struct pub_index_row *rows;
    struct pub_specs *specs;
    struct pub_index *ix;
    struct pub_layout *back;
    const char *why;
    size_t n;

    assert_int_equal(pub_specs_new(l, &specs, &why), 0);
    for (size_t i = 0; i < specs->n; i++)
        assert_int_equal(jc_journal_new(&specs->specs[i], 5, 5, &items[i]), 0);
    assert_int_equal(jc_listing_new(5, items, specs->n, &listing), 0);
    assert_int_equal(pub_index_new(listing, &ix), 0);
    rows = pub_index_find(ix, span_str("acme/t"), &n);
    assert_int_equal(n, l->n);
    assert_int_equal(pub_layout_of(rows, n, &back, &why), 0);
    assert_null(pub_index_find(ix, span_str("acme"), &n));
    assert_null(pub_index_find(ix, span_str("acme/t/"), &n));
    mem_free(ix);
    for (size_t i = 0; i < specs->n; i++)
        jc_journal_unref(items[i]);
    jc_listing_unref(listing);
    pub_specs_free(specs);
    return back;
}

static void labels_give_back_the_same_layout(void **state)
{
    struct pub_layout *l = plan(5, "/a b/\xC3\xA4~1%", "/id"), *back = read_back(l);

    (void)state;
    assert_true(pub_layout_same(l, back));
    assert_false(back->planned);
    assert_string_equal((const char *)back->pointers[0].p, "/a b/\xC3\xA4~1%");
    assert_string_equal((const char *)back->pointers[1].p, "/id");
    assert_non_null(back->key);
    pub_layout_free(l);
    pub_layout_free(back);
}

static int layout_from(const char *const *labels, struct pub_layout **out, const char **why)
{
    /* labels: "name=value" triples of two journals: begin, end, key */
    const struct jc_journal *js[2];
    struct pub_index_row rows[2];
    int err;

    for (size_t i = 0; i < 2; i++) {
        struct jc_label l[] = {{JC_LABEL_COLLECTION, "acme/t"},
                               {JC_LABEL_KEY_BEGIN, labels[3 * i]},
                               {JC_LABEL_KEY_END, labels[3 * i + 1]},
                               {"sluice.dev/key/0", labels[3 * i + 2]}};
        struct jc_spec spec = {
            .name = i == 0 ? "acme/t/a" : "acme/t/b", .labels = l, .labels_n = 4};

        assert_int_equal(jc_journal_new(&spec, (int64_t)i + 1, 9, &js[i]), 0);
        rows[i] = (struct pub_index_row){"acme/t", js[i]};
    }
    err = pub_layout_of(rows, 2, out, why);
    jc_journal_unref(js[0]);
    jc_journal_unref(js[1]);
    return err;
}

static void a_gap_routes_nowhere(void **state)
{
    static const char *const labels[] = {"00000000", "0fffffff", "/id",
                                         "80000000", "ffffffff", "/id"};
    struct pub_layout *l;
    const char *why;

    (void)state;
    assert_int_equal(layout_from(labels, &l, &why), 0);
    assert_non_null(pub_layout_route(l, 0x0fffffff));
    assert_null(pub_layout_route(l, 0x10000000));
    assert_null(pub_layout_route(l, 0x7fffffff));
    assert_int_equal(pub_layout_route(l, 0x80000000)->index, 1);
    pub_layout_free(l);
}

static void a_later_partition_keeps_its_rank(void **state)
{
    static const char *const labels[] = {"80000000", "ffffffff", "/id",
                                         "00000000", "7fffffff", "/id"};
    struct pub_layout *l;
    const char *why;

    (void)state;
    assert_int_equal(layout_from(labels, &l, &why), 0);
    assert_int_equal(pub_layout_route(l, 0)->index, 1);
    assert_int_equal(pub_layout_route(l, UINT32_MAX)->index, 0);
    pub_layout_free(l);
}

static void contradicting_or_malformed_labels_are_named(void **state)
{
    static const char *const rows[][6] = {
        {"00000000", "7fffffff", "/id", "80000000", "ffffffff", "/x"},
        {"0000000", "7fffffff", "/id", "80000000", "ffffffff", "/id"},
        {"00000000", "7FFFFFFF", "/id", "80000000", "ffffffff", "/id"},
        {"90000000", "10000000", "/id", "80000000", "ffffffff", "/id"},
        {"00000000", "7fffffff", "%", "80000000", "ffffffff", "%"},
        {"00000000", "7fffffff", "%2", "80000000", "ffffffff", "%2"},
        {"00000000", "7fffffff", "%00", "80000000", "ffffffff", "%00"},
        {"00000000", "7fffffff", "id", "80000000", "ffffffff", "id"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pub_layout *l;
        const char *why = NULL;

        assert_int_equal(layout_from(rows[i], &l, &why), E_INVALID);
        assert_null(l);
        assert_non_null(why);
    }
}

static void keys_must_be_pointers(void **state)
{
    static const char *const bad[] = {"", "id", "id/x", "/a~2"};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct span key = span_str(bad[i]);
        struct pub_layout *l;
        const char *why = NULL;

        assert_int_equal(pub_layout_plan(span_str("acme/t"), 1, &key, 1, &l, &why), E_INVALID);
        assert_non_null(why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_even_and_leave_no_gap),
        cmocka_unit_test(journals_are_named_by_pivot_and_rank_like_their_ranges),
        cmocka_unit_test(labels_give_back_the_same_layout),
        cmocka_unit_test(a_gap_routes_nowhere),
        cmocka_unit_test(a_later_partition_keeps_its_rank),
        cmocka_unit_test(contradicting_or_malformed_labels_are_named),
        cmocka_unit_test(keys_must_be_pointers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
