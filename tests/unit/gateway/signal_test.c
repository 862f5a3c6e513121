/* Truncation signals: markers are recognised, and the first visible record behind one tells it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/num.h"
#include "gateway/block_build.h"
#include "journal_client/uuid.h"

#define CLOCK0 UINT64_C(0x1f1865219aa68870)

static char text[65536];
static size_t text_n;

static void line(uint64_t clock, uint16_t flags, const char *rest)
{
    const struct jc_uuid u = {.clock = clock, .flags = flags};
    char uuid[JC_UUID_TEXT];

    jc_uuid_format(&u, uuid);
    text_n += (size_t)snprintf(text + text_n, sizeof text - text_n,
                               "{\"_meta\":{\"uuid\":\"%.36s\"}%s}\n", uuid, rest);
}

static void begin(uint64_t clock)
{
    line(clock, JC_FLAG_ACK, ",\"backfillBegin\":true,\"is_ack\":true");
}

static void complete(uint64_t clock, uint64_t of)
{
    char hex[17], rest[100];

    num_hex16(of, hex);
    snprintf(rest, sizeof rest, ",\"backfillComplete\":true,\"is_ack\":true,\"truncatedAt\":\"%s\"",
             hex);
    line(clock, JC_FLAG_ACK, rest);
}

static struct gw_blockbatches *build(const struct gw_build *how, size_t from, size_t to,
                                     const struct gw_blockbatches *old)
{
    struct jc_segment s = {.offset = (int64_t)from,
                           .bytes = blob_copy(span_of(text + from, to - from))};
    struct jc_block b = {.segments_n = 1, .segments = &s, .read_to = (int64_t)to};
    struct gw_blockbatches *out;

    assert_int_equal(gw_block_build(how, &b, old, &out), 0);
    blob_unref(s.bytes);
    return out;
}

/* "." for a record without headers, "b" and "c" for those it has; the clocks of the last ones. */
static char told[100];
static char last_begin[17], last_complete[17];

static void read_all(const struct gw_blockbatches *e)
{
    size_t n = 0;

    for (size_t i = 0; i < e->n; i++) {
        struct kp_batch_view v;
        struct kp_record_iter it;
        struct kp_record rec;
        struct kp_header h[4];

        assert_int_equal(kp_batch_parse(blob_span(e->batches[i].bytes), &v), 0);
        kp_record_iter_init(&it, &v, v.payload);
        while (kp_record_next(&it, &rec, h, 4) == 0) {
            if (rec.headers_n == 0)
                told[n++] = '.';
            for (size_t k = 0; k < rec.headers_n; k++) {
                bool is_begin = span_eq_str(rec.headers[k].key, GW_HEADER_BEGIN);
                assert_int_equal(rec.headers[k].value.n, 16);
                memcpy(is_begin ? last_begin : last_complete, rec.headers[k].value.p, 16);
                told[n++] = is_begin ? 'b' : 'c';
            }
        }
    }
    told[n] = '\0';
}

static int reset(void **state)
{
    (void)state;
    text_n = 0;
    return 0;
}

static void assert_clock(const char *hex, uint64_t clock)
{
    char want[17];

    num_hex16(clock, want);
    assert_string_equal(hex, want);
}

static void markers_are_hidden_documents_that_say_so(void **state)
{
    struct sc_uuid_hint hint = {0};
    struct jc_doc_info info;

    (void)state;
    begin(CLOCK0);
    gw_doc_look(span_of(text, text_n - 1), &hint, &info);
    assert_int_equal(info.mark, JC_MARK_BEGIN);
    assert_int_equal(info.truncated_at, CLOCK0);
    text_n = 0;
    complete(CLOCK0 + 16, CLOCK0);
    gw_doc_look(span_of(text, text_n - 1), &hint, &info);
    assert_int_equal(info.mark, JC_MARK_COMPLETE);
    assert_int_equal(info.truncated_at, CLOCK0);
    assert_int_equal(info.clock, CLOCK0 + 16);

    static const char *const others[] = {
        ",\"backfillBegin\":false",
        ",\"backfillBegin\":\"true\"",
        ",\"x\":{\"backfillBegin\":true}",
        ",\"backfillComplete\":true",
        ",\"backfillComplete\":true,\"truncatedAt\":\"1F1865219AA68870\"",
        ",\"backfillComplete\":true,\"truncatedAt\":1",
        ",\"is_ack\":true",
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        text_n = 0;
        line(CLOCK0, JC_FLAG_ACK, others[i]);
        gw_doc_look(span_of(text, text_n - 1), &hint, &info);
        assert_int_equal(info.mark, JC_MARK_NONE);
        assert_int_equal(info.kind, JC_DOC_HIDDEN);
    }
    text_n = 0;
    line(CLOCK0, JC_FLAG_CONTINUE, ",\"backfillBegin\":true"); /* content never is one */
    gw_doc_look(span_of(text, text_n - 1), &hint, &info);
    assert_int_equal(info.mark, JC_MARK_NONE);
    assert_int_equal(info.kind, JC_DOC_CONTENT);
}

