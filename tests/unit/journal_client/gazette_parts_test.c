/*
 * The pure parts of the distributed store: messages cut by hand, streams of bytes cut into
 * documents and indexed, look-ups among fragments.
 */
#include "tests/contract/store_lab.h"

#include "journal_client/gazette/gazette_int.h"

static const struct gz_probe probe = {lab_probe, NULL};

/* --- wire --- */

static void put_varint(struct writer *w, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        wr_u8(w, (uint8_t)(v | 0x80));
    wr_u8(w, (uint8_t)v);
}

static void put_number(struct writer *w, unsigned field, uint64_t v)
{
    put_varint(w, (uint64_t)field << 3);
    put_varint(w, v);
}

static void put_bytes(struct writer *w, unsigned field, struct span b)
{
    put_varint(w, (uint64_t)field << 3 | 2);
    put_varint(w, b.n);
    wr_span(w, b);
}

static void a_read_answer_is_cut_in_place(void **state)
{
    struct writer w, f;
    struct gz_read_msg m;

    (void)state;
    wr_init(&f, 100);
    put_bytes(&f, 1, span_str("a/journal"));
    put_number(&f, 2, 16);
    put_number(&f, 3, 4096);
    wr_init(&w, 1000);
    put_number(&w, 3, 20);
    put_number(&w, 4, 5000);
    put_bytes(&w, 5, blob_span(f.b));
    put_bytes(&w, 6, span_str("file:///x"));
    put_bytes(&w, 7, span_str("bytes of it"));
    put_number(&w, 99, 7); /* of a later version */
    assert_int_equal(gz_read_parse(blob_span(w.b), &m), 0);
    assert_int_equal(m.status, GZ_OK);
    assert_true(m.meta);
    assert_int_equal(m.offset, 20);
    assert_int_equal(m.write_head, 5000);
    assert_int_equal(m.frag_begin, 16);
    assert_int_equal(m.frag_end, 4096);
    assert_true(span_eq(m.content, span_str("bytes of it")));
    assert_true(m.content.p > w.b->data && m.content.p < w.b->data + w.b->len);
    wr_fini(&w);
    wr_fini(&f);
}

static void half_a_read_answer_is_refused_wherever_it_ends(void **state)
{
    struct writer w;
    struct gz_read_msg m;
    size_t whole = 0;

    (void)state;
    wr_init(&w, 1000);
    put_number(&w, 3, 300);
    put_number(&w, 4, 70000);
    put_bytes(&w, 7, span_str("content"));
    for (size_t n = 0; n <= w.b->len; n++) {
        int err = gz_read_parse(span_of(w.b->data, n), &m);
        assert_true(err == 0 || err == E_SYNTAX);
        whole += err == 0;
    }
    assert_int_equal(whole, 4); /* nothing, and behind each field */
    wr_fini(&w);
}

static void offsets_that_cannot_be_summed_are_refused(void **state)
{
    static const uint64_t bad[] = {UINT64_MAX, (uint64_t)INT64_MAX, (uint64_t)INT64_MAX / 2 + 1};
    struct gz_read_msg m;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        for (unsigned field = 3; field <= 4; field++) {
            struct writer w;
            wr_init(&w, 100);
            put_number(&w, field, bad[i]);
            assert_int_equal(gz_read_parse(blob_span(w.b), &m), E_SYNTAX);
            wr_fini(&w);
        }
    }
}

static void what_passes_is_tried_again_ever_more_slowly(void **state)
{
    (void)state;
    assert_true(gz_status_passing(GZ_NO_PRIMARY) && gz_status_passing(GZ_INSUFFICIENT_BROKERS) &&
                gz_status_passing(GZ_NOT_BROKER));
    assert_false(gz_status_passing(GZ_OK) || gz_status_passing(GZ_SUSPENDED) ||
                 gz_status_passing(GZ_NOT_ALLOWED));
    for (unsigned i = 1; i < 100; i++)
        assert_true(gz_backoff_ms(i) >= gz_backoff_ms(i - 1) && gz_backoff_ms(i) <= 5000);
    assert_string_equal(gz_status_text(14), "SUSPENDED");
    assert_string_equal(gz_status_text(99), "UNKNOWN");
    assert_string_equal(gz_status_text(-1), "UNKNOWN");
}

/* --- index --- */

static uint64_t seed;

static unsigned pick(unsigned n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)((seed >> 33) % n);
}

/* Lines of documents, hidden ones, blanks. */
static struct blob *random_lines(size_t bytes)
{
    struct writer w;

