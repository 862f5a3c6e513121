/*
 * The embedded store against a list in memory: random documents (1 byte to several blocks, content,
 * hidden, blank), closes, removed prefixes, holes, restarts; after each burst random reads, block
 * reads, seeks and heads are compared with what the list says.
 */
#include "tests/unit/journal_client/local_lab.h"

#include "journal_client/uuid.h"

#define DOCS_MAX 4000

struct doc {
    int64_t begin, end;
    enum jc_doc_kind kind;
    uint64_t clock;
    bool gone;
    char fill;
};

struct model {
    struct local_lab *l;
    const struct jc_journal *j;
    struct doc docs[DOCS_MAX];
    size_t n;
    int64_t head, content_end, log_start;
    uint64_t max_clock;
    uint64_t seed;
};

static uint64_t rnd(struct model *m, uint64_t below)
{
    m->seed ^= m->seed << 13;
    m->seed ^= m->seed >> 7;
    m->seed ^= m->seed << 17;
    return m->seed % below;
}

static size_t doc_bytes(const struct doc *d, uint8_t *out)
{
    size_t n = (size_t)(d->end - d->begin);
    char head[24];

    memset(out, d->kind == JC_DOC_BLANK ? ' ' : d->fill, n);
    out[n - 1] = '\n';
    if (d->kind == JC_DOC_BLANK || d->clock == 0)
        return n;
    int h = snprintf(head, sizeof head, "%c%llx:", d->kind == JC_DOC_HIDDEN ? 'A' : 'C',
                     (unsigned long long)d->clock);
    memcpy(out, head, (size_t)h);
    return n;
}

static struct doc random_doc(struct model *m)
{
    static const uint64_t sizes[] = {2, 10, 100, 1000, 30000, 200000, 700000};
    uint64_t kind = rnd(m, 10);
    struct doc d = {.begin = m->head, .fill = (char)('a' + rnd(m, 26))};
    int64_t n = (int64_t)rnd(m, sizes[rnd(m, 100) < 95 ? rnd(m, 5) : 5 + rnd(m, 2)]) + 1;

    d.kind = kind == 0 ? JC_DOC_BLANK : kind < 3 ? JC_DOC_HIDDEN : JC_DOC_CONTENT;
    if (d.kind != JC_DOC_BLANK && (d.kind == JC_DOC_HIDDEN || rnd(m, 5) > 0)) {
        d.clock = 0x1f00000000000000 + rnd(m, 1u << 30) * 160000;
        n += 24;
    } else if (n == 1) {
        d.kind = JC_DOC_BLANK; /* only a newline */
    }
    d.end = d.begin + n;
    return d;
}

static void append_some(struct model *m)
{
    size_t docs = 1 + (size_t)rnd(m, 12);
    int64_t begin = m->head;
    uint8_t *text = NULL;
    size_t n = 0;
    int64_t got;

    for (size_t i = 0; i < docs && m->n < DOCS_MAX; i++) {
        struct doc d = random_doc(m);
        text = mem_realloc(text, n + (size_t)(d.end - d.begin));
        assert_non_null(text);
        n += doc_bytes(&d, text + n);
        m->head = d.end;
        if (d.kind == JC_DOC_CONTENT) {
            m->content_end = d.end;
            if (d.clock > m->max_clock)
                m->max_clock = d.clock;
        }
        m->docs[m->n++] = d;
    }
    if (n > 0) {
        assert_int_equal(lab_append_span(&m->l->lab, m->j, span_of(text, n), &got), 0);
        assert_int_equal(got, begin);
    }
    mem_free(text);
}

static void forget(struct model *m, int64_t begin, int64_t end, bool prefix)
{
    for (size_t i = 0; i < m->n; i++) {
        struct doc *d = &m->docs[i];
        if (d->begin >= begin && d->end <= end)
            d->gone = true;
        if (prefix && d->end <= end && d->kind == JC_DOC_CONTENT && d->end > m->log_start)
            m->log_start = d->end;
    }
}

