/*
 * Files that are not there. Absence is no removal: what comes back is served again, nothing is
 * unlinked or recorded because it was missing, and a journal that lost much is not served as if it
 * were a small one.
 */
#include "tests/unit/journal_client/local_lab.h"

#define FRAGMENTS 4
static const char *const docs[FRAGMENTS] = {"C0001:a\n", "C0002:b\n", "C0003:c\n", "C0004:d\n"};
static const char all[] = "C0001:a\nC0002:b\nC0003:c\nC0004:d\n";

/* Four closed fragments of 8 bytes in acme/a; the store is closed. */
static void four_fragments(struct local_lab *l)
{
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");

    for (size_t i = 0; i < FRAGMENTS; i++)
        (void)ll_fragment(l, j, docs[i]);
    jc_journal_unref(j);
    ll_close(l);
}

static void expect(struct local_lab *l, const char *text)
{
    const struct jc_journal *j = lab_find(&l->lab, "acme/a");

    assert_non_null(j);
    lab_expect_text(&l->lab, j, 0, text);
    jc_journal_unref(j);
}

static void path_of(struct local_lab *l, const char *name, char *out)
{
    (void)snprintf(out, 512, "%s/%s", l->dir, name);
}

/* Moves DIR/from to DIR/to. */
static void move(struct local_lab *l, const char *from, const char *to)
{
    char a[512], b[512];

    path_of(l, from, a);
    path_of(l, to, b);
    assert_int_equal(rename(a, b), 0);
}

/* The file of fragment i, and where it goes when it is taken away. */
static void file_of(struct local_lab *l, size_t i, char *path, char *away)
{
    char prefix[20];

    (void)snprintf(prefix, sizeof prefix, "%016zx", i * 8);
    if (!ll_file(l, "fragments", "acme/a", prefix, path, 1024))
        fail_msg("no file of fragment %zu", i);
    (void)snprintf(away, 1024, "%s/away-%zu", l->dir, i);
}

struct faults {
    int n;
    size_t len;
    char text[8192];
};

static void on_fault(void *arg, const char *text)
{
    struct faults *f = arg;

    f->n++;
    int n = snprintf(f->text + f->len, sizeof f->text - f->len, "%s\n", text);
    assert_true(n > 0 && (size_t)n < sizeof f->text - f->len);
    f->len += (size_t)n;
}

static int check(struct local_lab *l, struct faults *f)
{
    *f = (struct faults){0};
    return jc_local_check(l->dir, lab_probe, NULL, on_fault, f);
}

