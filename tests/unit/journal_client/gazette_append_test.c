/* What an append's answer means, and what is done about a part in doubt: each row of the table, and
 * random histories in which a part lands once at most. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "journal_client/gazette/append.h"

static enum gz_verdict judge(struct gz_append_seen seen, struct gz_append_about about, int *fail)
{
    about.bytes = 10;
    return gz_append_judge(&seen, &about, fail);
}

static void each_answer_has_its_verdict(void **state)
{
    static const struct {
        struct gz_append_seen seen;
        struct gz_append_about about;
        enum gz_verdict want;
        int fail;
    } rows[] = {
        {{0, GZ_OK, 100, 110, false}, {0}, GZ_V_LANDED, 0},
        {{0, GZ_OK, 100, 109, false}, {0}, GZ_V_DOUBT, 0},
        /* Numbers that no journal has: the length alone would do. */
        {{0, GZ_OK, -10, 0, false}, {0}, GZ_V_DOUBT, 0},
        {{0, GZ_OK, INT64_MIN, INT64_MAX, false}, {0}, GZ_V_DOUBT, 0},
        {{0, GZ_OK, INT64_MAX, INT64_MIN + 9, false}, {0}, GZ_V_DOUBT, 0},
        {{0, GZ_OK, INT64_MAX - 10, INT64_MAX, false}, {0}, GZ_V_DOUBT, 0},
        {{E_AGAIN, -1, 0, 0, false}, {0}, GZ_V_DOUBT, 0},
        {{E_TIMEOUT, -1, 0, 0, false}, {0}, GZ_V_DOUBT, 0},
        {{E_SYNTAX, -1, 0, 0, false}, {0}, GZ_V_DOUBT, 0},
        {{0, -1, 0, 0, false}, {0}, GZ_V_DOUBT, 0},
        {{E_DENIED, -1, 0, 0, true}, {0}, GZ_V_FAIL, E_DENIED},
        {{E_LIMIT, -1, 0, 0, true}, {0}, GZ_V_DOUBT, 0}, /* a proxy says so, too */
        {{E_UNSUPPORTED, -1, 0, 0, true}, {0}, GZ_V_FAIL, E_UNSUPPORTED},
        /* What our side could not take in came behind the content. */
        {{E_LIMIT, -1, 0, 0, false}, {0}, GZ_V_DOUBT, 0},
        {{E_UNSUPPORTED, -1, 0, 0, false}, {0}, GZ_V_DOUBT, 0},
        {{E_NOMEM, -1, 0, 0, false}, {0}, GZ_V_DOUBT, 0},
        {{E_IO, -1, 0, 0, false}, {0}, GZ_V_DOUBT, 0},
        {{E_CLOSED, -1, 0, 0, false}, {0}, GZ_V_FAIL, E_CLOSED},
        {{0, GZ_WRONG_OFFSET, 0, 0, false}, {0}, GZ_V_MOVED, 0},
        /* The first attempt may be what moved the head. */
        {{0, GZ_WRONG_OFFSET, 0, 0, false}, {.unsure = true}, GZ_V_DOUBT, 0},
        {{0, GZ_REGISTER_MISMATCH, 0, 0, false}, {0}, GZ_V_CLAIM_LOST, 0},
        {{0, GZ_REGISTER_MISMATCH, 0, 0, false}, {.mine = true}, GZ_V_MOVED, 0},
        {{0, GZ_REGISTER_MISMATCH, 0, 0, false}, {.claiming = true, .mine = true}, GZ_V_MOVED, 0},
        {{0, GZ_REGISTER_MISMATCH, 0, 0, false}, {.claiming = true}, GZ_V_MOVED, 0},
        {{0, GZ_REGISTER_MISMATCH, 0, 0, false},
         {.unsure = true, .claiming = true, .mine = true},
         GZ_V_DOUBT,
         0},
        {{0, GZ_REGISTER_MISMATCH, 0, 0, false}, {.unsure = true}, GZ_V_DOUBT, 0},
        {{0, GZ_INDEX_GREATER, 0, 0, false}, {0}, GZ_V_RESET, 0},
        {{0, GZ_NOT_ALLOWED, 0, 0, false}, {0}, GZ_V_FAIL, E_DENIED},
        {{0, GZ_JOURNAL_NOT_FOUND, 0, 0, false}, {0}, GZ_V_AGAIN, 0},
        {{0, GZ_JOURNAL_NOT_FOUND, 0, 0, false}, {.deleted = true}, GZ_V_FAIL, E_NOTFOUND},
        {{0, GZ_NO_PRIMARY, 0, 0, false}, {0}, GZ_V_AGAIN, 0},
        {{0, GZ_NOT_PRIMARY, 0, 0, false}, {0}, GZ_V_AGAIN, 0},
        {{0, GZ_INSUFFICIENT_BROKERS, 0, 0, false}, {0}, GZ_V_AGAIN, 0},
        {{0, GZ_SUSPENDED, 0, 0, false}, {0}, GZ_V_AGAIN, 0},
        {{0, GZ_STORE_UNHEALTHY, 0, 0, false}, {0}, GZ_V_AGAIN, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int fail = 1;
        if (judge(rows[i].seen, rows[i].about, &fail) != rows[i].want)
            fail_msg("row %zu", i);
        if (rows[i].want == GZ_V_FAIL || rows[i].seen.err == 0)
            assert_int_equal(rows[i].want == GZ_V_FAIL ? fail : 0, rows[i].fail);
    }
}

