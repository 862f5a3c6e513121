/*
 * How the stand-in broker forgets, seen call by call and without our client: fragments that are
 * older than they are, `gazctl journals prune` by a spec's retention, and listings of a store that
 * tell of a removal late. A real broker was seen to do each of these; where its sources say more,
 * the rule is named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "tests/contract/gazette_golden.h"
#include "tests/contract/grpc_raw.h"
#include "tests/contract/temp_dir.h"
#include "tests/gazette_stand_in/stand_in.h"

#define JOURNAL   "removal/orders"
#define PART      100 /* bytes of a fragment */
#define PARTS     5   /* stored ones; behind them one that is open */
#define RETENTION 3600
#define WAIT_MS   INT64_C(30000)

enum { NOT_YET = 6 }; /* OFFSET_NOT_YET_AVAILABLE */

/* Owner: one test. */
struct rig {
    struct stand_in *si;
    char dir[256];
};

/* --- calls --- */

/* Ends with the call's end; the caller does raw_end. */
static void call(const struct rig *r, const char *path, struct writer *w, struct raw_call *c)
{
    assert_int_equal(wr_err(w), 0);
    assert_int_equal(raw_start(c, stand_in_port(r->si), path, blob_span(w->b), NULL), 0);
    assert_true(raw_wait(c, 0));
    assert_false(c->broken);
    wr_fini(w);
}

static bool header_says(const struct raw_call *c, const char *text)
{
    struct span h = raw_headers(c);

    return h.p != NULL && memmem(h.p, h.n, text, strlen(text)) != NULL;
}

static void make_journal(const struct rig *r)
{
    char name[] = JOURNAL, store[] = "file:///", *stores[] = {store};
    Gz__Duration refresh, retention;
    Gz__FragmentSpec fragment;
    Gz__JournalSpec spec;
    Gz__Change change, *changes[] = {&change};
    Gz__ApplyRequest rq;
    struct raw_call c;
    struct writer w;

    gz__duration__init(&refresh);
    gz__duration__init(&retention);
    gz__fragment_spec__init(&fragment);
    gz__journal_spec__init(&spec);
    gz__change__init(&change);
    gz__apply_request__init(&rq);
    refresh.seconds = 1;
    retention.seconds = RETENTION;
    fragment.length = 1 << 20;
    fragment.compression_codec = GZ__CODEC__CODEC_NONE;
    fragment.stores = stores;
    fragment.n_stores = 1;
    fragment.refresh_interval = &refresh;
    fragment.retention = &retention;
    spec.name = name;
    spec.replication = 1;
    spec.fragment = &fragment;
    change.upsert = &spec;
    rq.changes = changes;
    rq.n_changes = 1;
    wr_init(&w, 1 << 16);
    raw_put(&w, &rq.base);
    call(r, "/protocol.Journal/Apply", &w, &c);
    assert_true(header_says(&c, "grpc-status: 0"));
    raw_end(&c);
}

static void append(const struct rig *r)
{
    char name[] = JOURNAL;
    uint8_t content[PART];
    Gz__AppendRequest m;
    struct raw_call c;
    struct writer w;

    memset(content, 'x', sizeof content);
    content[PART - 1] = '\n';
    wr_init(&w, 1 << 16);
    gz__append_request__init(&m);
    m.journal = name;
    raw_put(&w, &m.base);
    gz__append_request__init(&m);
    m.content = (ProtobufCBinaryData){sizeof content, content};
    raw_put(&w, &m.base);
    gz__append_request__init(&m);
    raw_put(&w, &m.base);
    call(r, "/protocol.Journal/Append", &w, &c);
    assert_true(header_says(&c, "grpc-status: 0"));
    raw_end(&c);
}

/* What ListFragments answers; freed with its free_unpacked. */
static Gz__FragmentsResponse *list(const struct rig *r, int64_t begin_mod, int64_t end_mod)
{
    char name[] = JOURNAL;
    Gz__FragmentsResponse *m = NULL;
    Gz__FragmentsRequest rq;
    struct raw_call c;
    struct span frames, msg;
    struct writer w;

    gz__fragments_request__init(&rq);
    rq.journal = name;
    rq.begin_mod_time = begin_mod;
    rq.end_mod_time = end_mod;
    wr_init(&w, 1 << 16);
    raw_put(&w, &rq.base);
    call(r, "/protocol.Journal/ListFragments", &w, &c);
    frames = raw_response(&c);
    if (frame_next(&frames, &msg))
        m = gz__fragments_response__unpack(NULL, msg.n, msg.p);
    raw_end(&c);
    assert_non_null(m);
    return m;
}

