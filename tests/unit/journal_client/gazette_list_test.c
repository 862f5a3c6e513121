/*
 * The listing: snapshots in several messages, watches that are resumed or begun anew, journals that
 * keep their objects, and rows that no sound broker sends. The broker is this file.
 */
#include "tests/contract/store_lab.h"

#include "base/log.h"
#include "journal_client/gazette/gazette_int.h"

int __wrap_gz_rpc(struct gz_store *s, const char *endpoint, const char *method,
                  const ProtobufCMessage *m, int64_t timeout_ms, const struct gz_call_cb *cb,
                  struct gz_call **out);
void __wrap_gz_call_cancel(struct gz_call *c);
void __wrap_gz_apply_listed(struct gz_store *s, int64_t revision);
void __wrap_gz_arm(struct event *timer, int64_t ms);

static struct {
    struct gz_call_cb cb; /* of the watch that runs */
    unsigned calls, canceled, armed;
    struct event *timer; /* that was armed last */
    bool resumes;        /* it names a revision */
    int64_t resume_revision, listed;
} broker;

int __wrap_gz_rpc(struct gz_store *s, const char *endpoint, const char *method,
                  const ProtobufCMessage *m, int64_t timeout_ms, const struct gz_call_cb *cb,
                  struct gz_call **out)
{
    const Gz__ListRequest *rq = (const Gz__ListRequest *)(const void *)m;

    (void)s;
    (void)timeout_ms;
    assert_null(endpoint);
    assert_string_equal(method, "List");
    assert_true(rq->watch);
    broker.cb = *cb;
    broker.calls++;
    broker.resumes = rq->watch_resume != NULL;
    broker.resume_revision = broker.resumes ? rq->watch_resume->etcd->revision : 0;
    *out = (struct gz_call *)(uintptr_t)&broker;
    return 0;
}

void __wrap_gz_call_cancel(struct gz_call *c)
{
    assert_ptr_equal(c, &broker);
    broker.canceled++;
}

void __wrap_gz_apply_listed(struct gz_store *s, int64_t revision)
{
    (void)s;
    broker.listed = revision;
}

void __wrap_gz_arm(struct event *timer, int64_t ms)
{
    (void)ms;
    broker.timer = timer;
    broker.armed++;
}

/* --- a store with nothing but its list --- */

static int64_t time_ms = 1000;

static int64_t mono(void *arg)
{
    (void)arg;
    return time_ms;
}

static int64_t wall(void *arg)
{
    (void)arg;
    return time_ms * 1000000;
}

static const struct clock lab_clock = {.wall_ns = wall, .mono_ms = mono};

static void hub_free(struct jc_hub *h)
{
    (void)h;
}

static const struct jc_hub_ops hub_ops = {.free = hub_free, .journal_free = gz_journal_free};
static const struct jc_store_ops store_ops = {.name = "test"};

struct rig {
    struct gz_store s;
    struct gz_list *l;
};

static void start(struct rig *g)
{
    jc_hub_init(&g->s.hub, &store_ops, &hub_ops, &lab_clock);
    g->s.evb = event_base_new();
    assert_non_null(g->s.evb);
    TAILQ_INIT(&g->s.aheads);
    TAILQ_INIT(&g->s.rings);
    TAILQ_INIT(&g->s.searches);
    memset(&broker, 0, sizeof broker);
    assert_int_equal(gz_list_new(&g->s, &g->l), 0);
    gz_list_again(g->l);
    assert_int_equal(broker.calls, 1);
}

static void stop(struct rig *g)
{
    const struct jc_listing *l = g->s.hub.listing;

    gz_list_free(g->l);
    for (size_t i = 0; l != NULL && i < l->n; i++)
        gz_journal_gone(gz_of(l->items[i]), E_CLOSED);
    jc_listing_unref(l);
    event_base_free(g->s.evb);
}

struct row {
    const char *name;
    int64_t create_revision, mod_revision;
};

