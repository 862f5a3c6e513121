/*
 * The stand-in broker against recorded calls of a real one, byte by byte: each recorded request is
 * played in the state that it was recorded in, and the answer, its headers and trailers must be the
 * recorded ones. What is different by nature is in `masks`, field by field; nothing else is let
 * pass. Revisions, ids and endpoints are set to those of the recording.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"
#include "tests/contract/gazette_golden.h"
#include "tests/contract/grpc_raw.h"
#include "tests/contract/temp_dir.h"
#include "tests/gazette_stand_in/stand_in.h"

#define FIRST_BYTES 19979 /* of the first recorded fragment, whose content was not recorded */

enum mask_kind { ANY, SHA_IN_URL };

static const struct mask {
    const char *call, *field;
    enum mask_kind kind;
} masks[] = {
    {"read-remote", "5.4", ANY},      /* SHA-1 of content that was not recorded */
    {"read-remote", "5.7", ANY},      /* when the object was written */
    {"read-remote", "6", SHA_IN_URL}, /* the same SHA-1 */
    {"read-remote-do-not-proxy", "5.4", ANY},
    {"read-remote-do-not-proxy", "5.7", ANY},
    {"read-remote-do-not-proxy", "6", SHA_IN_URL},
    {"fragments", "3[0].1.4", ANY},
    {"fragments", "3[0].1.7", ANY},
    {"fragments", "3[0].2", SHA_IN_URL},
    {"fragments", "3[1].1.7", ANY},
};

static json_t *file;
static struct stand_in *si;
static char dir[256];
static unsigned played;

/* --- comparing --- */

static const ProtobufCMessageDescriptor *answer_type(const char *path)
{
    static const struct {
        const char *path;
        const ProtobufCMessageDescriptor *d;
    } types[] = {
        {"/protocol.Journal/List", &gz__list_response__descriptor},
        {"/protocol.Journal/Apply", &gz__apply_response__descriptor},
        {"/protocol.Journal/Read", &gz__read_response__descriptor},
        {"/protocol.Journal/Append", &gz__append_response__descriptor},
        {"/protocol.Journal/ListFragments", &gz__fragments_response__descriptor},
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(path, types[i].path) == 0)
            return types[i].d;
    }
    fail_msg("no such method: %s", path);
    return NULL;
}

/* The masked part of a line becomes a '*'. Returns how many lines it hit. */
static unsigned apply_mask(struct blob *text, const struct mask *m)
{
    size_t n = strlen(m->field);
    unsigned hits = 0;

    for (uint8_t *p = text->data, *end = p + text->len, *eol; p < end; p = eol + 1) {
        eol = memchr(p, '\n', (size_t)(end - p));
        if ((size_t)(eol - p) <= n || memcmp(p, m->field, n) != 0 || (p[n] != '=' && p[n] != '.'))
            continue;
        uint8_t *from = memchr(p, '=', (size_t)(eol - p));
        if (*++from == '{')
            continue;
        hits++;
        uint8_t *to = eol;
        if (m->kind == SHA_IN_URL) { /* 40 digits before ".raw" */
            from = eol - 44;
            to = eol - 4;
        }
        *from++ = '*';
        memmove(from, to, (size_t)(end - to));
        end -= to - from;
        eol -= to - from;
        text->len = (size_t)(end - text->data);
    }
    return hits;
}

static void compare_text(const struct golden *g, struct span got)
{
    const ProtobufCMessageDescriptor *d = answer_type(g->path);
    struct blob *a = golden_lines(blob_span(g->response), d), *b = golden_lines(got, d);
    unsigned hits = 0;

    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        if (strcmp(masks[i].call, g->name) != 0)
            continue;
        unsigned n = apply_mask(a, &masks[i]);
        hits += n;
        assert_true(n > 0);
        assert_int_equal(apply_mask(b, &masks[i]), n);
    }
    if (hits == 0 || !span_eq(blob_span(a), blob_span(b))) {
        (void)printf("%s\n--- recorded\n%.*s--- the stand-in\n%.*s", g->name,
                     SPAN_FMT(blob_span(a)), SPAN_FMT(blob_span(b)));
        fail_msg("%s: another answer than the recorded one", g->name);
    }
    blob_unref(a);
    blob_unref(b);
}

static void compare(const struct golden *g, const struct raw_call *c)
{
    if (!span_eq(raw_response(c), blob_span(g->response)))
        compare_text(g, raw_response(c));
    if (!span_eq(raw_headers(c), blob_span(g->headers)))
        fail_msg("%s: headers and trailers\n%.*s--- recorded\n%.*s", g->name,
                 SPAN_FMT(raw_headers(c)), SPAN_FMT(blob_span(g->headers)));
    played++;
}

static struct golden find(const char *name)
{
    struct golden g = {0};

    if (!golden_find(file, name, &g))
        fail_msg("no recorded call %s", name);
    return g;
}

static void start(struct raw_call *c, const struct golden *g)
{
    assert_int_equal(raw_start(c, stand_in_port(si), g->path, blob_span(g->request), NULL), 0);
}

