/*
 * kill -9 at the worst moments. A child appends transactions over several journals and dies at a
 * named point; the parent opens the folder again and compares with what the child reported through
 * a pipe: each answered transaction is there once in all its journals, any other wholly or not at
 * all.
 */
#include "tests/unit/journal_client/local_lab.h"

#include <sys/wait.h>

#define JOURNALS       3
#define TXNS           60
#define LINE_MAX_BYTES 4096

static const char *const names[JOURNALS] = {"acme/a", "acme/b", "acme/c"};

struct crash {
    const char *point;
    int in; /* dies at the (in + 1)-th visit */
};

static void die_at(void *arg, const char *where)
{
    struct local_lab *l = arg;
    struct crash *c = l->opts.probe_arg;

    if (strcmp(c->point, where) == 0 && c->in-- == 0)
        _exit(42);
}

static uint32_t rnd(uint32_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 17;
    *x ^= *x << 5;
    return *x;
}

/* Document t of a journal: its number, and a length that follows from it. */
static size_t document(uint32_t t, uint32_t seed, char *out)
{
    uint32_t x = t * 2654435761u + seed + 1;
    size_t n = 16 + rnd(&x) % 2000;

    memset(out, 'a' + (int)(t % 26), n);
    (void)snprintf(out, 16, "T%05u", t);
    out[6] = ' ';
    out[n - 1] = '\n';
    for (size_t i = 7; i < 16 && i < n - 1; i++)
        out[i] = '.';
    return n;
}

/* Which journals transaction t writes to: at least one. */
static uint32_t journals_of(uint32_t t, uint32_t seed)
{
    uint32_t x = t * 40503u + seed + 7;
    uint32_t mask = rnd(&x) % ((1u << JOURNALS) - 1) + 1;

    return mask;
}

static void child(struct local_lab *l, int pipe_fd, uint32_t first, uint32_t seed)
{
    const struct jc_journal *j[JOURNALS];
    static char text[LINE_MAX_BYTES];

    ll_open(l);
    for (size_t i = 0; i < JOURNALS; i++)
        j[i] = lab_find(&l->lab, names[i]);
    for (uint32_t t = first; t < first + TXNS; t++) {
        struct jc_append_part parts[JOURNALS];
        struct jc_txn txn = {.parts = parts};
        size_t n = document(t, seed, text);
        for (size_t i = 0; i < JOURNALS; i++) {
            if ((journals_of(t, seed) >> i & 1) != 0)
                parts[txn.parts_n++] =
                    (struct jc_append_part){.journal = j[i], .bytes = blob_copy(span_of(text, n))};
        }
        if (lab_txn(&l->lab, &txn) == 0 && write(pipe_fd, &t, sizeof t) != sizeof t)
            _exit(43);
        if (t % 16 == 5)
            (void)ll_remove(l, j[0], lab_heads(&l->lab, j[0]).write_head / 2);
    }
    _exit(44); /* without closing: also a crash */
}

/* Which transactions journal i holds, from the bytes; -1 a document twice, broken or out of order.
 */
static void read_back(struct local_lab *l, size_t i, uint32_t seed, uint8_t *seen, uint32_t *low)
{
    const struct jc_journal *j = lab_find(&l->lab, names[i]);
    struct lab_read r = {0};
    const struct jc_read_opts o = {.journal = j};
    static char want[LINE_MAX_BYTES];
    int64_t last = -1;

    lab_read(&l->lab, &r, &o);
    assert_int_equal(r.err, 0);
    for (size_t at = 0; at < r.n;) {
        unsigned t = 0;
        for (size_t k = 1; k <= 5; k++)
            t = t * 10 + (unsigned)(r.text[at + k] - '0');
        if (last < 0)
            *low = t; /* older ones were removed with their fragment */
        size_t n = document(t, seed, want);
        assert_true(n <= r.n - at);
        assert_memory_equal(r.text + at, want, n);
        assert_true((int64_t)t > last);
        last = t;
        seen[t] |= (uint8_t)(1u << i);
        at += n;
    }
    mem_free(r.text);
    jc_journal_unref(j);
}

static void compare(struct local_lab *l, const uint8_t *answered, uint32_t n, uint32_t seed)
{
    uint8_t *seen = mem_zalloc(n);
    uint32_t low[JOURNALS] = {0};

    assert_non_null(seen);
    for (size_t i = 0; i < JOURNALS; i++) {
        low[i] = n;
        read_back(l, i, seed, seen, &low[i]);
    }
    for (uint32_t t = 0; t < n; t++) {
        uint32_t want = journals_of(t, seed);
        uint32_t removed = 0;
        for (size_t i = 0; i < JOURNALS; i++)
            removed |= (i == 0 && t < low[i]) ? 1u << i : 0;
        if (answered[t])
            assert_int_equal((uint32_t)seen[t] | (want & removed), want);
        else
            assert_true((seen[t] & ~want) == 0 &&
                        ((seen[t] | (want & removed)) == want || seen[t] == 0));
    }
    mem_free(seen);
}