/* revision 0: no header's revision, as behind a snapshot. */
static void say(int64_t revision, const struct row *rows, size_t n)
{
    Gz__ListResponse m;
    Gz__Header header;
    Gz__Etcd etcd;
    Gz__ListedJournal listed[40], *list[40];
    Gz__JournalSpec specs[40];

    gz__list_response__init(&m);
    gz__header__init(&header);
    gz__etcd__init(&etcd);
    etcd.revision = revision;
    header.etcd = &etcd;
    m.header = &header;
    m.journals = list;
    for (size_t i = 0; i < n; i++) {
        gz__listed_journal__init(&listed[i]);
        gz__journal_spec__init(&specs[i]);
        specs[i].name = (char *)(uintptr_t)rows[i].name;
        listed[i].spec = rows[i].name == NULL ? NULL : &specs[i];
        listed[i].create_revision = rows[i].create_revision;
        listed[i].mod_revision = rows[i].mod_revision;
        list[i] = &listed[i];
    }
    m.n_journals = n;
    struct blob *b = gz_pack(&m.base);
    assert_non_null(b);
    broker.cb.on_message(broker.cb.arg, blob_span(b));
    blob_unref(b);
}

static void say_all(int64_t revision, const struct row *rows, size_t n)
{
    say(revision, rows, n);
    say(0, NULL, 0);
}

static void end(int err)
{
    const struct gz_end e = {.err = err, .message = ""};

    broker.cb.on_end(broker.cb.arg, &e);
}

/* As its timer would. */
static void timer(struct rig *g)
{
    unsigned calls = broker.calls;

    assert_true(broker.armed > 0);
    broker.armed = 0;
    event_active(broker.timer, EV_TIMEOUT, 0);
    assert_true(event_base_loop(g->s.evb, EVLOOP_NONBLOCK) >= 0);
    assert_int_equal(broker.calls, calls + 1);
}

static const struct row two[] = {{"some/a", 5, 6}, {"some/b", 7, 8}};

static void a_snapshot_counts_when_it_is_whole(void **state)
{
    struct rig g = {0};

    (void)state;
    start(&g);
    say(10, &two[1], 1);
    say(10, &two[0], 1);
    assert_null(g.s.hub.listing);
    say(0, NULL, 0);
    assert_int_equal(g.s.hub.listing->n, 2);
    assert_int_equal(g.s.hub.listing->revision, 10);
    assert_string_equal(g.s.hub.listing->items[0]->spec.name, "some/a");
    assert_int_equal(broker.listed, 10);
    stop(&g);
}

static void journals_stay_while_name_and_create_revision_do(void **state)
{
    static const struct row changed[] = {{"some/a", 5, 11}, {"some/b", 12, 12}};
    struct rig g = {0};

    (void)state;
    start(&g);
    say_all(10, two, 2);
    struct gz_journal *a = gz_journal_ref(gz_of(g.s.hub.listing->items[0])),
                      *b = gz_journal_ref(gz_of(g.s.hub.listing->items[1]));
    say_all(12, changed, 2);
    assert_ptr_equal(gz_of(g.s.hub.listing->items[0]), a);
    assert_int_equal(a->mod_revision, 11);
    assert_ptr_not_equal(gz_of(g.s.hub.listing->items[1]), b);
    assert_true(b->hub.deleted);
    assert_false(a->hub.deleted);
    say_all(13, NULL, 0);
    assert_true(a->hub.deleted);
    assert_int_equal(g.s.hub.listing->n, 0);
    gz_journal_unref(a);
    gz_journal_unref(b);
    stop(&g);
}

static void a_name_that_cannot_be_or_comes_twice_is_passed_over(void **state)
{
    static const struct row rows[] = {
        {"some/b", 7, 8},      {"some/a", 5, 6},     {"some/a", 77, 77}, {"some/a", 76, 99},
        {"some/a", 77, 78},    {"", 1, 1},           {"..", 1, 1},       {"some/../other", 1, 1},
        {"some//other", 1, 1}, {"/some", 1, 1},      {"some/", 1, 1},    {"some other", 1, 1},
        {"some\nother", 1, 1}, {"a\x01\x02z", 1, 1}, {NULL, 1, 1},       {"some/b", 7, 8},
    };
    struct rig g = {0};

    (void)state;
    start(&g);
    for (int i = 0; i < 2; i++) { /* the same once more changes nothing */
        say_all(100 + i, rows, sizeof rows / sizeof rows[0]);
        const struct jc_listing *l = g.s.hub.listing;
        assert_int_equal(l->n, 2);
        assert_string_equal(l->items[0]->spec.name, "some/a");
        assert_int_equal(l->items[0]->create_revision, 77); /* the one that was made last */
        assert_int_equal(l->items[0]->mod_revision, 78);
        assert_string_equal(l->items[1]->spec.name, "some/b");
    }
    stop(&g);
}

