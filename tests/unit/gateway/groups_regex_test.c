/* Patterns of topic names: RE2's language, the whole name, never more than a bounded effort. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "gateway/groups/regex.h"

static int match(const char *pattern, const char *name)
{
    unsigned costly = 1;
    struct group_regex *re;
    char why[160] = "";
    int err = group_regex_new(span_str(pattern), &re, why, sizeof why);

    if (err < 0) {
        assert_null(re);
        assert_true(why[0] != '\0');
        return err;
    }
    err = group_regex_match(re, span_str(name), &costly);
    group_regex_free(re);
    return err;
}

static void the_whole_name_must_match(void **state)
{
    (void)state;
    assert_int_equal(match("orders", "orders"), 1);
    assert_int_equal(match("orders", "orders2"), 0);
    assert_int_equal(match("orders", "myorders"), 0);
    assert_int_equal(match("a|ab", "ab"), 1);
    assert_int_equal(match("order.*", "orders/eu"), 1);
    assert_int_equal(match("^order.*$", "orders"), 1);
    assert_int_equal(match(".*", ""), 1);
    assert_int_equal(match("", "x"), 0);
    assert_int_equal(match("Orders", "orders"), 0);
    assert_int_equal(match("a$", "a\n"), 0);
}

static void what_re2_knows_is_understood(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        const char *name;
    } rows[] = {
        {"(?i)ORDERS", "orders"},
        {"(?i:OR)ders", "orders"},
        {"(?P<name>or)ders", "orders"},
        {"(?<name>or)ders", "orders"},
        {"(?:or){1,3}ders", "orders"},
        {"[[:alpha:]]+\\d?", "orders"},
        {"[^]]+", "orders"},
        {"[]a]+", "]a"},
        {"\\Qa.b\\E", "a.b"},
        {"\\x6frders", "orders"},
        {"\\x{6f}rders", "orders"},
        {"o{,2}", "o{,2}"},
        {"\\pL+", "orders"},
        {"o+?rders", "orders"},
        {"\\Aorders\\z", "orders"},
        {"(?s-i:o.*)", "orders"},
        {"[a-z_.\\-]+", "o_r.d-s"},
        {"\\bor\\B.*", "orders"},
        {"[+*?(){}]+", "+*?"},
        {"a\\+b", "a+b"},
        {"\xc3\xa9+", "\xc3\xa9\xc3\xa9"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (match(rows[i].pattern, rows[i].name) != 1)
            fail_msg("%s does not match %s", rows[i].pattern, rows[i].name);
    }
}

static void what_re2_does_not_know_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "(a)\\1",    "(?=a)a", "(?!b)a", "(?<=a)b", "(?<!a)b", "(?>a)",  "a*+",        "a++",
        "a?+",       "a**",    "a{2}+",  "(*FAIL)", "\\K",     "\\Ga",   "\\R",        "\\Z",
        "(?(1)a|b)", "(?R)",   "(?1)",   "(?P=n)",  "(?P>n)",  "(?#c)a", "(?|a|b)",    "\\ka",
        "(",         ")",      "[a",     "[b-a]",   "*a",      "a\\",    "[[:nope:]]", "\xff",
        "(?x) a",    "[\\b]",  "a{3,2}", "(?'n'a)", "\\N",     "\\h",    "(?&n)",      "\\g1",
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (match(rows[i], "a") != E_SYNTAX)
            fail_msg("%s is taken", rows[i]);
    }
}

static void a_pattern_that_explodes_is_cut_off(void **state)
{
    (void)state;
    char name[250];

    memset(name, 'a', sizeof name - 2);
    name[sizeof name - 2] = '!';
    name[sizeof name - 1] = '\0';
    assert_int_equal(match("(a+)+", name), E_LIMIT);
    assert_int_equal(match("(a|aa)+", name), E_LIMIT);
    assert_int_equal(match("(.*)(.*)(.*)(.*)(.*)[xy]", name), E_LIMIT);
    assert_int_equal(match("((a{100}){100}){100}", name), E_SYNTAX); /* too large */
    assert_int_equal(match("[a-z]+([.][a-z0-9]+)*!", name), 1);      /* an honest one passes */
}

static void long_and_deep_patterns_are_refused(void **state)
{
    (void)state;
    char deep[GROUP_REGEX_MAX + 2];

    memset(deep, '(', 400);
    memset(deep + 400, ')', 400);
    deep[800] = '\0';
    assert_int_equal(match(deep, "a"), E_SYNTAX);
    memset(deep, 'a', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    assert_int_equal(match(deep, "a"), E_LIMIT);
}

static void every_failed_allocation_is_an_answer(void **state)
{
    (void)state;
    struct group_regex *re;
    char why[160];

    mem_fail_after(0, 0);
    assert_int_equal(group_regex_new(span_str("a"), &re, why, sizeof why), E_NOMEM);
    assert_null(re);
    mem_fail_after(-1, 0);
}

/* No input, however odd, reads past its end (ASan) or passes for something it is not. */
static void random_patterns_are_harmless(void **state)
{
    (void)state;
    static const char alphabet[] = "ab(){}[]*+?|\\^$.:PQE<>=!-1,&#i";
    uint64_t seed = 7;

    for (int i = 0; i < 20000; i++) {
        char pattern[24];
        struct group_regex *re;
        char why[160];
        size_t n = 0;
        unsigned costly = 1;

        while (n < 12) {
            seed = seed * 6364136223846793005U + 1442695040888963407U;
            pattern[n++] = alphabet[(seed >> 33) % (sizeof alphabet - 1)];
        }
        char *exact = mem_strndup(pattern, n); /* its end is the end of the allocation's use */
        assert_non_null(exact);
        if (group_regex_new(span_of(exact, n), &re, why, sizeof why) == 0)
            assert_true(group_regex_match(re, span_str("abab"), &costly) >= E_NOMEM);
        group_regex_free(re);
        mem_free(exact);
    }
}

static void names_that_take_many_steps_are_counted(void **state)
{
    struct group_regex *re;
    char why[160] = "";
    unsigned costly = 2;

    (void)state;
    assert_int_equal(group_regex_new(span_str("(x|xx){0,10}y7|7"), &re, why, sizeof why), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(group_regex_match(re, span_str("7"), &costly), 1);
    assert_int_equal(costly, 2);
    const struct span hard = span_str("xxxxxxxxxxxxxxxxxxxx77");
    assert_int_equal(group_regex_match(re, hard, &costly), 0);
    assert_int_equal(group_regex_match(re, hard, &costly), 0);
    assert_int_equal(costly, 0);
    assert_int_equal(group_regex_match(re, hard, &costly), E_LIMIT);
    assert_int_equal(group_regex_match(re, span_str("7"), &costly), 1);
    group_regex_free(re);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_name_must_match),
        cmocka_unit_test(names_that_take_many_steps_are_counted),
        cmocka_unit_test(what_re2_knows_is_understood),
        cmocka_unit_test(what_re2_does_not_know_is_refused),
        cmocka_unit_test(a_pattern_that_explodes_is_cut_off),
        cmocka_unit_test(long_and_deep_patterns_are_refused),
        cmocka_unit_test(every_failed_allocation_is_an_answer),
        cmocka_unit_test(random_patterns_are_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
