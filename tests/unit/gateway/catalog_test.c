/* The catalog: times as clocks, what is read, and every fault with its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/writer.h"
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

/* As a user sees it: "FILE:LINE: /pointer: text". */
static bool in_text(const struct catalog_fault *f, const char *part)
{
    char text[800];

    catalog_fault_text(f, text, sizeof text);
    return strstr(text, part) != NULL;
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
                          in_text(&faults.list[i], part));
    if (!found) {
        print_error("wanted %zu: %s in\n%s\n", line, part, text);
        for (size_t i = 0; i < faults.n; i++)
            print_error("got %zu: %s: %s\n", faults.list[i].line, faults.list[i].pointer,
                        faults.list[i].text);
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
    const struct catalog *c = good(
        HEAD " {token: s, strict_topic_names: true, allow_empty_topics: true, deletions: cdc,\n"
             "          sluice: {truncation_signal: headers, compression: zstd,\n"
             "            value_format: json, key_format: scalar, tokens: [s2, s3], "
             "on_schema_error: skip,\n"
             "            redirect: 'tls://gw2.test:19092'}}\n"
             "    bindings:\n"
             "      - source: a/b\n"
             "        fields: {recommended: 2, include: {x: {}}, require: [y], exclude: [z]}\n"
             "      - source: {name: x/y, notBefore: '2026-07-23T04:51:00.1234567Z',\n"
             "          partitions: {include: {day: [1, 'x', null, true]}, exclude: {r: [eu]}}}\n"
             "        resource: {topic_name: orders.v1}\n        backfill: 3\n"
             "      - source: a/b\n        disable: true\n");
    const struct catalog_task *t = &c->tasks[0];
    const struct catalog_binding *one = &t->bindings[0], *two = &t->bindings[1];

    (void)state;
    assert_int_equal(faults.warnings, 0);
    assert_int_equal(c->tasks_n, 1);
    assert_string_equal(t->name, "t/k");
    assert_true(t->signal && t->has_codec && t->strict_names && t->allow_empty);
    assert_int_equal(t->tokens_n, 3);
    assert_string_equal(t->tokens[0], "s");
    assert_string_equal(t->tokens[2], "s3");
    assert_int_equal(t->codec, KP_CODEC_ZSTD);
    assert_int_equal(t->value_format, CATALOG_FORMAT_JSON);
    assert_int_equal(t->key_format, CATALOG_FORMAT_SCALAR);
    assert_int_equal(t->deletions, SC_DELETE_CDC);
    assert_int_equal(t->on_error, CATALOG_ON_ERROR_SKIP);
    assert_string_equal(t->redirect_host, "gw2.test");
    assert_int_equal(t->redirect_port, 19092);
    assert_true(t->redirect_node >= 1000);
    assert_int_equal(t->bindings_n, 2);
    assert_string_equal(one->topic, "a.2Fb");
    assert_ptr_equal(one->collection, catalog_collection(c, span_str("a/b")));
    assert_string_equal(one->collection->read_schema, "{\"type\":\"object\"}");
    assert_true(span_eq_str(one->collection->keys[0], "/id"));
    assert_true(one->has_select && one->select.depth == 2);
    assert_true(one->select.include_n == 1 && span_eq_str(one->select.include[0], "x"));
    assert_true(one->select.require_n == 1 && one->select.exclude_n == 1);
    assert_string_equal(two->topic, "orders.2Ev1");
    assert_null(two->collection);
    assert_int_equal(two->bound.min_clock, 0x1f1865219aa68870);
    assert_int_equal(two->bound.max_clock, UINT64_MAX);
    assert_int_equal(two->backfill, 3);
    assert_false(two->has_select);
    assert_int_equal(two->selector.include_n, 1);
    assert_int_equal(two->selector.include[0].values_n, 4);
    assert_true(two->selector.include[0].values[1].is_text &&
                !two->selector.include[0].values[0].is_text);
    assert_string_equal(two->selector.exclude[0].field, "r");
    assert_null(catalog_collection(c, span_str("x/y")));
    catalog_unref(c);
}