static void expect_refused(struct local_lab *l, const char *words)
{
    struct faults f;

    assert_int_equal(ll_try_open(l), E_CORRUPT);
    l->lab.s = NULL;
    if (strstr(l->why, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", l->why, words);
    assert_true(check(l, &f) > 0);
    if (strstr(f.text, words) == NULL)
        fail_msg("the check says \"%s\", not \"%s\"", f.text, words);
}

static void a_fragments_folder_that_is_away_stops_the_start_and_loses_nothing(void **state)
{
    struct local_lab *l = *state;

    four_fragments(l);
    move(l, "fragments", "elsewhere");
    for (int i = 0; i < 2; i++) {
        expect_refused(l, "journal acme/a: 4 of its 4 recorded fragments are missing");
        assert_non_null(strstr(l->why, "--accept-lost-fragments"));
    }
    l->opts.read_only = true; /* a reader is not told half of it either */
    expect_refused(l, "4 of its 4");
    l->opts.read_only = false;
    move(l, "elsewhere", "fragments");
    ll_open(l);
    expect(l, all);
}

static void a_folder_that_became_a_file_stops_the_start(void **state)
{
    struct local_lab *l = *state;
    char path[512];

    four_fragments(l);
    move(l, "fragments/acme", "elsewhere");
    path_of(l, "fragments/acme", path);
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    close(fd);
    expect_refused(l, "4 of its 4");
    assert_int_equal(unlink(path), 0);
    move(l, "elsewhere", "fragments/acme");
    ll_open(l);
    expect(l, all);
}

static void the_refusal_counts_the_journals(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *k = lab_create(&l->lab, "acme/k");

    (void)ll_fragment(l, k, "C0009:k\n");
    jc_journal_unref(k);
    four_fragments(l);
    move(l, "fragments", "elsewhere");
    assert_int_equal(ll_try_open(l), E_CORRUPT);
    l->lab.s = NULL;
    assert_non_null(strstr(l->why, "2 journals lack fragments; journal acme/a: 4 of its 4"));
    move(l, "elsewhere", "fragments");
}

static void more_than_a_small_share_missing_or_cut_stops_the_start(void **state)
{
    struct local_lab *l = *state;
    char path[2][1024], away[2][1024];

    four_fragments(l);
    file_of(l, 1, path[0], away[0]);
    file_of(l, 2, path[1], away[1]);
    assert_int_equal(rename(path[0], away[0]), 0);
    assert_int_equal(truncate(path[1], 3), 0);
    expect_refused(l, "2 of its 4 recorded fragments are missing or damaged");
    assert_non_null(strstr(l->why, "offset 8"));
    assert_int_equal(truncate(path[1], 0), 0);
    int fd = open(path[1], O_WRONLY);
    assert_int_equal(write(fd, docs[2], 8), 8);
    close(fd);
    ll_open(l); /* one is a hole */
    expect(l, "C0001:a\nC0003:c\nC0004:d\n");
    ll_close(l);
    assert_int_equal(rename(away[0], path[0]), 0);
}

static void a_missing_fragment_is_a_hole_for_as_long_as_it_is_missing(void **state)
{
    struct local_lab *l = *state;
    char path[1024], away[1024];
    struct faults f;

    four_fragments(l);
    for (size_t i = 0; i < FRAGMENTS; i++) {
        char want[64] = "";
        size_t len = 0;
        file_of(l, i, path, away);
        assert_int_equal(rename(path, away), 0);
        for (size_t k = 0; k < FRAGMENTS; k++)
            len += (size_t)snprintf(want + len, sizeof want - len, "%s", k == i ? "" : docs[k]);
        for (int start = 0; start < 2; start++) {
            ll_open(l);
            expect(l, want);
            const struct jc_journal *j = lab_find(&l->lab, "acme/a");
            struct jc_heads h = lab_heads(&l->lab, j);
            assert_int_equal(h.log_start, i == 0 ? 8 : 0);
            assert_int_equal(h.first, i == 0 ? 8 : 0);
            assert_int_equal(h.content_end, 32);
            jc_journal_unref(j);
            ll_close(l);
            assert_int_equal(check(l, &f), 1); /* not forgotten because a start has seen it */
            assert_non_null(strstr(f.text, "its file is missing"));
        }
        assert_int_equal(rename(away, path), 0);
        ll_open(l);
        expect(l, all); /* log start included: it was never recorded */
        const struct jc_journal *j = lab_find(&l->lab, "acme/a");
        assert_int_equal(lab_heads(&l->lab, j).log_start, 0);
        jc_journal_unref(j);
        ll_close(l);
        assert_int_equal(check(l, &f), 0);
    }
}

static void accepted_losses_are_served_around_until_they_come_back(void **state)
{
    struct local_lab *l = *state;
    struct faults f;

    four_fragments(l);
    move(l, "fragments", "elsewhere");
    l->opts.accept_lost = true;
    ll_open(l);
    expect(l, "");
    const struct jc_journal *j = lab_find(&l->lab, "acme/a");
    assert_int_equal(lab_append(&l->lab, j, "C0005:e\n"), 0);
    lab_expect_text(&l->lab, j, 0, "C0005:e\n");
    jc_journal_unref(j);
    l->opts.accept_lost = false;
    ll_reopen(l); /* said once is enough */
    expect(l, "C0005:e\n");
    ll_close(l);
    assert_int_equal(check(l, &f), 4);
    assert_non_null(strstr(f.text, "(accepted as lost)"));
    assert_null(strstr(f.text, "recorded fragments"));
    move(l, "elsewhere", "fragments");
    ll_open(l);
    expect(l, "C0001:a\nC0002:b\nC0003:c\nC0004:d\nC0005:e\n");
    ll_close(l);
    assert_int_equal(check(l, &f), 0);
    move(l, "fragments", "elsewhere"); /* and no longer accepted */
    expect_refused(l, "4 of its 4");
    move(l, "elsewhere", "fragments");
}

static void retention_that_passes_a_hole_records_only_what_it_removed(void **state)
{
    struct local_lab *l = *state;
    char path[1024], away[1024];

    four_fragments(l);
    file_of(l, 0, path, away);
    assert_int_equal(rename(path, away), 0);
    ll_open(l);
    const struct jc_journal *j = lab_find(&l->lab, "acme/a");
    assert_int_equal(lab_heads(&l->lab, j).log_start, 8);
    assert_int_equal(ll_remove(l, j, 0), 0); /* nothing ends there */
    assert_int_equal(ll_punch(l, j, 16), 0); /* a hole behind the missing one */
    assert_int_equal(rename(away, path), 0);
    jc_journal_unref(j);
    ll_reopen(l);
    j = lab_find(&l->lab, "acme/a");
    lab_expect_text(&l->lab, j, 0, "C0001:a\nC0002:b\nC0004:d\n");
    assert_int_equal(lab_heads(&l->lab, j).log_start, 0);
    assert_int_equal(ll_remove(l, j, 16), 0);
    assert_int_equal(lab_heads(&l->lab, j).log_start, 24); /* with the hole that was made */
    jc_journal_unref(j);
    ll_reopen(l);
    j = lab_find(&l->lab, "acme/a");
    assert_int_equal(lab_heads(&l->lab, j).log_start, 24);
    assert_int_equal(lab_heads(&l->lab, j).first, 24);
    jc_journal_unref(j);
}

static void
a_hole_that_comes_to_lie_at_the_front_raises_the_log_start_as_a_restart_would(void **state)
{
    struct local_lab *l = *state;
    char path[1024], away[1024];

    four_fragments(l);
    file_of(l, 1, path, away);
    assert_int_equal(rename(path, away), 0);
    ll_open(l);
    const struct jc_journal *j = lab_find(&l->lab, "acme/a");
    assert_int_equal(ll_remove(l, j, 8), 0);
    assert_int_equal(lab_heads(&l->lab, j).log_start, 16);
    jc_journal_unref(j);
    ll_reopen(l);
    j = lab_find(&l->lab, "acme/a");
    assert_int_equal(lab_heads(&l->lab, j).log_start, 16);
    jc_journal_unref(j);
    assert_int_equal(rename(away, path), 0);
    ll_reopen(l); /* in memory alone: the file is back */
    j = lab_find(&l->lab, "acme/a");
    assert_int_equal(lab_heads(&l->lab, j).log_start, 8);
    jc_journal_unref(j);
    expect(l, "C0002:b\nC0003:c\nC0004:d\n");
}

static void a_file_that_vanishes_while_it_runs_is_a_hole_until_it_is_back(void **state)
{
    struct local_lab *l = *state;
    char path[1024], away[1024];
    struct faults f;

    four_fragments(l);
    ll_open(l);
    const struct jc_journal *j = lab_find(&l->lab, "acme/a");
    file_of(l, 0, path, away);
    assert_int_equal(rename(path, away), 0);
    lab_expect_text(&l->lab, j, 0, "C0002:b\nC0003:c\nC0004:d\n");
    assert_int_equal(lab_append(&l->lab, j, "C0005:e\n"), 0);
    ll_tick(l);
    struct jc_heads h = lab_heads(&l->lab, j);
    assert_true(h.log_start == 0 && h.first == 0); /* heads that rose could not go back */
    assert_int_equal(rename(away, path), 0);
    ll_tick(l);
    lab_expect_text(&l->lab, j, 0, "C0001:a\nC0002:b\nC0003:c\nC0004:d\nC0005:e\n");
    jc_journal_unref(j);
    ll_close(l);
    assert_int_equal(check(l, &f), 0);
}

static void a_folder_that_vanishes_while_it_runs_is_an_error_and_not_a_jump(void **state)
{
    struct local_lab *l = *state;
    struct lab_read r = {0};

    four_fragments(l);
    ll_open(l);
    const struct jc_journal *j = lab_find(&l->lab, "acme/a");
    assert_int_equal(lab_append(&l->lab, j, "C0005:e\n"), 0);
    move(l, "fragments/acme", "elsewhere");
    struct jc_read_opts o = {.journal = j};
    lab_read(&l->lab, &r, &o);
    assert_int_equal(r.err, E_IO);
    mem_free(r.text);
    struct lab_block x = lab_block(&l->lab, j, 0, 0);
    assert_int_equal(x.err, E_IO);
    lab_expect_text(&l->lab, j, 32, "C0005:e\n");
    move(l, "elsewhere", "fragments/acme");
    lab_expect_text(&l->lab, j, 0, "C0001:a\nC0002:b\nC0003:c\nC0004:d\nC0005:e\n");
    jc_journal_unref(j);
}

static void a_missing_fragment_can_be_given_up_for_good(void **state)
{
    struct local_lab *l = *state;
    char path[1024], away[1024];
    struct faults f;

    four_fragments(l);
    file_of(l, 1, path, away);
    assert_int_equal(rename(path, away), 0);
    ll_open(l);
    const struct jc_journal *j = lab_find(&l->lab, "acme/a");
    assert_int_equal(ll_punch(l, j, 8), 0);
    assert_int_equal(ll_punch(l, j, 8), E_NOTFOUND);
    jc_journal_unref(j);
    ll_close(l);
    assert_int_equal(check(l, &f), 0);
    ll_open(l);
    j = lab_find(&l->lab, "acme/a");
    assert_int_equal(ll_punch(l, j, 8), E_NOTFOUND);
    jc_journal_unref(j);
}

static void a_file_that_no_record_names_is_left_alone(void **state)
{
    struct local_lab *l = *state;
    char path[1024], away[1024], strange[4][1024];
    static const char *const names[] = {
        "0000000000000000-0000000000000004-", "0000000000000000-0000000000000008-",
        "0000000000000008-0000000000000010-", "0000000000001000-0000000000001008-"};
    struct faults f;

    four_fragments(l);
    file_of(l, 0, path, away);
    *strrchr(path, '/') = '\0';
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(strange[i], sizeof strange[i], "%.600s/%s%040d.raw", path, names[i], 7);
        int fd = open(strange[i], O_WRONLY | O_CREAT | O_EXCL, 0644);
        assert_true(fd >= 0);
        close(fd);
    }
    assert_int_equal(check(l, &f), 4);
    for (int i = 0; i < 2; i++) {
        ll_open(l);
        const struct jc_journal *j = lab_find(&l->lab, "acme/a");
        if (i == 1)
            assert_int_equal(ll_remove(l, j, 8), 0); /* the strange ones lie below it now */
        jc_journal_unref(j);
        ll_reopen(l);
        ll_close(l);
        for (size_t k = 0; k < 4; k++)
            assert_int_equal(access(strange[k], F_OK), 0);
    }
    assert_int_equal(check(l, &f), 4);
}

static void a_lost_database_is_not_taken_for_a_new_store(void **state)
{
    struct local_lab *l = *state;
    char path[512];
    struct stat st;

    four_fragments(l);
    move(l, "sluice.db", "kept.db");
    expect_refused(l, "sluice.db is missing or empty");
    assert_non_null(strstr(l->why, "fragments/acme/a/"));
    path_of(l, "sluice.db", path);
    assert_true(stat(path, &st) < 0); /* nor is one made */
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    close(fd);
    expect_refused(l, "sluice.db is missing or empty");
    /* Only a growing fragment is content, too. */
    move(l, "fragments", "elsewhere");
    ll_open(l);
    jc_journal_unref(lab_create(&l->lab, "acme/k"));
    ll_close(l);
    move(l, "kept.db", "sluice.db");
    move(l, "elsewhere", "fragments");
    ll_open(l);
    expect(l, all);
}

static void a_growing_fragment_without_a_database_is_refused(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");
    char path[512];

    assert_int_equal(lab_append(&l->lab, j, docs[0]), 0);
    jc_journal_unref(j);
    ll_close(l);
    path_of(l, "sluice.db", path);
    assert_int_equal(unlink(path), 0);
    path_of(l, "LOCK", path);
    assert_int_equal(unlink(path), 0);
    expect_refused(l, "open/acme/a/0000000000000000.open");
}

static int64_t revision_of_a_new_store(struct local_lab *l, const char *dir)
{
    struct jc_local_opts o = l->opts;
    char path[512];
    int64_t revision;

    path_of(l, dir, path);
    o.dir = path;
    struct lab lab;
    struct jc_store *s;
    assert_int_equal(jl_open(&o, &l->hooks, &s, l->why, sizeof l->why), 0);
    lab_init(&lab, s);
    const struct jc_journal *j = lab_create(&lab, "acme/a");
    revision = j->create_revision;
    jc_journal_unref(j);
    lab_fini(&lab);
    return revision;
}

static void a_new_store_never_repeats_the_create_revisions_of_an_old_one(void **state)
{
    struct local_lab *l = *state;
    int64_t a = revision_of_a_new_store(l, "one");
    int64_t b = revision_of_a_new_store(l, "two"); /* within the same second */
    int64_t c;

    assert_true(a != b && a > 0 && b > 0);
    atomic_fetch_add(&l->wall_ms, 1000);
    c = revision_of_a_new_store(l, "three");
    assert_true(c > a && c > b); /* later ones rank behind */
    assert_true(c < INT64_C(1) << 53);
}

static void old_files_below_the_name_of_a_new_journal_are_set_aside(void **state)
{
    struct local_lab *l = *state;
    char path[600], text[16] = "";
    struct faults f;

    /* A database from before acme/b was made. */
    const char *const files[] = {"open/acme/b/0000000000000000.open",
                                 "fragments/acme/b/0000000000000000-0000000000000004-"
                                 "0000000000000000000000000000000000000007.raw"};
    for (size_t i = 0; i < 2; i++) {
        path_of(l, files[i], path);
        *strrchr(path, '/') = '\0';
        assert_int_equal(jl_mkdirs(path, false), 0);
        path_of(l, files[i], path);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
        assert_int_equal(write(fd, "old\n", 4), 4);
        close(fd);
    }
    long long revision = (long long)jl_store_of(l->lab.s)->revision;
    ll_close(l);
    assert_int_equal(check(l, &f), 2);
    assert_non_null(strstr(f.text, "acme/b"));
    ll_open(l);
    const struct jc_journal *j = lab_create(&l->lab, "acme/b");
    assert_int_equal(lab_append(&l->lab, j, "C0001:new\n"), 0);
    lab_expect_text(&l->lab, j, 0, "C0001:new\n");
    jc_journal_unref(j);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/lost+found/%lld/%s", l->dir, revision, files[i]);
        int fd = open(path, O_RDONLY);
        assert_true(fd >= 0);
        assert_int_equal(read(fd, text, sizeof text), 4);
        close(fd);
        assert_memory_equal(text, "old\n", 4);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, ll_setup, ll_teardown)
#define D(name) cmocka_unit_test_setup_teardown(name, ll_setup, ll_teardown_damaged)
    const struct CMUnitTest tests[] = {
        T(a_fragments_folder_that_is_away_stops_the_start_and_loses_nothing),
        T(a_folder_that_became_a_file_stops_the_start),
        T(the_refusal_counts_the_journals),
        T(more_than_a_small_share_missing_or_cut_stops_the_start),
        T(a_missing_fragment_is_a_hole_for_as_long_as_it_is_missing),
        T(accepted_losses_are_served_around_until_they_come_back),
        T(retention_that_passes_a_hole_records_only_what_it_removed),
        T(a_hole_that_comes_to_lie_at_the_front_raises_the_log_start_as_a_restart_would),
        T(a_file_that_vanishes_while_it_runs_is_a_hole_until_it_is_back),
        T(a_folder_that_vanishes_while_it_runs_is_an_error_and_not_a_jump),
        T(a_missing_fragment_can_be_given_up_for_good),
        D(a_file_that_no_record_names_is_left_alone),
        D(a_lost_database_is_not_taken_for_a_new_store),
        D(a_growing_fragment_without_a_database_is_refused),
        T(a_new_store_never_repeats_the_create_revisions_of_an_old_one),
        T(old_files_below_the_name_of_a_new_journal_are_set_aside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