static void one_life(struct local_lab *l, struct crash c, uint32_t first, uint32_t seed,
                     uint8_t *answered)
{
    int fds[2], status;
    uint32_t t;

    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        l->opts.probe_arg = &c;
        l->hooks.point = die_at;
        child(l, fds[1], first, seed);
    }
    close(fds[1]);
    while (read(fds[0], &t, sizeof t) == sizeof t)
        answered[t] = 1;
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 42 || WEXITSTATUS(status) == 44));
}

static void what_was_answered_survives_a_crash_at_every_point(void **state)
{
    struct local_lab *l = *state;
    static const char *const points[] = {"append.written",   "append.synced", "append.committed",
                                         "close.synced",     "close.renamed", "close.committed",
                                         "remove.committed", "none"};
    enum { LIVES = 24 };
    static uint8_t answered[LIVES * TXNS];
    uint32_t seed = 12345;
    uint32_t x = 99;
    const struct jc_spec specs[JOURNALS] = {{.name = names[0], .fragment_bytes = 3000},
                                            {.name = names[1], .fragment_bytes = 9000},
                                            {.name = names[2], .fragment_bytes = 100000}};

    memset(answered, 0, sizeof answered);
    for (size_t i = 0; i < JOURNALS; i++)
        jc_journal_unref(lab_create_spec(&l->lab, &specs[i]));
    ll_close(l);
    for (uint32_t life = 0; life < LIVES; life++) {
        struct crash c = {points[life % 8], (int)(rnd(&x) % 12)};
        one_life(l, c, life * TXNS, seed, answered);
        /* The check reads what a kill left, log and all, and changes nothing. */
        assert_true(jc_local_check(l->dir, lab_probe, NULL, ll_no_report, NULL) >= 0);
        ll_open(l);
        compare(l, answered, (life + 1) * TXNS, seed);
        ll_close(l);
        assert_int_equal(jc_local_check(l->dir, lab_probe, NULL, ll_report, NULL), 0);
    }
}

static void die_in_apply(struct local_lab *l, const char *point)
{
    struct crash c = {point, 0};
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        l->opts.probe_arg = &c;
        l->hooks.point = die_at;
        ll_open(l);
        (void)lab_delete(&l->lab, "acme/a");
        _exit(44);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 42);
}

static void an_interrupted_deletion_is_finished_at_the_next_start(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");
    char path[1024];

    (void)ll_fragment(l, j, "C0001:old\n");
    assert_int_equal(lab_append(&l->lab, j, "C0002:old\n"), 0);
    jc_journal_unref(j);
    ll_close(l);
    die_in_apply(l, "apply.committed");
    assert_true(ll_file(l, "open", "acme/a", "0000", path, sizeof path));
    ll_open(l);
    assert_null(lab_find(&l->lab, "acme/a"));
    assert_false(ll_file(l, "open", "acme/a", "0000", path, sizeof path));
    assert_false(ll_file(l, "fragments", "acme/a", "0000", path, sizeof path));
    j = lab_create(&l->lab, "acme/a");
    assert_int_equal(lab_append(&l->lab, j, "new\n"), 0);
    lab_expect_text(&l->lab, j, 0, "new\n");
    jc_journal_unref(j);
}

/* The child's last append is durable, but was reported as failed, and nothing more can be written
 * to the database; then all that closes fragments is tried. */
static void die_in_doubt(struct local_lab *l)
{
    const struct jc_spec spec = {.name = "acme/a", .fragment_age_ms = 1000};
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        ll_open(l);
        const struct jc_journal *j = lab_create_spec(&l->lab, &spec);
        bool ok = lab_append(&l->lab, j, "C0001:a\n") == 0;
        atomic_store(&l->doubt_in, 0);
        atomic_store(&l->commit_fails, 1000000);
        ok = ok && lab_append(&l->lab, j, "C0002:doubt\n") == E_IO;
        ok = ok && ll_flush(l) < 0;
        atomic_fetch_add(&l->wall_ms, 5000);
        ll_tick(l);
        ok = ok && lab_append(&l->lab, j, "C0003:no\n") < 0;
        ok = ok && ll_flush(l) < 0;
        _exit(ok ? 42 : 43);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 42);
}

/* ll_commit is asked before COMMIT: the one that becomes doubtful has to pass it. */
static int pass_first(void *arg)
{
    struct local_lab *l = arg;

    return atomic_load(&l->doubt_in) == 0 ? 0 : ll_commit(arg);
}

static void no_fragment_is_closed_while_a_commit_is_in_doubt(void **state)
{
    struct local_lab *l = *state;

    ll_close(l);
    l->hooks.commit = pass_first;
    die_in_doubt(l);
    l->hooks.commit = ll_commit;
    ll_open(l);
    const struct jc_journal *j = lab_find(&l->lab, "acme/a");
    lab_expect_text(&l->lab, j, 0, "C0001:a\nC0002:doubt\n"); /* as a whole */
    jc_journal_unref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_answered_survives_a_crash_at_every_point, ll_setup,
                                        ll_teardown),
        cmocka_unit_test_setup_teardown(an_interrupted_deletion_is_finished_at_the_next_start,
                                        ll_setup, ll_teardown),
        cmocka_unit_test_setup_teardown(no_fragment_is_closed_while_a_commit_is_in_doubt, ll_setup,
                                        ll_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