static void a_collection_has_projections_and_both_schemas(void **state)
{
    const struct catalog *c = good(
        "collections:\n  c:\n    writeSchema: {type: object}\n"
        "    readSchema: {allOf: [{$ref: 'flow://write-schema'}, {$ref: '#/$defs/x'}],\n"
        "      $defs: {x: true}, properties: {$ref: {type: string}}, default: {$ref: x.yaml}}\n"
        "    key: [/id]\n    journals: {prefix: c/v2/, fragments: {length: 3}}\n"
        "    projections:\n      day: {location: /day, partition: true}\n      Id: /id\n"
        "materializations:\n  t: {endpoint: {dekaf: {config: {sluice: {value_format: json}}}}, "
        "bindings: [\n"
        "    {source: {name: c, partitions: {include: {day: [1]}}}}]}\n");
    const struct catalog_collection *one = &c->collections[0];

    (void)state;
    assert_int_equal(faults.warnings, 0);
    assert_string_equal(one->read_schema,
                        "{\"allOf\":[{\"$ref\":\"flow://write-schema\"},{\"$ref\":\"#/$defs/x\"}],"
                        "\"$defs\":{\"x\":true},\"properties\":{\"$ref\":{\"type\":\"string\"}},"
                        "\"default\":{\"$ref\":\"x.yaml\"}}");
    assert_string_equal(one->write_schema, "{\"type\":\"object\"}");
    assert_string_equal(one->prefix, "c/v2");
    assert_int_equal(one->projections_n, 2);
    assert_true(span_eq_str(one->projections[0].field, "Id"));
    assert_true(span_eq_str(one->projections[1].pointer, "/day"));
    assert_int_equal(one->partitions_n, 1);
    assert_ptr_equal(catalog_by_prefix(c, span_str("c/v2/pivot=00")), one);
    assert_null(catalog_by_prefix(c, span_str("c/v22/pivot=00")));
    assert_null(catalog_by_prefix(c, span_str("c/v2")));
    catalog_unref(c);
}

/* An Avro topic over a schema with these properties: what the catalog says of it, "" for nothing.
 */
static const char *said_of(const char *properties)
{
    static char text[1600];
    const struct catalog *c;
    int n = snprintf(text, sizeof text,
                     "collections:\n  c: {key: [/i], schema: {type: object, required: [i], "
                     "properties: {i: {type: integer}, %s}}}\n"
                     "materializations:\n  t: {endpoint: {dekaf: {config: {}}}, "
                     "bindings: [{source: c}]}\n",
                     properties);

    assert_in_range(n, 0, (int)sizeof text - 1);
    n = catalog_parse(span_str(text), "/nonexistent/c.yaml", &faults, &c);
    catalog_unref(c);
    if (n == 0 && faults.n == 0)
        return "";
    assert_int_equal(n, E_INVALID);
    catalog_fault_text(&faults.list[0], text, sizeof text);
    return text;
}

static void a_reference_is_a_file_only_where_it_can_be_one(void **state)
{
    (void)state;
    assert_string_equal(said_of("a: {$ref: 'http://json-schema.org/draft-07/schema#'}"), "");
    assert_string_equal(said_of("b: {$id: 'http://x/y', properties: {s: {$id: sub.json}}}, "
                                "a: {$ref: 'http://x/sub.json'}"),
                        "");
    assert_string_equal(said_of("b: {$id: 'urn:x:1'}, a: {$ref: 'urn:x:1'}"), "");
    /* what leads nowhere is told by the schema's reader, with its place in the schema */
    assert_non_null(strstr(said_of("a: {$ref: 'https://x/y.json'}"), "$ref that leads nowhere"));
    assert_non_null(strstr(said_of("a: {$ref: 'urn:y'}"), "$ref that leads nowhere"));
    assert_non_null(strstr(said_of("a: {$ref: 'y.json'}"), "y.json cannot be read"));
    assert_non_null(strstr(said_of("a: {$ref: 'd/x:y.json'}"), "x:y.json cannot be read"));
    assert_non_null(strstr(said_of("a: {$ref: 'file:///nowhere'}"), "/nowhere cannot be read"));
}