static void play(const char *name)
{
    struct golden g = find(name);
    struct raw_call c;

    assert_true(g.complete);
    start(&c, &g);
    assert_true(raw_wait(&c, 0));
    compare(&g, &c);
    raw_end(&c);
    golden_fini(&g);
}

/* --- what was not recorded but must have been done --- */

/* Returns the status field, which is the first of all answers; -1: none. */
static int done(const char *path, struct writer *w)
{
    struct raw_call c;
    int status = 0;

    assert_int_equal(raw_start(&c, stand_in_port(si), path, blob_span(w->b), NULL), 0);
    assert_true(raw_wait(&c, 0));
    struct span r = raw_response(&c);
    if (r.n < 7)
        status = -1;
    else if (r.p[5] == 8)
        status = r.p[6];
    raw_end(&c);
    wr_fini(w);
    return status;
}

static int append(const char *journal, struct span content)
{
    struct writer w;
    Gz__AppendRequest m;

    wr_init(&w, 1 << 20);
    gz__append_request__init(&m);
    m.journal = (char *)(uintptr_t)journal;
    raw_put(&w, &m.base);
    gz__append_request__init(&m);
    if (content.n > 0) {
        m.content = (ProtobufCBinaryData){content.n, (uint8_t *)(uintptr_t)content.p};
        raw_put(&w, &m.base);
    }
    gz__append_request__init(&m);
    raw_put(&w, &m.base);
    return done("/protocol.Journal/Append", &w);
}

/* Puts the specs that are in a recorded listing, from message `from` on and of a mod_revision; 0:
 * of all. */
static void apply_listed(const char *name, unsigned from, int64_t mod_revision)
{
    struct golden g = find(name);
    struct span frames = blob_span(g.response), msg;
    Gz__Change changes[64], *list[64];
    Gz__ListResponse *kept[64];
    Gz__ApplyRequest rq;
    struct writer w;
    size_t n = 0, k = 0;

    for (unsigned at = 0; frame_next(&frames, &msg); at++) {
        if (at < from || k == 64)
            continue;
        Gz__ListResponse *m = kept[k++] = gz__list_response__unpack(NULL, msg.n, msg.p);
        for (size_t i = 0; i < m->n_journals; i++) {
            if (mod_revision != 0 && m->journals[i]->mod_revision != mod_revision)
                continue;
            gz__change__init(&changes[n]);
            changes[n].upsert = m->journals[i]->spec;
            changes[n].expect_mod_revision = -1;
            list[n] = &changes[n];
            n++;
        }
        if (mod_revision != 0 && n > 0)
            break;
    }
    gz__apply_request__init(&rq);
    rq.changes = list;
    rq.n_changes = n;
    wr_init(&w, 1 << 20);
    raw_put(&w, &rq.base);
    assert_true(n > 0);
    assert_int_equal(done("/protocol.Journal/Apply", &w), 0);
    while (k > 0)
        gz__list_response__free_unpacked(kept[--k], NULL);
    golden_fini(&g);
}

/* --- the recording, in its order --- */

static void set_up(void)
{
    const struct stand_in_opts o = {
        .file_root = dir,
        .endpoint = "http://127.0.0.1:28080",
        .cluster_id = 1048985321271191384ull,
        .member_id = 5326236767055063029ull,
        .raft_term = 4,
        .listing_lag_ms = -1,
        .unassign_lag_ms = -1,
    };

    assert_int_equal(temp_dir_make(dir, sizeof dir), 0);
    assert_int_equal(stand_in_start(&o, &si), 0);
    stand_in_set_revision(si, 2);
    apply_listed("list-all", 0, 0); /* at revision 3 */
    stand_in_set_revision(si, 0x19);
}

