/*
 * What many open journals of the distributed store cost: what tails keep shares one budget, those
 * that nobody waits for keep no stream, and whoever wants one that sleeps is not told old news.
 */
#include "tests/contract/gazette_bench.h"

#define JOURNALS  600
#define IDLE_MS   1500
#define DOC_BYTES 2000

/* Owner: one test. Journals followed as the view of a gateway follows them. */
struct many {
    struct bench b;
    const struct jc_journal *j[JOURNALS];
    struct jc_op *follow[JOURNALS];
    struct jc_heads heads[JOURNALS];
};

static void on_heads(void *arg, const struct jc_heads *h)
{
    *(struct jc_heads *)arg = *h;
}

static void name_of(char *to, size_t bytes, unsigned i)
{
    (void)snprintf(to, bytes, "many/%03u", i);
}

static void create_all(struct many *m)
{
    static struct jc_spec specs[JOURNALS];
    static char names[JOURNALS][16];
    struct jc_change c[100];

    for (unsigned i = 0; i < JOURNALS; i++) {
        name_of(names[i], sizeof names[i], i);
        specs[i] = (struct jc_spec){.name = names[i]};
        c[i % 100] = (struct jc_change){.upsert = &specs[i]};
        if (i % 100 == 99)
            assert_int_equal(lab_apply(&m->b.lab, c, 100, NULL), 0);
    }
    for (unsigned i = 0; i < JOURNALS; i++) {
        m->j[i] = lab_find(&m->b.lab, names[i]);
        assert_non_null(m->j[i]);
    }
}

static void append_one(struct many *m, unsigned i)
{
    char doc[DOC_BYTES];

    memset(doc, '.', sizeof doc);
    int n = snprintf(doc, sizeof doc, "C%x:", i + 1);
    doc[n] = '.';
    doc[sizeof doc - 1] = '\n';
    assert_int_equal(lab_append_span(&m->b.lab, m->j[i], span_of(doc, sizeof doc), NULL), 0);
}

static void start(struct many *m)
{
    m->b.o.idle_ms = IDLE_MS;
    m->b.o.tail_bytes = 1 << 20;
    bench_start(&m->b);
    create_all(m);
    for (unsigned i = 0; i < JOURNALS; i++) {
        const struct jc_follower f = {
            .ex = &m->b.lab.mb.ex, .on_heads = on_heads, .arg = &m->heads[i], .lazy = true};
        assert_int_equal(m->b.lab.s->ops->follow(m->b.lab.s, m->j[i], &f, &m->follow[i]), 0);
    }
}

static void end(struct many *m)
{
    for (unsigned i = 0; i < JOURNALS; i++) {
        if (m->follow[i] != NULL)
            m->b.lab.s->ops->cancel(m->follow[i]);
        jc_journal_unref(m->j[i]);
    }
    bench_end(&m->b);
}

static bool all_at(const struct many *m, int64_t content_end)
{
    for (unsigned i = 0; i < JOURNALS; i++) {
        if (m->heads[i].content_end != content_end)
            return false;
    }
    return true;
}

static void open_tails(int64_t *rings, int64_t *open)
{
    jc_gazette_tail_stats(rings, open);
}

static void many_journals_share_one_budget_and_sleep_without_streams(void **state)
{
    static struct many m;
    int64_t rings, open, most = 0;

    (void)state;
    start(&m);
    for (unsigned round = 1; round <= 2; round++) {
        for (unsigned i = 0; i < JOURNALS; i++) {
            append_one(&m, i);
            open_tails(&rings, &open);
            most = rings > most ? rings : most;
        }
    }
    while (!all_at(&m, 2L * DOC_BYTES))
        assert_true(mailbox_wait(&m.b.lab.mb, LAB_WAIT_MS) > 0);
    assert_true(most > 100 << 10);
    assert_true(most <= (1 << 20) + 2 * DOC_BYTES);
    for (int i = 0; i < 200; i++) { /* they fall asleep */
        lab_settle(&m.b.lab, 50);
        open_tails(&rings, &open);
        if (open <= 50 && rings == 0)
            break;
    }
    assert_true(open <= 50); /* short reads come and go */
    assert_int_equal(rings, 0);
    /* Others write: their news come, though late. */
    struct bench other = {.si = m.b.si};
    assert_int_equal(temp_dir_make(other.dir, sizeof other.dir), 0);
    bench_open(&other);
    for (int i = 0; i < 100 && other.j == NULL; i++) {
        other.j = lab_find(&other.lab, "many/007");
        lab_settle(&other.lab, 20);
    }
    assert_int_equal(lab_append(&other.lab, other.j, "C99:late\n"), 0);
    while (m.heads[7].content_end != 2L * DOC_BYTES + 9)
        assert_true(mailbox_wait(&m.b.lab.mb, LAB_WAIT_MS) > 0);
    /* Whoever looks closely sees what is there now. */
    for (int i = 0; i < 2; i++) {
        lab_settle(&m.b.lab, IDLE_MS + 1500); /* asleep again */
        assert_int_equal(lab_append(&other.lab, other.j, "C99:soon\n"), 0);
        assert_int_equal(lab_heads(&m.b.lab, m.j[7]).content_end, 2L * DOC_BYTES + 9 + 9 * (i + 1));
    }
    bench_close(&other);
    temp_dir_remove(other.dir);
    end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_journals_share_one_budget_and_sleep_without_streams),
    };

    log_setup(LOG_WARN, LOG_FORMAT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