static void an_id_of_draft_4_is_no_file(void **state)
{
    (void)state;
    assert_string_equal(said_of("b: {id: b.json, type: string}, a: {$ref: b.json}"), "");
    /* a property of that name, or an example, is none */
    assert_non_null(strstr(said_of("b: {properties: {id: {const: b.json}}}, a: {$ref: b.json}"),
                           "b.json cannot be read"));
    assert_non_null(
        strstr(said_of("b: {default: {id: b.json}}, a: {$ref: b.json}"), "b.json cannot be read"));
}

static void avro_is_what_values_are_unless_json_is_asked_for(void **state)
{
    const struct catalog *c =
        good("collections:\n  c:\n    schema: {type: object, required: [id],\n"
             "      properties: {id: {type: integer}, n: {type: [string, 'null']}}}\n"
             "    key: [/id]\n"
             "materializations:\n"
             "  a: {endpoint: {dekaf: {config: {}}}, bindings: [{source: c}]}\n"
             "  j: {endpoint: {dekaf: {config: {sluice: {value_format: json}}}},\n"
             "      bindings: [{source: c}]}\n"
             "  k: {endpoint: {dekaf: {config: {deletions: cdc}}}, bindings: [{source: c}]}\n");
    const struct gw_avro *a = c->tasks[0].bindings[0].avro;
    const struct gw_avro *k = c->tasks[2].bindings[0].avro;

    (void)state;
    assert_non_null(a);
    assert_null(c->tasks[1].bindings[0].avro);
    assert_int_equal(sc_avro_key_id(a->avro), sc_avro_key_id(k->avro));
    assert_int_not_equal(sc_avro_value_id(a->avro), sc_avro_value_id(k->avro));
    assert_int_not_equal(a->mark[0], k->mark[0]);
    catalog_unref(c);
    expect("collections:\n  c: {schema: {type: object}, key: [/id]}\n"
           "  d: {schema: {type: [string]}, key: [/id]}\n"
           "materializations:\n  a:\n    endpoint: {dekaf: {config: {}}}\n    bindings:\n"
           "      - {source: d}\n",
           false, 8, "d as Avro");
}

static void there_may_be_many_tasks_beside_other_materializations(void **state)
{
    const struct catalog *c = good(
        "materializations:\n"
        "  b: {endpoint: {dekaf: {config: {token: x, sluice: &j {value_format: json}}}}, bindings: "
        "[{source: c}]}\n"
        "  p: {endpoint: {connector: {image: i, config: p.yaml}}, bindings: []}\n"
        "  off: {endpoint: {dekaf: {config: {}}}, bindings: [], shards: {disable: true}}\n"
        "  a: {endpoint: {dekaf: {config: {sluice: *j}}}, bindings: [{source: c}, {source: d}]}\n");

    (void)state;
    assert_int_equal(c->tasks_n, 2);
    assert_string_equal(c->tasks[0].name, "a");
    assert_string_equal(c->tasks[1].name, "b");
    assert_int_equal(faults.warnings, 2);
    assert_null(catalog_anonymous(c, NULL));
    assert_null(catalog_anonymous(c, "p"));
    assert_ptr_equal(catalog_anonymous(c, "b"), &c->tasks[1]);
    catalog_unref(c);
}