/* The listed fragments must be these, by number; -1 ends. */
static void expect_list(const struct rig *r, int64_t begin_mod, int64_t end_mod, const int *want)
{
    Gz__FragmentsResponse *m = list(r, begin_mod, end_mod);
    size_t n = 0;

    for (; want[n] >= 0; n++) {
        assert_true(n < m->n_fragments);
        assert_int_equal(m->fragments[n]->spec->begin, want[n] * PART);
    }
    assert_int_equal(m->n_fragments, n);
    gz__fragments_response__free_unpacked(m, NULL);
}

/* What a Read that does not wait came to. */
struct answer {
    int status;     /* of the first message */
    int64_t offset; /* of the first message */
    bool content;   /* some came */
    bool failed, no_file;
};

static struct answer read_at(const struct rig *r, int64_t offset, int64_t begin_mod)
{
    char name[] = JOURNAL;
    struct answer a = {.status = -1};
    Gz__ReadRequest rq;
    struct raw_call c;
    struct span frames, msg;
    struct writer w;

    gz__read_request__init(&rq);
    rq.journal = name;
    rq.offset = offset;
    rq.begin_mod_time = begin_mod;
    wr_init(&w, 1 << 16);
    raw_put(&w, &rq.base);
    call(r, "/protocol.Journal/Read", &w, &c);
    frames = raw_response(&c);
    while (frame_next(&frames, &msg)) {
        Gz__ReadResponse *m = gz__read_response__unpack(NULL, msg.n, msg.p);
        assert_non_null(m);
        if (a.status < 0) {
            a.status = m->status;
            a.offset = m->offset;
        }
        a.content = a.content || m->content.len > 0;
        gz__read_response__free_unpacked(m, NULL);
    }
    a.failed = !header_says(&c, "grpc-status: 0");
    a.no_file = header_says(&c, "no such file");
    raw_end(&c);
    return a;
}

/* --- the rig --- */

/* PARTS stored fragments of PART bytes, and an open one. */
static void start(struct rig *r, int64_t gone_lag_ms)
{
    struct stand_in_opts o = {.file_root = r->dir, .gone_lag_ms = gone_lag_ms};

    assert_int_equal(temp_dir_make(r->dir, sizeof r->dir), 0);
    assert_int_equal(stand_in_start(&o, &r->si), 0);
    make_journal(r);
    for (int i = 0; i < PARTS; i++) {
        append(r);
        assert_int_equal(stand_in_close_fragments(r->si, JOURNAL), 0);
    }
    append(r);
    expect_list(r, 0, 0, (int[]){0, 1, 2, 3, 4, 5, -1});
}

static void end(struct rig *r)
{
    stand_in_stop(r->si);
    temp_dir_remove(r->dir);
}

static int files_found;

static int count_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)ftw;
    files_found += type == FTW_F && strstr(path, ".raw") != NULL;
    return 0;
}

static int files(const struct rig *r)
{
    files_found = 0;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody else walks
    assert_int_equal(nftw(r->dir, count_one, 16, FTW_PHYS), 0);
    return files_found;
}

/* --- age --- */

static void fragments_are_as_old_as_they_are_made(void **state)
{
    struct rig r = {0};

    (void)state;
    start(&r, 0);
    int64_t now = clock_wall_ns(clock_system()) / 1000000000;
    assert_int_equal(stand_in_age(r.si, JOURNAL, PARTS + 1, 0), 0);
    assert_int_equal(stand_in_age(r.si, JOURNAL, 2, 7200), 0);
    Gz__FragmentsResponse *m = list(&r, 0, 0);
    for (size_t i = 0; i < PARTS; i++) {
        int64_t old = now - m->fragments[i]->spec->mod_time;
        assert_in_range(old + 60, i < 2 ? 7200 : 0, (i < 2 ? 7200 : 0) + 60);
    }
    assert_int_equal(m->fragments[PARTS]->spec->mod_time, 0); /* not stored: without a time */
    gz__fragments_response__free_unpacked(m, NULL);
    /* both bounds; without an upper one, what is not stored belongs to it */
    expect_list(&r, now - 3600, 0, (int[]){2, 3, 4, 5, -1});
    expect_list(&r, 0, now - 3600, (int[]){0, 1, -1});
    expect_list(&r, now - 3600, now + 60, (int[]){2, 3, 4, -1});
    /* a Read passes over what is older than asked for */
    assert_int_equal(read_at(&r, 0, now - 3600).offset, 2 * PART);
    assert_int_equal(read_at(&r, 0, 0).offset, 0);
    assert_int_equal(stand_in_age(r.si, JOURNAL, PARTS + 2, 1), E_RANGE);
    assert_int_equal(stand_in_age(r.si, "removal/none", 1, 1), E_NOTFOUND);
    end(&r);
}

/* --- prune --- */

