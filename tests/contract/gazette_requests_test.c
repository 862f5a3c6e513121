/*
 * What our client asks a broker, against recorded requests: the same question must be the same
 * bytes. Fields that we may say beside (their names are in the table) are struck out first. And
 * what an Apply of ours must not lose of a spec.
 */
#include "tests/contract/store_lab.h"

#include "base/log.h"
#include "journal_client/gazette.h"
#include "tests/contract/gazette_golden.h"
#include "tests/contract/grpc_raw.h"
#include "tests/contract/temp_dir.h"
#include "tests/gazette_stand_in/stand_in.h"

#define JOURNAL "lab/orders/part-001"
#define DOC     "{\"_meta\":{\"uuid\":\"7f4558f1-ee14-11f1-8000-070507050705\"},\"id\":1}\n"

static json_t *file;

struct bench {
    struct stand_in *si;
    struct lab lab;
    char dir[256];
};

static int setup(void **state)
{
    const struct stand_in_opts so = {0};
    struct bench *b = mem_zalloc(sizeof *b);
    struct jc_store *s;
    char why[256], at[64];

    assert_non_null(b);
    assert_int_equal(temp_dir_make(b->dir, sizeof b->dir), 0);
    assert_int_equal(stand_in_start(&so, &b->si), 0);
    (void)snprintf(at, sizeof at, "127.0.0.1:%u", stand_in_port(b->si));
    const struct jc_gazette_opts o = {.brokers = at, .data_dir = b->dir, .probe = lab_probe};
    assert_int_equal(jc_gazette_open(&o, &s, why, sizeof why), 0);
    lab_init(&b->lab, s);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;

    lab_fini(&b->lab);
    stand_in_stop(b->si);
    temp_dir_remove(b->dir);
    mem_free(b);
    return 0;
}

/* Lines of fields that are not named in `beside` ("5 9"). */
static struct blob *strike(struct blob *text, const char *beside)
{
    struct blob *out = blob_new(text->len + 1);

    assert_non_null(out);
    for (uint8_t *p = text->data, *end = p + text->len, *eol; p < end; p = eol + 1) {
        char number[8];
        eol = memchr(p, '\n', (size_t)(end - p));
        size_t n = 0; /* the text has no NUL at its end: no strcspn */
        while (p[n] != '.' && p[n] != '=' && p[n] != '[' && p[n] != '\n')
            n++;
        (void)snprintf(number, sizeof number, " %.*s ", (int)(n < 4 ? n : 4), (const char *)p);
        if (p[0] >= '0' && p[0] <= '9' && strstr(beside, number) != NULL)
            continue;
        memcpy(out->data + out->len, p, (size_t)(eol + 1 - p));
        out->len += (size_t)(eol + 1 - p);
    }
    blob_unref(text);
    return out;
}

/* The last finished call of a method against a recorded one. beside: " 5 9 ", numbers of fields
 * that either side may say. */
static void expect_request(struct bench *b, enum stand_in_method m, const char *name,
                           const ProtobufCMessageDescriptor *d, const char *beside)
{
    struct golden g = {0};
    struct blob *ours = NULL;

    if (!golden_find(file, name, &g) || stand_in_last_request(b->si, m, &ours) < 0) {
        fail_msg("%s: no such call", name);
        return;
    }
    struct blob *x = strike(golden_lines(blob_span(g.request), d), beside);
    struct blob *y = strike(golden_lines(blob_span(ours), d), beside);
    if (!span_eq(blob_span(x), blob_span(y)))
        fail_msg("%s: recorded\n%.*s--- ours\n%.*s", name, SPAN_FMT(blob_span(x)),
                 SPAN_FMT(blob_span(y)));
    blob_unref(x);
    blob_unref(y);
    blob_unref(ours);
    golden_fini(&g);
}

static const struct jc_journal *journal(struct bench *b)
{
    return lab_create(&b->lab, JOURNAL);
}

static void an_append_is_three_messages_as_recorded(void **state)
{
    struct bench *b = *state;
    const struct jc_journal *j = journal(b);

    assert_int_equal(lab_append(&b->lab, j, DOC), 0);
    /* 3: do_not_proxy, 6-8: registers, 10: min_etcd_revision */
    expect_request(b, STAND_IN_APPEND, "append-first", &gz__append_request__descriptor,
                   " 3 6 7 8 10 ");
    jc_journal_unref(j);
}

static void a_second_append_says_the_offset_it_expects(void **state)
{
    struct bench *b = *state;
    const struct jc_journal *j = journal(b);
    struct blob *ours = NULL;

    assert_int_equal(lab_append(&b->lab, j, DOC), 0);
    assert_int_equal(lab_append(&b->lab, j, DOC), 0);
    assert_int_equal(stand_in_last_request(b->si, STAND_IN_APPEND, &ours), 0);
    struct blob *text = golden_lines(blob_span(ours), &gz__append_request__descriptor);
    assert_non_null(memmem(text->data, text->len, "5=65\n", 5));
    blob_unref(text);
    blob_unref(ours);
    jc_journal_unref(j);
}

