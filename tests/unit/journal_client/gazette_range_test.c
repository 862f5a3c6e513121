/*
 * Where bytes of a journal are had: the tail's ring, a stored fragment, a broker; what is done when
 * one of them fails, and what is kept of what a broker brings. Brokers and stores are this file.
 */
#include "tests/contract/store_lab.h"

#include "base/log.h"
#include "journal_client/gazette/gazette_int.h"

int __wrap_gz_rpc(struct gz_store *s, const char *endpoint, const char *method,
                  const ProtobufCMessage *m, int64_t timeout_ms, const struct gz_call_cb *cb,
                  struct gz_call **out);
void __wrap_gz_call_cancel(struct gz_call *c);
int __wrap_gz_direct_start(struct gz_journal *j, const struct gz_frag *f, int64_t begin, size_t max,
                           gz_direct_fn *done, void *arg, struct gz_job **out);
bool __wrap_gz_journal_renew(struct gz_journal *j);
void __wrap_gz_journal_refresh(struct gz_journal *j, int64_t max_age_ms);
void __wrap_gz_later(struct gz_store *s, struct task *t, void (*run)(struct task *t));
void __wrap_gz_arm(struct event *timer, int64_t ms);

static struct {
    struct gz_call_cb cb;
    int64_t from, to; /* the Read that runs */
    unsigned reads, canceled, armed, renewed;
    bool running, renews;
    gz_direct_fn *direct;
    void *direct_arg;
    int64_t direct_at;
    size_t direct_n;
    int direct_err; /* what starting one says */
    struct task *later;
} w;

int __wrap_gz_rpc(struct gz_store *s, const char *endpoint, const char *method,
                  const ProtobufCMessage *m, int64_t timeout_ms, const struct gz_call_cb *cb,
                  struct gz_call **out)
{
    const Gz__ReadRequest *rq = (const Gz__ReadRequest *)(const void *)m;

    (void)s;
    (void)endpoint;
    (void)timeout_ms;
    assert_string_equal(method, "Read");
    assert_false(w.running);
    w.cb = *cb;
    w.from = rq->offset;
    w.to = rq->end_offset;
    w.running = true;
    w.reads++;
    *out = (struct gz_call *)(uintptr_t)&w;
    return 0;
}

void __wrap_gz_call_cancel(struct gz_call *c)
{
    assert_ptr_equal(c, &w);
    assert_true(w.running);
    w.running = false;
    w.canceled++;
}

int __wrap_gz_direct_start(struct gz_journal *j, const struct gz_frag *f, int64_t begin, size_t max,
                           gz_direct_fn *done, void *arg, struct gz_job **out)
{
    (void)j;
    (void)f;
    if (w.direct_err < 0)
        return w.direct_err;
    w.direct = done;
    w.direct_arg = arg;
    w.direct_at = begin;
    w.direct_n = max;
    *out = (struct gz_job *)(uintptr_t)&w;
    return 0;
}

bool __wrap_gz_journal_renew(struct gz_journal *j)
{
    (void)j;
    w.renewed++;
    return w.renews;
}

void __wrap_gz_journal_refresh(struct gz_journal *j, int64_t max_age_ms)
{
    (void)j;
    (void)max_age_ms;
}

void __wrap_gz_later(struct gz_store *s, struct task *t, void (*run)(struct task *t))
{
    (void)s;
    assert_null(w.later);
    t->run = run;
    w.later = t;
}

void __wrap_gz_arm(struct event *timer, int64_t ms)
{
    (void)timer;
    (void)ms;
    w.armed++;
}

/* --- a journal of two stored fragments, [0, 10 MiB) and [12 MiB, 20 MiB) --- */

#define MIB (INT64_C(1) << 20)

static void hub_free(struct jc_hub *h)
{
    (void)h;
}

static const struct jc_hub_ops hub_ops = {.free = hub_free};
static const struct jc_store_ops store_ops = {.name = "test"};

static int64_t now_ms;

static int64_t wall_ns(void *arg)
{
    (void)arg;
    return 0;
}

static int64_t mono_ms(void *arg)
{
    (void)arg;
    return now_ms;
}

