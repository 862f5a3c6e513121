/* The embedded store's own promises: files, fragments, retention, holes, recovery, locks. */
#include "tests/unit/journal_client/local_lab.h"

#include <sched.h>

static void a_folder_has_one_owner(void **state)
{
    struct local_lab *l = *state;
    struct jc_store *other;
    char why[256], pid[32];

    assert_int_equal(jc_local_open(&l->opts, &other, why, sizeof why), E_BUSY);
    assert_null(other);
    (void)snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    assert_non_null(strstr(why, pid));
    struct jc_local_opts ro = l->opts;
    ro.read_only = true;
    assert_int_equal(jc_local_open(&ro, &other, why, sizeof why), E_BUSY);
}

static void a_reader_needs_a_store_to_read(void **state)
{
    struct local_lab *l = *state;
    char dir[300], why[256];
    struct jc_store *other;
    struct jc_local_opts ro = l->opts;

    (void)snprintf(dir, sizeof dir, "%s/nothing", l->dir);
    ro.dir = dir;
    ro.read_only = true;
    assert_int_equal(jc_local_open(&ro, &other, why, sizeof why), E_NOTFOUND);
    assert_true(access(dir, F_OK) < 0);
}

static void what_was_answered_is_there_after_a_restart(void **state)
{
    struct local_lab *l = *state;
    const struct jc_label labels[] = {{"aa", "1"}, {"bb", "2"}, {"bb", "3"}};
    const struct jc_spec spec = {.name = "acme/a",
                                 .labels = labels,
                                 .labels_n = 3,
                                 .fragment_bytes = 5000,
                                 .fragment_age_ms = 7,
                                 .retention_ms = 8000000,
                                 .retention_bytes = 900000};
    const struct jc_journal *j = lab_create_spec(&l->lab, &spec);
    int64_t create = j->create_revision, mod = j->mod_revision;

    assert_int_equal(lab_append(&l->lab, j, "C0010:x\nA0020:y\n"), 0);
    assert_int_equal(lab_kv_set(&l->lab, "k", "v", 0), 0);
    jc_journal_unref(j);
    ll_reopen(l);
    j = lab_find(&l->lab, "acme/a");
    assert_non_null(j);
    assert_int_equal(j->create_revision, create);
    assert_int_equal(j->mod_revision, mod);
    assert_int_equal(j->spec.labels_n, 3);
    assert_string_equal(j->spec.labels[2].value, "3");
    assert_int_equal(j->spec.fragment_bytes, 5000);
    assert_int_equal(j->spec.retention_bytes, 900000);
    lab_expect_text(&l->lab, j, 0, "C0010:x\nA0020:y\n");
    struct jc_heads h = lab_heads(&l->lab, j);
    assert_int_equal(h.content_end, 8);
    assert_true(h.max_clock == 0x10);
    assert_string_equal(lab_kv_get(&l->lab, "k").value, "v");
    assert_int_equal(lab_append(&l->lab, j, "z\n"), 0);
    lab_expect_text(&l->lab, j, 16, "z\n");
    jc_journal_unref(j);
}

static void a_torn_tail_is_cut(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");
    char path[1024];

    assert_int_equal(lab_append(&l->lab, j, "good\n"), 0);
    jc_journal_unref(j);
    ll_close(l);
    assert_true(ll_file(l, "open", "acme/a", "", path, sizeof path));
    int fd = open(path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "torn\nhalf", 9), 9);
    close(fd);
    /* A reader shows what was committed and changes nothing. */
    l->opts.read_only = true;
    ll_open(l);
    j = lab_find(&l->lab, "acme/a");
    lab_expect_text(&l->lab, j, 0, "good\n");
    assert_int_equal(lab_heads(&l->lab, j).write_head, 5);
    struct jc_txn txn = {0};
    assert_int_equal(l->lab.s->ops->append(l->lab.s, &txn, &l->lab.mb.ex, lab_on_txn, NULL),
                     E_DENIED);
    jc_journal_unref(j);
    ll_close(l);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 14);
    l->opts.read_only = false;
    ll_open(l);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 5);
    j = lab_find(&l->lab, "acme/a");
    assert_int_equal(lab_append(&l->lab, j, "next\n"), 0);
    lab_expect_text(&l->lab, j, 0, "good\nnext\n");
    jc_journal_unref(j);
}