static void a_part_in_doubt_is_compared_sent_again_or_given_up(void **state)
{
    (void)state;
    assert_int_equal(gz_append_doubt(120, 100, 110), GZ_D_COMPARE);
    assert_int_equal(gz_append_doubt(110, 100, 110), GZ_D_COMPARE);
    assert_int_equal(gz_append_doubt(100, 100, 110), GZ_D_SEND_AGAIN);
    assert_int_equal(gz_append_doubt(105, 100, 110), GZ_D_GONE);
    assert_int_equal(gz_append_doubt(90, 100, 110), GZ_D_BELOW);
}

/* A journal of whole appends, and a broker that answers, does not answer, or answers before it
 * appends: an attempt may land any time later, as long as its offset is the head. */
struct broker {
    int64_t head;
    int ours[64]; /* of what lies there, by 10 bytes: attempt of the part, 0 somebody else's */
    int64_t late[16];
    size_t late_n;
};

static uint32_t rnd;

static uint32_t draw(uint32_t n)
{
    rnd = rnd * 1664525u + 1013904223u;
    return (rnd >> 8) % n;
}

static bool land(struct broker *b, int64_t offset, int who)
{
    if (offset != b->head || b->head >= 600)
        return false;
    b->ours[b->head / 10] = who;
    b->head += 10;
    return true;
}

static void late_ones(struct broker *b)
{
    while (b->late_n > 0 && draw(2) == 0)
        (void)land(b, b->late[--b->late_n], 1);
    if (draw(4) == 0)
        (void)land(b, b->head, 0);
}

static struct gz_append_seen append(struct broker *b, int64_t offset)
{
    late_ones(b);
    switch (draw(4)) {
    case 0: /* lost on the way back */
        (void)land(b, offset, 1);
        return (struct gz_append_seen){.err = E_AGAIN, .status = -1};
    case 1: /* on its way still */
        if (b->late_n < 16)
            b->late[b->late_n++] = offset;
        return (struct gz_append_seen){.err = E_TIMEOUT, .status = -1};
    case 2:
        return (struct gz_append_seen){.status = GZ_NO_PRIMARY};
    default:
        if (land(b, offset, 1))
            return (struct gz_append_seen){.status = GZ_OK, .begin = offset, .end = offset + 10};
        return (struct gz_append_seen){.status = GZ_WRONG_OFFSET};
    }
}

/* The loop of append_part.c, without its waits. Returns true when it says that the part landed. */
static bool run_part(struct broker *b)
{
    int64_t begin = b->head;
    bool unsure = false, doubt = false;

    for (int step = 0; step < 200; step++) {
        int fail;
        if (doubt) {
            late_ones(b);
            enum gz_doubt d = gz_append_doubt(b->head, begin, begin + 10);
            if (d == GZ_D_COMPARE && b->ours[begin / 10] == 1)
                return true;
            doubt = false;
            if (d != GZ_D_SEND_AGAIN) {
                unsure = false;
                begin = b->head;
            }
            continue;
        }
        struct gz_append_seen seen = append(b, begin);
        enum gz_verdict v = judge(seen, (struct gz_append_about){.unsure = unsure}, &fail);
        if (v == GZ_V_LANDED)
            return true;
        if (v == GZ_V_DOUBT)
            doubt = unsure = true;
        else if (v == GZ_V_MOVED)
            begin = b->head;
    }
    return false;
}

static void a_part_lands_once_however_answers_are_lost(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 20000; seed++) {
        struct broker b = {0};
        rnd = seed * 2654435761u;
        bool told = run_part(&b);
        for (int i = 0; i < 8; i++) /* whatever is still on its way */
            late_ones(&b);
        int n = 0;
        for (size_t i = 0; i < 60; i++)
            n += b.ours[i];
        if (n > 1 || (told && n != 1))
            fail_msg("seed %u: landed %d times, told %d", seed, n, told);
    }
}

static void a_claim_survives_its_text(void **state)
{
    static const char *const bad[] = {"", "1-2", "000000000000000g-0000000000000001",
                                      "0000000000000001_0000000000000001",
                                      "0000000000000001-00000000000000011"};
    const struct gz_claim c = {0x1f1ee147f4558f10, 0xfeedbeef};
    struct gz_claim got;
    char text[GZ_CLAIM_MAX];

    (void)state;
    gz_claim_format(&c, text);
    assert_string_equal(text, "1f1ee147f4558f10-00000000feedbeef");
    assert_int_equal(gz_claim_parse(text, &got), 0);
    assert_true(got.epoch == c.epoch && got.owner == c.owner);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(gz_claim_parse(bad[i], &got), E_SYNTAX);
        assert_true(got.epoch == 0);
    }
}

static void epochs_rise_above_what_was_seen_and_with_the_clock(void **state)
{
    (void)state;
    assert_int_equal(gz_claim_epoch(0, 5000), 5000);
    assert_int_equal(gz_claim_epoch(4000, 5000), 5000);
    assert_int_equal(gz_claim_epoch(5000, 5000), 5001);
    assert_int_equal(gz_claim_epoch(9000, 5000), 9001);
    assert_int_equal(gz_claim_epoch(0, -1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer_has_its_verdict),
        cmocka_unit_test(a_part_in_doubt_is_compared_sent_again_or_given_up),
        cmocka_unit_test(a_part_lands_once_however_answers_are_lost),
        cmocka_unit_test(a_claim_survives_its_text),
        cmocka_unit_test(epochs_rise_above_what_was_seen_and_with_the_clock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