/* Removes a prefix or one fragment. */
static void remove_some(struct model *m)
{
    static struct lab_frags x;

    lab_frags(&m->l->lab, m->j, &x);
    size_t closed = x.n > 0 && x.v[x.n - 1].open ? x.n - 1 : x.n;
    if (closed < 3)
        return;
    size_t at = (size_t)rnd(m, closed / 2);
    bool prefix = at == 0 || rnd(m, 2) == 0;
    if (prefix) {
        assert_int_equal(ll_remove(m->l, m->j, x.v[at].end), 0);
        /* a hole behind it goes along */
        forget(m, 0, at + 1 < x.n ? x.v[at + 1].begin : m->head, true);
    } else {
        assert_int_equal(ll_punch(m->l, m->j, x.v[at].begin), 0);
        forget(m, x.v[at].begin, x.v[at].end, false);
    }
}

static void check_heads(struct model *m)
{
    struct jc_heads h = lab_heads(&m->l->lab, m->j);
    int64_t first = m->head;

    for (size_t i = m->n; i-- > 0;) {
        if (!m->docs[i].gone)
            first = m->docs[i].begin;
    }
    assert_int_equal(h.write_head, m->head);
    assert_int_equal(h.content_end, m->content_end);
    assert_int_equal(h.log_start, m->log_start);
    assert_int_equal(h.first, first);
    assert_true(h.max_clock == m->max_clock);
}

static void check_doc(const struct doc *d, const uint8_t *got)
{
    uint8_t *want = mem_alloc((size_t)(d->end - d->begin));

    assert_non_null(want);
    size_t n = doc_bytes(d, want);
    assert_memory_equal(got, want, n);
    mem_free(want);
}

static void check_block(struct model *m, int64_t block, int64_t from)
{
    struct lab_block x = lab_block(&m->l->lab, m->j, block, from);
    int64_t high = (block + 1) * JC_BLOCK_BYTES;
    size_t seg = 0, at = 0;

    assert_int_equal(x.err, 0);
    assert_int_equal(x.b.sealed, m->head >= high);
    assert_int_equal(x.b.read_to, m->head < high ? m->head : high);
    for (size_t i = 0; i < m->n; i++) {
        const struct doc *d = &m->docs[i];
        if (d->gone || (d->end - 1) / JC_BLOCK_BYTES != block || d->end - 1 < from)
            continue;
        if (seg < x.b.segments_n && at == x.b.segments[seg].bytes->len) {
            seg++;
            at = 0;
        }
        assert_true(seg < x.b.segments_n);
        assert_int_equal(x.b.segments[seg].offset + (int64_t)at, d->begin);
        check_doc(d, x.b.segments[seg].bytes->data + at);
        at += (size_t)(d->end - d->begin);
    }
    /* and nothing else */
    assert_true(x.b.segments_n == 0 ||
                (seg + 1 == x.b.segments_n && at == x.b.segments[seg].bytes->len));
    jc_block_fini(&x.b);
}

static bool in_block(const struct doc *d, int64_t block)
{
    return !d->gone && d->kind == JC_DOC_CONTENT && (d->end - 1) / JC_BLOCK_BYTES == block;
}

/* The largest content clock of the block; false without content. */
static bool block_max(struct model *m, int64_t block, uint64_t *max)
{
    bool any = false;

    *max = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (in_block(&m->docs[i], block)) {
            any = true;
            if (m->docs[i].clock > *max)
                *max = m->docs[i].clock;
        }
    }
    return any;
}

static void check_seek(struct model *m)
{
    int64_t offset = (int64_t)rnd(m, (uint64_t)m->head);
    struct jc_seek_req rq = {
        .journal = m->j,
        .offset = offset,
        .end_offset = offset + 1 + (int64_t)rnd(m, (uint64_t)m->head),
        .min_clock = rnd(m, 3) == 0 ? 0 : 0x1f00000000000000 + rnd(m, 1u << 30) * 160000,
        .max_clock = UINT64_MAX,
        .mode = rnd(m, 2) == 0 ? JC_SEEK_FIRST : JC_SEEK_MAX};
    int64_t first = -1, best = INT64_MIN;
    uint64_t max = 0;

    /* What the range really holds. */
    for (size_t i = 0; i < m->n; i++) {
        const struct doc *d = &m->docs[i];
        if (d->gone || d->kind != JC_DOC_CONTENT || d->clock < rq.min_clock ||
            d->end - 1 < rq.offset || d->end - 1 >= rq.end_offset)
            continue;
        if (first < 0)
            first = (d->end - 1) / JC_BLOCK_BYTES;
        if (jc_clock_unix_ms(d->clock) > best)
            best = jc_clock_unix_ms(d->clock);
    }
    int64_t got = lab_seek(&m->l->lab, &rq);
    if (got < 0) {
        assert_int_equal(got, E_NOTFOUND);
        assert_int_equal(first, -1);
        return;
    }
    /* The first and last block may be told for documents just outside of the range; whatever is
     * told holds such a clock, and nothing lower (or larger) was passed over. */
    assert_true(got >= rq.offset / JC_BLOCK_BYTES && got <= (rq.end_offset - 1) / JC_BLOCK_BYTES);
    assert_true(block_max(m, got, &max) && max >= rq.min_clock);
    if (first >= 0 && rq.mode == JC_SEEK_FIRST)
        assert_true(got <= first);
    if (first >= 0 && rq.mode == JC_SEEK_MAX)
        assert_true(jc_clock_unix_ms(max) >= best);
}

