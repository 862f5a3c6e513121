/*
 * Random journals and what a reader must see of them. The model is the list of what was written;
 * every answer of Fetch must be what the list says, whatever the offset, the limits, the version
 * and the isolation level. Used with the store in memory and with the embedded one.
 */
#pragma once

#include "tests/unit/gateway/fetch_lab.h"

struct written {
    int64_t begin, end;
    uint64_t clock;
    bool content;
    bool removed;
};

/* Owner: the test. */
struct model {
    struct lab *lab;
    struct written docs[20000];
    size_t n;
    uint8_t *bytes; /* of the whole journal */
    size_t len, cap;
    size_t flushed; /* bytes that the store has */
    int64_t content_end;
    int64_t log_start;
    uint64_t seed;
    struct lab_batches got;
};

static inline struct model *model_new(struct lab *lab, uint64_t seed)
{
    struct model *m = mem_zalloc(sizeof *m);

    assert_non_null(m);
    m->lab = lab;
    m->seed = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    return m;
}

static inline void model_free(struct model *m)
{
    mem_free(m->bytes);
    mem_free(m);
}

static inline uint64_t rnd(struct model *m, uint64_t below)
{
    m->seed ^= m->seed << 13;
    m->seed ^= m->seed >> 7;
    m->seed ^= m->seed << 17;
    return (m->seed >> 11) % below;
}

/* --- writing --- */

static inline void model_text(struct model *m, const char *text, uint64_t clock, bool content)
{
    size_t n = strlen(text);

    if (m->cap - m->len < n) {
        m->cap = (m->len + n) * 2;
        m->bytes = mem_realloc(m->bytes, m->cap);
        assert_non_null(m->bytes);
    }
    assert_true(m->n < sizeof m->docs / sizeof m->docs[0]);
    m->docs[m->n++] =
        (struct written){(int64_t)m->len, (int64_t)(m->len + n), clock, content, false};
    memcpy(m->bytes + m->len, text, n);
    m->len += n;
    if (content)
        m->content_end = (int64_t)m->len;
}

static inline void model_line(struct model *m, uint64_t clock, uint16_t flags, size_t bytes)
{
    char *line = lab_line(clock, flags, bytes);

    model_text(m, line, clock, jc_flags_content(flags));
    mem_free(line);
}

static inline size_t model_size(struct model *m)
{
    switch (rnd(m, 12)) {
    case 0:
        return 1 + rnd(m, 200000);
    case 1:
        return rnd(m, 60) == 0 ? 1000000 : 70000;
    case 2:
    case 3:
        return 1 + rnd(m, 20000);
    default:
        return 1 + rnd(m, 1500);
    }
}

/* Documents of all kinds: runs of hidden ones, blank lines, one byte, no JSON, several times. */
static inline void model_write(struct model *m, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t clock = LAB_CLOCK(rnd(m, 100000));

        switch (rnd(m, 10)) {
        case 0:
            for (uint64_t k = rnd(m, 30) + 1; k > 0; k--)
                model_line(m, clock, rnd(m, 2) ? JC_FLAG_ACK : JC_FLAG_CONTROL, 70 + rnd(m, 30));
            break;
        case 1:
            model_text(m, rnd(m, 2) ? "\n" : " \t \n", 0, false);
            break;
        case 2:
            model_text(m, rnd(m, 2) ? "1\n" : "{]\r\n", 0, true);
            break;
        default:
            model_line(m, clock, rnd(m, 3) ? JC_FLAG_OUTSIDE : JC_FLAG_CONTINUE, model_size(m));
        }
    }
}

/* A bound of one of four kinds, by the seed. */
static inline struct gw_bound model_bound(struct model *m, uint64_t kind)
{
    switch (kind % 4) {
    case 1:
        return (struct gw_bound){LAB_CLOCK(rnd(m, 100000)), UINT64_MAX};
    case 2:
        return (struct gw_bound){0, LAB_CLOCK(rnd(m, 100000))};
    case 3:
        return (struct gw_bound){LAB_CLOCK(40000), LAB_CLOCK(45000)};
    default:
        return (struct gw_bound){0, UINT64_MAX};
    }
}

/* Marks what lies in [begin, end) as removed. */
static inline void model_remove(struct model *m, int64_t begin, int64_t end)
{
    for (size_t i = 0; i < m->n; i++) {
        if (m->docs[i].begin >= begin && m->docs[i].end <= end)
            m->docs[i].removed = true;
    }
}

/* --- reading --- */

static inline bool model_visible(const struct model *m, size_t i)
{
    const struct gw_bound *b = &m->lab->topics[0].bound;
    const struct written *d = &m->docs[i];

    return !d->removed && d->content && d->clock >= b->min_clock && d->clock <= b->max_clock;
}

