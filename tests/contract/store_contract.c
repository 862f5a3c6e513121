/*
 * What every store promises (journal_client/store.h). Written against jc_store_ops alone. Names,
 * offsets and order of callbacks are checked; how a store does it is not. One file, so that the
 * contract is read, and run over a new store, as a whole.
 */
#include "tests/contract/store_contract.h"

#include "tests/contract/store_lab.h"

static const struct store_factory *factory;

static int setup(void **state)
{
    struct lab *lab = mem_zalloc(sizeof *lab);

    assert_non_null(lab);
    lab_init(lab, factory->make(factory->arg));
    *state = lab;
    return 0;
}

static int teardown(void **state)
{
    struct lab *lab = *state;

    lab_fini(lab);
    mem_free(lab);
    factory->drop(factory->arg);
    return 0;
}

/* --- apply and watch --- */

static void apply_creates_only_what_does_not_exist(void **state)
{
    struct lab *lab = *state;
    const struct jc_spec spec = {.name = "acme/orders/p0"};
    struct jc_change c = {.upsert = &spec, .expect_mod_revision = 0};
    int64_t first, second;

    assert_int_equal(lab_apply(lab, &c, 1, &first), 0);
    assert_int_equal(lab_apply(lab, &c, 1, &second), E_CONFLICT);
    const struct jc_journal *j = lab_find(lab, spec.name);
    assert_non_null(j);
    assert_true(j->create_revision > 0 && j->create_revision == j->mod_revision);
    jc_journal_unref(j);
}

static void apply_updates_by_compare_and_set(void **state)
{
    struct lab *lab = *state;
    const struct jc_label labels[] = {{"estuary.dev/collection", "acme/orders"}};
    struct jc_spec spec = {.name = "acme/orders/p0"};
    const struct jc_journal *a = lab_create_spec(lab, &spec);
    struct jc_change c = {.upsert = &spec, .expect_mod_revision = a->mod_revision};

    spec.labels = labels;
    spec.labels_n = 1;
    assert_int_equal(lab_apply(lab, &c, 1, NULL), 0);
    assert_int_equal(lab_apply(lab, &c, 1, NULL), E_CONFLICT); /* its revision is old now */
    const struct jc_journal *b = lab_find(lab, spec.name);
    const char *value;
    assert_int_equal(jc_spec_label(&b->spec, "estuary.dev/collection", &value), 0);
    assert_string_equal(value, "acme/orders");
    assert_int_equal(a->create_revision, b->create_revision);
    assert_true(b->mod_revision > a->mod_revision);
    c.expect_mod_revision = -1;
    assert_int_equal(lab_apply(lab, &c, 1, NULL), 0);
    jc_journal_unref(a);
    jc_journal_unref(b);
}

static void apply_is_all_or_nothing(void **state)
{
    struct lab *lab = *state;
    const struct jc_spec one = {.name = "acme/one"}, two = {.name = "acme/two"};
    const struct jc_change both[] = {{.upsert = &one, .expect_mod_revision = 0},
                                     {.upsert = &two, .expect_mod_revision = 77}};

    assert_int_equal(lab_apply(lab, both, 2, NULL), E_CONFLICT);
    assert_null(lab_find(lab, "acme/one"));
    assert_null(lab_find(lab, "acme/two"));
}

static void apply_refuses_bad_names_and_labels(void **state)
{
    struct lab *lab = *state;
    static const char *const names[] = {"abc",         "/acme/a",    "acme/a/",  "acme//a",
                                        "acme/../etc", "../../etc1", "acme/./a", "acme a"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct jc_spec spec = {.name = names[i]};
        const struct jc_change c = {.upsert = &spec, .expect_mod_revision = -1};
        assert_int_equal(lab_apply(lab, &c, 1, NULL), E_INVALID);
    }
    const struct jc_label unsorted[] = {{"bb", "1"}, {"aa", "1"}};
    const struct jc_spec spec = {.name = "acme/a", .labels = unsorted, .labels_n = 2};
    const struct jc_change c = {.upsert = &spec, .expect_mod_revision = -1};
    assert_int_equal(lab_apply(lab, &c, 1, NULL), E_INVALID);
}

