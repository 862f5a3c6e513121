/* The catalog: times as clocks, what is read, and every fault with its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/catalog.h"

static struct catalog_faults faults;

static const struct catalog *good(const char *text)
{
    const struct catalog *c;
    int err = catalog_parse(span_str(text), "c.yaml", &faults, &c);

    if (err < 0 && faults.n > 0)
        print_error("line %zu: %s\n", faults.list[0].line, faults.list[0].text);
    assert_int_equal(err, 0);
    return c;
}

/* The file has this fault (or warning) on this line. */
static void expect(const char *text, bool warning, size_t line, const char *part)
{
    const struct catalog *c;
    bool found = false;
    int err = catalog_parse(span_str(text), "c.yaml", &faults, &c);

    assert_int_equal(err, faults.faults > 0 ? E_INVALID : 0);
    for (size_t i = 0; i < faults.n; i++)
        found = found || (faults.list[i].warning == warning && faults.list[i].line == line &&
                          strstr(faults.list[i].text, part) != NULL);
    if (!found) {
        print_error("wanted %zu: %s in\n%s\n", line, part, text);
        for (size_t i = 0; i < faults.n; i++)
            print_error("got %zu: %s\n", faults.list[i].line, faults.list[i].text);
    }
    assert_true(found);
    catalog_unref(c);
}

static void times_are_the_clocks_around_their_tick(void **state)
{
    static const struct {
        const char *text;
        uint64_t at_least, at_most;
    } all[] = {
        {"1970-01-01T00:00:00Z", 0x1b21dd2138140000, 0x1b21dd213814000f},
        {"2023-11-14T22:13:20Z", 0x1ee833b04afc0000, 0x1ee833b04afc000f},
        {"2026-07-23T04:51:00.1234567Z", 0x1f1865219aa68870, 0x1f1865219aa6887f},
        /* offsets name the same instant */
        {"2026-07-23T06:51:00.1234567+02:00", 0x1f1865219aa68870, 0x1f1865219aa6887f},
        {"2026-07-22T23:21:00.1234567-05:30", 0x1f1865219aa68870, 0x1f1865219aa6887f},
        {"2026-07-23t04:51:00.123456700z", 0x1f1865219aa68870, 0x1f1865219aa6887f},
        /* between two ticks: not before the later, not after the earlier */
        {"2026-07-23T04:51:00.123456701Z", 0x1f1865219aa68880, 0x1f1865219aa6887f},
        {"2026-07-23T04:51:00.123456799Z", 0x1f1865219aa68880, 0x1f1865219aa6887f},
        {"2026-07-23T04:51:00.1234568Z", 0x1f1865219aa68880, 0x1f1865219aa6888f},
        {"2026-07-23T05:51:00Z", 0x1f1865a7b5bd2c00 & ~UINT64_C(15), 0},
        {"1582-10-15T00:00:00Z", 0, 15},
        {"2024-02-29T00:00:00Z", 0, 0},
    };
    struct catalog_time t;

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_int_equal(catalog_time_parse(span_str(all[i].text), &t), 0);
        if (all[i].at_most == 0)
            continue; /* only that it is legal */
        assert_int_equal(t.at_least, all[i].at_least);
        assert_int_equal(t.at_most, all[i].at_most);
    }
}

static void what_is_no_time_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "2026-07-23",
        "2026-07-23T04:51:00",
        "2026-07-23 04:51:00Z",
        "2026-13-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-07-23T24:00:00Z",
        "2026-07-23T04:60:00Z",
        "2026-07-23T04:51:60Z",
        "2026-07-23T04:51:00.Z",
        "2026-07-23T04:51:00.1234567890Z",
        "2026-07-23T04:51:00+2:00",
        "2026-07-23T04:51:00+24:00",
        "2026-07-23T04:51:00Zx",
        "0000-01-01T00:00:00Z",
    };
    struct catalog_time t;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(catalog_time_parse(span_str(bad[i]), &t), E_SYNTAX);
    assert_int_equal(catalog_time_parse(span_str("1582-10-14T23:59:59Z"), &t), E_RANGE);
    assert_int_equal(catalog_time_parse(span_str("1582-10-15T00:00:00+00:01"), &t), E_RANGE);
    assert_int_equal(catalog_time_parse(span_str("9999-01-01T00:00:00Z"), &t), E_RANGE);
}