static const struct clock still = {.wall_ns = wall_ns, .mono_ms = mono_ms};

struct rig {
    struct gz_store s;
    struct gz_journal j;
    struct gz_frag frags[2];
    struct gz_range r;
    unsigned done;
    int err;
};

static void on_done(struct gz_range *r, int err)
{
    struct rig *g = (struct rig *)(void *)((char *)r - offsetof(struct rig, r));

    g->done++;
    g->err = err;
}

static void start(struct rig *g)
{
    jc_hub_init(&g->s.hub, &store_ops, &hub_ops, &still);
    g->s.evb = event_base_new();
    assert_non_null(g->s.evb);
    TAILQ_INIT(&g->s.aheads);
    TAILQ_INIT(&g->s.rings);
    TAILQ_INIT(&g->s.waiting);
    jc_hub_journal_init(&g->j.hub, &g->s.hub);
    g->j.store = &g->s;
    g->j.name = (char *)(uintptr_t) "some/journal";
    g->j.state = GZ_J_TAIL;
    TAILQ_INIT(&g->j.renewers);
    STAILQ_INIT(&g->j.ring);
    g->frags[0] =
        (struct gz_frag){.end = 10 * MIB, .mod_time_s = 1, .url = (char *)(uintptr_t) "u"};
    g->frags[1] = (struct gz_frag){
        .begin = 12 * MIB, .end = 20 * MIB, .mod_time_s = 1, .url = (char *)(uintptr_t) "u"};
    g->j.frags.v = g->frags;
    g->j.frags.n = 2;
    memset(&w, 0, sizeof w);
}

static void later(void)
{
    struct task *t = w.later;

    if (t == NULL) {
        fail_msg("nothing is to be run");
        return;
    }
    w.later = NULL;
    t->run(t);
}

static void ask(struct rig *g, int64_t begin, int64_t end, size_t max)
{
    g->r = (struct gz_range){.j = &g->j, .begin = begin, .end = end, .max = max, .done = on_done};
    g->done = 0;
    gz_range_start(&g->r);
    later();
}

static struct blob *bytes_of(size_t n, int64_t at)
{
    struct blob *b = blob_new(n);

    assert_non_null(b);
    for (size_t i = 0; i < n; i++)
        b->data[i] = (uint8_t)((at + (int64_t)i) % 251);
    b->len = n;
    return b;
}

/* The range ended with so many bytes that lie at `at`; 0: with nothing. */
static void expect(struct rig *g, int64_t at, size_t n)
{
    later();
    assert_int_equal(g->done, 1);
    assert_int_equal(g->err, 0);
    if (n == 0) {
        assert_null(g->r.bytes);
        return;
    }
    if (g->r.bytes == NULL) {
        fail_msg("no bytes");
        return;
    }
    assert_int_equal(g->r.at, at);
    assert_int_equal(g->r.bytes->len, n);
    for (size_t i = 0; i < n; i += 97)
        assert_int_equal(g->r.bytes->data[i], (at + (int64_t)i) % 251);
    blob_unref(g->r.bytes);
    g->r.bytes = NULL;
}

/* An answer of the broker: metadata (n 0), or content. */
static void say(int status, int64_t offset, size_t n)
{
    Gz__ReadResponse m;
    Gz__Fragment f;

    gz__read_response__init(&m);
    gz__fragment__init(&f);
    m.status = status;
    m.offset = offset;
    m.write_head = 20 * MIB;
    struct blob *content = bytes_of(n, offset);
    if (n == 0 && status == GZ_OK)
        m.fragment = &f;
    m.content.data = content->data;
    m.content.len = n;
    struct blob *b = gz_pack(&m.base);
    assert_non_null(b);
    if (w.running)
        w.cb.on_message(w.cb.arg, blob_span(b));
    blob_unref(b);
    blob_unref(content);
}

static void end(int err)
{
    const struct gz_end e = {.err = err, .message = ""};

    assert_true(w.running);
    w.running = false;
    w.cb.on_end(w.cb.arg, &e);
}