    wr_init(&w, bytes + 100000);
    while (wr_len(&w) < bytes) {
        static const char kinds[] = "CCCA";
        switch (pick(12)) {
        case 0:
            wr_str(&w, "  \n");
            break;
        case 1: /* a large one */
            wr_printf(&w, "C%x:", 1 + pick(1000));
            for (unsigned n = pick(60000); n > 0; n--)
                wr_u8(&w, 'x');
            wr_u8(&w, '\n');
            break;
        default:
            wr_printf(&w, "%c%x:%0*d\n", kinds[pick(4)], 1 + pick(1000), (int)(1 + pick(300)), 7);
        }
    }
    struct blob *b = wr_take(&w);
    assert_non_null(b);
    return b;
}

/* What an index of lines that begin at `at` must say, counted one by one. */
static void expect_run(const struct gz_run *run, const struct blob *lines, int64_t at)
{
    struct gz_block *want = mem_zalloc((run->n + 1) * sizeof *want);
    int64_t base = run->begin / JC_BLOCK_BYTES, content_end = 0;
    uint64_t max_clock = 0;

    assert_non_null(want);
    assert_int_equal(run->begin, at);
    assert_int_equal(run->end, at + (int64_t)lines->len);
    for (size_t i = 0; i < lines->len;) {
        const uint8_t *nl = memchr(lines->data + i, '\n', lines->len - i);
        size_t end = (size_t)(nl - lines->data) + 1;
        struct jc_doc_info info;
        lab_probe(NULL, span_of(lines->data + i, end - 1 - i), &info);
        if (info.kind == JC_DOC_CONTENT) {
            struct gz_block *b = &want[(at + (int64_t)end - 1) / JC_BLOCK_BYTES - base];
            b->content = true;
            b->max_clock = info.clock > b->max_clock ? info.clock : b->max_clock;
            max_clock = info.clock > max_clock ? info.clock : max_clock;
            content_end = at + (int64_t)end;
        }
        i = end;
    }
    assert_int_equal(run->sum.content_end, content_end);
    assert_int_equal(run->sum.max_clock, max_clock);
    for (size_t i = 0; i < run->n; i++) {
        assert_int_equal(run->v[i].content, want[i].content);
        assert_int_equal(run->v[i].max_clock, want[i].max_clock);
    }
    mem_free(want);
}

static void however_bytes_come_the_index_is_the_same(void **state)
{
    (void)state;
    for (seed = 1; seed < 25; seed += 3) {
        uint64_t was = seed;
        struct blob *lines = random_lines(900000);
        int64_t at = pick(3) * 200000, known = at;
        struct gz_feed f;
        gz_feed_init(&f, at, true);
        for (size_t i = 0; i < lines->len;) {
            size_t n = 1 + pick(pick(4) == 0 ? 200000 : 3000);
            if (n > lines->len - i)
                n = lines->len - i;
            size_t back = pick(3) == 0 ? pick(500) : 0; /* some of it came before */
            back = back > i ? i : back;
            struct blob *whole = NULL;
            assert_int_equal(gz_feed_add(&f, &probe, at + (int64_t)(i - back),
                                         span_of(lines->data + i - back, n + back), &whole),
                             0);
            if (whole != NULL) { /* whole documents, each once, in order */
                assert_int_equal(f.run.end - (int64_t)whole->len, known);
                assert_memory_equal(whole->data, lines->data + (known - at), whole->len);
                known = f.run.end;
                blob_unref(whole);
            }
            i += n;
        }
        expect_run(&f.run, lines, at);
        gz_feed_fini(&f);
        blob_unref(lines);
        seed = was;
    }
}

static void a_feed_that_begins_within_a_document_takes_it_for_none(void **state)
{
    struct gz_feed f;

    (void)state;
    gz_feed_init(&f, 100, false);
    assert_int_equal(gz_feed_add(&f, &probe, 100, span_str("end of one"), NULL), 0);
    assert_false(f.aligned);
    assert_int_equal(f.run.end, 110);
    assert_int_equal(gz_feed_add(&f, &probe, 110, span_str("!\nC5:two\nC6:th"), NULL), 0);
    assert_true(f.aligned);
    assert_int_equal(f.run.begin, 112);
    assert_int_equal(f.run.end, 119);
    assert_int_equal(f.run.sum.max_clock, 5);
    gz_feed_fini(&f);
}

static void behind_a_hole_a_document_begins(void **state)
{
    struct gz_feed f;

    (void)state;
    gz_feed_init(&f, 0, true);
    assert_int_equal(gz_feed_add(&f, &probe, 0, span_str("C1:a\nC2:cut o"), NULL), 0);
    assert_int_equal(gz_feed_add(&f, &probe, 600000, span_str("C3:b\n"), NULL), 0);
    assert_int_equal(f.run.end, 600005);
    assert_int_equal(f.run.sum.content_end, 600005);
    assert_int_equal(f.run.sum.max_clock, 3);
    assert_int_equal(f.run.n, 3);
    assert_false(f.run.v[1].content);
    gz_feed_fini(&f);
}