static void deleting_what_is_not_there_is_not_found(void **state)
{
    assert_int_equal(lab_delete(*state, "acme/nothing"), E_NOTFOUND);
}

struct watch_log {
    size_t snapshots, last_n;
    int64_t last_revision;
    bool ended;
    int err;
    bool saw_two;
};

static void on_snapshot(void *arg, const struct jc_listing *l)
{
    struct watch_log *w = arg;

    assert_false(w->ended);
    assert_true(l->revision >= w->last_revision);
    w->last_revision = l->revision;
    w->snapshots++;
    w->last_n = l->n;
    w->saw_two = l->n == 2;
    for (size_t i = 1; i < l->n; i++)
        assert_true(strcmp(l->items[i - 1]->spec.name, l->items[i]->spec.name) < 0);
}

static void on_watch_end(void *arg, int err)
{
    struct watch_log *w = arg;

    assert_false(w->ended);
    w->ended = true;
    w->err = err;
}

static void watch_tells_whole_snapshots_of_what_it_selected(void **state)
{
    struct lab *lab = *state;
    struct watch_log w = {0};
    const struct jc_match m = {.name = "name", .value = "acme/orders/", .prefix = true};
    const struct jc_selector sel = {&m, 1};
    const struct jc_watcher cb = {&lab->mb.ex, on_snapshot, on_watch_end, &w};
    struct jc_op *op;

    assert_int_equal(lab->s->ops->watch(lab->s, &sel, &cb, &op), 0);
    assert_int_equal(w.snapshots, 0); /* never from inside the call */
    jc_journal_unref(lab_create(lab, "acme/orders/p1"));
    jc_journal_unref(lab_create(lab, "acme/other/p0"));
    jc_journal_unref(lab_create(lab, "acme/orders/p0"));
    lab_wait(lab, &w.saw_two);
    assert_int_equal(w.last_n, 2);
    lab->s->ops->cancel(op);
    size_t before = w.snapshots;
    jc_journal_unref(lab_create(lab, "acme/orders/p2"));
    lab_settle(lab, 20);
    assert_int_equal(w.snapshots, before);
}

static void watch_ends_when_the_store_closes(void **state)
{
    struct lab *lab = *state;
    struct watch_log w = {0};
    const struct jc_selector all = {0};
    const struct jc_watcher cb = {&lab->mb.ex, on_snapshot, on_watch_end, &w};
    struct jc_op *op;

    assert_int_equal(lab->s->ops->watch(lab->s, &all, &cb, &op), 0);
    lab->s->ops->close(lab->s);
    lab->s = NULL;
    lab_settle(lab, 0);
    assert_true(w.ended);
    assert_int_equal(w.err, E_CLOSED);
}

/* --- append --- */

static void an_answered_append_is_readable_with_its_offsets(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");
    int64_t begin;

    assert_int_equal(lab_append_span(lab, j, span_str("one\n"), &begin), 0);
    assert_int_equal(begin, 0);
    assert_int_equal(lab_append_span(lab, j, span_str("two\nthree\n"), &begin), 0);
    assert_int_equal(begin, 4);
    lab_expect_text(lab, j, 0, "one\ntwo\nthree\n");
    lab_expect_text(lab, j, 5, "wo\nthree\n");
    lab_expect_text(lab, j, 14, "");
    jc_journal_unref(j);
}

static void appends_of_broken_or_no_lines_are_refused(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");

    assert_int_equal(lab_append(lab, j, "no newline"), E_INVALID);
    assert_int_equal(lab_append(lab, j, ""), E_INVALID);
    assert_int_equal(lab_append(lab, j, "a\nb"), E_INVALID);
    assert_int_equal(lab_append(lab, j, "a\nb\n"), 0);
    lab_expect_text(lab, j, 0, "a\nb\n");
    jc_journal_unref(j);
}

