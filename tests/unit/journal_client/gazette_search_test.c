/*
 * How far back the last content is looked for, and how much is read for it: over a journal of lines
 * that are made up where they are asked for.
 */
#include "tests/contract/store_lab.h"

#include "base/log.h"
#include "journal_client/gazette/gazette_int.h"

#define LINE (INT64_C(64) << 10)
#define MIB  (INT64_C(1) << 20)

static struct gz_range *pending;
static bool done;

void __wrap_gz_range_start(struct gz_range *r);
void __wrap_gz_search_done(struct gz_journal *j);
void __wrap_gz_arm(struct event *timer, int64_t ms);

void __wrap_gz_range_start(struct gz_range *r)
{
    assert_null(pending);
    pending = r;
}

void __wrap_gz_search_done(struct gz_journal *j)
{
    (void)j;
    done = true;
}

void __wrap_gz_arm(struct event *timer, int64_t ms)
{
    (void)timer;
    (void)ms;
}

struct rig {
    struct gz_store s;
    struct gz_journal j;
    int64_t content; /* the line that holds it; -1: none */
    int64_t hole;    /* nothing lies behind it; 0: no hole */
    int64_t read;
};

static void start(struct rig *g, int64_t head)
{
    g->s.probe.fn = lab_probe;
    TAILQ_INIT(&g->s.searches);
    jc_hub_journal_init(&g->j.hub, &g->s.hub);
    g->j.store = &g->s;
    g->j.name = (char *)(uintptr_t) "some/journal";
    TAILQ_INIT(&g->j.scanners);
    g->j.state = GZ_J_STARTING;
    g->j.said_head = head;
    done = false;
    pending = NULL;
}

static void put(const struct gz_range *r, int64_t at, int64_t end, char c)
{
    if (at >= r->begin && at < end)
        r->bytes->data[at - r->begin] = (uint8_t)c;
}

static void answer(struct rig *g, struct gz_range *r)
{
    int64_t end = r->end - r->begin > 4 * MIB ? r->begin + 4 * MIB : r->end;

    if (g->hole > 0 && end > g->hole)
        end = g->hole;
    if (end > r->begin) {
        r->bytes = blob_new((size_t)(end - r->begin));
        assert_non_null(r->bytes);
        memset(r->bytes->data, '.', (size_t)(end - r->begin));
        for (int64_t line = r->begin / LINE; line * LINE < end; line++) {
            put(r, line * LINE, end, line == g->content ? 'C' : 'A');
            put(r, line * LINE + 1, end, '7');
            put(r, line * LINE + 2, end, ':');
            put(r, (line + 1) * LINE - 1, end, '\n');
        }
        r->bytes->len = (size_t)(end - r->begin);
        r->at = r->begin;
        g->read += end - r->begin;
    }
    r->done(r, 0);
}

static void look(struct rig *g)
{
    gz_search_start(&g->j);
    while (!done) {
        struct gz_range *r = pending;
        assert_non_null(r);
        pending = NULL;
        answer(g, r);
    }
    assert_null(pending);
    assert_int_equal(g->s.searches_n, 0);
    assert_int_equal(g->j.tail.pos, g->j.said_head);
    assert_true(g->j.tail.aligned);
}

static void stop(struct rig *g)
{
    gz_feed_fini(&g->j.tail);
    assert_null(g->j.search.run.v);
    assert_null(g->j.search_near.run.v);
}

static void content_behind_the_largest_window_is_found(void **state)
{
    static const int64_t back[] = {65, 100, 128, 300, 500};

    (void)state;
    for (size_t i = 0; i < sizeof back / sizeof back[0]; i++) {
        struct rig g = {0};
        start(&g, 2000 * MIB);
        g.content = (2000 - back[i]) * MIB / LINE;
        look(&g);
        assert_int_equal(g.j.tail.run.sum.content_end, (g.content + 1) * LINE);
        assert_int_equal(g.j.tail.run.sum.max_clock, 7);
        assert_int_equal(g.j.tail.run.begin, (2000 - 64) * MIB + LINE);
        assert_int_equal(g.j.tail.run.end, 2000 * MIB);
        /* The windows near the head, and then as far as it lies, in steps of 64 MiB. */
        assert_true(g.read < (back[i] + 22 + 65) * MIB);
        stop(&g);
    }
}

static void no_more_is_read_than_the_limit(void **state)
{
    struct rig g = {.content = 10};

    (void)state;
    start(&g, 20000 * MIB);
    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    look(&g);
    /* The begin of what was looked at stands for it. */
    assert_int_equal(g.j.tail.run.sum.content_end, (20000 - 512) * MIB + LINE);
    assert_true(g.read < (512 + 23) * MIB);
    stop(&g);
}

static void nothing_is_looked_for_before_what_is_known(void **state)
{
    struct rig g = {.content = -1};

    (void)state;
    start(&g, 2000 * MIB);
    g.j.kept.content_end = 1850 * MIB;
    look(&g);
    assert_int_equal(g.j.tail.run.sum.content_end, 0); /* the kept one holds */
    assert_true(g.read < (64 * 3 + 22) * MIB);
    stop(&g);
    g = (struct rig){.content = -1};
    start(&g, 2000 * MIB);
    g.j.first = 1900 * MIB;
    look(&g);
    assert_int_equal(g.j.tail.run.sum.content_end, 0);
    assert_true(g.read < (100 + 22) * MIB);
    stop(&g);
}

static void a_hole_below_the_head_forgets_nothing(void **state)
{
    struct rig g = {.content = 40 * MIB / LINE - 2, .hole = 40 * MIB};

    (void)state;
    start(&g, 40 * MIB + 10000);
    look(&g);
    assert_int_equal(g.j.tail.run.sum.content_end, (g.content + 1) * LINE);
    stop(&g);
}

/* A look back that is stopped far back lets go of all it held. */
static void one_that_is_stopped_far_back_keeps_nothing(void **state)
{
    struct rig g = {.content = -1};

    (void)state;
    start(&g, 2000 * MIB);
    gz_search_start(&g.j);
    while (!g.j.search_far) {
        struct gz_range *r = pending;
        pending = NULL;
        answer(&g, r);
    }
    gz_search_stop(&g.j);
    struct gz_range *r = pending;
    r->done(r, E_CANCELED);
    assert_false(done);
    assert_int_equal(g.s.searches_n, 0);
    stop(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(content_behind_the_largest_window_is_found),
        cmocka_unit_test(no_more_is_read_than_the_limit),
        cmocka_unit_test(nothing_is_looked_for_before_what_is_known),
        cmocka_unit_test(a_hole_below_the_head_forgets_nothing),
        cmocka_unit_test(one_that_is_stopped_far_back_keeps_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
