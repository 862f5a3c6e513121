/*
 * What the distributed store reads to answer: the look back for the end of content costs in
 * proportion to how far it lies, and look-ups by clock name no block too late, over journals made
 * at random and compared with all of their documents.
 */
#include "tests/contract/gazette_bench.h"

#include "base/writer.h"
#include "journal_client/gazette/gazette_int.h"
#include "journal_client/uuid.h"
#include "tests/contract/grpc_raw.h"

#define HIDDEN_BYTES 1000

static int64_t read_so_far(void)
{
    uint64_t direct, brokered;

    jc_gazette_read_stats(&direct, &brokered);
    return (int64_t)(direct + brokered);
}

/* n hidden documents in one append. */
static void append_hidden(struct bench *b, unsigned n)
{
    char *text = mem_alloc((size_t)n * HIDDEN_BYTES);

    assert_non_null(text);
    memset(text, '.', (size_t)n * HIDDEN_BYTES);
    for (unsigned i = 0; i < n; i++) {
        memcpy(text + (size_t)i * HIDDEN_BYTES, "A1:", 3);
        text[(size_t)(i + 1) * HIDDEN_BYTES - 1] = '\n';
    }
    assert_int_equal(lab_append_span(&b->lab, b->j, span_of(text, (size_t)n * HIDDEN_BYTES), NULL),
                     0);
    mem_free(text);
}

static void looking_back_reads_in_proportion_to_the_distance(void **state)
{
    static const unsigned hidden[] = {0, 10, 200, 900, 4000};
    struct bench b = {0};
    unsigned behind = 0;

    (void)state;
    bench_start(&b);
    assert_int_equal(bench_append(&b, 20000), 0); /* 4 MB of content before */
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        for (; behind < hidden[i]; behind += hidden[i] - behind < 1000 ? hidden[i] - behind : 1000)
            append_hidden(&b, hidden[i] - behind < 1000 ? hidden[i] - behind : 1000);
        bench_reopen(&b);
        int64_t before = read_so_far(), far = (int64_t)behind * HIDDEN_BYTES;
        struct jc_heads h = lab_heads(&b.lab, b.j);
        int64_t read = read_so_far() - before;
        assert_int_equal(h.content_end, (int64_t)b.docs * BENCH_DOC);
        assert_int_equal(h.write_head, (int64_t)b.docs * BENCH_DOC + far);
        /* windows of 64 KiB times 4, each read once, and pieces of a broker's answer */
        assert_true(read <= 16 * far / 3 + 3 * 65536);
        assert_true(read >= far);
    }
    bench_end(&b);
}

/* --- clocks --- */

static uint64_t seed;

static unsigned pick(unsigned n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)((seed >> 33) % n);
}

#define DOCS_MAX 4000

struct oracle {
    struct {
        int64_t end;
        uint64_t clock;
        bool content;
    } v[DOCS_MAX];
    size_t n;
    int64_t end;
    uint64_t base; /* the first clock */
};

/* Documents of up to 20 KB whose clocks rise by and large. */
static void append_random(struct bench *b, struct oracle *o, unsigned n)
{
    struct writer w;

    wr_init(&w, (size_t)8 << 20);
    for (unsigned i = 0; i < n && o->n < DOCS_MAX; i++) {
        uint64_t clock = o->base + ((uint64_t)o->n * 1000 + pick(20000)) * 160000; /* of 10 ms */
        bool content = pick(8) != 0;
        size_t at = wr_len(&w);
        wr_printf(&w, "%c%llx:", content ? 'C' : 'A', (unsigned long long)clock);
        for (unsigned k = pick(4) == 0 ? pick(20000) : pick(500); k > 0; k--)
            wr_u8(&w, '.');
        wr_u8(&w, '\n');
        o->end += (int64_t)(wr_len(&w) - at);
        o->v[o->n].end = o->end;
        o->v[o->n].clock = clock;
        o->v[o->n].content = content;
        o->n++;
    }
    assert_int_equal(wr_err(&w), 0);
    assert_int_equal(lab_append_span(&b->lab, b->j, blob_span(w.b), NULL), 0);
    wr_fini(&w);
}

static bool matches(const struct oracle *o, size_t i, const struct jc_seek_req *rq)
{
    return o->v[i].content && o->v[i].end - 1 >= rq->offset && o->v[i].end - 1 < rq->end_offset &&
           o->v[i].clock >= rq->min_clock && o->v[i].clock <= rq->max_clock;
}

/* Seeks as a caller does: the block that is named is looked into, then on behind it. Returns the
 * first match, o->n: none. */