static void lost_committed_bytes_are_corruption_with_a_clear_text(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");
    char path[1024];

    assert_int_equal(lab_append(&l->lab, j, "one\ntwo\n"), 0);
    jc_journal_unref(j);
    ll_close(l);
    assert_true(ll_file(l, "open", "acme/a", "", path, sizeof path));
    assert_int_equal(truncate(path, 4), 0);
    assert_int_equal(jc_local_check(l->dir, lab_probe, NULL, ll_no_report, NULL), 1);
    assert_int_equal(ll_try_open(l), E_CORRUPT);
    assert_non_null(strstr(l->why, "acme/a"));
    assert_non_null(strstr(l->why, "committed bytes are missing"));
    l->lab.s = NULL;
}

static void damage_to_the_growing_fragment_is_found_by_the_check(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");
    char path[1024];

    assert_int_equal(lab_append(&l->lab, j, "one\ntwo\n"), 0);
    jc_journal_unref(j);
    ll_reopen(l); /* the digest goes on over a restart */
    j = lab_find(&l->lab, "acme/a");
    assert_int_equal(lab_append(&l->lab, j, "three\n"), 0);
    jc_journal_unref(j);
    ll_close(l);
    assert_int_equal(jc_local_check(l->dir, lab_probe, NULL, ll_report, NULL), 0);
    assert_true(ll_file(l, "open", "acme/a", "", path, sizeof path));
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "X", 1, 5), 1);
    close(fd);
    assert_int_equal(jc_local_check(l->dir, lab_probe, NULL, ll_no_report, NULL), 1);
    ll_open(l); /* served, but not forgotten */
    j = lab_find(&l->lab, "acme/a");
    lab_expect_text(&l->lab, j, 0, "one\ntXo\nthree\n");
    jc_journal_unref(j);
    ll_close(l);
    assert_int_equal(jc_local_check(l->dir, lab_probe, NULL, ll_no_report, NULL), 1);
}

static void a_folder_of_a_newer_format_is_refused(void **state)
{
    struct local_lab *l = *state;
    char path[512];

    ll_close(l);
    /* user_version lies at byte 60 of the database's head */
    (void)snprintf(path, sizeof path, "%s/sluice.db", l->dir);
    int fd = open(path, O_RDWR);
    assert_int_equal(pwrite(fd, "\0\0\0\x63", 4, 60), 4);
    close(fd);
    assert_int_equal(ll_try_open(l), E_VERSION);
    assert_non_null(strstr(l->why, "format 99"));
    l->lab.s = NULL;
}

static void a_closed_fragment_is_a_file_as_gazette_lays_it_out(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");
    static struct lab_frags x;
    char path[1024];
    struct stat st;

    atomic_store(&l->wall_ms, 1796190722720);
    /* clock of the example of 2026: its millisecond is 1796190722720; one hour more is later */
    assert_int_equal(ll_fragment(l, j, "C1f1ee147f4558f10:x\nA1f1eece7f4558f10:later\n"), 0);
    lab_frags(&l->lab, j, &x);
    assert_int_equal(x.n, 1);
    assert_false(x.v[0].open);
    assert_int_equal(x.v[0].end, 44);
    assert_int_equal(x.v[0].content_end, 20);
    assert_true(x.v[0].max_clock == 0x1f1ee147f4558f10);
    assert_true(x.v[0].mod_time_ms > 1796190722720); /* at least the largest clock in it */
    (void)snprintf(path, sizeof path, "%s/fragments/acme/a/%016x-%016x-%s.raw", l->dir, 0, 44,
                   x.v[0].sha1);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 44);
    assert_int_equal(st.st_mtim.tv_sec, x.v[0].mod_time_ms / 1000);
    assert_int_equal(lab_append(&l->lab, j, "B\n"), 0);
    lab_frags(&l->lab, j, &x);
    assert_int_equal(x.n, 2);
    assert_true(x.v[1].open && x.v[1].begin == 44 && x.v[1].mod_time_ms == 0);
    assert_string_equal(x.v[1].sha1, "");
    lab_expect_text(&l->lab, j, 20, "A1f1eece7f4558f10:later\nB\n");
    jc_journal_unref(j);
}

