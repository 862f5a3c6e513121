/* The versions of subjects: over catalogs, over restarts, and when what was kept is damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "gateway/registry_history.h"
#include "tests/unit/gateway/registry_lab.h"

static void show(struct registry_history *h, int which, bool shown)
{
    struct world w;

    world_init(&w, which, shown);
    assert_int_equal(registry_history_take(h, &w.view, which), 0);
    sc_avro_free(w.avro);
}

static const struct registry_subject *value_of(const struct registry_history *h)
{
    return registry_history_find(h, "t/1", span_str("a/b%-value"));
}

static void a_new_schema_is_the_next_version_and_a_known_one_is_found_again(void **state)
{
    struct registry_history h;

    (void)state;
    registry_history_init(&h);
    show(&h, 1, true);
    show(&h, 1, true);
    assert_int_equal(value_of(&h)->versions_n, 1);
    show(&h, 2, true);
    const struct registry_subject *s = value_of(&h);
    assert_int_equal(s->versions_n, 2);
    assert_int_equal(registry_subject_latest(s)->number, 2);
    assert_int_equal(registry_subject_latest(s)->id, 102);
    assert_int_equal(registry_subject_version(s, 1)->id, 101);
    show(&h, 1, true);
    s = value_of(&h);
    assert_int_equal(s->versions_n, 2);
    assert_int_equal(registry_subject_latest(s)->number, 1);
    show(&h, 3, true);
    assert_int_equal(registry_subject_latest(value_of(&h))->number, 3);
    /* the key's schema was the same all the time */
    assert_int_equal(registry_history_find(&h, "t/1", span_str("a/b%-key"))->versions_n, 1);
    assert_null(registry_history_find(&h, "t/2", span_str("a/b%-key")));
    registry_history_fini(&h);
}

static void a_subject_without_a_topic_keeps_its_versions(void **state)
{
    struct registry_history h;
    size_t n;

    (void)state;
    registry_history_init(&h);
    show(&h, 1, true);
    show(&h, 2, true);
    show(&h, 2, false);
    assert_int_equal(value_of(&h)->served, 0);
    assert_int_equal(registry_subject_latest(value_of(&h))->number, 2);
    show(&h, 4, true);
    assert_int_equal(registry_subject_latest(value_of(&h))->number, 3);
    assert_non_null(registry_history_of(&h, "t/1", &n));
    assert_int_equal(n, 2);
    assert_null(registry_history_of(&h, "t", &n));
    registry_history_fini(&h);
}

/* Writes all versions of `from` and reads them into `to`; of `broken` (0: none) the value is cut.
 */
static void restart(const struct registry_history *from, struct registry_history *to,
                    uint32_t broken)
{
    for (size_t i = 0; i < from->n; i++) {
        for (size_t k = 0; k < from->subjects[i]->versions_n; k++) {
            const struct registry_version *v = &from->subjects[i]->versions[k];
            struct writer key, value;

            wr_init(&key, 4096);
            wr_init(&value, 65536);
            registry_version_key(from->subjects[i], v, &key);
            registry_version_write(v, &value);
            struct span bytes = blob_span(value.b);
            if (v->number == broken)
                value.b->data[bytes.n - 6] ^= 1;
            assert_int_equal(registry_history_load(to, blob_span(key.b), bytes),
                             v->number == broken ? E_CORRUPT : 0);
            wr_fini(&key);
            wr_fini(&value);
        }
    }
}

static void versions_outlive_a_restart(void **state)
{
    struct registry_history h, again;

    (void)state;
    registry_history_init(&h);
    registry_history_init(&again);
    for (int i = 1; i <= 3; i++)
        show(&h, i, true);
    restart(&h, &again, 0);
    show(&again, 2, true);
    const struct registry_subject *s = value_of(&again);
    assert_int_equal(s->versions_n, 3);
    assert_int_equal(registry_subject_latest(s)->number, 2);
    for (uint32_t i = 1; i <= 3; i++) {
        assert_true(registry_subject_version(s, i)->saved);
        assert_true(span_eq(registry_subject_version(s, i)->text,
                            registry_subject_version(value_of(&h), i)->text));
    }
    registry_history_fini(&again);
    registry_history_fini(&h);
}