/* Its index does not cost memory for blocks that are not there; what was seen before stays known.
 */
static void a_hole_of_any_size_costs_no_index(void **state)
{
    static const int64_t far[] = {INT64_C(1) << 40, INT64_C(1) << 50, INT64_MAX / 2 - 100};
    struct gz_feed f;

    (void)state;
    gz_feed_init(&f, 0, true);
    assert_int_equal(gz_feed_add(&f, &probe, 0, span_str("C7:a\nC2:cut o"), NULL), 0);
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        struct blob *whole;
        assert_int_equal(gz_feed_add(&f, &probe, far[i], span_str("C3:b\nC4:"), &whole), 0);
        assert_int_equal(whole->len, 5);
        blob_unref(whole);
        assert_int_equal(f.run.begin, far[i]);
        assert_int_equal(f.run.end, far[i] + 5);
        assert_int_equal(f.run.n, 1);
        assert_true(f.run.cap < 100);
        assert_true(f.run.v[0].content);
        assert_int_equal(f.run.v[0].max_clock, 3);
        assert_int_equal(f.run.sum.content_end, far[i] + 5);
        assert_int_equal(f.run.sum.max_clock, 7);
    }
    gz_feed_fini(&f);
}

/* The tail asks for the same bytes again: no document may be cut at another place for that. */
static void bytes_that_found_no_memory_may_be_given_again(void **state)
{
    static const char *const pieces[] = {"C1:one\nC2:tw", "o", "o\nC3:three\nC4:", "four\n"};

    (void)state;
    for (int wanted = 0; wanted < 2; wanted++) {
        for (long n = 0; n < 30; n++) {
            struct gz_feed f;
            struct writer got;
            int64_t at = 50;
            wr_init(&got, 1000);
            gz_feed_init(&f, at, true);
            for (size_t i = 0; i < 4; i++) {
                struct span piece = span_str(pieces[i]);
                struct blob *whole = NULL;
                mem_fail_after(n, 0);
                int err = gz_feed_add(&f, &probe, at, piece, wanted ? &whole : NULL);
                mem_fail_after(-1, 0);
                assert_true(err == 0 || err == E_NOMEM);
                if (err < 0) {
                    assert_null(whole);
                    assert_int_equal(f.pos, at);
                    assert_int_equal(gz_feed_add(&f, &probe, at, piece, wanted ? &whole : NULL), 0);
                }
                at += (int64_t)piece.n;
                if (whole != NULL) {
                    assert_int_equal(f.run.end, 50 + (int64_t)(wr_len(&got) + whole->len));
                    wr_span(&got, blob_span(whole));
                }
                blob_unref(whole);
            }
            assert_int_equal(f.run.end, at);
            assert_int_equal(f.run.sum.content_end, at);
            assert_int_equal(f.run.sum.max_clock, 4);
            if (wanted)
                assert_true(span_eq_str(blob_span(got.b), "C1:one\nC2:twoo\nC3:three\nC4:four\n"));
            wr_fini(&got);
            gz_feed_fini(&f);
        }
    }
}

/* --- fragments --- */

static void the_fragment_behind_an_offset_is_found_by_halving(void **state)
{
    struct gz_frag v[50];
    const struct gz_frags f = {.v = v, .n = 50};

    (void)state;
    for (int64_t i = 0; i < 50; i++) /* every fifth one is followed by a hole */
        v[i] = (struct gz_frag){.begin = i * 100, .end = i * 100 + (i % 5 == 0 ? 60 : 100)};
    for (int64_t pos = 0; pos <= 5100; pos++) {
        size_t want = 0;
        while (want < f.n && v[want].end <= pos)
            want++;
        assert_int_equal(gz_frags_behind(&f, pos), want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_answer_is_cut_in_place),
        cmocka_unit_test(half_a_read_answer_is_refused_wherever_it_ends),
        cmocka_unit_test(offsets_that_cannot_be_summed_are_refused),
        cmocka_unit_test(what_passes_is_tried_again_ever_more_slowly),
        cmocka_unit_test(however_bytes_come_the_index_is_the_same),
        cmocka_unit_test(a_feed_that_begins_within_a_document_takes_it_for_none),
        cmocka_unit_test(behind_a_hole_a_document_begins),
        cmocka_unit_test(a_hole_of_any_size_costs_no_index),
        cmocka_unit_test(bytes_that_found_no_memory_may_be_given_again),
        cmocka_unit_test(the_fragment_behind_an_offset_is_found_by_halving),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
