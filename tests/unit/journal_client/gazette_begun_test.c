/* The record of a transaction that was begun: what is written is read, and nothing else is taken
 * for a record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "journal_client/gazette/begun.h"

#define PARTS 3

struct lab {
    struct gz_journal j[PARTS];
    struct jc_journal shown[PARTS];
    struct jc_append_part parts[PARTS];
    struct jc_kv kv[2];
    struct jc_txn txn;
};

static void lab_init(struct lab *lab)
{
    static char names[PARTS][8] = {"a/0", "a/1", "a/2"};

    *lab = (struct lab){.kv = {{"idem/1", span_str("an answer"), 77}, {"other", span_str(""), 0}}};
    for (int i = 0; i < PARTS; i++) {
        lab->j[i].name = names[i];
        lab->j[i].create_revision = 10 + i;
        lab->shown[i].impl = &lab->j[i];
        lab->parts[i] = (struct jc_append_part){.journal = &lab->shown[i],
                                                .bytes = blob_copy(span_str("0123456789\n")),
                                                .begin = 100 * i,
                                                .end = 100 * i + 11};
        assert_non_null(lab->parts[i].bytes);
    }
    lab->txn = (struct jc_txn){.parts = lab->parts, .parts_n = PARTS, .kv = lab->kv, .kv_n = 2};
}

static void lab_fini(struct lab *lab)
{
    for (int i = 0; i < PARTS; i++)
        blob_unref(lab->parts[i].bytes);
}

static struct gz_begun *reread(const struct gz_begun *before, const struct jc_txn *txn)
{
    struct gz_begun *g = NULL;
    struct blob *b = NULL;

    assert_int_equal(gz_begun_write(before, txn, &b), 0);
    assert_int_equal(gz_begun_read(blob_span(b), txn, &g), 0);
    blob_unref(b);
    assert_non_null(g);
    return g;
}

static void what_is_recorded_is_read_again(void **state)
{
    struct lab lab;
    struct jc_kv *kv;
    size_t n;

    (void)state;
    lab_init(&lab);
    struct gz_begun *g = reread(NULL, &lab.txn);
    assert_int_equal(g->attempts, 1);
    assert_int_equal(g->n, PARTS);
    for (size_t i = 0; i < PARTS; i++) {
        assert_int_equal(g->v[i].part, i);
        assert_int_equal(g->v[i].state, GZ_B_OPEN);
        assert_int_equal(g->v[i].begin, lab.parts[i].begin);
        assert_int_equal(g->v[i].end, lab.parts[i].end);
    }
    assert_int_equal(gz_begun_values(g, 0, &kv, &n), 0);
    assert_int_equal(n, 2);
    assert_string_equal(kv[0].key, "idem/1");
    assert_true(span_eq(kv[0].value, span_str("an answer")));
    assert_int_equal(kv[0].expires_ms, 77);
    assert_string_equal(kv[1].key, "other");
    assert_int_equal(kv[1].value.n, 0);
    mem_free(kv);
    gz_begun_drop(g);
    lab_fini(&lab);
}

static void parts_of_journals_made_anew_are_nobody_s(void **state)
{
    struct lab lab;
    struct gz_begun *g = NULL;
    struct blob *b = NULL;

    (void)state;
    lab_init(&lab);
    assert_int_equal(gz_begun_write(NULL, &lab.txn, &b), 0);
    lab.j[1].create_revision = 50;
    assert_int_equal(gz_begun_read(blob_span(b), &lab.txn, &g), 0);
    assert_int_equal(g->v[0].part, 0);
    assert_true(g->v[1].part == SIZE_MAX);
    assert_int_equal(g->v[2].part, 2);
    blob_unref(b);
    gz_begun_drop(g);
    lab_fini(&lab);
}

static void open_attempts_are_carried_on_and_what_landed_stays_where_it_lies(void **state)
{
    struct lab lab;

    (void)state;
    lab_init(&lab);
    struct gz_begun *first = reread(NULL, &lab.txn);
    first->v[0].state = GZ_B_LANDED; /* the others may land yet */
    lab.parts[0].begin = 7;          /* nonsense: it is not sent */
    lab.parts[0].end = 18;
    lab.parts[1].begin = 500;
    lab.parts[1].end = 511;
    struct gz_begun *second = reread(first, &lab.txn);
    assert_int_equal(second->attempts, 2);
    assert_int_equal(second->n, 2 * PARTS);
    assert_int_equal(second->v[PARTS].begin, 0); /* of the new attempt */
    assert_int_equal(second->v[PARTS + 1].begin, 500);
    assert_int_equal(second->v[1].begin, 100); /* of the first */
    for (size_t i = 0; i < second->n; i++)
        second->v[i].state = i < PARTS ? GZ_B_GONE : GZ_B_OPEN;
    struct gz_begun *third = reread(second, &lab.txn); /* what is settled is left out */
    assert_int_equal(third->attempts, 2);
    gz_begun_drop(third);
    gz_begun_drop(second);
    gz_begun_drop(first);
    lab_fini(&lab);
}