static void marks_keep_the_highest_clock_and_its_first_place(void **state)
{
    struct jc_marks m = {0}, other = {0};
    struct jc_doc_info b = {.mark = JC_MARK_BEGIN, .clock = 10};

    (void)state;
    jc_marks_take(&m, &b, 100);
    jc_marks_take(&m, &b, 200); /* written twice after a restart */
    b.clock = 9;
    jc_marks_take(&m, &b, 300);
    assert_int_equal(m.begin, 10);
    assert_int_equal(m.begin_end, 100);
    assert_false(jc_marks_merge(&m, &other));
    other.begin = 11;
    other.begin_end = 400;
    assert_true(jc_marks_merge(&m, &other));
    assert_int_equal(m.begin_end, 400);
}

static void the_first_visible_record_behind_a_marker_tells_it(void **state)
{
    struct gw_build how = {.bound = {CLOCK0 + 16, UINT64_MAX}, .signal = true};

    (void)state;
    line(CLOCK0, 1, "");
    begin(CLOCK0 + 16);
    line(CLOCK0 + 15, 1, ""); /* one counter step below the boundary: hidden, so it cannot tell */
    line(CLOCK0 + 16, 1, "");
    line(CLOCK0 + 17, 1, "");
    complete(CLOCK0 + 32, CLOCK0 + 16);
    line(CLOCK0 + 33, 1, "");
    line(CLOCK0 + 34, 1, "");
    struct gw_blockbatches *e = build(&how, 0, text_n, NULL);
    read_all(e);
    assert_string_equal(told, "b.c.");
    assert_clock(last_begin, CLOCK0 + 16);
    assert_clock(last_complete, CLOCK0 + 32);
    assert_false(gw_lead_any(&e->pending));
    gw_blockbatches_unref(e);

    how.signal = false;
    e = build(&how, 0, text_n, NULL);
    read_all(e);
    assert_string_equal(told, "....");
    gw_blockbatches_unref(e);
}

static void a_marker_that_nothing_follows_yet_is_told_when_the_block_grows(void **state)
{
    struct gw_build how = {.bound = {0, UINT64_MAX}, .signal = true};

    (void)state;
    line(CLOCK0, 1, "");
    begin(CLOCK0 + 16);
    size_t cut = text_n;
    struct gw_blockbatches *old = build(&how, 0, cut, NULL);
    assert_int_equal(old->pending.begin, CLOCK0 + 16);
    line(CLOCK0 + 32, 1, "");
    line(CLOCK0 + 33, 1, "");
    how.from = (int64_t)cut;
    struct gw_blockbatches *e = build(&how, cut, text_n, old);
    read_all(e);
    assert_string_equal(told, ".b.");
    gw_blockbatches_unref(e);
    gw_blockbatches_unref(old);
}

static void a_second_begin_takes_the_place_of_the_first(void **state)
{
    struct gw_build how = {.bound = {0, UINT64_MAX},
                           .signal = true,
                           .lead = {.begin = CLOCK0, .complete = CLOCK0 + 1}};

    (void)state;
    complete(CLOCK0 + 16, CLOCK0);
    begin(CLOCK0 + 32);
    line(CLOCK0 + 48, 1, "");
    struct gw_blockbatches *e = build(&how, 0, text_n, NULL);
    read_all(e);
    assert_string_equal(told, "b");
    assert_clock(last_begin, CLOCK0 + 32);
    gw_blockbatches_unref(e);

    text_n = 0; /* what earlier blocks left to tell */
    line(CLOCK0 + 48, 1, "");
    e = build(&how, 0, text_n, NULL);
    read_all(e);
    assert_string_equal(told, "bc");
    gw_blockbatches_unref(e);
}