static void fragments_close_by_size_and_never_split_an_append(void **state)
{
    struct local_lab *l = *state;
    const struct jc_spec spec = {.name = "acme/a", .fragment_bytes = 10};
    const struct jc_journal *j = lab_create_spec(&l->lab, &spec);
    static struct lab_frags x;

    for (int i = 0; i < 4; i++)
        assert_int_equal(lab_append(&l->lab, j, "1234567\n"), 0);
    assert_int_equal(lab_append(&l->lab, j, "a line that is longer than a fragment\n"), 0);
    ll_tick(l); /* a close comes after the answer */
    lab_frags(&l->lab, j, &x);
    assert_int_equal(x.n, 3);
    assert_int_equal(x.v[0].end, 16);
    assert_int_equal(x.v[1].end, 32);
    assert_int_equal(x.v[2].end, 70);
    lab_expect_text(&l->lab, j, 24, "1234567\na line that is longer than a fragment\n");
    jc_journal_unref(j);
}

static void fragments_close_by_age(void **state)
{
    struct local_lab *l = *state;
    const struct jc_spec spec = {.name = "acme/a", .fragment_age_ms = 5000};
    static struct lab_frags x;

    const struct jc_journal *j = lab_create_spec(&l->lab, &spec);
    assert_int_equal(lab_append(&l->lab, j, "x\n"), 0);
    atomic_fetch_add(&l->wall_ms, 4999);
    ll_tick(l);
    lab_frags(&l->lab, j, &x);
    assert_true(x.n == 1 && x.v[0].open);
    atomic_fetch_add(&l->wall_ms, 1);
    ll_tick(l);
    lab_frags(&l->lab, j, &x);
    assert_true(x.n == 1 && !x.v[0].open);
    jc_journal_unref(j);
}

static void retention_by_age_and_by_bytes_raises_log_start(void **state)
{
    struct local_lab *l = *state;
    const struct jc_spec age = {.name = "acme/age", .retention_ms = 1000};
    const struct jc_spec size = {.name = "acme/size", .retention_bytes = 20};
    static struct lab_frags x;

    const struct jc_journal *a = lab_create_spec(&l->lab, &age);
    const struct jc_journal *b = lab_create_spec(&l->lab, &size);
    (void)ll_fragment(l, a, "C0001:x\nA0002:x\n"); /* ends in a hidden document */
    atomic_fetch_add(&l->wall_ms, 600);
    (void)ll_fragment(l, a, "C0003:x\n");
    for (int i = 0; i < 4; i++)
        (void)ll_fragment(l, b, "C0001:x\n");
    ll_tick(l);
    lab_frags(&l->lab, a, &x);
    assert_int_equal(x.n, 2);
    lab_frags(&l->lab, b, &x);
    assert_int_equal(x.n, 2); /* 32 bytes, then 24, then 16 */
    struct jc_heads h = lab_heads(&l->lab, b);
    assert_true(h.first == 16 && h.log_start == 16 && h.content_end == 32);
    atomic_fetch_add(&l->wall_ms, 500);
    ll_tick(l);
    h = lab_heads(&l->lab, a);
    assert_int_equal(h.log_start, 8); /* the content, not the hidden rest (O7) */
    assert_int_equal(h.first, 16);
    atomic_fetch_add(&l->wall_ms, 5000);
    ll_tick(l);
    h = lab_heads(&l->lab, a);
    assert_true(h.log_start == 24 && h.content_end == 24 && h.first == 24);
    assert_true(h.max_clock == 3);
    jc_journal_unref(a);
    jc_journal_unref(b);
    ll_reopen(l);
    a = lab_find(&l->lab, "acme/age");
    h = lab_heads(&l->lab, a);
    assert_true(h.log_start == 24 && h.content_end == 24 && h.write_head == 24);
    assert_int_equal(lab_append(&l->lab, a, "C0004:x\n"), 0);
    assert_int_equal(lab_heads(&l->lab, a).log_start, 24);
    jc_journal_unref(a);
}