static void json_is_a_catalog_too(void **state)
{
    const struct catalog *c =
        good("{\"collections\":{\"a\":{\"schema\":true,\"key\":[\"/x\",\"/"
             "y\"]}},\n\"materializations\":"
             "{\"t\":{\"endpoint\":{\"dekaf\":{\"variant\":\"v\",\"config\":{}}},"
             "\"bindings\":[{\"source\":"
             "{\"name\":\"a\",\"notAfter\":\"2026-07-23T04:51:00.1234567Z\"}}]}}}");

    (void)state;
    assert_int_equal(c->collections[0].keys_n, 2);
    assert_int_equal(c->tasks[0].bindings[0].bound.max_clock, 0x1f1865219aa6887f);
    catalog_unref(c);
    /* by its name it is strict JSON: tabs, and surrogates that YAML's reader refuses */
    static const char text[] =
        "{\t\"collections\":{},\n\t\"materializations\":{\"t\":{\"endpoint\":{\"dekaf\":"
        "{\"config\":{\"token\":\"\\ud83d\\ude00\\/\"}}},\"bindings\":[]}}}";
    assert_int_equal(catalog_parse(span_str(text), "c.json", &faults, &c), 0);
    assert_string_equal(c->tasks[0].tokens[0], "\xf0\x9f\x98\x80/");
    catalog_unref(c);
    assert_int_equal(catalog_parse(span_str("{\n\n\"a\":}"), "c.json", &faults, &c), E_INVALID);
    assert_int_equal(faults.list[0].line, 3);
}

static void aliases_and_merged_keys_are_copies(void **state)
{
    const struct catalog *c =
        good("materializations:\n"
             "  a: &t\n    endpoint: {dekaf: {config: {token: &s secret}}}\n"
             "    bindings: [{source: c}]\n"
             "  b: {<<: *t, bindings: []}\n"
             "  c: {endpoint: {dekaf: {config: {token: *s}}}, bindings: []}\n");

    (void)state;
    assert_int_equal(c->tasks_n, 3);
    assert_int_equal(c->tasks[1].bindings_n, 0);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(c->tasks[i].tokens[0], "secret");
    catalog_unref(c);
}