static size_t seek_first(struct bench *b, const struct oracle *o, struct jc_seek_req rq,
                         unsigned *seeks)
{
    size_t i = 0;

    for (;;) {
        int64_t block = lab_seek(&b->lab, &rq);
        (*seeks)++;
        if (block == E_NOTFOUND)
            return o->n;
        if (block < rq.offset / JC_BLOCK_BYTES)
            fail_msg("%lld for [%lld, %lld)", (long long)block, (long long)rq.offset,
                     (long long)rq.end_offset);
        for (; i < o->n && o->v[i].end - 1 < (block + 1) * JC_BLOCK_BYTES; i++) {
            if (o->v[i].end - 1 >= block * JC_BLOCK_BYTES && matches(o, i, &rq))
                return i;
        }
        rq.offset = (block + 1) * JC_BLOCK_BYTES;
        if (rq.offset >= rq.end_offset)
            return o->n;
    }
}

static void check_first(struct bench *b, const struct oracle *o)
{
    int64_t offset = pick(3) == 0 ? 0 : (int64_t)pick((unsigned)o->end);
    struct jc_seek_req rq = {.journal = b->j,
                             .offset = offset,
                             .end_offset = offset + 1 + (int64_t)pick((unsigned)(o->end - offset)),
                             .min_clock = pick(5) == 0 ? 0 : o->v[pick((unsigned)o->n)].clock,
                             .max_clock = UINT64_MAX,
                             .mode = JC_SEEK_FIRST};
    unsigned seeks = 0;
    size_t want = 0;

    while (want < o->n && !matches(o, want, &rq))
        want++;
    assert_int_equal(seek_first(b, o, rq, &seeks), want);
    /* The index knows each block's largest clock: it is wrong about the ends of the range alone. */
    assert_true(seeks <= 3);
}

static void check_max(struct bench *b, const struct oracle *o)
{
    struct jc_seek_req rq = {.journal = b->j,
                             .offset = 0,
                             .end_offset = o->end,
                             .max_clock = UINT64_MAX,
                             .mode = JC_SEEK_MAX};
    int64_t best = -1, block = -1;

    for (size_t i = 0; i < o->n; i++) {
        int64_t ms = jc_clock_unix_ms(o->v[i].clock);
        if (o->v[i].content && ms > best) {
            best = ms;
            block = (o->v[i].end - 1) / JC_BLOCK_BYTES;
        }
    }
    assert_int_equal(lab_seek(&b->lab, &rq), block);
}

static void seeks_agree_with_all_documents(void **state)
{
    static struct oracle o;

    (void)state;
    for (unsigned round = 0; round < 6; round++) {
        struct bench b = {.o = {.fragment_store = "file:///"}};
        seed = 100 + round;
        o = (struct oracle){.base = jc_clock_from_unix_ms(INT64_C(1700000000000))};
        bench_start(&b);
        for (unsigned i = 0; i < 8; i++) {
            append_random(&b, &o, 50 + pick(300));
            if (pick(2) == 0)
                assert_int_equal(stand_in_close_fragments(b.si, BENCH_JOURNAL), 0);
        }
        if (round % 2 == 1) /* one that saw nothing of it */
            bench_reopen(&b);
        assert_int_equal(lab_heads(&b.lab, b.j).write_head, o.end);
        for (unsigned i = 0; i < 40; i++)
            check_first(&b, &o);
        check_max(&b, &o);
        append_random(&b, &o, 100); /* and what the tail brings */
        for (unsigned i = 0; i < 20; i++)
            check_first(&b, &o);
        check_max(&b, &o);
        bench_end(&b);
    }
}

/* --- damage --- */

static void what_cannot_be_read_is_told_to_who_asked_so(void **state)
{
    const struct stand_in_fault gone = {
        .kind = STAND_IN_STATUS, .method = STAND_IN_READ, .value = 6, .times = -1};
    struct bench b = {0};
    struct lab_block x = {0};
    struct jc_op *op;

    (void)state;
    bench_start(&b);
    assert_int_equal(bench_append(&b, 4000), 0); /* 800 KB: the ring has lost the first of it */
    struct jc_heads h = lab_heads(&b.lab, b.j);
    assert_int_equal(stand_in_fault(b.si, &gone), 0);
    const struct jc_block_req rq = {.journal = b.j, .block = 0, .partial = true};
    assert_int_equal(b.lab.s->ops->read_block(b.lab.s, &rq, &b.lab.mb.ex, lab_on_block, &x, &op),
                     0);
    for (int i = 0; i < 300 && !x.done; i++)
        lab_settle(&b.lab, 100);
    assert_true(x.done);
    assert_int_equal(x.err, 0);
    assert_int_equal(x.b.damaged_n, 1);
    assert_int_equal(x.b.damaged[0].begin, 0);
    assert_true(x.b.damaged[0].end >= JC_BLOCK_BYTES && x.b.damaged[0].end <= h.write_head);
    jc_block_fini(&x.b);
    stand_in_calm(b.si);
    bench_end(&b);
}