static void what_may_land_yet_is_never_forgotten(void **state)
{
    struct lab lab;
    struct gz_begun *g = NULL;
    struct blob *b = NULL;

    (void)state;
    lab_init(&lab);
    for (int i = 0; i < GZ_ATTEMPTS_MAX; i++) {
        struct gz_begun *next = reread(g, &lab.txn);
        gz_begun_drop(g);
        g = next;
        lab.parts[0].begin += 1000;
        lab.parts[0].end += 1000;
    }
    assert_int_equal(g->attempts, GZ_ATTEMPTS_MAX);
    assert_int_equal(g->v[0].begin, 0);
    assert_int_equal(gz_begun_write(g, &lab.txn, &b), E_LIMIT);
    assert_null(b);
    gz_begun_drop(g);
    lab_fini(&lab);
}

static void another_tag_is_told(void **state)
{
    struct lab lab;
    struct gz_begun *g = NULL;
    struct blob *b = NULL;

    (void)state;
    lab_init(&lab);
    lab.txn.unless_tag = span_str("one body");
    assert_int_equal(gz_begun_write(NULL, &lab.txn, &b), 0);
    for (int i = 0; i < 3; i++) {
        lab.txn.unless_tag = span_str(i == 0 ? "one body" : i == 1 ? "another" : "");
        assert_int_equal(gz_begun_read(blob_span(b), &lab.txn, &g), 0);
        assert_int_equal(g->others[0], i == 1);
        gz_begun_drop(g);
    }
    blob_unref(b);
    lab_fini(&lab);
}

static void nothing_else_is_taken_for_a_record(void **state)
{
    struct lab lab;
    struct blob *b = NULL;

    (void)state;
    lab_init(&lab);
    assert_int_equal(gz_begun_write(NULL, &lab.txn, &b), 0);
    for (size_t n = 0; n < b->len; n++) {
        struct gz_begun *g = NULL;
        struct blob *cut = blob_copy(span_of(b->data, n)); /* so that ASan sees its end */
        int err = gz_begun_read(blob_span(cut), &lab.txn, &g);
        assert_int_equal(err, n <= 1 ? 0 : E_CORRUPT);
        assert_null(g);
        blob_unref(cut);
    }
    for (size_t i = 0; i < b->len; i++) {
        for (int bit = 0; bit < 8; bit++) { /* no crash, whatever it says */
            struct gz_begun *g = NULL;
            struct jc_kv *kv;
            size_t n;
            b->data[i] ^= (uint8_t)(1u << bit);
            if (gz_begun_read(blob_span(b), &lab.txn, &g) == 0 && g != NULL) {
                for (size_t a = 0; a < g->attempts; a++) {
                    if (gz_begun_values(g, a, &kv, &n) == 0)
                        mem_free(kv);
                }
            }
            gz_begun_drop(g);
            b->data[i] ^= (uint8_t)(1u << bit);
        }
    }
    blob_unref(b);
    lab_fini(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_recorded_is_read_again),
        cmocka_unit_test(parts_of_journals_made_anew_are_nobody_s),
        cmocka_unit_test(open_attempts_are_carried_on_and_what_landed_stays_where_it_lies),
        cmocka_unit_test(what_may_land_yet_is_never_forgotten),
        cmocka_unit_test(another_tag_is_told),
        cmocka_unit_test(nothing_else_is_taken_for_a_record),
    };
    return cmocka_run_group_tests_name("records of begun transactions", tests, NULL, NULL);
}