static void a_hole_in_the_middle_is_jumped_and_leaves_log_start(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");
    struct lab_read r = {0};
    struct jc_read_opts o = {.journal = j, .offset = 2};

    (void)ll_fragment(l, j, "C0001:a\n");
    int64_t middle = ll_fragment(l, j, "C0009:b\n");
    (void)ll_fragment(l, j, "C0003:c\n");
    assert_int_equal(lab_append(&l->lab, j, "C0002:d\n"), 0);
    assert_int_equal(ll_punch(l, j, middle), 0);
    assert_int_equal(ll_punch(l, j, 5), E_NOTFOUND);
    assert_int_equal(ll_punch(l, j, middle), E_NOTFOUND); /* it is none any more */
    for (int round = 0; round < 2; round++) {
        r = (struct lab_read){0};
        lab_read(&l->lab, &r, &o);
        assert_string_equal(r.text, "001:a\nC0003:c\nC0002:d\n");
        assert_int_equal(r.jumps, 1);
        assert_int_equal(lab_heads(&l->lab, j).log_start, 0);
        struct lab_block x = lab_block(&l->lab, j, 0, 0);
        assert_int_equal(x.b.segments_n, 2);
        assert_int_equal(x.b.segments[1].offset, 16);
        assert_int_equal(x.b.segments[1].bytes->len, 16);
        jc_block_fini(&x.b);
        x = lab_block(&l->lab, j, 0, 12); /* inside the hole */
        assert_int_equal(x.b.segments_n, 1);
        assert_int_equal(x.b.segments[0].offset, 16);
        jc_block_fini(&x.b);
        struct jc_seek_req rq = {
            .journal = j, .end_offset = 32, .min_clock = 4, .max_clock = UINT64_MAX};
        assert_int_equal(lab_seek(&l->lab, &rq), E_NOTFOUND); /* 9 lay in the hole */
        mem_free(r.text);
        if (round == 0) {
            jc_journal_unref(j);
            ll_reopen(l);
            j = lab_find(&l->lab, "acme/a");
            o.journal = j;
        }
    }
    /* When the front goes, the hole behind it goes along. */
    assert_int_equal(ll_remove(l, j, 8), 0);
    struct jc_heads h = lab_heads(&l->lab, j);
    assert_true(h.log_start == 16 && h.first == 16);
    jc_journal_unref(j);
}

static void a_missing_or_damaged_index_is_made_anew(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");
    char path[1024];
    struct stat st;

    (void)ll_fragment(l, j, "C0001:a\n");
    (void)ll_fragment(l, j, "C0002:b\n");
    jc_journal_unref(j);
    ll_close(l);
    assert_true(ll_file(l, "index", "acme/a", "0000000000000000", path, sizeof path));
    assert_int_equal(unlink(path), 0);
    assert_true(ll_file(l, "index", "acme/a", "0000000000000008", path, sizeof path));
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "\xff", 1, 40), 1);
    close(fd);
    ll_open(l);
    j = lab_find(&l->lab, "acme/a");
    struct lab_block x = lab_block(&l->lab, j, 0, 0);
    assert_int_equal(x.err, 0);
    assert_int_equal(x.b.segments_n, 1); /* two fragments that adjoin */
    assert_int_equal(x.b.segments[0].bytes->len, 16);
    jc_block_fini(&x.b);
    assert_true(ll_file(l, "index", "acme/a", "0000000000000000", path, sizeof path));
    assert_int_equal(stat(path, &st), 0);
    jc_journal_unref(j);
}