static void check_read(struct model *m)
{
    int64_t from = (int64_t)rnd(m, (uint64_t)m->head);
    int64_t end = from + 1 + (int64_t)rnd(m, 400000);
    struct lab_read r = {0};
    const struct jc_read_opts o = {.journal = m->j,
                                   .offset = from,
                                   .end_offset = end,
                                   .chunk_bytes = 1 + (size_t)rnd(m, 100000)};
    size_t at = 0;

    lab_read(&m->l->lab, &r, &o);
    assert_int_equal(r.err, 0);
    for (size_t i = 0; i < m->n; i++) {
        const struct doc *d = &m->docs[i];
        if (d->gone || d->end <= from || d->begin >= end)
            continue;
        uint8_t *want = mem_alloc((size_t)(d->end - d->begin));
        assert_non_null(want);
        (void)doc_bytes(d, want);
        int64_t a = d->begin > from ? d->begin : from, b = d->end < end ? d->end : end;
        assert_true(at + (size_t)(b - a) <= r.n);
        assert_memory_equal(r.text + at, want + (a - d->begin), (size_t)(b - a));
        at += (size_t)(b - a);
        mem_free(want);
    }
    assert_int_equal(at, r.n);
    mem_free(r.text);
}

static void check_all(struct model *m)
{
    check_heads(m);
    for (int i = 0; i < 12; i++) {
        int64_t block = (int64_t)rnd(m, (uint64_t)(m->head / JC_BLOCK_BYTES) + 2);
        int64_t from =
            rnd(m, 2) == 0 ? 0 : block * JC_BLOCK_BYTES + (int64_t)rnd(m, JC_BLOCK_BYTES + 10);
        check_block(m, block, from);
        check_seek(m);
        check_read(m);
    }
    /* A document's first and last byte, and the byte behind it. */
    const struct doc *d = &m->docs[rnd(m, m->n)];
    check_block(m, (d->end - 1) / JC_BLOCK_BYTES, d->end - 1);
    check_block(m, (d->end - 1) / JC_BLOCK_BYTES, d->begin);
    check_block(m, d->end / JC_BLOCK_BYTES, d->end);
}

static void run_model(struct local_lab *l, uint64_t seed)
{
    struct model *m = mem_zalloc(sizeof *m);
    char name[32];

    assert_non_null(m);
    (void)snprintf(name, sizeof name, "acme/model%llu", (unsigned long long)seed);
    const struct jc_spec spec = {.name = name, .fragment_bytes = 400000};
    m->l = l;
    m->seed = seed * 0x9e3779b97f4a7c15u + 1;
    m->j = lab_create_spec(&l->lab, &spec);
    for (int round = 0; round < 40; round++) {
        append_some(m);
        append_some(m);
        if (rnd(m, 4) == 0)
            assert_int_equal(ll_flush(l), 0);
        if (rnd(m, 3) == 0)
            remove_some(m);
        if (rnd(m, 5) == 0) {
            jc_journal_unref(m->j);
            ll_reopen(l);
            m->j = lab_find(&l->lab, name);
            assert_non_null(m->j);
        }
        check_all(m);
    }
    jc_journal_unref(m->j);
    mem_free(m);
}

static void the_store_and_the_list_always_agree(void **state)
{
    for (uint64_t seed = 1; seed <= 2; seed++)
        run_model(*state, seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
        the_store_and_the_list_always_agree, ll_setup, ll_teardown)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
