/* From lines to batches: visibility, offsets, cuts, keys; by bytes alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "gateway/block_build.h"
#include "journal_client/uuid.h"
#include "schema/key.h"

#define CLOCK0 (UINT64_C(0x1e5f00000000000) << 4)
#define MS(n)  (CLOCK0 + ((uint64_t)(n)*10000 << 4))

/* A block under construction: text and segments. */
static char text[4 << 20];
static size_t text_n;

static void line(uint64_t clock, uint16_t flags, const char *rest)
{
    const struct jc_uuid u = {.clock = clock, .flags = flags};
    char uuid[JC_UUID_TEXT];

    jc_uuid_format(&u, uuid);
    text_n += (size_t)snprintf(text + text_n, sizeof text - text_n,
                               "{\"_meta\":{\"uuid\":\"%.36s\"}%s}\n", uuid, rest);
}

static void raw(const char *s)
{
    memcpy(text + text_n, s, strlen(s));
    text_n += strlen(s);
}

/* The text as one segment at `offset`, cut into two at `hole` bytes if that is set, the second one
 * moved up by `gap`. */
static struct jc_block block_of(int64_t offset, size_t hole, int64_t gap)
{
    struct jc_block b = {.segments = mem_array(2, sizeof *b.segments), .read_to = 1 << 30};

    if (hole == 0)
        hole = text_n;
    b.segments[0] = (struct jc_segment){.offset = offset, .bytes = blob_copy(span_of(text, hole))};
    b.segments_n = 1;
    if (hole < text_n) {
        b.segments[1] =
            (struct jc_segment){.offset = offset + (int64_t)hole + gap,
                                .bytes = blob_copy(span_of(text + hole, text_n - hole))};
        b.segments_n = 2;
    }
    return b;
}

static void free_block(struct jc_block *b)
{
    for (size_t i = 0; i < b->segments_n; i++)
        blob_unref(b->segments[i].bytes);
    mem_free(b->segments);
}

static const struct gw_build all = {.bound = {0, UINT64_MAX}};

static struct gw_blockbatches *build(const struct gw_build *how, int64_t offset, size_t hole,
                                     int64_t gap, const struct gw_blockbatches *old)
{
    struct jc_block b = block_of(offset, hole, gap);
    struct gw_blockbatches *out;

    assert_int_equal(gw_block_build(how, &b, old, &out), 0);
    free_block(&b);
    return out;
}

/* All records of a result, decoded. */
struct seen {
    int64_t offset, timestamp;
    char key[64];
    bool null_key;
    size_t value_n;
};
static struct seen seen[20000];

static size_t decode(const struct gw_blockbatches *e)
{
    size_t n = 0;

    for (size_t i = 0; i < e->n; i++) {
        struct kp_batch_view v;
        struct kp_record_iter it;
        struct kp_record rec;
        struct blob *plain = NULL;

        assert_int_equal(kp_batch_parse(blob_span(e->batches[i].bytes), &v), 0);
        assert_int_equal(v.base_offset, e->batches[i].base_offset);
        assert_int_equal(v.last_offset, e->batches[i].last_offset);
        struct span payload = v.payload;
        if (v.codec != KP_CODEC_NONE) {
            assert_int_equal(kp_decompress(v.codec, payload, 64 << 20, &plain), 0);
            payload = blob_span(plain);
        }
        kp_record_iter_init(&it, &v, payload);
        while (kp_record_next(&it, &rec, NULL, 0) == 0) {
            struct seen *s = &seen[n++];
            *s = (struct seen){.offset = rec.offset,
                               .timestamp = rec.timestamp,
                               .null_key = rec.key.p == NULL,
                               .value_n = rec.value.n};
            snprintf(s->key, sizeof s->key, "%.*s", SPAN_FMT(rec.key));
        }
        assert_int_equal(v.last_offset, seen[n - 1].offset); /* no padding */
        blob_unref(plain);
    }
    return n;
}