static int stamp(struct jc_txn *txn, struct jc_txn_clock *clock)
{
    uint64_t *seen = txn->arg;

    seen[0] = jc_txn_clock_begin(clock);
    seen[1] = jc_txn_clock_tick(clock);
    for (size_t i = 0; i < txn->parts_n; i++)
        (void)snprintf((char *)txn->parts[i].bytes->data, 18, "C%016llx",
                       (unsigned long long)seen[0]);
    for (size_t i = 0; i < txn->parts_n; i++)
        txn->parts[i].bytes->data[17] = ':';
    return 0;
}

static void prepare_stamps_the_bytes_that_are_stored(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *a = lab_create(lab, "acme/a"), *b = lab_create(lab, "acme/b");
    uint64_t first[2], second[2];
    struct jc_append_part parts[] = {
        {.journal = a, .bytes = blob_copy(span_str("C0000000000000000:x\n"))},
        {.journal = b, .bytes = blob_copy(span_str("C0000000000000000:x\n"))}};
    struct jc_txn txn = {.parts = parts, .parts_n = 2, .prepare = stamp, .arg = first};

    assert_int_equal(lab_txn(lab, &txn), 0);
    txn.arg = second;
    assert_int_equal(lab_txn(lab, &txn), 0);
    assert_true(second[0] > first[1] && first[1] == first[0] + 1);
    assert_true(lab_heads(lab, a).max_clock == second[0]);
    assert_int_equal(parts[0].begin, 20);
    assert_int_equal(parts[1].end, 40);
    for (size_t i = 0; i < 2; i++)
        blob_unref(parts[i].bytes);
    jc_journal_unref(a);
    jc_journal_unref(b);
}

static int refuse(struct jc_txn *txn, struct jc_txn_clock *clock)
{
    (void)txn;
    (void)clock;
    return E_DENIED;
}

static void a_refusal_by_prepare_writes_nothing(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");
    struct jc_append_part part = {.journal = j, .bytes = blob_copy(span_str("lost\n"))};
    struct jc_txn txn = {.parts = &part, .parts_n = 1, .prepare = refuse};

    assert_int_equal(lab_append(lab, j, "a\n"), 0);
    assert_int_equal(lab_txn(lab, &txn), E_DENIED);
    assert_int_equal(lab_append(lab, j, "b\n"), 0);
    lab_expect_text(lab, j, 0, "a\nb\n");
    blob_unref(part.bytes);
    jc_journal_unref(j);
}

static void one_transaction_may_hold_two_parts_of_a_journal(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");
    struct jc_append_part parts[] = {{.journal = j, .bytes = blob_copy(span_str("one\n"))},
                                     {.journal = j, .bytes = blob_copy(span_str("two\n"))}};
    struct jc_txn txn = {.parts = parts, .parts_n = 2};

    assert_int_equal(lab_txn(lab, &txn), 0);
    assert_int_equal(parts[1].begin, 4);
    lab_expect_text(lab, j, 0, "one\ntwo\n");
    blob_unref(parts[0].bytes);
    blob_unref(parts[1].bytes);
    jc_journal_unref(j);
}

static void a_transaction_with_a_lost_journal_leaves_no_trace(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *a = lab_create(lab, "acme/a"), *b = lab_create(lab, "acme/b");
    struct jc_append_part parts[] = {{.journal = a, .bytes = blob_copy(span_str("x\n"))},
                                     {.journal = b, .bytes = blob_copy(span_str("y\n"))}};
    struct jc_txn txn = {.parts = parts, .parts_n = 2};

    assert_int_equal(lab_delete(lab, "acme/b"), 0);
    assert_int_equal(lab_txn(lab, &txn), E_NOTFOUND);
    if (factory->atomic_txn)
        lab_expect_text(lab, a, 0, "");
    blob_unref(parts[0].bytes);
    blob_unref(parts[1].bytes);
    jc_journal_unref(a);
    jc_journal_unref(b);
}

/* --- heads --- */