#define HEAD                                                                                       \
    "collections:\n  a/b:\n    schema: {type: object}\n    key: [/id]\n"                           \
    "materializations:\n  t/k:\n    endpoint:\n      dekaf:\n        variant: v\n        config:"

static void a_catalog_is_read_with_all_it_says(void **state)
{
    const struct catalog *c =
        good(HEAD " {token: s, strict_topic_names: true, sluice: {truncation_signal: headers, "
                  "compression: zstd, value_format: json}}\n"
                  "    bindings:\n"
                  "      - source: a/b\n"
                  "      - source: {name: x/y, notBefore: '2026-07-23T04:51:00.1234567Z'}\n"
                  "        resource: {topic_name: orders.v1}\n        backfill: 3\n"
                  "      - source: a/b\n        disable: true\n");

    (void)state;
    assert_string_equal(c->tasks[0].name, "t/k");
    assert_true(c->tasks[0].tokens_n == 1 && c->tasks[0].signal && c->tasks[0].has_codec &&
                c->tasks[0].strict_names);
    assert_int_equal(c->tasks[0].codec, KP_CODEC_ZSTD);
    assert_int_equal(c->tasks[0].value_format, CATALOG_FORMAT_JSON);
    assert_int_equal(c->tasks[0].bindings_n, 2);
    assert_string_equal(c->tasks[0].bindings[0].topic, "a.2Fb");
    assert_ptr_equal(c->tasks[0].bindings[0].collection, catalog_collection(c, span_str("a/b")));
    assert_string_equal(c->tasks[0].bindings[0].collection->schema, "{\"type\":\"object\"}");
    assert_true(span_eq_str(c->tasks[0].bindings[0].collection->keys[0], "/id"));
    assert_string_equal(c->tasks[0].bindings[1].topic, "orders.2Ev1");
    assert_null(c->tasks[0].bindings[1].collection);
    assert_int_equal(c->tasks[0].bindings[1].bound.min_clock, 0x1f1865219aa68870);
    assert_int_equal(c->tasks[0].bindings[1].bound.max_clock, UINT64_MAX);
    assert_int_equal(c->tasks[0].bindings[1].backfill, 3);
    assert_null(catalog_collection(c, span_str("x/y")));
    assert_int_equal(faults.warnings, 0);
    catalog_unref(c);
}

static void json_is_a_catalog_too(void **state)
{
    const struct catalog *c =
        good("{\"collections\":{\"a\":{\"schema\":true,\"key\":[\"/x\",\"/"
             "y\"]}},\n\t\"materializations\":"
             "{\"t\":{\"endpoint\":{\"dekaf\":{\"variant\":\"v\",\"config\":{}}},"
             "\"bindings\":[{\"source\":"
             "{\"name\":\"a\",\"notAfter\":\"2026-07-23T04:51:00.1234567Z\"}}]}}}");

    (void)state;
    assert_int_equal(c->collections[0].keys_n, 2);
    assert_int_equal(c->tasks[0].bindings[0].bound.max_clock, 0x1f1865219aa6887f);
    catalog_unref(c);
}