static int reset(void **state)
{
    (void)state;
    text_n = 0;
    return 0;
}

static void only_visible_documents_become_records(void **state)
{
    (void)state;
    line(MS(1), JC_FLAG_OUTSIDE, "");
    line(MS(2), JC_FLAG_ACK, "");
    raw("\n \t\r\n");
    line(MS(3), JC_FLAG_CONTINUE, "");
    line(MS(4), JC_FLAG_CONTROL, "");
    line(MS(5), JC_FLAG_CONTROL | JC_FLAG_ACK, "");
    line(MS(6), JC_FLAG_OUTSIDE | 0x200, ""); /* unknown higher flags */
    raw("{\"broken\n");
    struct gw_build how = all;
    struct gw_blockbatches *e = build(&how, 1000, 0, 0, NULL);
    assert_int_equal(decode(e), 4);
    assert_int_equal(e->content_end, 1000 + (int64_t)text_n);
    assert_int_equal(seen[3].timestamp, -1);
    gw_blockbatches_unref(e);

    how.bound = (struct gw_bound){MS(3), MS(6) - 1};
    e = build(&how, 1000, 0, 0, NULL);
    assert_int_equal(decode(e), 1);
    assert_int_equal(seen[0].timestamp, jc_clock_unix_ms(MS(3)));
    /* the bound hides content, but it stays content */
    assert_int_equal(e->content_end, 1000 + (int64_t)text_n);
    gw_blockbatches_unref(e);

    how.bound = (struct gw_bound){MS(3), MS(6)}; /* both ends belong to it */
    e = build(&how, 1000, 0, 0, NULL);
    assert_int_equal(decode(e), 2);
    gw_blockbatches_unref(e);
}

static void offsets_are_those_of_last_bytes_across_removed_ranges(void **state)
{
    (void)state;
    line(MS(1), 0, "");
    size_t hole = text_n;
    line(MS(2), 0, "");
    struct gw_blockbatches *e = build(&all, 5000, hole, 777, NULL);
    assert_int_equal(decode(e), 2);
    assert_int_equal(seen[0].offset, 5000 + (int64_t)hole - 1);
    assert_int_equal(seen[1].offset, 5000 + (int64_t)text_n + 777 - 1);
    gw_blockbatches_unref(e);
}

static void an_unfinished_last_line_is_no_document(void **state)
{
    (void)state;
    line(MS(1), 0, "");
    raw("{\"_meta\":");
    struct gw_blockbatches *e = build(&all, 0, 0, 0, NULL);
    assert_int_equal(decode(e), 1);
    gw_blockbatches_unref(e);
}

static void an_empty_block_gives_an_empty_entry(void **state)
{
    (void)state;
    struct jc_block b = {.block = 3, .read_to = 99, .sealed = true};
    struct gw_blockbatches *e;

    assert_int_equal(gw_block_build(&all, &b, NULL, &e), 0);
    assert_int_equal(e->n, 0);
    assert_int_equal(e->read_to, 99);
    assert_true(e->sealed);
    assert_int_equal(gw_blockbatches_find(e, 5), 0);
    gw_blockbatches_unref(e);
}

static void batches_stay_small_except_for_a_large_document(void **state)
{
    (void)state;
    char *filler = mem_alloc(100001);

    for (int i = 0; i < 300; i++) {
        size_t n = i == 150 ? 100000 : (size_t)(i * 7 % 2000);
        memset(filler, 'x', n);
        filler[n] = '\0';
        char *rest = mem_alloc(n + 16);
        snprintf(rest, n + 16, ",\"v\":\"%s\"", filler);
        line(MS(i), 0, rest);
        mem_free(rest);
    }
    struct gw_blockbatches *e = build(&all, 0, 0, 0, NULL);
    assert_int_equal(decode(e), 300);
    for (size_t i = 0; i < e->n; i++)
        assert_true(e->batches[i].bytes->len <= GW_BATCH_BYTES || e->batches[i].records == 1);
    for (size_t i = 0; i + 1 < e->n; i++)
        assert_true(e->batches[i].last_offset < e->batches[i + 1].base_offset);
    gw_blockbatches_unref(e);
    mem_free(filler);
}