static void stop(struct rig *g)
{
    assert_int_equal(g->s.aheads_running, 0);
    gz_ahead_drop(&g->j);
    gz_ring_drop(&g->j);
    event_base_free(g->s.evb);
}

static void direct(int err, size_t n)
{
    w.direct(w.direct_arg, err, err < 0 ? NULL : bytes_of(n, w.direct_at));
}

/* --- tests --- */

static void a_stored_fragment_is_read_where_it_lies_and_not_beyond(void **state)
{
    struct rig g = {0};

    (void)state;
    start(&g);
    ask(&g, 10 * MIB - 1000, 13 * MIB, 4096);
    assert_int_equal(w.direct_n, 1000); /* its end */
    direct(0, 1000);
    expect(&g, 10 * MIB - 1000, 1000);
    ask(&g, 10 * MIB + 5, 13 * MIB, 4096); /* a hole is passed over */
    assert_int_equal(w.direct_at, 12 * MIB);
    direct(0, 4096);
    expect(&g, 12 * MIB, 4096);
    ask(&g, 10 * MIB, 12 * MIB, 4096);
    expect(&g, 0, 0);
    assert_int_equal(w.reads, 0);
    stop(&g);
}

static void what_fails_there_is_had_from_a_broker(void **state)
{
    static const int errs[] = {E_IO, E_CORRUPT, E_TIMEOUT, E_DENIED, E_UNSUPPORTED};

    (void)state;
    for (size_t i = 0; i < sizeof errs / sizeof errs[0]; i++) {
        struct rig g = {0};
        start(&g);
        ask(&g, 1000, 2000, 4096);
        direct(errs[i], 0);
        assert_int_equal(w.from, 1000);
        say(GZ_OK, 1000, 0);
        say(GZ_OK, 1000, 1500);
        end(0);
        expect(&g, 1000, 1000);
        stop(&g);
    }
}

/* A piece is read at once and kept; what follows is had from there. */
static void what_a_broker_reads_ahead_is_asked_for_once(void **state)
{
    struct rig g = {0};

    (void)state;
    start(&g);
    w.direct_err = E_UNSUPPORTED;
    ask(&g, 1000, 2000, 4096);
    assert_int_equal(w.from, 1000);
    assert_int_equal(w.to, 1000 + 4 * MIB);
    for (int64_t at = 1000; at < 1000 + 4 * MIB; at += MIB)
        say(GZ_OK, at, (size_t)MIB);
    assert_false(w.running); /* all that was asked for came: it is not waited for the end */
    expect(&g, 1000, 1000);
    for (int64_t at = 2000; at < 3 * MIB; at += MIB) {
        ask(&g, at, at + 5000, 5000);
        expect(&g, at, 5000);
    }
    assert_int_equal(w.reads, 1);
    stop(&g);
}

/* As many journals as there are places; the others get what they asked for alone. */
static void more_journals_than_places_do_not_take_turns(void **state)
{
    static struct rig v[12];
    struct rig *first = &v[0];

    (void)state;
    memset(v, 0, sizeof v);
    start(first);
    w.direct_err = E_UNSUPPORTED;
    for (size_t i = 1; i < 12; i++) {
        jc_hub_journal_init(&v[i].j.hub, &first->s.hub);
        v[i].j.store = &first->s;
        v[i].j.name = first->j.name;
        v[i].j.state = GZ_J_TAIL;
        TAILQ_INIT(&v[i].j.renewers);
        STAILQ_INIT(&v[i].j.ring);
        v[i].j.frags = first->j.frags;
    }
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 12; i++) {
            int64_t at = 1000 + round * 100;
            unsigned reads = w.reads;
            ask(&v[i], at, at + 100, 100);
            if (i < 8 && round > 0) {
                assert_int_equal(w.reads, reads);
            } else {
                assert_int_equal(w.to - w.from, i < 8 ? 4 * MIB : 100);
                say(GZ_OK, at, (size_t)(w.to - w.from));
            }
            expect(&v[i], at, 100);
        }
    }
    /* Who did not read from its own for a while gives its place up. */
    now_ms += 60000;
    ask(&v[11], 5000, 5100, 100);
    assert_int_equal(w.to - w.from, 4 * MIB);
    say(GZ_OK, 5000, 100);
    end(0);
    expect(&v[11], 5000, 100);
    assert_null(first->j.ahead);
    for (size_t i = 1; i < 12; i++)
        gz_ahead_drop(&v[i].j);
    assert_int_equal(first->s.aheads_n, 0);
    stop(first);
}