static void play_lists_and_first_appends(void)
{
    static const char *const names[] = {
        "list-all",
        "list-label",
        "list-name",
        "list-none",
        "list-prefix",
        "read-head-empty",
        "read-zero-empty",
        "read-missing-journal",
        "append-missing-journal",
        "append-first",
        "append-union",
        "append-register-mismatch",
        "append-check-subtract",
        "append-empty",
        "append-empty-union-error",
        "append-wrong-offset",
        "read-metadata-only",
        "read-zero",
        "read-end-offset",
        "read-past-head",
        "read-bad-name",
        "read-bad-offset",
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        play(names[i]);
}

static void play_stored_fragments(void)
{
    char *first = mem_alloc(FIRST_BYTES);

    assert_non_null(first);
    memset(first, 'x', FIRST_BYTES);
    stand_in_set_revision(si, 0x1a);
    apply_listed("list-watch", 0, 0x1b);
    assert_int_equal(append("lab/orders/part-000", span_of(first, FIRST_BYTES)), 0);
    assert_int_equal(append("lab/orders/part-000", span_str("{\"x\":6}\n")), 0);
    assert_int_equal(stand_in_close_fragments(si, "lab/orders/part-000"), 0);
    stand_in_set_revision(si, 0x1c);
    play("fragments");
    play("fragments-missing");
    play("read-remote");
    play("read-remote-do-not-proxy");
    mem_free(first);
}

static void play_suspension(void)
{
    play("suspend-now"); /* 0x1d */
    play("list-suspended");
    play("read-suspended");
    play("append-no-resume");
    play("append-resume-no-primary"); /* 0x1f: the route is lost, the spec changed */
    int status = -1;
    for (int i = 0; i < 1000 && status != 0; i++) /* "a retry works" */
        status = append("lab/codec/zst", span_of(NULL, 0));
    assert_int_equal(status, 0);
}

static void play_applies(void)
{
    stand_in_set_revision(si, 0x21);
    play("apply-cas-ok");
    play("apply-cas-stale");
    play("apply-cas-zero-exists");
    play("apply-any-revision");
    play("apply-bad-value");
    play("apply-reserved-label");
}

/* Reads on until the recorded bytes of so many messages are there. */
static void wait_messages(struct raw_call *c, const struct golden *g, unsigned n)
{
    struct span frames = blob_span(g->response), msg = {0};

    while (n-- > 0)
        assert_true(frame_next(&frames, &msg));
    assert_true(raw_wait(c, (size_t)(msg.p + msg.n - g->response->data)));
}

/* Until the stand-in has the call, which says nothing. */
static void wait_running(enum stand_in_method m)
{
    int64_t until = clock_mono_ms(clock_system()) + RAW_WAIT_MS;

    while (stand_in_running(si, m) == 0)
        assert_true(clock_mono_ms(clock_system()) < until);
}

static void play_blocked_read(void)
{
    static const char five[] = "{\"_meta\":{\"uuid\":\"7f4558f1-ee14-11f1-8001-070507050705\"},"
                               "\"id\":5}\n";
    static const char six[] = "{\"_meta\":{\"uuid\":\"7f4558f1-ee14-11f1-8002-070507050705\"},"
                              "\"id\":6}\n";
    const char *j = "lab/orders/part-001";
    struct golden g = find("read-block");
    struct raw_call c;

    assert_int_equal(append(j, span_str(five)), 0);
    assert_int_equal(append(j, span_str(six)), 0);
    assert_int_equal(append(j, span_str("{\"id\":7}\n")), 0);
    assert_int_equal(stand_in_close_fragments(si, j), 0);
    start(&c, &g);
    wait_running(STAND_IN_READ);
    assert_int_equal(raw_headers(&c).n, 0); /* nothing, not even headers, before content */
    assert_int_equal(append(j, span_str(five)), 0);
    wait_messages(&c, &g, 2);
    assert_int_equal(append(j, span_str(six)), 0);
    wait_messages(&c, &g, 4);
    compare(&g, &c);
    raw_end(&c);
    golden_fini(&g);
}

/* A change of a journal that the recorded watches do not select. */
static void change_unselected(void)
{
    struct golden g = find("list-suspended");
    struct span frames = blob_span(g.response), msg;
    Gz__Change change, *list = &change;
    Gz__ApplyRequest rq;
    struct writer w;

    assert_true(frame_next(&frames, &msg));
    Gz__ListResponse *m = gz__list_response__unpack(NULL, msg.n, msg.p);
    gz__change__init(&change);
    gz__apply_request__init(&rq);
    change.upsert = m->journals[0]->spec;
    change.expect_mod_revision = -1;
    rq.changes = &list;
    rq.n_changes = 1;
    wr_init(&w, 1 << 20);
    raw_put(&w, &rq.base);
    assert_int_equal(done("/protocol.Journal/Apply", &w), 0);
    gz__list_response__free_unpacked(m, NULL);
    golden_fini(&g);
}

static void play_watches(void)
{
    struct golden g = find("list-watch");
    struct raw_call c;

    start(&c, &g);
    wait_messages(&c, &g, 2);
    apply_listed("list-watch", 2, 0x24);
    wait_messages(&c, &g, 4);
    apply_listed("list-watch", 4, 0x25);
    wait_messages(&c, &g, 6);
    compare(&g, &c);
    raw_end(&c);
    golden_fini(&g);

    g = find("list-watch-resume");
    start(&c, &g);
    wait_running(STAND_IN_LIST);
    assert_int_equal(raw_headers(&c).n, 0);
    change_unselected(); /* 0x26 */
    wait_messages(&c, &g, 2);
    compare(&g, &c);
    raw_end(&c);
    golden_fini(&g);
}

static void play_chunks(void)
{
    stand_in_set_revision(si, 0x26);
    apply_listed("list-chunked", 0, 0); /* 0x27 */
    stand_in_set_revision(si, 0x64);
    play("list-chunked");
}

static void every_recorded_call_is_answered_as_recorded(void **state)
{
    (void)state;
    set_up();
    play_lists_and_first_appends();
    play_stored_fragments();
    play_suspension();
    play_applies();
    play_blocked_read();
    play_watches();
    play_chunks();
    assert_int_equal(played, json_array_size(file));
    stand_in_stop(si);
    temp_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_recorded_call_is_answered_as_recorded),
    };

    log_setup(LOG_WARN, LOG_FORMAT_TEXT);
    file = json_load_file(GOLDEN_FILE, 0, NULL);
    if (file == NULL) {
        (void)printf("no %s: run it from the root of the tree\n", GOLDEN_FILE);
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(file);
    return failed;
}