static void each_fault_is_named_with_its_line(void **state)
{
    (void)state;
    expect("", false, 1, "empty");
    expect("a: ]\n", false, 1, "");
    expect("[]", false, 1, "mapping");
    expect("--- {}\n--- {}\n", false, 2, "second document");
    expect("a: !!binary x\n", false, 1, "tag");
    expect("? [a]\n: b\n", false, 1, "a key must be text");
    expect("a: *nobody\n", false, 1, "has no anchor");
    expect("collections: {}\n", false, 1, "no materialization");
    expect("import: x.yaml\nmaterializations: {}\n", false, 1, "/import: a list");
    expect("import: [http://x/y.yaml]\nmaterializations: {}\n", false, 1, "only files");
    expect("import: [nowhere.yaml]\nmaterializations: {}\n", false, 1,
           "c.yaml:1: /import/0: nowhere.yaml cannot be read");
    /* a pipe without a writer would hold up the reload for ever */
    expect("import: [/dev/null]\nmaterializations: {}\n", false, 1, "it is no regular file");
    expect("import: [/]\nmaterializations: {}\n", false, 1, "it is no regular file");
    expect("collections:\n  a:\n    key: [/id]\nmaterializations: {}", false, 2,
           "/collections/a: the schema is missing");
    expect("collections:\n  a~/b:\n    schema: {}\nmaterializations: {}", false, 2,
           "/collections/a~0~1b: a name has letters");
    expect("collections:\n  a:\n    schema: {}\nmaterializations: {}", false, 2, "key is missing");
    expect("collections:\n  a:\n    schema: s.yaml\n    key: [id]\nmaterializations: {}", false, 3,
           "s.yaml cannot be read");
    expect("collections:\n  a:\n    schema: {x: {$ref: 'x.yaml#/y'}}\n    key: [/i]\n", false, 3,
           "/collections/a/schema/x/$ref: x.yaml cannot be read");
    expect("collections:\n  a:\n    schema: 3\n    key: [/i]\n", false, 3, "a JSON schema");
    expect("collections:\n  a:\n    schema: {}\n    key: [id]\nmaterializations: {}", false, 4,
           "/collections/a/key/0: \"id\" is no JSON pointer");
    expect("collections:\n  a:\n    schema: {}\n    key: []\nmaterializations: {}", false, 4,
           "pointers");
    expect("collections:\n  a:\n    schema: {}\n    key: [/i]\n    projections: {p: i}\n", false, 5,
           "/collections/a/projections/p: \"i\" is no JSON pointer");
    expect("collections:\n  a:\n    schema: {}\n    key: [/i]\n    projections: {p: {x: 1}}\n",
           false, 5, "location is missing");
    expect("collections:\n  a:\n    schema: {}\n    key: [/i]\n    journals: {prefix: /}\n", false,
           5, "a prefix");
    expect("collections:\n  a: {}\n  a: {}\nmaterializations: {}", false, 3,
           "/collections/a: given twice");
    expect("materializations:\n  t: {endpoint: {local: {}}, bindings: []}\n", true, 2,
           "not served");
    expect("materializations:\n  t: {endpoint: {dekaf: {config: {}}}}\n", false, 2, "bindings");
    expect("materializations:\n  t: {endpoint: {dekaf: {}}, bindings: []}\n", false, 2, "config");
    expect("materializations:\n  t: {endpoint: {dekaf: {config: c.yaml}}, bindings: []}\n", false,
           2, "c.yaml");
    expect("materializations:\n  '{t': {endpoint: {dekaf: {config: {}}}, bindings: []}\n", false, 2,
           "a name has letters");
    expect(HEAD " {token: ''}\n    bindings: []", false, 10, "empty token");
    expect(HEAD " {token: 12}\n    bindings: []", false, 10, "text belongs here, not a number");
    expect(HEAD " {token: scram-sha-256$x}\n    bindings: []", false, 10, "token hash");
    expect(HEAD " {sops: {}, token: x}\n    bindings: []", false, 10, "encrypted");
    expect(HEAD " {deletions: never}\n    bindings: []", false, 10,
           "default, kafka, cdc or header");
    expect(HEAD " {sluice: {value_format: scalar}}\n    bindings: []", false, 10, "json or avro");
    expect(HEAD " {sluice: {key_format: text}}\n    bindings: []", false, 10,
           "json, avro or scalar");
    expect(HEAD " {sluice: {value_format: xml}}\n    bindings: []", false, 10, "json or avro");
    expect(
        HEAD " {sluice: {truncation_signal: maybe}}\n    bindings: []", false, 10,
        "/materializations/t~1k/endpoint/dekaf/config/sluice/truncation_signal: none or headers");
    expect(HEAD " {sluice: {compression: 3}}\n    bindings: []", false, 10, "zstd");
    expect(HEAD " {sluice: {redirect: nowhere}}\n    bindings: []", false, 10, "HOST:PORT");
    expect(HEAD " {sluice: {redirect: 'h:0'}}\n    bindings: []", false, 10, "HOST:PORT");
    expect(HEAD " {sluice: {redirect: 'a:b:9'}}\n    bindings: []", false, 10, "HOST:PORT");
    expect(HEAD " {strict_topic_names: 'yes'}\n    bindings: []", false, 10, "true or false");
    expect(HEAD " {tokn: x}\n    bindings: []", true, 10, "/tokn: unknown key");
    expect(HEAD " {}\n    bindings:\n      - backfill: 1\n", false, 12, "source is missing");
    expect(HEAD " {}\n    bindings:\n      - source: {}\n", false, 12, "name is missing");
    expect(HEAD " {}\n    bindings:\n      - {source: a, backfill: -1}\n", false, 12,
           "whole number");
    expect(HEAD " {}\n    bindings:\n      - {source: a, resource: {topic_name: ''}}\n", false, 12,
           "1 to 249");
    expect(HEAD " {}\n    bindings:\n      - {source: a, fields: {recommended: x}}\n", false, 12,
           "/bindings/0/fields/recommended: a whole number");
    expect(HEAD " {}\n    bindings:\n      - {source: a}\n      - {source: a}\n", false, 11,
           "lines 12 and 13");
    expect(HEAD " {}\n    bindings:\n      - source: {name: a, notBefore: yesterday}\n", false, 12,
           "no time");
    expect(HEAD " {}\n    bindings:\n      - source:\n          name: a\n"
                "          notBefore: 2026-01-02T00:00:00Z\n"
                "          notAfter: 2026-01-01T00:00:00Z\n",
           false, 12, "nothing would ever");
    expect(HEAD
           " {}\n    bindings:\n      - source: {name: a/b, partitions: {include: {d: [1]}}}\n",
           false, 12, "\"d\" is no projection of a/b with partition: true");
    expect(HEAD " {}\n    bindings:\n      - source: {name: a, partitions: {include: {d: 1}}}\n",
           false, 12, "a list belongs here");
    expect(HEAD " {sluice: {truncation_signal: headers}}\n    bindings:\n"
                "      - source: {name: a, notAfter: 2026-01-01T00:00:00Z}\n",
           false, 12, "notAfter");
}