/* What is under way holds its place, however it ends. */
static void a_place_is_given_back_however_the_read_ends(void **state)
{
    struct rig g = {0};

    (void)state;
    start(&g);
    w.direct_err = E_UNSUPPORTED;
    ask(&g, 0, 100, 100);
    assert_int_equal(g.s.aheads_running, 1);
    end(E_IO); /* it waits for its next attempt */
    assert_int_equal(g.s.aheads_running, 0);
    assert_int_equal(w.armed, 1);
    gz_ranges_end(&g.s);
    later();
    assert_int_equal(g.err, E_CLOSED);
    ask(&g, 0, 100, 100);
    gz_range_cancel(&g.r);
    assert_int_equal(g.s.aheads_running, 0);
    later();
    assert_int_equal(g.err, E_CANCELED);
    assert_int_equal(g.done, 1);
    stop(&g);
}

/* A Read that jumps over what is listed: a new list is asked for before that is believed. */
static void a_jump_is_believed_when_lists_do_not_know_better(void **state)
{
    struct rig g = {0};

    (void)state;
    start(&g);
    w.direct_err = E_UNSUPPORTED;
    w.renews = true;
    ask(&g, 1000, 2000, 4096);
    for (unsigned i = 1; i <= 3; i++) {
        say(GZ_OK, 12 * MIB, 0);
        assert_false(w.running);
        assert_int_equal(w.renewed, i);
        gz_ranges_go_on(&g.j.renewers, 0);
    }
    say(GZ_OK, 12 * MIB, 0);
    say(GZ_OK, 12 * MIB, 1000);
    end(0);
    expect(&g, 0, 0);
    stop(&g);
}

/* The list says that it is gone: it goes on at the first byte at once. */
static void behind_a_new_list_the_read_goes_on_at_the_first_byte(void **state)
{
    struct rig g = {0};

    (void)state;
    start(&g);
    w.renews = true;
    ask(&g, 1000, 13 * MIB, 4096);
    direct(E_NOTFOUND, 0);
    assert_int_equal(w.renewed, 1);
    g.j.first = 12 * MIB;
    w.direct_err = E_UNSUPPORTED;
    gz_ranges_go_on(&g.j.renewers, 0);
    assert_int_equal(w.from, 12 * MIB);
    say(GZ_OK, 12 * MIB, 5000);
    end(0);
    expect(&g, 12 * MIB, 4096);
    stop(&g);
}

static void nonsense_of_a_broker_is_no_content(void **state)
{
    struct rig g = {0};

    (void)state;
    start(&g);
    w.direct_err = E_UNSUPPORTED;
    ask(&g, 1000, 2000, 4096);
    say(GZ_OK, INT64_C(1) << 40, 500); /* behind all that was asked for */
    say(GZ_OK, 10, 500);               /* before it */
    w.cb.on_message(w.cb.arg, span_str("\xff\xff"));
    assert_int_equal(wr_len(&g.r.got), 0);
    end(0);
    assert_int_equal(w.armed, 1); /* tried again, later */
    assert_int_equal(g.done, 0);
    gz_ranges_end(&g.s);
    later();
    stop(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stored_fragment_is_read_where_it_lies_and_not_beyond),
        cmocka_unit_test(what_fails_there_is_had_from_a_broker),
        cmocka_unit_test(what_a_broker_reads_ahead_is_asked_for_once),
        cmocka_unit_test(more_journals_than_places_do_not_take_turns),
        cmocka_unit_test(a_place_is_given_back_however_the_read_ends),
        cmocka_unit_test(a_jump_is_believed_when_lists_do_not_know_better),
        cmocka_unit_test(behind_a_new_list_the_read_goes_on_at_the_first_byte),
        cmocka_unit_test(nonsense_of_a_broker_is_no_content),
    };

    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