static void heads_count_content_and_not_what_is_hidden(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");
    struct jc_heads h = lab_heads(lab, j);

    assert_int_equal(h.first + h.log_start + h.content_end + h.write_head, 0);
    assert_int_equal(lab_append(lab, j, "A00ff:ack\n\n  \n"), 0);
    h = lab_heads(lab, j);
    assert_int_equal(h.content_end, 0);
    assert_int_equal(h.write_head, 14);
    assert_true(h.max_clock == 0);
    assert_int_equal(lab_append(lab, j, "C0010:x\nA0fff:ack\n"), 0);
    h = lab_heads(lab, j);
    assert_int_equal(h.content_end, 22);
    assert_int_equal(h.write_head, 32);
    assert_true(h.max_clock == 0x10);
    jc_journal_unref(j);
}

struct follow_log {
    struct jc_heads last;
    size_t calls;
    bool reached, ended;
    int64_t want;
    int err;
};

static void on_heads(void *arg, const struct jc_heads *h)
{
    struct follow_log *f = arg;

    assert_false(f->ended);
    assert_true(h->write_head >= f->last.write_head && h->content_end >= f->last.content_end);
    f->last = *h;
    f->calls++;
    f->reached = f->reached || h->write_head >= f->want;
}

static void on_follow_end(void *arg, int err)
{
    struct follow_log *f = arg;

    assert_false(f->ended);
    f->ended = true;
    f->err = err;
}