static void no_message_shows_a_token(void **state)
{
    static const char *const configs[] = {
        "{token: [s3cret, 7]}", "{token: scram-sha-256$s3cret}", "{token: s3cret, toke: s3cret}",
        /* without the quotes that they want */
        "{token: *s3cret}", "{token: !s3cret}", "{token: !s3cret x}", "{token: {*s3cret: 1}}"};
    const struct catalog *c;
    char text[2000];

    (void)state;
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        (void)snprintf(text, sizeof text, HEAD " %s\n    bindings: []", configs[i]);
        (void)!catalog_parse(span_str(text), "c.yaml", &faults, &c);
        assert_true(faults.n > 0);
        for (size_t k = 0; k < faults.n; k++) {
            catalog_fault_text(&faults.list[k], text, sizeof text);
            assert_null(strstr(text, "s3cret"));
        }
        catalog_unref(c);
    }
}

static void all_faults_come_in_one_run_and_cycles_end(void **state)
{
    const struct catalog *c;

    (void)state;
    assert_int_equal(catalog_parse(span_str("collections:\n  a: 1\n  b: 2\n  c: {key: 3}\n"),
                                   "c.yaml", &faults, &c),
                     E_INVALID);
    assert_null(c);
    assert_true(faults.faults >= 4);
    expect("collections:\n  a:\n    schema: &s {x: *s}\n    key: [/id]\nmaterializations: {}\n",
           false, 3, "within its own anchor");
    assert_int_equal(catalog_read("/nonexistent/c.yaml", &faults, NULL, &c), E_INVALID);
    assert_int_equal(faults.n, 1);
}

/* n times `open`, then `close` n times. */
static char *nested(const char *open, const char *close, size_t n)
{
    char *text = mem_alloc(n * (strlen(open) + strlen(close)) + 1);
    size_t k = 0;

    assert_non_null(text);
    for (size_t i = 0; i < n; i++, k += strlen(open))
        memcpy(text + k, open, strlen(open));
    for (size_t i = 0; i < n; i++, k += strlen(close))
        memcpy(text + k, close, strlen(close));
    text[k] = '\0';
    return text;
}