static void a_reader_goes_on_in_a_removed_fragment(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");
    struct jl_frag *f;
    char buf[8];
    int fd;

    (void)ll_fragment(l, j, "C0001:a\n");
    (void)ll_fragment(l, j, "C0002:b\n");
    f = jl_frag_ref(jl_of(j)->frags[0]);
    assert_int_equal(jl_frag_pin(f, false, &fd), 0);
    assert_int_equal(ll_remove(l, j, 8), 0);
    assert_int_equal(jl_pread_full(fd, buf, 8, 0), 0);
    assert_memory_equal(buf, "C0001:a\n", 8);
    jl_frag_unpin(f);
    jl_frag_unref(f);
    struct lab_read r = {0};
    const struct jc_read_opts o = {.journal = j};
    lab_read(&l->lab, &r, &o);
    assert_int_equal(r.first_offset, 8); /* jumped */
    assert_string_equal(r.text, "C0002:b\n");
    mem_free(r.text);
    jc_journal_unref(j);
}

static void a_deleted_journal_leaves_no_files_and_its_name_is_free(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *a = lab_create(&l->lab, "acme/a");
    const struct jc_journal *below = lab_create(&l->lab, "acme/a/below");
    char path[1024];

    (void)ll_fragment(l, a, "C0001:a\n");
    assert_int_equal(lab_append(&l->lab, a, "tail\n"), 0);
    assert_int_equal(lab_append(&l->lab, below, "other\n"), 0);
    assert_int_equal(lab_delete(&l->lab, "acme/a"), 0);
    ll_tick(l); /* files go after the answer */
    assert_false(ll_file(l, "fragments", "acme/a", "0000", path, sizeof path) &&
                 strstr(path, "-0000000000000008-") != NULL);
    assert_false(ll_file(l, "open", "acme/a", "0000", path, sizeof path));
    lab_expect_text(&l->lab, below, 0, "other\n");
    jc_journal_unref(a);
    a = lab_create(&l->lab, "acme/a");
    assert_int_equal(lab_append(&l->lab, a, "new\n"), 0);
    jc_journal_unref(a);
    jc_journal_unref(below);
    ll_reopen(l);
    a = lab_find(&l->lab, "acme/a");
    lab_expect_text(&l->lab, a, 0, "new\n");
    jc_journal_unref(a);
}

static void names_that_the_file_layout_cannot_hold_are_refused(void **state)
{
    struct local_lab *l = *state;
    char longer[300];
    memset(longer, 'x', 256);
    longer[256] = '\0';
    const char *const names[] = {"acme/a.raw", "acme/x.open/y", "acme/b.idx", longer};

    for (size_t i = 0; i < 4; i++) {
        const struct jc_spec spec = {.name = names[i]};
        const struct jc_change c = {.upsert = &spec};
        assert_int_equal(lab_apply(&l->lab, &c, 1, NULL), E_INVALID);
    }
}

static int take_clock(struct jc_txn *txn, struct jc_txn_clock *clock)
{
    uint64_t *out = txn->arg;

    *out = jc_txn_clock_begin(clock);
    assert_true(clock->reads >= 1);
    return 0;
}

static void stamps_rise_also_when_the_wall_clock_falls(void **state)
{
    struct local_lab *l = *state;
    uint64_t a, b, c;
    struct jc_kv kv = {.key = "k", .value = span_str("v")};
    struct jc_txn txn = {.kv = &kv, .kv_n = 1, .prepare = take_clock, .arg = &a};

    assert_int_equal(lab_txn(&l->lab, &txn), 0);
    atomic_fetch_sub(&l->wall_ms, 3600000);
    txn.arg = &b;
    assert_int_equal(lab_txn(&l->lab, &txn), 0);
    assert_true(b == a + 1);
    ll_reopen(l);
    txn.arg = &c;
    assert_int_equal(lab_txn(&l->lab, &txn), 0);
    assert_true(c == b + 1);
}

static void a_fake_clock_ends_a_blocked_read(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");
    struct lab_read r = {0};
    const struct jc_read_opts o = {.journal = j, .block = true, .deadline_ms = 2000};

    (void)lab_read_start(&l->lab, &r, &o);
    lab_settle(&l->lab, 30);
    assert_false(r.done);
    atomic_store(&l->mono_ms, 2000);
    lab_wait(&l->lab, &r.done);
    assert_int_equal(r.err, E_TIMEOUT);
    jc_journal_unref(j);
}

