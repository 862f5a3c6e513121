/*
 * Bytes that cannot be read: they are told, and hide nothing of their neighbours. And names that
 * come back: what is opened by the name of a deleted journal is none of the next one's.
 */
#include "tests/unit/journal_client/local_lab.h"

#define FRAGMENTS 4
#define LINES     3 /* of 8 bytes in a fragment */

/* acme/a: four closed fragments of three lines each, then an open one of one line, all in block 0.
 */
static const struct jc_journal *make_fragments(struct local_lab *l)
{
    const struct jc_journal *j = lab_create(&l->lab, "acme/a");

    for (unsigned i = 0; i < FRAGMENTS; i++) {
        char text[LINES * 8 + 1];
        for (unsigned k = 0; k < LINES; k++)
            (void)snprintf(text + k * 8, 9, "C00%02u:%c\n", i * LINES + k, 'a' + (int)i);
        (void)ll_fragment(l, j, text);
    }
    assert_int_equal(lab_append(&l->lab, j, "C0099:z\n"), 0);
    return j;
}

static void file_of(struct local_lab *l, const char *kind, unsigned i, char *path)
{
    char prefix[20];

    (void)snprintf(prefix, sizeof prefix, "%016x", i * LINES * 8);
    if (!ll_file(l, kind, "acme/a", prefix, path, 1024))
        fail_msg("no file of fragment %u", i);
}

static struct lab_block partial(struct local_lab *l, const struct jc_journal *j, int64_t from)
{
    const struct jc_block_req rq = {.journal = j, .from = from, .partial = true};
    struct lab_block x = {0};
    struct jc_op *op;

    assert_int_equal(l->lab.s->ops->read_block(l->lab.s, &rq, &l->lab.mb.ex, lab_on_block, &x, &op),
                     0);
    lab_wait(&l->lab, &x.done);
    assert_int_equal(x.err, 0);
    return x;
}

static void expect_segment(const struct jc_block *b, size_t i, int64_t begin, int64_t end)
{
    assert_true(i < b->segments_n);
    assert_int_equal(b->segments[i].offset, begin);
    assert_int_equal(b->segments[i].bytes->len, end - begin);
}

/* What a block read tells when [begin, end) is damaged, from each offset. */
static void expect_damage(struct local_lab *l, const struct jc_journal *j, int64_t begin,
                          int64_t end)
{
    const int64_t all = (FRAGMENTS * LINES + 1) * 8;

    for (int64_t from = 0; from < all; from += 3) {
        struct lab_block x = partial(l, j, from);
        size_t before = from < begin ? 1 : 0;

        assert_int_equal(x.b.read_to, all);
        assert_int_equal(x.b.damaged_n, from < end ? 1 : 0);
        if (from < begin)
            expect_segment(&x.b, 0, from / 8 * 8, begin);
        if (from < end) {
            assert_true(from < begin ? x.b.damaged[0].begin == begin
                                     : x.b.damaged[0].begin <= from);
            assert_int_equal(x.b.damaged[0].end, end);
        }
        assert_int_equal(x.b.segments_n, before + 1);
        expect_segment(&x.b, before, from < end ? end : from / 8 * 8, all);
        jc_block_fini(&x.b);

        x = lab_block(&l->lab, j, 0, from); /* whoever did not ask for it never gets half */
        assert_int_equal(x.err, from < end ? E_CORRUPT : 0);
        jc_block_fini(&x.b);
    }
}

static void a_damaged_fragment_hides_none_of_its_neighbours(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = make_fragments(l);
    char path[1024];

    file_of(l, "fragments", 1, path);
    assert_int_equal(truncate(path, 13), 0); /* the first line is whole */
    expect_damage(l, j, 32, 48);
    assert_int_equal(truncate(path, 5), 0);
    expect_damage(l, j, 24, 48);
    jc_journal_unref(j);
    ll_reopen(l); /* from the sidecar */
    j = lab_find(&l->lab, "acme/a");
    expect_damage(l, j, 24, 48);
    jc_journal_unref(j);
}

static void damage_that_cannot_be_indexed_is_the_whole_fragment(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = make_fragments(l);
    char path[1024];

    file_of(l, "fragments", 2, path);
    jc_journal_unref(j);
    ll_close(l);
    assert_int_equal(truncate(path, 13), 0);
    file_of(l, "index", 2, path);
    assert_int_equal(unlink(path), 0);
    ll_open(l);
    j = lab_find(&l->lab, "acme/a");
    expect_damage(l, j, 48, 72);
    /* A seek cannot know what lies there: it names the block, whose reader meets the damage. */
    struct jc_seek_req rq = {.journal = j, .end_offset = 104, .min_clock = 6, .max_clock = 8};
    assert_int_equal(lab_seek(&l->lab, &rq), 0);
    rq.mode = JC_SEEK_MAX;
    assert_int_equal(lab_seek(&l->lab, &rq), 0);
    rq.offset = 72;
    rq.min_clock = 0x100;
    rq.max_clock = UINT64_MAX;
    assert_int_equal(lab_seek(&l->lab, &rq), E_NOTFOUND);
    jc_journal_unref(j);
}