/* Index of the first visible document whose last byte is at or behind the offset; n if none. */
static inline size_t model_first(const struct model *m, int64_t offset)
{
    size_t i = 0;

    while (i < m->n && (m->docs[i].end - 1 < offset || !model_visible(m, i)))
        i++;
    return i;
}

static inline size_t model_next(const struct model *m, size_t i)
{
    do
        i++;
    while (i < m->n && !model_visible(m, i));
    return i;
}

/* Walks the records of one answer along the list. Returns the client's next position. */
static inline int64_t model_check_records(const struct model *m, int64_t offset)
{
    const struct lab_batches *got = &m->got;
    size_t want = model_first(m, offset);
    int64_t position = offset;

    for (size_t i = 0; i < got->n; i++) {
        struct kp_record_iter it;
        struct kp_record rec;

        assert_true(got->v[i].last_offset >= offset);
        assert_true(got->v[i].last_offset < m->content_end);
        if (got->v[i].control) { /* only where nothing visible is left, and only once */
            assert_int_equal(i, got->n - 1);
            assert_int_equal(got->v[i].base_offset, m->content_end - 1);
            assert_int_equal(want, m->n);
            assert_true(position < m->content_end);
            return m->content_end;
        }
        kp_record_iter_init(&it, &got->v[i], got->v[i].payload);
        while (kp_record_next(&it, &rec, NULL, 0) == 0) {
            if (rec.offset < offset) {
                assert_int_equal(i, 0); /* older ones only in front */
                continue;
            }
            assert_true(want < m->n);
            const struct written *d = &m->docs[want];
            assert_int_equal(rec.offset, d->end - 1);
            assert_int_equal(rec.value.n, d->end - 1 - d->begin);
            assert_memory_equal(rec.value.p, m->bytes + d->begin, rec.value.n);
            assert_int_equal(rec.timestamp, jc_clock_unix_ms(d->clock));
            position = rec.offset + 1;
            want = model_next(m, want);
        }
    }
    return position;
}

/* One fetch with random limits, checked in full; returns the next position. */
static inline int64_t model_fetch(struct model *m, int64_t offset)
{
    struct lab *lab = m->lab;
    struct lab_request *r = lab_fetch_new(lab, (int16_t)(4 + rnd(m, 15)));
    struct kp_fetch_req_topics_partitions *want = lab_want(lab, r, 0, 0, offset);
    int32_t part_max = (int32_t)(rnd(m, 3) == 0 ? rnd(m, 100) : rnd(m, 2 << 20));
    int32_t max = (int32_t)(rnd(m, 3) == 0 ? rnd(m, 1000) : rnd(m, 4 << 20));

    want->partition_max_bytes = part_max;
    r->body.fetch.max_bytes = max;
    r->body.fetch.isolation_level = (int8_t)rnd(m, 2);
    lab_send(r);
    lab_await(lab, r);
    lab_drop(r);
    const struct kp_fetch_resp_responses_partitions *p = lab_part(lab, 0, 0);
    assert_non_null(p);
    lab_parse(p->records.in, &m->got);
    if (offset < m->log_start || offset > (int64_t)m->len) {
        assert_int_equal(p->error_code, KE_OFFSET_OUT_OF_RANGE);
        assert_int_equal(m->got.n, 0);
        return offset;
    }
    assert_int_equal(p->error_code, 0);
    assert_int_equal(p->high_watermark, m->content_end);
    assert_int_equal(p->last_stable_offset, m->content_end);
    if (p->log_start_offset != -1) /* from version 5 */
        assert_int_equal(p->log_start_offset, m->log_start);
    if (offset >= m->content_end) {
        assert_int_equal(m->got.n, 0);
        return offset;
    }
    assert_true(m->got.n > 0); /* below the watermark there is always something */
    if (m->got.n > 1)
        assert_true(p->records.in.n <= (size_t)(part_max < max ? part_max : max));
    int64_t position = model_check_records(m, offset);
    assert_true(position > offset);
    return position;
}

/* Random offsets, and those around the borders of documents. */
static inline void model_fetch_many(struct model *m, int n)
{
    for (int k = 0; k < n; k++) {
        size_t i = rnd(m, m->n);

        (void)model_fetch(m, (int64_t)rnd(m, m->len + 3));
        (void)model_fetch(m, m->docs[i].begin + (int64_t)rnd(m, 3) - 1);
        (void)model_fetch(m, m->docs[i].end - 1);
    }
}

/* Reads from `at` to the watermark as a client does. */
static inline int64_t model_follow(struct model *m, int64_t at)
{
    for (unsigned fetches = 0; at < m->content_end; fetches++) {
        assert_true(fetches < 10000);
        at = model_fetch(m, at);
    }
    return at;
}