static void expired_keys_are_forgotten(void **state)
{
    struct local_lab *l = *state;
    int64_t now = atomic_load(&l->wall_ms);

    assert_int_equal(lab_kv_set(&l->lab, "soon", "v", now + 100), 0);
    assert_int_equal(lab_kv_get(&l->lab, "soon").err, 0);
    atomic_fetch_add(&l->wall_ms, 100);
    assert_int_equal(lab_kv_get(&l->lab, "soon").err, E_NOTFOUND);
    ll_tick(l);
    atomic_fetch_sub(&l->wall_ms, 100); /* gone for good, not only hidden */
    assert_int_equal(lab_kv_get(&l->lab, "soon").err, E_NOTFOUND);
}

/* A follower that appends in its first callback, and waits there until the answer is on its way. */
struct overtaken {
    struct local_lab *l;
    struct executor ex; /* first posts, then forwards to the mailbox */
    atomic_bool posted;
    struct jc_append_part part;
    struct jc_txn txn;
    int64_t told;
    int calls;
    bool done;
};

static void note_post(struct executor *ex, struct task *t)
{
    struct overtaken *o = (struct overtaken *)(void *)((char *)ex - offsetof(struct overtaken, ex));

    executor_post(&o->l->lab.mb.ex, t);
    atomic_store(&o->posted, true);
}

static void on_answer(void *arg, int err, struct jc_txn *txn)
{
    struct overtaken *o = arg;

    assert_int_equal(err, 0);
    assert_int_equal(o->told, txn->parts[0].end); /* who was answered finds what it published */
    o->done = true;
}

static void on_told(void *arg, const struct jc_heads *h)
{
    struct overtaken *o = arg;

    o->told = h->write_head;
    if (o->calls++ > 0)
        return;
    assert_int_equal(o->l->lab.s->ops->append(o->l->lab.s, &o->txn, &o->ex, on_answer, o), 0);
    while (!atomic_load(&o->posted))
        sched_yield();
}

static void news_of_a_commit_come_before_its_answer(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");
    struct overtaken o = {.l = l, .ex = {note_post}};
    const struct jc_follower f = {.ex = &l->lab.mb.ex, .on_heads = on_told, .arg = &o};
    struct jc_op *op;

    o.part = (struct jc_append_part){.journal = j, .bytes = blob_copy(span_str("C0001:a\n"))};
    o.txn = (struct jc_txn){.parts = &o.part, .parts_n = 1};
    assert_int_equal(l->lab.s->ops->follow(l->lab.s, j, &f, &op), 0);
    lab_wait(&l->lab, &o.done);
    assert_int_equal(o.calls, 2);
    l->lab.s->ops->cancel(op);
    blob_unref(o.part.bytes);
    jc_journal_unref(j);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, ll_setup, ll_teardown)
#define D(name) cmocka_unit_test_setup_teardown(name, ll_setup, ll_teardown_damaged)
    const struct CMUnitTest tests[] = {
        T(a_folder_has_one_owner),
        T(a_reader_needs_a_store_to_read),
        T(what_was_answered_is_there_after_a_restart),
        T(a_torn_tail_is_cut),
        D(lost_committed_bytes_are_corruption_with_a_clear_text),
        D(damage_to_the_growing_fragment_is_found_by_the_check),
        D(a_folder_of_a_newer_format_is_refused),
        T(a_closed_fragment_is_a_file_as_gazette_lays_it_out),
        T(fragments_close_by_size_and_never_split_an_append),
        T(fragments_close_by_age),
        T(retention_by_age_and_by_bytes_raises_log_start),
        T(a_hole_in_the_middle_is_jumped_and_leaves_log_start),
        T(a_missing_or_damaged_index_is_made_anew),
        T(a_reader_goes_on_in_a_removed_fragment),
        T(a_deleted_journal_leaves_no_files_and_its_name_is_free),
        T(names_that_the_file_layout_cannot_hold_are_refused),
        T(stamps_rise_also_when_the_wall_clock_falls),
        T(a_fake_clock_ends_a_blocked_read),
        T(expired_keys_are_forgotten),
        T(news_of_a_commit_come_before_its_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