static void what_is_stored_for_its_retention_goes_and_nothing_else(void **state)
{
    struct rig r = {0};

    (void)state;
    start(&r, 0);
    assert_int_equal(stand_in_prune_aged(r.si, JOURNAL), 0);
    expect_list(&r, 0, 0, (int[]){0, 1, 2, 3, 4, 5, -1}); /* none is old enough */
    assert_int_equal(stand_in_age(r.si, JOURNAL, 2, RETENTION + 60), 0);
    assert_int_equal(stand_in_age(r.si, JOURNAL, 1, RETENTION - 60), 0);
    assert_int_equal(files(&r), PARTS);
    assert_int_equal(stand_in_prune_aged(r.si, JOURNAL), 0);
    expect_list(&r, 0, 0, (int[]){0, 2, 3, 4, 5, -1}); /* wherever it lies: a hole */
    assert_int_equal(files(&r), PARTS - 1);
    assert_int_equal(stand_in_age(r.si, JOURNAL, PARTS - 1, RETENTION + 60), 0);
    assert_int_equal(stand_in_prune_aged(r.si, NULL), 0); /* of all journals */
    expect_list(&r, 0, 0, (int[]){5, -1});                /* what is not stored stays */
    assert_int_equal(files(&r), 0);
    assert_int_equal(stand_in_head(r.si, JOURNAL), (PARTS + 1) * PART);
    assert_int_equal(stand_in_prune_aged(r.si, "removal/none"), E_NOTFOUND);
    end(&r);
}

/* A broker jumps to the first fragment that there is, and over a hole when what lies behind it was
 * stored more than six hours ago; else somebody may be storing it just now, and a Read waits. */
static void a_read_of_what_is_gone_jumps_or_waits(void **state)
{
    struct rig r = {0};

    (void)state;
    start(&r, 0);
    assert_int_equal(stand_in_age(r.si, JOURNAL, 2, RETENTION), 0);
    assert_int_equal(stand_in_age(r.si, JOURNAL, 1, 0), 0);
    assert_int_equal(stand_in_prune_aged(r.si, JOURNAL), 0); /* of the second */
    struct answer a = read_at(&r, PART + 1, 0);
    assert_int_equal(a.status, NOT_YET);
    assert_int_equal(a.offset, PART + 1);
    assert_int_equal(stand_in_age(r.si, JOURNAL, 2, (int64_t)6 * 3600 + 60), 0);
    a = read_at(&r, PART + 1, 0);
    assert_int_equal(a.offset, 2 * PART);
    assert_true(a.content);
    assert_int_equal(stand_in_prune(r.si, JOURNAL, 1), 0); /* the oldest */
    a = read_at(&r, 5, 0);
    assert_int_equal(a.offset, 2 * PART);
    assert_true(a.content && !a.failed);
    end(&r);
}

/* --- a listing that tells late --- */

static void
what_was_removed_is_listed_and_cannot_be_read_until_the_store_is_listed_again(void **state)
{
    struct rig r = {0};

    (void)state;
    start(&r, WAIT_MS * 10);
    assert_int_equal(stand_in_prune(r.si, JOURNAL, 2), 0);
    assert_int_equal(files(&r), PARTS - 2);
    assert_int_equal(stand_in_hide_stored(r.si, JOURNAL, 1), 0); /* other changes tell nothing */
    expect_list(&r, 0, 0, (int[]){0, 1, 2, 3, 4, 5, -1});
    struct answer a = read_at(&r, 0, 0);
    assert_int_equal(a.status, 0);
    assert_int_equal(a.offset, 0);
    assert_true(a.failed && a.no_file && !a.content);
    a = read_at(&r, 2L * PART, 0); /* behind it all is well */
    assert_true(!a.failed && a.content);
    end(&r);

    start(&r, 700);
    assert_int_equal(stand_in_age(r.si, JOURNAL, 3, RETENTION), 0);
    assert_int_equal(stand_in_prune_aged(r.si, JOURNAL), 0);
    int64_t t0 = clock_mono_ms(clock_system()), until = t0 + WAIT_MS;
    for (int64_t first = 0; first == 0;) {
        Gz__FragmentsResponse *m = list(&r, 0, 0);
        first = m->fragments[0]->spec->begin;
        gz__fragments_response__free_unpacked(m, NULL);
        assert_true(clock_mono_ms(clock_system()) < until);
    }
    assert_true(clock_mono_ms(clock_system()) - t0 >= 600);
    expect_list(&r, 0, 0, (int[]){3, 4, 5, -1});
    a = read_at(&r, 0, 0);
    assert_int_equal(a.offset, 3 * PART);
    assert_true(!a.failed && a.content);
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fragments_are_as_old_as_they_are_made),
        cmocka_unit_test(what_is_stored_for_its_retention_goes_and_nothing_else),
        cmocka_unit_test(a_read_of_what_is_gone_jumps_or_waits),
        cmocka_unit_test(
            what_was_removed_is_listed_and_cannot_be_read_until_the_store_is_listed_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