static void a_head_is_asked_for_as_recorded(void **state)
{
    struct bench *b = *state;
    const struct jc_journal *j = journal(b);

    assert_int_equal(lab_heads(&b->lab, j).content_end, 0);
    /* 5: do_not_proxy, 9: min_etcd_revision. The tail does not finish: the head's is the last. */
    expect_request(b, STAND_IN_READ, "read-head-empty", &gz__read_request__descriptor, " 5 9 ");
    jc_journal_unref(j);
}

static void fragments_are_asked_for_as_recorded(void **state)
{
    struct bench *b = *state;
    const struct jc_journal *j = journal(b);
    struct lab_frags f;
    struct blob *ours = NULL;

    lab_frags(&b->lab, j, &f);
    assert_int_equal(f.err, 0);
    /* As the recorded one: a journal and for how long URLs are signed. */
    assert_int_equal(stand_in_last_request(b->si, STAND_IN_FRAGMENTS, &ours), 0);
    struct blob *text = golden_lines(blob_span(ours), &gz__fragments_request__descriptor);
    assert_non_null(memmem(text->data, text->len, "2=" JOURNAL "\n", sizeof "2=" JOURNAL));
    assert_non_null(memmem(text->data, text->len, "7={\n7.1=", 8));
    blob_unref(text);
    blob_unref(ours);
    jc_journal_unref(j);
}

/* --- specs --- */

/* The listed spec of JOURNAL, as lines. */
static struct blob *listed(struct bench *b)
{
    static const uint8_t empty_request[5] = {0};
    struct raw_call c;

    assert_int_equal(raw_start(&c, stand_in_port(b->si), "/protocol.Journal/List",
                               span_of(empty_request, sizeof empty_request), NULL),
                     0);
    assert_true(raw_wait(&c, 0));
    struct blob *text = golden_lines(raw_response(&c), &gz__list_response__descriptor);
    raw_end(&c);
    return text;
}

static bool has(const struct blob *text, const char *line)
{
    return memmem(text->data, text->len, line, strlen(line)) != NULL;
}

/* A spec with a field 99 that nobody knows, a rate, a template, a flag: whatever we change, they
 * stay. */
static void a_change_of_labels_loses_nothing_of_a_spec(void **state)
{
    struct bench *b = *state;
    ProtobufCMessageUnknownField field = {99, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, 7,
                                          (uint8_t[7]){6, 'f', 'u', 't', 'u', 'r', 'e'}};
    Gz__JournalSpec spec;
    Gz__FragmentSpec fragment;
    Gz__Duration minute;
    Gz__Change change, *changes = &change;
    Gz__ApplyRequest rq;
    struct writer w;
    struct raw_call c;

    gz__journal_spec__init(&spec);
    gz__fragment_spec__init(&fragment);
    gz__duration__init(&minute);
    gz__change__init(&change);
    gz__apply_request__init(&rq);
    minute.seconds = 60;
    fragment.length = 1 << 20;
    fragment.compression_codec = GZ__CODEC__CODEC_GZIP;
    fragment.refresh_interval = &minute;
    fragment.path_postfix_template = (char *)(uintptr_t) "utc_hour";
    spec.name = (char *)(uintptr_t)JOURNAL;
    spec.replication = 3;
    spec.fragment = &fragment;
    spec.flags = 4;
    spec.max_append_rate = 123456;
    spec.base.n_unknown_fields = 1;
    spec.base.unknown_fields = &field;
    change.upsert = &spec;
    rq.changes = &changes;
    rq.n_changes = 1;
    wr_init(&w, 65536);
    raw_put(&w, &rq.base);
    assert_int_equal(
        raw_start(&c, stand_in_port(b->si), "/protocol.Journal/Apply", blob_span(w.b), NULL), 0);
    assert_true(raw_wait(&c, 0));
    raw_end(&c);
    wr_fini(&w);

    const struct jc_journal *j = NULL;
    for (int i = 0; i < 200 && (j = lab_find(&b->lab, JOURNAL)) == NULL; i++)
        lab_settle(&b->lab, 10);
    assert_non_null(j);
    const struct jc_label label = {"kafka.example/topic", "orders"};
    const struct jc_spec want = {.name = JOURNAL,
                                 .labels = &label,
                                 .labels_n = 1,
                                 .fragment_bytes = j->spec.fragment_bytes,
                                 .fragment_age_ms = j->spec.fragment_age_ms,
                                 .retention_ms = j->spec.retention_ms};
    const struct jc_change up = {.upsert = &want, .expect_mod_revision = j->mod_revision};
    assert_int_equal(lab_apply(&b->lab, &up, 1, NULL), 0);

    struct blob *text = listed(b);
    assert_true(has(text, "3[0].1.3.1[0].1=kafka.example/topic\n"));
    assert_true(has(text, "3[0].1.2=3\n"));
    assert_true(has(text, "3[0].1.4.2=2\n"));
    assert_true(has(text, "3[0].1.4.7=utc_hour\n"));
    assert_true(has(text, "3[0].1.6=4\n"));
    assert_true(has(text, "3[0].1.7=123456\n"));
    assert_true(has(text, "3[0].1.99=future\n"));
    blob_unref(text);
    jc_journal_unref(j);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_append_is_three_messages_as_recorded),
        T(a_second_append_says_the_offset_it_expects),
        T(a_head_is_asked_for_as_recorded),
        T(fragments_are_asked_for_as_recorded),
        T(a_change_of_labels_loses_nothing_of_a_spec),
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