static void each_fault_is_named_with_its_line(void **state)
{
    (void)state;
    expect("", false, 0, "empty");
    expect("a: ]\n", false, 1, "");
    expect("[]", false, 1, "mapping");
    expect("collections: {}\n", false, 1, "materializations are missing");
    expect("import: [x.yaml]\nmaterializations: {}\n", false, 1, "other files");
    expect("collections:\n  a:\n    key: [/id]\nmaterializations: {}", false, 2,
           "schema is missing");
    expect("collections:\n  a:\n    schema: {}\nmaterializations: {}", false, 2, "key is missing");
    expect("collections:\n  a:\n    schema: s.yaml\n    key: [id]\nmaterializations: {}", false, 3,
           "other files");
    expect("collections:\n  a:\n    schema: {}\n    key: [id]\nmaterializations: {}", false, 4,
           "no JSON pointer");
    expect("collections:\n  a:\n    schema: {}\n    key: []\nmaterializations: {}", false, 4,
           "sequence");
    expect("collections:\n  a: {}\n  a: {}\nmaterializations: {}", false, 3, "twice");
    expect("materializations:\n  t: {endpoint: {local: {}}, bindings: []}\n", true, 2,
           "not served");
    expect("materializations:\n  t: {endpoint: {dekaf: {config: {}}}}\n", false, 2, "bindings");
    expect("materializations:\n  t: {endpoint: {dekaf: {}}, bindings: []}\n", false, 2, "config");
    expect("materializations:\n  t: {endpoint: {dekaf: {config: c.yaml}}, bindings: []}\n", false,
           2, "other files");
    expect(HEAD " {sluice: {value_format: avro}}\n    bindings: []", false, 10, "Avro");
    expect(HEAD " {sluice: {truncation_signal: maybe}}\n    bindings: []", false, 10, "headers");
    expect(HEAD " {sluice: {compression: 3}}\n    bindings: []", false, 10, "text belongs");
    expect(HEAD " {strict_topic_names: 'yes'}\n    bindings: []", false, 10, "true or false");
    expect(HEAD " {tokn: x}\n    bindings: []", true, 10, "unknown key \"tokn\"");
    expect(HEAD " {}\n    bindings:\n      - backfill: 1\n", false, 12, "source is missing");
    expect(HEAD " {}\n    bindings:\n      - source: {}\n", false, 12, "name is missing");
    expect(HEAD " {}\n    bindings:\n      - {source: a, backfill: -1}\n", false, 12,
           "whole number");
    expect(HEAD " {}\n    bindings:\n      - {source: a}\n      - {source: a}\n", false, 12,
           "lines 12 and 13");
    expect(HEAD " {}\n    bindings:\n      - source: {name: a, notBefore: yesterday}\n", false, 12,
           "no time");
    expect(HEAD " {}\n    bindings:\n      - source:\n          name: a\n"
                "          notBefore: 2026-01-02T00:00:00Z\n"
                "          notAfter: 2026-01-01T00:00:00Z\n",
           false, 13, "nothing would ever");
    expect(HEAD " {}\n    bindings:\n      - source: {name: a, partitions: {}}\n", false, 12,
           "selector");
    expect(HEAD " {sluice: {truncation_signal: headers}}\n    bindings:\n"
                "      - source: {name: a, notAfter: 2026-01-01T00:00:00Z}\n",
           false, 12, "notAfter");
}

static void all_faults_come_in_one_run_and_cycles_end(void **state)
{
    const struct catalog *c;

    (void)state;
    assert_int_equal(catalog_parse(span_str("collections:\n  a: 1\n  b: 2\n  c: {key: 3}\n"),
                                   "c.yaml", &faults, &c),
                     E_INVALID);
    assert_null(c);
    assert_true(faults.faults >= 5);
    assert_int_equal(catalog_parse(span_str("collections:\n  a:\n    schema: &s {x: *s}\n"
                                            "    key: [/id]\nmaterializations: {}\n"),
                                   "c.yaml", &faults, &c),
                     E_INVALID);
    assert_int_equal(catalog_read("/nonexistent/c.yaml", &faults, &c), E_INVALID);
    assert_int_equal(faults.n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_the_clocks_around_their_tick),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(a_catalog_is_read_with_all_it_says),
        cmocka_unit_test(json_is_a_catalog_too),
        cmocka_unit_test(each_fault_is_named_with_its_line),
        cmocka_unit_test(all_faults_come_in_one_run_and_cycles_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