static void what_would_blow_up_is_refused_soon(void **state)
{
    static const struct {
        const char *open, *close;
        size_t n;
    } deep[] = {{"[", "]", 500000}, {"{a: ", "}", 100000}, {"- ", "", 100000}, {"[", "", 100000}};
    char bomb[2000] = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n", line[200];
    const struct catalog *c;

    (void)state;
    for (size_t i = 0; i < sizeof deep / sizeof deep[0]; i++) {
        char *text = nested(deep[i].open, deep[i].close, deep[i].n);
        assert_int_equal(catalog_parse(span_str(text), "c.yaml", &faults, &c), E_INVALID);
        assert_non_null(strstr(faults.list[0].text, "200 levels"));
        assert_int_equal(catalog_parse(span_str(text), "c.json", &faults, &c), E_INVALID);
        mem_free(text);
    }
    for (int i = 1; i < 10; i++) {
        (void)snprintf(line, sizeof line, "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n",
                       i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
        memcpy(bomb + strlen(bomb), line, strlen(line) + 1);
    }
    assert_int_equal(catalog_parse(span_str(bomb), "c.yaml", &faults, &c), E_INVALID);
    assert_non_null(strstr(faults.list[0].text, "4,000,000"));
}

/* Each of these took its number of values squared: hours at this size, so that the limit of time
 * that ctest has for a program fails this test when one does again. */
static void the_cost_of_a_file_is_its_size(void **state)
{
    static const char *const heads[] = {"y: {<<: *z}\n", "y: {<<: [*z, *z, *z]}\n"};
    const struct catalog *c;
    struct writer w;

    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        wr_init(&w, (size_t)1 << 24);
        wr_str(&w, "z: &z\n");
        for (int k = 0; k < 400000; k++)
            wr_printf(&w, "  k%d: 1\n", k);
        wr_str(&w, heads[i]);
        wr_str(&w, "collections: {}\nmaterializations: {}\n");
        assert_int_equal(wr_err(&w), 0);
        assert_int_equal(catalog_parse(blob_span(w.b), "c.yaml", &faults, &c), E_INVALID);
        /* two unknown keys, and nothing to serve */
        assert_int_equal(faults.warnings, 2);
        assert_int_equal(faults.faults, 1);
        wr_fini(&w);
    }
    /* references to an $id of the text, and to a file that is not there */
    wr_init(&w, (size_t)1 << 24);
    wr_str(&w, "collections:\n  a:\n    key: [/i]\n    schema:\n      $id: b\n"
               "      properties:\n");
    for (int k = 0; k < 150000; k++)
        wr_printf(&w, "        p%d: {$ref: \"b#/x%d\"}\n", k, k);
    for (int k = 0; k < 5000; k++)
        wr_printf(&w, "        q%d: {$ref: \"nowhere.yaml#/x%d\"}\n", k, k);
    assert_int_equal(wr_err(&w), 0);
    assert_int_equal(catalog_parse(blob_span(w.b), "/nonexistent/c.yaml", &faults, &c), E_INVALID);
    assert_int_equal(faults.faults, 5000);
    wr_fini(&w);
}

static void a_byte_that_is_no_text_is_named_with_its_line(void **state)
{
    (void)state;
    expect("a: 1\nb: 2\nc: \xff\n", false, 3, "not YAML");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_the_clocks_around_their_tick),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(a_catalog_is_read_with_all_it_says),
        cmocka_unit_test(a_collection_has_projections_and_both_schemas),
        cmocka_unit_test(a_reference_is_a_file_only_where_it_can_be_one),
        cmocka_unit_test(an_id_of_draft_4_is_no_file),
        cmocka_unit_test(avro_is_what_values_are_unless_json_is_asked_for),
        cmocka_unit_test(there_may_be_many_tasks_beside_other_materializations),
        cmocka_unit_test(json_is_a_catalog_too),
        cmocka_unit_test(aliases_and_merged_keys_are_copies),
        cmocka_unit_test(each_fault_is_named_with_its_line),
        cmocka_unit_test(no_message_shows_a_token),
        cmocka_unit_test(all_faults_come_in_one_run_and_cycles_end),
        cmocka_unit_test(what_would_blow_up_is_refused_soon),
        cmocka_unit_test(the_cost_of_a_file_is_its_size),
        cmocka_unit_test(a_byte_that_is_no_text_is_named_with_its_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