static void a_batch_spans_no_more_than_31_bits_of_time(void **state)
{
    (void)state;
    line(MS(0), 0, "");
    line(MS(INT64_C(2147483647)), 0, "");
    line(MS(INT64_C(2147483649)), 0, "");
    line(MS(1), 0, "");
    struct gw_blockbatches *e = build(&all, 0, 0, 0, NULL);
    assert_int_equal(decode(e), 4);
    assert_int_equal(e->n, 3);
    assert_int_equal(e->batches[0].records, 2);
    gw_blockbatches_unref(e);
}

static void a_longer_entry_shares_the_batches_of_the_old_one(void **state)
{
    (void)state;
    line(MS(1), 0, "");
    line(MS(2), 0, "");
    struct gw_blockbatches *old = build(&all, 0, 0, 0, NULL);
    struct gw_build more = all;
    more.from = (int64_t)text_n;
    line(MS(3), JC_FLAG_ACK, "");
    line(MS(4), 0, "");
    struct gw_blockbatches *e = build(&more, 0, 0, 0, old);
    assert_int_equal(e->n, 2);
    assert_ptr_equal(e->batches[0].bytes, old->batches[0].bytes);
    gw_blockbatches_unref(old);
    assert_int_equal(decode(e), 3);
    assert_int_equal(e->content_end, (int64_t)text_n);
    assert_int_equal(gw_blockbatches_find(e, 0), 0);
    assert_int_equal(gw_blockbatches_find(e, e->batches[0].last_offset), 0);
    assert_int_equal(gw_blockbatches_find(e, e->batches[0].last_offset + 1), 1);
    assert_int_equal(gw_blockbatches_find(e, e->batches[1].last_offset + 1), 2);
    gw_blockbatches_unref(e);
}

static void no_batch_reaches_over_a_cut(void **state)
{
    (void)state;
    line(MS(1), 0, "");
    int64_t cut = (int64_t)text_n;
    line(MS(2), 0, "");
    struct gw_build how = all;
    how.cuts = &cut;
    how.cuts_n = 1;
    struct gw_blockbatches *e = build(&how, 0, 0, 0, NULL);
    assert_int_equal(e->n, 2);
    assert_true(e->batches[0].last_offset < cut && e->batches[1].base_offset >= cut);
    gw_blockbatches_unref(e);
}

static void keys_are_json_text_or_null(void **state)
{
    (void)state;
    const struct span pointer = span_str("/id");
    struct sc_key *key;

    assert_int_equal(sc_key_new(&pointer, 1, &key), 0);
    line(MS(1), 0, ",\"id\":13911860366432393");
    line(MS(2), 0, ",\"id\":\"a\\u0000b\"");
    line(MS(3), 0, ",\"other\":1");
    line(MS(4), 0, ",\"id\":null");
    raw("no json\n");
    line(MS(5), 0, ",\"id\":{}");
    struct gw_build how = all;
    how.key = key;
    struct gw_blockbatches *e = build(&how, 0, 0, 0, NULL);
    assert_int_equal(decode(e), 6);
    assert_string_equal(seen[0].key, "13911860366432393");
    assert_string_equal(seen[1].key, "\"a\\u0000b\"");
    assert_true(seen[2].null_key);
    assert_string_equal(seen[3].key, "null");
    assert_true(seen[4].null_key);
    assert_true(seen[5].null_key);
    gw_blockbatches_unref(e);
    sc_key_free(key);
}