static void follow_tells_the_last_state_after_a_flood(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");
    struct follow_log f = {.want = 200};
    const struct jc_follower cb = {&lab->mb.ex, on_heads, on_follow_end, &f, false};
    struct jc_op *op;

    assert_int_equal(lab->s->ops->follow(lab->s, j, &cb, &op), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(lab_append(lab, j, "x\n"), 0);
    lab_wait(lab, &f.reached);
    assert_int_equal(f.last.write_head, 200);
    lab->s->ops->cancel(op);
    jc_journal_unref(j);
}

static void follow_ends_with_its_journal(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");
    struct follow_log f = {0};
    const struct jc_follower cb = {&lab->mb.ex, on_heads, on_follow_end, &f, false};
    struct jc_op *op;

    assert_int_equal(lab->s->ops->follow(lab->s, j, &cb, &op), 0);
    assert_int_equal(lab_delete(lab, "acme/a"), 0);
    lab_wait(lab, &f.ended);
    assert_int_equal(f.err, E_NOTFOUND);
    jc_journal_unref(j);
}

/* --- read --- */

static void a_read_stops_exactly_at_its_end(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");
    struct lab_read r = {0};
    const struct jc_read_opts o = {
        .journal = j, .offset = 2, .end_offset = 9, .chunk_bytes = 3, .block = true};

    assert_int_equal(lab_append(lab, j, "0123456789\n"), 0);
    lab_read(lab, &r, &o);
    assert_int_equal(r.err, 0);
    assert_string_equal(r.text, "2345678");
    assert_int_equal(r.chunks, 3);
    assert_int_equal(r.first_offset, 2);
    mem_free(r.text);
    jc_journal_unref(j);
}

static void a_read_beyond_the_head_is_out_of_range(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");
    struct lab_read r = {0}, at_head = {0}, head = {0};
    struct jc_read_opts o = {.journal = j, .offset = 3};

    assert_int_equal(lab_append(lab, j, "x\n"), 0);
    lab_read(lab, &r, &o);
    assert_int_equal(r.err, E_RANGE);
    assert_int_equal(r.heads.write_head, 2);
    o.offset = 2;
    lab_read(lab, &at_head, &o);
    assert_int_equal(at_head.err, 0);
    o.offset = -1;
    lab_read(lab, &head, &o);
    assert_int_equal(head.err, 0);
    assert_int_equal(head.chunks, 0);
    jc_journal_unref(j);
}

static void a_blocked_read_wakes_with_the_next_append(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");
    struct lab_read r = {.stop_after = 1};
    const struct jc_read_opts o = {.journal = j, .offset = -1, .block = true};

    assert_int_equal(lab_append(lab, j, "old\n"), 0);
    (void)lab_heads(lab, j); /* -1 is the head that is known when the journal is open */
    (void)lab_read_start(lab, &r, &o);
    lab_settle(lab, 20);
    assert_int_equal(r.chunks, 0);
    assert_int_equal(lab_append(lab, j, "new\n"), 0);
    lab_wait(lab, &r.done);
    assert_int_equal(r.err, E_CANCELED); /* the callback asked for the end */
    assert_string_equal(r.text, "new\n");
    mem_free(r.text);
    jc_journal_unref(j);
}

static void a_blocked_read_ends_at_its_deadline(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");
    struct lab_read r = {0};
    int64_t start = clock_mono_ms(clock_system());
    const struct jc_read_opts o = {
        .journal = j, .offset = 0, .block = true, .deadline_ms = start + 60};

    lab_read(lab, &r, &o);
    assert_int_equal(r.err, E_TIMEOUT);
    assert_true(clock_mono_ms(clock_system()) >= start + 60);
    jc_journal_unref(j);
}

static void a_blocked_read_ends_with_its_journal(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");
    struct lab_read r = {0};
    const struct jc_read_opts o = {.journal = j, .block = true};

    (void)lab_read_start(lab, &r, &o);
    lab_settle(lab, 20);
    assert_int_equal(lab_delete(lab, "acme/a"), 0);
    lab_wait(lab, &r.done);
    assert_int_equal(r.err, E_NOTFOUND);
    jc_journal_unref(j);
}

static void a_cancelled_read_is_silent(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");

    assert_int_equal(lab_append(lab, j, "x\n"), 0);
    for (int wait = 0; wait < 3; wait++) { /* at the start, with a chunk queued, blocked */
        struct lab_read r = {0};
        const struct jc_read_opts o = {.journal = j, .offset = wait == 2 ? -1 : 0, .block = true};
        struct jc_op *op = lab_read_start(lab, &r, &o);
        if (wait == 2)
            lab_settle(lab, 20);
        lab->s->ops->cancel(op);
        assert_int_equal(lab_append(lab, j, "y\n"), 0);
        lab_settle(lab, 20);
        assert_false(r.done);
        assert_int_equal(r.chunks, 0);
    }
    jc_journal_unref(j);
}

static void open_reads_end_when_the_store_closes(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");
    struct lab_read r = {0};
    const struct jc_read_opts o = {.journal = j, .block = true};

    (void)lab_read_start(lab, &r, &o);
    lab_settle(lab, 20);
    lab->s->ops->close(lab->s);
    lab->s = NULL;
    lab_settle(lab, 0);
    assert_true(r.done);
    assert_int_equal(r.err, E_CLOSED);
    jc_journal_unref(j); /* outlives its store */
}

/* --- blocks --- */

/* n bytes, the last one a newline. */
static struct blob *document(size_t n, char fill)
{
    struct blob *b = blob_new(n);

    assert_non_null(b);
    memset(b->data, fill, n);
    b->data[n - 1] = '\n';
    b->len = n;
    return b;
}

static void append_document(struct lab *lab, const struct jc_journal *j, size_t n, char fill)
{
    struct blob *b = document(n, fill);

    assert_int_equal(lab_append_span(lab, j, blob_span(b), NULL), 0);
    blob_unref(b);
}

static void a_document_belongs_to_the_block_of_its_last_byte(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");

    append_document(lab, j, 1000, 'a');
    append_document(lab, j, 3 * JC_BLOCK_BYTES, 'b'); /* ends in block 3 */
    append_document(lab, j, 100, 'c');
    struct lab_block x = lab_block(lab, j, 0, 0);
    assert_int_equal(x.err, 0);
    assert_true(x.b.sealed);
    assert_int_equal(x.b.read_to, JC_BLOCK_BYTES);
    assert_int_equal(x.b.segments_n, 1);
    assert_int_equal(x.b.segments[0].offset, 0);
    assert_int_equal(x.b.segments[0].bytes->len, 1000);
    jc_block_fini(&x.b);
    x = lab_block(lab, j, 1, 0);
    assert_int_equal(x.err, 0);
    assert_int_equal(x.b.segments_n, 0);
    assert_true(x.b.sealed);
    x = lab_block(lab, j, 3, 0);
    assert_int_equal(x.b.segments_n, 1);
    assert_false(x.b.sealed);
    assert_int_equal(x.b.read_to, 1100 + 3 * JC_BLOCK_BYTES);
    assert_int_equal(x.b.segments[0].offset, 1000);
    assert_int_equal(x.b.segments[0].bytes->len, 3 * JC_BLOCK_BYTES + 100);
    jc_block_fini(&x.b);
    jc_journal_unref(j);
}

static void a_block_read_begins_with_the_document_that_holds_from(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");
    static const struct {
        int64_t from, begin;
    } cases[] = {{0, 0}, {1, 0}, {3, 0},     {4, 4},         {5, 4},         {7, 4},
                 {8, 8}, {9, 8}, {20007, 8}, {20008, 20008}, {20009, 20008}, {20011, 20008}};

    assert_int_equal(lab_append(lab, j, "aaa\nbbb\n"), 0);
    append_document(lab, j, 20000, 'c');
    assert_int_equal(lab_append(lab, j, "ddd\n"), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lab_block x = lab_block(lab, j, 0, cases[i].from);
        assert_int_equal(x.err, 0);
        assert_int_equal(x.b.segments_n, 1);
        assert_int_equal(x.b.segments[0].offset, cases[i].begin);
        assert_int_equal(x.b.segments[0].bytes->len, 20012 - cases[i].begin);
        jc_block_fini(&x.b);
    }
    struct lab_block x = lab_block(lab, j, 0, 20012);
    assert_int_equal(x.err, 0);
    assert_int_equal(x.b.segments_n, 0);
    x = lab_block(lab, j, 5, 0);
    assert_int_equal(x.err, 0);
    assert_int_equal(x.b.read_to, 20012);
    assert_false(x.b.sealed);
    jc_journal_unref(j);
}

static void a_block_read_of_a_deleted_journal_is_not_found(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");

    assert_int_equal(lab_append(lab, j, "x\n"), 0);
    assert_int_equal(lab_delete(lab, "acme/a"), 0);
    struct lab_block x = lab_block(lab, j, 0, 0);
    assert_int_equal(x.err, E_NOTFOUND);
    const struct jc_seek_req rq = {.journal = j, .end_offset = 2, .max_clock = UINT64_MAX};
    assert_int_equal(lab_seek(lab, &rq), E_NOTFOUND);
    jc_journal_unref(j);
}

static void a_cancelled_block_read_is_silent(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");
    const struct jc_block_req rq = {.journal = j};
    struct lab_block x = {0};
    struct jc_op *op;

    assert_int_equal(lab_append(lab, j, "x\n"), 0);
    assert_int_equal(lab->s->ops->read_block(lab->s, &rq, &lab->mb.ex, lab_on_block, &x, &op), 0);
    lab->s->ops->cancel(op);
    lab_settle(lab, 20);
    assert_false(x.done);
    jc_journal_unref(j);
}

/* --- seek --- */

static void seek_finds_the_lowest_block_that_may_hold_the_clock(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");
    /* block 0: clock 0x10; block 1: only an ACK; block 2: 0x5000 (largest); block 3: 0x300 */
    static const char *const heads[] = {"C0010:", "A9000:", "C5000:", "C0300:"};

    for (size_t i = 0; i < 4; i++) {
        struct blob *b = document(JC_BLOCK_BYTES, 'x');
        memcpy(b->data, heads[i], 6);
        assert_int_equal(lab_append_span(lab, j, blob_span(b), NULL), 0);
        blob_unref(b);
    }
    struct jc_seek_req rq = {.journal = j,
                             .end_offset = 4 * JC_BLOCK_BYTES,
                             .max_clock = UINT64_MAX,
                             .mode = JC_SEEK_FIRST};
    assert_int_equal(lab_seek(lab, &rq), 0);
    rq.min_clock = 0x11;
    assert_int_equal(lab_seek(lab, &rq), 2);
    rq.offset = 3 * JC_BLOCK_BYTES;
    assert_int_equal(lab_seek(lab, &rq), 3);
    rq.min_clock = 0x301;
    assert_int_equal(lab_seek(lab, &rq), E_NOTFOUND);
    rq.offset = 0;
    rq.min_clock = 0x6000;
    assert_int_equal(lab_seek(lab, &rq), E_NOTFOUND);
    rq.min_clock = 0;
    rq.end_offset = 2 * JC_BLOCK_BYTES;
    rq.offset = JC_BLOCK_BYTES;
    assert_int_equal(lab_seek(lab, &rq), E_NOTFOUND); /* only hidden ones there */
    rq.offset = 0;
    rq.end_offset = 4 * JC_BLOCK_BYTES;
    rq.mode = JC_SEEK_MAX;
    assert_int_equal(lab_seek(lab, &rq), 0); /* all within one millisecond: the lowest */
    jc_journal_unref(j);
}

/* --- fragments and key-values --- */

static void fragments_cover_what_was_written(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");
    static struct lab_frags x;

    lab_frags(lab, j, &x);
    assert_int_equal(x.n, 0);
    assert_int_equal(lab_append(lab, j, "C0001:x\n"), 0);
    assert_int_equal(lab_append(lab, j, "A0002:x\n"), 0);
    lab_frags(lab, j, &x);
    assert_int_equal(x.err, 0);
    assert_true(x.n >= 1);
    assert_int_equal(x.v[0].begin, 0);
    assert_int_equal(x.v[x.n - 1].end, 16);
    assert_int_equal(lab_delete(lab, "acme/a"), 0);
    lab_frags(lab, j, &x);
    assert_int_equal(x.err, E_NOTFOUND);
    jc_journal_unref(j);
}

static void key_values_are_kept_and_expire(void **state)
{
    struct lab *lab = *state;

    assert_int_equal(lab_kv_get(lab, "k").err, E_NOTFOUND);
    assert_int_equal(lab_kv_set(lab, "k", "v1", 0), 0);
    assert_int_equal(lab_kv_set(lab, "k", "v2", 0), 0);
    assert_string_equal(lab_kv_get(lab, "k").value, "v2");
    assert_int_equal(lab_kv_set(lab, "old", "x", 1), 0);
    assert_int_equal(lab_kv_get(lab, "old").err, E_NOTFOUND);
    assert_int_equal(lab_kv_set(lab, "empty", "", 0), 0);
    struct lab_kv x = lab_kv_get(lab, "empty");
    assert_int_equal(x.err, 0);
    assert_int_equal(x.n, 0);
}

struct scan_log {
    bool done;
    int err;
    size_t n;
    char keys[8][16];
};

static void on_scan(void *arg, int err, const struct jc_kv *list, size_t n)
{
    struct scan_log *x = arg;

    x->done = true;
    x->err = err;
    x->n = n;
    for (size_t i = 0; i < n && i < 8; i++)
        (void)snprintf(x->keys[i], sizeof x->keys[i], "%s", list[i].key);
}

static void a_scan_lists_a_prefix_in_order(void **state)
{
    struct lab *lab = *state;
    static const char *const keys[] = {"a/2", "a/1", "b/1", "a0", "a/10"};
    struct scan_log x = {0};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_int_equal(lab_kv_set(lab, keys[i], "v", 0), 0);
    assert_int_equal(lab->s->ops->kv_scan(lab->s, "a/", &lab->mb.ex, on_scan, &x), 0);
    lab_wait(lab, &x.done);
    assert_int_equal(x.err, 0);
    assert_int_equal(x.n, 3);
    assert_string_equal(x.keys[0], "a/1");
    assert_string_equal(x.keys[1], "a/10");
    assert_string_equal(x.keys[2], "a/2");
}

static void a_transaction_with_a_taken_key_is_refused_whole(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");
    struct jc_append_part part = {.journal = j, .bytes = blob_copy(span_str("x\n"))};
    struct jc_kv kv = {.key = "idem/1", .value = span_str("first")};
    struct jc_txn txn = {.parts = &part, .parts_n = 1, .kv = &kv, .kv_n = 1, .unless_kv = "idem/1"};

    assert_int_equal(lab_txn(lab, &txn), 0);
    kv.value = span_str("second");
    assert_int_equal(lab_txn(lab, &txn), E_EXISTS);
    assert_string_equal(lab_kv_get(lab, "idem/1").value, "first");
    lab_expect_text(lab, j, 0, "x\n");
    blob_unref(part.bytes);
    jc_journal_unref(j);
}

static void two_queued_transactions_with_one_key_commit_once(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *j = lab_create(lab, "acme/a");
    struct jc_append_part parts[8];
    struct jc_kv kv = {.key = "idem/2", .value = span_str("v")};
    struct jc_txn txns[8];
    struct lab_done d[8] = {{0}};
    int good = 0;

    for (size_t i = 0; i < 8; i++) {
        parts[i] = (struct jc_append_part){.journal = j, .bytes = blob_copy(span_str("x\n"))};
        txns[i] = (struct jc_txn){
            .parts = &parts[i], .parts_n = 1, .kv = &kv, .kv_n = 1, .unless_kv = "idem/2"};
        assert_int_equal(lab->s->ops->append(lab->s, &txns[i], &lab->mb.ex, lab_on_txn, &d[i]), 0);
    }
    for (size_t i = 0; i < 8; i++) {
        lab_wait(lab, &d[i].done);
        good += d[i].err == 0;
        assert_true(d[i].err == 0 || d[i].err == E_EXISTS);
        blob_unref(parts[i].bytes);
    }
    assert_int_equal(good, 1);
    lab_expect_text(lab, j, 0, "x\n");
    jc_journal_unref(j);
}

static void a_journal_made_anew_starts_at_zero(void **state)
{
    struct lab *lab = *state;
    const struct jc_journal *a = lab_create(lab, "acme/a");

    assert_int_equal(lab_append(lab, a, "old\n"), 0);
    assert_int_equal(lab_delete(lab, "acme/a"), 0);
    const struct jc_journal *b = lab_create(lab, "acme/a");
    assert_true(b->create_revision > a->create_revision);
    assert_int_equal(lab_heads(lab, b).write_head, 0);
    assert_int_equal(lab_append(lab, a, "late\n"), E_NOTFOUND);
    assert_int_equal(lab_append(lab, b, "new\n"), 0);
    lab_expect_text(lab, b, 0, "new\n");
    jc_journal_unref(a);
    jc_journal_unref(b);
}

int store_contract_tests(const struct store_factory *f)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(apply_creates_only_what_does_not_exist),
        T(apply_updates_by_compare_and_set),
        T(apply_is_all_or_nothing),
        T(apply_refuses_bad_names_and_labels),
        T(deleting_what_is_not_there_is_not_found),
        T(watch_tells_whole_snapshots_of_what_it_selected),
        T(watch_ends_when_the_store_closes),
        T(an_answered_append_is_readable_with_its_offsets),
        T(appends_of_broken_or_no_lines_are_refused),
        T(prepare_stamps_the_bytes_that_are_stored),
        T(a_refusal_by_prepare_writes_nothing),
        T(one_transaction_may_hold_two_parts_of_a_journal),
        T(a_transaction_with_a_lost_journal_leaves_no_trace),
        T(heads_count_content_and_not_what_is_hidden),
        T(follow_tells_the_last_state_after_a_flood),
        T(follow_ends_with_its_journal),
        T(a_read_stops_exactly_at_its_end),
        T(a_read_beyond_the_head_is_out_of_range),
        T(a_blocked_read_wakes_with_the_next_append),
        T(a_blocked_read_ends_at_its_deadline),
        T(a_blocked_read_ends_with_its_journal),
        T(a_cancelled_read_is_silent),
        T(open_reads_end_when_the_store_closes),
        T(a_document_belongs_to_the_block_of_its_last_byte),
        T(a_block_read_begins_with_the_document_that_holds_from),
        T(a_block_read_of_a_deleted_journal_is_not_found),
        T(a_cancelled_block_read_is_silent),
        T(seek_finds_the_lowest_block_that_may_hold_the_clock),
        T(fragments_cover_what_was_written),
        T(key_values_are_kept_and_expire),
        T(a_scan_lists_a_prefix_in_order),
        T(a_transaction_with_a_taken_key_is_refused_whole),
        T(two_queued_transactions_with_one_key_commit_once),
        T(a_journal_made_anew_starts_at_zero),
    };
#undef T

    factory = f;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