static void a_watch_is_resumed_from_its_last_snapshot(void **state)
{
    struct rig g = {0};

    (void)state;
    start(&g);
    assert_false(broker.resumes);
    say_all(10, two, 2);
    say(11, two, 1); /* half of one */
    end(E_IO);
    assert_int_equal(g.s.hub.listing->n, 2);
    timer(&g);
    assert_true(broker.resumes);
    assert_int_equal(broker.resume_revision, 10);
    say_all(12, two, 1);
    assert_int_equal(g.s.hub.listing->n, 1);
    end(0);
    timer(&g);
    assert_int_equal(broker.resume_revision, 12);
    /* One that ends again and again without news may not know that revision: all is asked. */
    for (int i = 0; i < 4; i++) {
        end(0);
        timer(&g);
    }
    assert_false(broker.resumes);
    stop(&g);
}

static void what_is_no_answer_ends_the_watch_and_keeps_the_listing(void **state)
{
    struct rig g = {0};

    (void)state;
    start(&g);
    say_all(10, two, 2);
    broker.cb.on_message(broker.cb.arg, span_str("\xff\xff\xff"));
    assert_int_equal(broker.canceled, 1);
    assert_int_equal(g.s.hub.listing->n, 2);
    timer(&g);
    assert_false(broker.resumes);
    say_all(11, two, 2);
    assert_int_equal(g.s.hub.listing->revision, 11);
    stop(&g);
}

/* A broker that lags behind etcd must not end what another one has told of. */
static void an_older_snapshot_is_not_believed_until_it_is_told_for_long(void **state)
{
    struct rig g = {0};

    (void)state;
    start(&g);
    say_all(10, two, 2);
    gz_list_again(g.l); /* nothing is resumed: another broker may answer */
    for (int i = 0; i < 5; i++) {
        say_all(9, two, 1);
        assert_int_equal(g.s.hub.listing->n, 2);
        time_ms += 900;
        timer(&g);
    }
    say_all(10, two, 2); /* it has caught up */
    gz_list_again(g.l);
    say_all(9, two, 1); /* the time counts anew */
    assert_int_equal(g.s.hub.listing->n, 2);
    time_ms += 5000;
    timer(&g);
    say_all(9, two, 1); /* etcd itself lost what it had */
    assert_int_equal(g.s.hub.listing->n, 1);
    assert_int_equal(g.s.hub.listing->revision, 9);
    say_all(11, two, 2);
    assert_int_equal(g.s.hub.listing->n, 2);
    stop(&g);
}

static void a_snapshot_without_a_revision_is_no_answer(void **state)
{
    struct rig g = {0};

    (void)state;
    start(&g);
    say_all(10, two, 2);
    gz_list_again(g.l);
    unsigned canceled = broker.canceled;
    say(0, NULL, 0);
    assert_int_equal(broker.canceled, canceled + 1);
    assert_int_equal(g.s.hub.listing->n, 2);
    stop(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_counts_when_it_is_whole),
        cmocka_unit_test(journals_stay_while_name_and_create_revision_do),
        cmocka_unit_test(a_name_that_cannot_be_or_comes_twice_is_passed_over),
        cmocka_unit_test(a_watch_is_resumed_from_its_last_snapshot),
        cmocka_unit_test(what_is_no_answer_ends_the_watch_and_keeps_the_listing),
        cmocka_unit_test(an_older_snapshot_is_not_believed_until_it_is_told_for_long),
        cmocka_unit_test(a_snapshot_without_a_revision_is_no_answer),
    };

    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