static void each_codec_gives_the_same_records(void **state)
{
    (void)state;
    for (int i = 0; i < 3000; i++)
        line(MS(i), 0, ",\"v\":\"the same text again and again\"");
    for (int c = KP_CODEC_NONE; c <= KP_CODEC_ZSTD; c++) {
        struct gw_build how = all;
        how.codec = (enum kp_codec)c;
        struct gw_blockbatches *e = build(&how, 0, 0, 0, NULL);
        assert_int_equal(decode(e), 3000);
        if (c != KP_CODEC_NONE)
            assert_true(e->bytes < text_n);
        gw_blockbatches_unref(e);
    }
}

static void no_batch_spans_what_could_not_be_read(void **state)
{
    (void)state;
    size_t half;

    line(MS(1), 0, "");
    line(MS(2), 0, "");
    half = text_n;
    line(MS(3), 0, "");
    line(MS(4), 0, "");
    /* without damage the gap is a removed range, and one batch goes over it */
    struct gw_blockbatches *e = build(&all, 0, half, 1000, NULL);
    assert_int_equal(e->n, 1);
    assert_int_equal(gw_blockbatches_damage(e, 0), INT64_MAX);
    gw_blockbatches_unref(e);

    struct jc_block b = block_of(0, half, 1000);
    struct jc_range damaged[] = {{(int64_t)half, (int64_t)half + 600},
                                 {(int64_t)half + 800, (int64_t)half + 1000}};
    b.damaged = damaged;
    b.damaged_n = 2;
    assert_int_equal(gw_block_build(&all, &b, NULL, &e), 0);
    free_block(&b);
    assert_int_equal(decode(e), 4);
    assert_int_equal(e->n, 2);
    assert_int_equal(e->batches[0].last_offset, half - 1);
    assert_true(e->batches[1].base_offset > (int64_t)half + 1000);
    assert_int_equal(e->damaged_n, 2);
    const struct {
        int64_t at, stop;
    } cases[] = {{0, 0},
                 {(int64_t)half - 1, 0},
                 {(int64_t)half, 0},
                 {(int64_t)half + 599, 0},
                 {(int64_t)half + 600, 800},
                 {(int64_t)half + 999, 800},
                 {(int64_t)half + 1000, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(gw_blockbatches_damage(e, cases[i].at),
                         cases[i].stop < 0 ? INT64_MAX : (int64_t)half + cases[i].stop);
    gw_blockbatches_unref(e);
}

static void running_out_of_memory_leaks_nothing(void **state)
{
    (void)state;
    const struct span pointer = span_str("/id");
    struct sc_key *key;

    assert_int_equal(sc_key_new(&pointer, 1, &key), 0);
    for (int i = 0; i < 2000; i++)
        line(MS(i), 0, ",\"id\":\"some key\",\"v\":\"text text text text text\"");
    struct jc_block b = block_of(0, 0, 0);
    struct gw_build how = all;
    how.key = key;
    how.codec = KP_CODEC_LZ4;
    int err = E_NOMEM;
    for (long n = 0; err != 0; n++) {
        struct gw_blockbatches *e;
        assert_true(n < 200);
        mem_fail_after(n, 0);
        err = gw_block_build(&how, &b, NULL, &e);
        mem_fail_after(-1, 0);
        assert_true(err == 0 || err == E_NOMEM);
        assert_true((err == 0) == (e != NULL));
        gw_blockbatches_unref(e);
    }
    free_block(&b);
    sc_key_free(key);
}

static void a_time_is_looked_up_document_by_document(void **state)
{
    (void)state;
    int64_t ends[6];
    static const int64_t times[] = {500, 100, 900, 300, 900, 700};

    for (int i = 0; i < 6; i++) {
        line(MS(times[i]), i == 2 ? JC_FLAG_ACK : 0, "");
        ends[i] = (int64_t)text_n - 1;
    }
    struct jc_block b = block_of(0, 0, 0);
    struct gw_time_look look = {.bound = {0, UINT64_MAX}, .end = INT64_MAX};
    int64_t at, ms;

    look.min_ms = jc_clock_unix_ms(MS(501));
    assert_int_equal(gw_block_look_time(&look, &b, &at, &ms), 0);
    assert_int_equal(at, ends[4]); /* not the ACK */
    assert_int_equal(ms, jc_clock_unix_ms(MS(900)));
    look.end = ends[4];
    assert_int_equal(gw_block_look_time(&look, &b, &at, &ms), E_NOTFOUND);
    look.end = INT64_MAX;
    look.from = ends[4] + 1;
    assert_int_equal(gw_block_look_time(&look, &b, &at, &ms), 0);
    assert_int_equal(at, ends[5]);
    look.from = 0;
    look.largest = true;
    assert_int_equal(gw_block_look_time(&look, &b, &at, &ms), 0);
    assert_int_equal(at, ends[4]);
    look.bound.max_clock = MS(700);
    assert_int_equal(gw_block_look_time(&look, &b, &at, &ms), 0);
    assert_int_equal(at, ends[5]);
    free_block(&b);
}

/* As in Fetch: what lies in front of it is served, and behind it nobody knows. */
static void a_time_is_not_looked_up_over_a_damage(void **state)
{
    int64_t ends[4], at, ms;

    (void)state;
    for (int i = 0; i < 4; i++) {
        line(MS(100 * (i + 1)), 0, "");
        ends[i] = (int64_t)text_n - 1;
    }
    struct jc_block b = block_of(0, 0, 0);
    struct jc_range damage = {ends[1] + 5, ends[2] + 1};
    struct gw_time_look look = {.bound = {0, UINT64_MAX}, .end = INT64_MAX};
    b.damaged = &damage;
    b.damaged_n = 1;
    look.min_ms = jc_clock_unix_ms(MS(150));
    assert_int_equal(gw_block_look_time(&look, &b, &at, &ms), 0);
    assert_int_equal(at, ends[1]);
    look.min_ms = jc_clock_unix_ms(MS(350));
    assert_int_equal(gw_block_look_time(&look, &b, &at, &ms), E_CORRUPT);
    look.min_ms = jc_clock_unix_ms(MS(500));
    assert_int_equal(gw_block_look_time(&look, &b, &at, &ms), E_CORRUPT);
    look.largest = true;
    assert_int_equal(gw_block_look_time(&look, &b, &at, &ms), E_CORRUPT);
    look.end = ends[1] + 1; /* the damage is none of this reader's */
    assert_int_equal(gw_block_look_time(&look, &b, &at, &ms), 0);
    assert_int_equal(at, ends[1]);
    look = (struct gw_time_look){.bound = {0, UINT64_MAX}, .end = INT64_MAX, .from = ends[2] + 1};
    look.min_ms = jc_clock_unix_ms(MS(350));
    assert_int_equal(gw_block_look_time(&look, &b, &at, &ms), 0);
    assert_int_equal(at, ends[3]);
    b.damaged = NULL;
    b.damaged_n = 0;
    free_block(&b);
}

#define T(f) cmocka_unit_test_setup(f, reset)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(only_visible_documents_become_records),
        T(offsets_are_those_of_last_bytes_across_removed_ranges),
        T(an_unfinished_last_line_is_no_document),
        T(an_empty_block_gives_an_empty_entry),
        T(batches_stay_small_except_for_a_large_document),
        T(a_batch_spans_no_more_than_31_bits_of_time),
        T(a_longer_entry_shares_the_batches_of_the_old_one),
        T(no_batch_reaches_over_a_cut),
        T(keys_are_json_text_or_null),
        T(each_codec_gives_the_same_records),
        T(no_batch_spans_what_could_not_be_read),
        T(running_out_of_memory_leaks_nothing),
        T(a_time_is_looked_up_document_by_document),
        T(a_time_is_not_looked_up_over_a_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