static void damage_is_told_for_as_long_as_it_lasts(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = make_fragments(l);
    char path[1024], kept[1024];

    file_of(l, "fragments", 0, path);
    (void)snprintf(kept, sizeof kept, "%s/kept", l->dir);
    assert_int_equal(link(path, kept), 0);
    assert_int_equal(unlink(path), 0);
    jl_frag_close_all(jl_store_of(l->lab.s));
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    assert_true(fd >= 0);
    close(fd);
    expect_damage(l, j, 0, 24);
    jl_frag_close_all(jl_store_of(l->lab.s));
    assert_int_equal(rename(kept, path), 0);
    struct lab_block x = partial(l, j, 0);
    assert_int_equal(x.b.damaged_n, 0);
    expect_segment(&x.b, 0, 0, 104);
    jc_block_fini(&x.b);
    jc_journal_unref(j);
}

static void adjoining_damage_is_one_range(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = make_fragments(l);
    char path[1024];

    for (unsigned i = 0; i < 3; i++) {
        file_of(l, "fragments", i, path);
        assert_int_equal(truncate(path, 0), 0);
    }
    expect_damage(l, j, 0, 72);
    jc_journal_unref(j);
}

static void a_folder_that_is_away_is_damage_to_a_block(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = make_fragments(l);
    char from[600], to[600];

    (void)snprintf(from, sizeof from, "%s/fragments", l->dir);
    (void)snprintf(to, sizeof to, "%s/elsewhere", l->dir);
    assert_int_equal(rename(from, to), 0);
    jl_frag_close_all(jl_store_of(l->lab.s));
    struct lab_block x = partial(l, j, 0);
    assert_int_equal(x.b.damaged_n, 1);
    assert_true(x.b.damaged[0].begin == 0 && x.b.damaged[0].end == 96);
    expect_segment(&x.b, 0, 96, 104);
    jc_block_fini(&x.b);
    assert_int_equal(rename(to, from), 0);
    jc_journal_unref(j);
}

static void a_read_through_a_deleted_journal_never_meets_the_next_one(void **state)
{
    struct local_lab *l = *state;
    const struct jc_journal *j = lab_create(&l->lab, "acme/a"), *next;
    struct jl_frag *f;
    int fd;

    assert_int_equal(lab_append(&l->lab, j, "C0001:old\n"), 0);
    f = jl_frag_ref(jl_of(j)->open); /* a plan was made before the deletion ... */
    jl_frag_close_all(jl_store_of(l->lab.s));
    assert_int_equal(jl_frag_pin_live(jl_of(j), f, &fd), 0);
    jl_frag_unpin(f);
    jl_frag_close_all(jl_store_of(l->lab.s));
    assert_int_equal(lab_delete(&l->lab, "acme/a"), 0);
    ll_tick(l);
    /* ... and finds no file: that is a deletion, no damage */
    assert_int_equal(jl_frag_pin_live(jl_of(j), f, &fd), E_NOTFOUND);
    assert_int_equal(jl_frag_vanished(jl_of(j), f), E_AGAIN);
    struct lab_block x = lab_block(&l->lab, j, 0, 0);
    assert_int_equal(x.err, E_NOTFOUND);
    /* ... or another's under the same name */
    next = lab_create(&l->lab, "acme/a");
    assert_int_equal(lab_append(&l->lab, next, "C0001:new\n"), 0);
    assert_int_equal(jl_frag_pin_live(jl_of(j), f, &fd), E_NOTFOUND);
    jl_frag_unref(f);
    jc_journal_unref(j);
    jc_journal_unref(next);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, ll_setup, ll_teardown)
#define D(name) cmocka_unit_test_setup_teardown(name, ll_setup, ll_teardown_damaged)
    const struct CMUnitTest tests[] = {
        D(a_damaged_fragment_hides_none_of_its_neighbours),
        D(damage_that_cannot_be_indexed_is_the_whole_fragment),
        T(damage_is_told_for_as_long_as_it_lasts),
        D(adjoining_damage_is_one_range),
        T(a_folder_that_is_away_is_damage_to_a_block),
        T(a_read_through_a_deleted_journal_never_meets_the_next_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