static void a_damaged_version_is_left_out_and_its_number_is_not_given_again(void **state)
{
    struct registry_history h, again;

    (void)state;
    registry_history_init(&h);
    registry_history_init(&again);
    for (int i = 1; i <= 3; i++)
        show(&h, i, true);
    restart(&h, &again, 3);
    assert_int_equal(value_of(&again)->versions_n, 2);
    show(&again, 3, true); /* what is served now, whatever became of what was kept */
    assert_int_equal(registry_subject_latest(value_of(&again))->number, 4);
    assert_null(registry_subject_version(value_of(&again), 3));
    registry_history_fini(&again);
    registry_history_fini(&h);
}

static void keys_that_nobody_wrote_are_refused(void **state)
{
    static const char *const keys[] = {"registry/",        "registry/t/s",
                                       "registry/t/s/",    "registry/t/s/0",
                                       "registry/t/s/x",   "registry/%41/s/1",
                                       "registry/t/s/1/2", "registry/t%/s/1",
                                       "other/t/s/1",      "registry/t/s/99999999999"};
    struct registry_history h;

    (void)state;
    registry_history_init(&h);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_int_equal(registry_history_load(&h, span_str(keys[i]), span_str("{}")), E_CORRUPT);
    assert_int_equal(h.n, 0);
    registry_history_fini(&h);
}

static void old_versions_go_the_served_one_and_the_highest_number_stay(void **state)
{
    struct registry_history h;
    struct registry_gone gone;
    size_t went = 0;

    (void)state;
    registry_history_init(&h);
    for (int i = 1; i <= REGISTRY_VERSIONS_MAX + 5; i++)
        show(&h, i, true);
    show(&h, 1, true);
    while (registry_history_prune(&h, &gone)) {
        assert_string_equal(gone.key,
                            went == 0 ? "registry/t%2F1/a%2Fb%25-value/0000000002" : gone.key);
        mem_free(gone.key);
        went++;
    }
    assert_int_equal(went, 5);
    const struct registry_subject *s = value_of(&h);
    assert_int_equal(s->versions_n, REGISTRY_VERSIONS_MAX);
    assert_int_equal(registry_subject_latest(s)->number, 1);
    assert_null(registry_subject_version(s, 6));
    assert_non_null(registry_subject_version(s, 7));
    assert_non_null(registry_subject_version(s, REGISTRY_VERSIONS_MAX + 5));
    registry_history_fini(&h);
}

static void out_of_memory_is_an_error_and_the_next_try_is_whole(void **state)
{
    (void)state;
    for (long after = 0; after < 60; after++) {
        struct registry_history h;
        struct world w;

        registry_history_init(&h);
        show(&h, 1, true);
        world_init(&w, 2, true);
        mem_fail_after(after, 0);
        int err = registry_history_take(&h, &w.view, 2);
        mem_fail_after(-1, 0);
        assert_true(err == 0 || err == E_NOMEM);
        assert_int_equal(registry_history_take(&h, &w.view, 2), 0);
        assert_int_equal(registry_subject_latest(value_of(&h))->number, 2);
        sc_avro_free(w.avro);
        registry_history_fini(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_schema_is_the_next_version_and_a_known_one_is_found_again),
        cmocka_unit_test(a_subject_without_a_topic_keeps_its_versions),
        cmocka_unit_test(versions_outlive_a_restart),
        cmocka_unit_test(a_damaged_version_is_left_out_and_its_number_is_not_given_again),
        cmocka_unit_test(keys_that_nobody_wrote_are_refused),
        cmocka_unit_test(old_versions_go_the_served_one_and_the_highest_number_stay),
        cmocka_unit_test(out_of_memory_is_an_error_and_the_next_try_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