/* --- documents that lie in several fragments --- */

static void put_message(struct writer *w, const Gz__AppendRequest *m)
{
    struct blob *b = gz_pack(&m->base);

    assert_non_null(b);
    wr_u8(w, 0);
    wr_u32(w, (uint32_t)b->len);
    wr_span(w, blob_span(b));
    blob_unref(b);
}

/* As another writer does, who tears documents. */
static void append_raw(struct bench *b, char first, char fill, size_t n, bool ends)
{
    Gz__AppendRequest m;
    struct raw_call c;
    struct writer w;
    struct blob *text = blob_new(n);

    if (text == NULL) {
        fail_msg("out of memory");
        return;
    }
    memset(text->data, fill, n);
    text->len = n;
    if (first != 0)
        memcpy(text->data, (char[]){'C', first, '0', '0', '0', '0', ':'}, 7);
    if (ends)
        text->data[n - 1] = '\n';
    wr_init(&w, n + 1000);
    gz__append_request__init(&m);
    m.journal = (char *)(uintptr_t)BENCH_JOURNAL;
    put_message(&w, &m);
    gz__append_request__init(&m);
    m.content.data = text->data;
    m.content.len = n;
    put_message(&w, &m);
    gz__append_request__init(&m);
    put_message(&w, &m);
    assert_int_equal(wr_err(&w), 0);
    assert_int_equal(
        raw_start(&c, stand_in_port(b->si), "/protocol.Journal/Append", blob_span(w.b), NULL), 0);
    assert_true(raw_wait(&c, 0));
    raw_end(&c);
    wr_fini(&w);
    blob_unref(text);
}

/* The one in the middle has its begin in one fragment and its end in the next; a gateway that
 * comes later scans for it. */
static void a_document_in_two_fragments_is_found_by_its_clock(void **state)
{
    struct bench b = {.o = {.fragment_store = "file:///", .fragment_bytes = INT64_C(64) << 20}};
    const int64_t end = 100 + 700000;

    (void)state;
    bench_start(&b);
    append_raw(&b, '1', 'a', 100, true);
    append_raw(&b, '2', 'b', 300000, false);
    assert_int_equal(stand_in_close_fragments(b.si, BENCH_JOURNAL), 0);
    append_raw(&b, 0, 'b', 400000, true);
    for (int i = 0; i < 2; i++) /* so that who comes later looks back no further than here */
        assert_int_equal(bench_append(&b, 1000), 0);
    assert_int_equal(stand_in_close_fragments(b.si, BENCH_JOURNAL), 0);
    int64_t head = stand_in_head(b.si, BENCH_JOURNAL);
    assert_int_equal(head, end + (int64_t)b.docs * BENCH_DOC);
    bench_reopen(&b);
    struct jc_seek_req rq = {.journal = b.j,
                             .end_offset = head,
                             .min_clock = 0x20000,
                             .max_clock = UINT64_MAX,
                             .mode = JC_SEEK_FIRST};
    assert_int_equal(lab_seek(&b.lab, &rq), (end - 1) / JC_BLOCK_BYTES);
    rq.min_clock = 0x30000;
    assert_int_equal(lab_seek(&b.lab, &rq), E_NOTFOUND);
    /* From the back its two halves are not put together; there is an answer all the same. */
    bench_reopen(&b);
    rq.journal = b.j;
    rq.mode = JC_SEEK_MAX;
    rq.min_clock = 1;
    int64_t max = lab_seek(&b.lab, &rq);
    assert_true(max >= 0 && max <= (head - 1) / JC_BLOCK_BYTES);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looking_back_reads_in_proportion_to_the_distance),
        cmocka_unit_test(seeks_agree_with_all_documents),
        cmocka_unit_test(what_cannot_be_read_is_told_to_who_asked_so),
        cmocka_unit_test(a_document_in_two_fragments_is_found_by_its_clock),
    };

    log_setup(LOG_WARN, LOG_FORMAT_TEXT);
    const char *only = getenv("SLUICE_TEST_ONLY"); // NOLINT(concurrency-mt-unsafe): one thread yet
    if (only != NULL)
        cmocka_set_test_filter(only);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
