/* Random journals in the memory store against the model of what was written. */
#include "tests/unit/gateway/fetch_model.h"

/* Brings the store up to the model. */
static void flush(struct model *m)
{
    struct fake_journal *j = m->lab->journals[0][0];
    size_t n = m->len - m->flushed;
    char *text = mem_strndup((const char *)m->bytes + m->flushed, n);

    assert_non_null(text);
    fake_append(m->lab->fs, j, text);
    mem_free(text);
    m->flushed = m->len;
    assert_int_equal(j->heads.content_end, m->content_end);
    lab_heads(m->lab);
}

static struct model *random_journal(uint64_t seed)
{
    struct model *m = model_new(lab_new(), seed);

    lab_topic(m->lab, "docs", 1);
    m->lab->topics[0].bound = model_bound(m, seed);
    lab_view(m->lab);
    model_write(m, 40 + rnd(m, 300));
    flush(m);
    return m;
}

static void drop(struct model *m)
{
    lab_free(m->lab);
    model_free(m);
}

/* Removes a prefix at a document's border, as retention does. */
static void remove_some(struct model *m)
{
    size_t n = rnd(m, m->n);

    for (size_t i = 0; i < n; i++) {
        if (m->docs[i].content)
            m->log_start = m->docs[i].end;
    }
    model_remove(m, 0, m->docs[n].begin);
    fake_remove_below(m->lab->fs, m->lab->journals[0][0], m->docs[n].begin, m->log_start);
    lab_heads(m->lab);
}

static void every_offset_of_random_journals_is_answered_as_the_model_says(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct model *m = random_journal(seed);

        if (seed % 3 == 0)
            remove_some(m);
        model_fetch_many(m, 70);
        drop(m);
    }
}

static void a_reader_that_follows_gets_each_visible_document_once(void **state)
{
    (void)state;
    for (uint64_t seed = 100; seed < 106; seed++) {
        struct model *m = random_journal(seed);
        int64_t at = 0;

        for (int round = 0; round < 30; round++) {
            at = model_follow(m, at); /* checks order and completeness */
            model_write(m, 1 + rnd(m, 8));
            flush(m);
        }
        drop(m);
    }
}

static void byte_ranges_split_a_journal_without_loss_or_double(void **state)
{
    (void)state;
    for (uint64_t seed = 200; seed < 204; seed++) {
        struct model *m = random_journal(seed);
        size_t seen = 0, expected = 0;

        for (size_t i = 0; i < m->n; i++)
            expected += model_visible(m, i);
        for (int64_t part = 0; part < 3; part++) {
            int64_t at = m->content_end * part / 3, high = m->content_end * (part + 1) / 3;
            while (at < high) {
                int64_t next = model_fetch(m, at);
                for (size_t i = model_first(m, at);
                     i < m->n && m->docs[i].end - 1 < next && m->docs[i].end - 1 < high;
                     i = model_next(m, i))
                    seen++;
                at = next;
            }
        }
        assert_int_equal(seen, expected);
        drop(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_offset_of_random_journals_is_answered_as_the_model_says),
        cmocka_unit_test(a_reader_that_follows_gets_each_visible_document_once),
        cmocka_unit_test(byte_ranges_split_a_journal_without_loss_or_double),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