static void only_markers_of_earlier_blocks_are_part_of_a_signal(void **state)
{
    const char *const name = "j";
    const struct jc_spec spec = {.name = name};
    const struct jc_journal *j;
    struct gw_part *part;
    struct gw_topic t = {.signal = true, .frontier = {.truncated_at = 5, .complete = 9}};
    struct gw_signal a, b;

    (void)state;
    assert_int_equal(jc_journal_new(&spec, 1, 1, &j), 0);
    assert_int_equal(gw_part_new(j, &part), 0);
    const struct jc_heads heads = {.marks = {.begin = 7,
                                             .begin_end = JC_BLOCK_BYTES,
                                             .complete = 9,
                                             .complete_end = JC_BLOCK_BYTES + 1}};
    gw_part_update(part, &heads);
    gw_signal_of(&t, part, 0, &a);
    assert_int_equal(a.marks.begin, 0);
    assert_int_equal(a.complete, 0); /* it completes another backfill */
    gw_signal_of(&t, part, 1, &b);
    assert_int_equal(b.marks.begin, 7);
    assert_int_equal(b.marks.complete, 0);
    assert_false(gw_signal_eq(&a, &b));
    t.frontier.completed = 5;
    gw_signal_of(&t, part, 0, &a);
    assert_int_equal(a.complete, 9);
    t.signal = false;
    gw_signal_of(&t, part, 1, &a);
    assert_false(a.on || a.marks.begin != 0);
    gw_part_unref(part);
    jc_journal_unref(j);
}

/* Documents may be durable, and read, before the journal's follower tells of them. */
static void a_head_that_was_raised_by_reading_brings_the_markers_below_it(void **state)
{
    const struct jc_spec spec = {.name = "j"};
    const struct gw_build how = {.bound = {.max_clock = UINT64_MAX}};
    const struct gw_topic t = {.signal = true};
    const struct jc_journal *j;
    struct gw_part *part;
    struct gw_signal s;
    struct jc_heads heads = {.content_end = 1, .write_head = 1};

    (void)state;
    line(CLOCK0, JC_FLAG_CONTINUE, "");
    begin(CLOCK0 + 16);
    size_t begin_end = text_n;
    line(CLOCK0 + 17, JC_FLAG_CONTINUE, "");
    struct gw_blockbatches *first = build(&how, 0, text_n, NULL);
    complete(CLOCK0 + 32, CLOCK0 + 16);
    line(CLOCK0 + 33, JC_FLAG_CONTINUE, "");
    const struct gw_build more = {.bound = how.bound, .from = first->read_to};
    struct gw_blockbatches *e = build(&more, (size_t)first->read_to, text_n, first);

    assert_int_equal(jc_journal_new(&spec, 1, 1, &j), 0);
    assert_int_equal(gw_part_new(j, &part), 0);
    gw_part_update(part, &heads);
    gw_part_raise(part, e->content_end, &e->marks, e->log_start);
    assert_true(gw_part_heads(part, &heads));
    assert_int_equal(heads.content_end, text_n);
    assert_int_equal(heads.marks.begin_end, begin_end);
    gw_signal_of(&t, part, 1, &s);
    assert_int_equal(s.marks.begin, CLOCK0 + 16);
    assert_int_equal(s.marks.complete, CLOCK0 + 32);
    gw_blockbatches_unref(first);
    gw_blockbatches_unref(e);
    gw_part_unref(part);
    jc_journal_unref(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(markers_are_hidden_documents_that_say_so, reset),
        cmocka_unit_test(marks_keep_the_highest_clock_and_its_first_place),
        cmocka_unit_test_setup(the_first_visible_record_behind_a_marker_tells_it, reset),
        cmocka_unit_test_setup(a_marker_that_nothing_follows_yet_is_told_when_the_block_grows,
                               reset),
        cmocka_unit_test_setup(a_second_begin_takes_the_place_of_the_first, reset),
        cmocka_unit_test(only_markers_of_earlier_blocks_are_part_of_a_signal),
        cmocka_unit_test_setup(a_head_that_was_raised_by_reading_brings_the_markers_below_it,
                               reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
