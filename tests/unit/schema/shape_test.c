/* Shapes of JSON schemas: each keyword, references, circles, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/writer.h"
#include "schema/shape.h"

static struct sc_schema *held;

static const struct sc_shape *shape_of(const char *text)
{
    struct sc_schema_error err;
    int r;

    sc_schema_free(held);
    r = sc_schema_new(span_str(text), NULL, 0, &err, &held);
    if (r < 0)
        print_message("%s: %s\n", err.pointer, err.reason);
    assert_int_equal(r, 0);
    return sc_schema_root(held);
}

static unsigned types_of(const char *text)
{
    const struct sc_shape *s = shape_of(text);

    return s == NULL ? SC_T_ANY : s->types;
}

static unsigned types_at(const char *schema, const char *pointer, enum sc_exists want)
{
    const struct sc_shape *s = shape_of(schema);
    enum sc_exists exists;

    assert_int_equal(sc_shape_at(s, span_str(pointer), &s, &exists), 0);
    assert_int_equal(exists, want);
    return s == NULL ? SC_T_ANY : s->types;
}

static int refused(const char *text, const char *pointer, const char *reason)
{
    struct sc_schema_error err;
    struct sc_schema *s;
    int r = sc_schema_new(span_str(text), NULL, 0, &err, &s);

    assert_null(s);
    assert_string_equal(err.pointer, pointer);
    if (strstr(err.reason, reason) == NULL)
        print_message("%s\n", err.reason);
    assert_non_null(strstr(err.reason, reason));
    return r;
}

static int teardown(void **state)
{
    (void)state;
    sc_schema_free(held);
    held = NULL;
    return 0;
}

static void types_come_from_type_enum_const_and_not(void **state)
{
    const unsigned number = SC_T_INT | SC_T_FRACTION;

    (void)state;
    assert_int_equal(types_of("true"), SC_T_ANY);
    assert_int_equal(types_of("{}"), SC_T_ANY);
    assert_int_equal(types_of("false"), 0);
    assert_int_equal(types_of("{\"type\":\"number\"}"), number);
    assert_int_equal(types_of("{\"type\":[\"integer\",\"null\"]}"), SC_T_INT | SC_T_NULL);
    assert_int_equal(types_of("{\"enum\":[1,2.0,\"a\"]}"), SC_T_INT | SC_T_STRING);
    assert_int_equal(types_of("{\"const\":1.50}"), SC_T_FRACTION);
    assert_int_equal(types_of("{\"const\":150e-1}"), SC_T_INT);
    assert_int_equal(types_of("{\"const\":1.5e1}"), SC_T_INT);
    assert_int_equal(types_of("{\"const\":1.5e0}"), SC_T_FRACTION);
    assert_int_equal(types_of("{\"const\":100e-2}"), SC_T_INT);
    assert_int_equal(types_of("{\"const\":100e-3}"), SC_T_FRACTION);
    assert_int_equal(types_of("{\"const\":0.000}"), SC_T_INT);
    assert_int_equal(types_of("{\"type\":\"string\",\"enum\":[1,\"a\"]}"), SC_T_STRING);
    assert_int_equal(types_of("{\"type\":\"number\",\"not\":{\"type\":\"integer\"}}"),
                     SC_T_FRACTION);
    assert_int_equal(types_of("{\"not\":{\"const\":null}}"), SC_T_ANY & ~SC_T_NULL);
    /* of numbers, not of strings: nothing is taken away */
    assert_int_equal(types_of("{\"not\":{\"type\":\"string\",\"minLength\":3}}"), SC_T_ANY);
}

static void all_of_intersects_and_any_of_unites(void **state)
{
    (void)state;
    assert_int_equal(
        types_of(
            "{\"allOf\":[{\"type\":[\"string\",\"null\"]},{\"type\":[\"string\",\"integer\"]}]}"),
        SC_T_STRING);
    assert_int_equal(types_of("{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}"),
                     SC_T_STRING | SC_T_INT);
    assert_int_equal(
        types_of("{\"type\":[\"string\",\"null\"],\"oneOf\":[{\"type\":\"string\"},{\"type\":"
                 "\"integer\"}]}"),
        SC_T_STRING);
    assert_int_equal(types_at("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":[\"integer\","
                              "\"null\"]}},\"allOf\":[{\"required\":[\"a\"],\"properties\":{\"a\":{"
                              "\"type\":[\"string\",\"null\"]}}}]}",
                              "/a", SC_EXISTS_MUST),
                     SC_T_NULL);
    /* a member that one alternative does not declare may be anything there */
    assert_int_equal(
        types_at(
            "{\"type\":\"object\",\"anyOf\":[{\"properties\":{\"a\":{\"type\":\"string\"}}},{}]}",
            "/a", SC_EXISTS_MAY),
        SC_T_ANY);
    assert_int_equal(
        types_at("{\"type\":\"object\",\"anyOf\":[{\"required\":[\"a\"],\"properties\":{\"a\":{"
                 "\"type\":\"string\"}}},{\"additionalProperties\":false}]}",
                 "/a", SC_EXISTS_MAY),
        SC_T_STRING);
}

static void conditions_unite_what_both_ways_admit(void **state)
{
    const char *both =
        "{\"type\":\"object\",\"properties\":{\"v\":{\"type\":[\"string\",\"integer\","
        "\"null\"]}},\"if\":{\"properties\":{\"k\":{\"const\":1}}},\"then\":{"
        "\"properties\":{\"v\":{\"type\":\"integer\"}}},\"else\":{\"properties\":{"
        "\"v\":{\"type\":\"string\"}}}}";
    const char *one = "{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"string\"}},\"if\":{"
                      "\"required\":[\"k\"]},\"then\":{\"required\":[\"v\"]}}";

    (void)state;
    assert_int_equal(types_at(both, "/v", SC_EXISTS_MAY), SC_T_STRING | SC_T_INT);
    assert_int_equal(types_at(one, "/v", SC_EXISTS_MAY), SC_T_STRING);
}

static void references_are_followed_by_id_anchor_and_pointer(void **state)
{
    const char *text =
        "{\"$id\":\"http://x/y/root.json\",\"type\":\"object\",\"properties\":{"
        "\"a\":{\"$ref\":\"#/$defs/"
        "a~1b\"},\"b\":{\"$ref\":\"#here\"},\"c\":{\"$ref\":\"other.json\"},"
        "\"d\":{\"$ref\":\"other.json#/$defs/%6eull\"},\"e\":{\"$ref\":\"http://x/y/"
        "other.json#in\"}},"
        "\"$defs\":{\"a/"
        "b\":{\"type\":\"integer\"},\"h\":{\"$anchor\":\"here\",\"type\":\"boolean\"},"
        "\"o\":{\"$id\":\"../y/./"
        "other.json\",\"type\":\"string\",\"$defs\":{\"null\":{\"type\":\"null\"},"
        "\"i\":{\"$anchor\":\"in\",\"type\":\"array\"}}}}}";

    (void)state;
    assert_int_equal(types_at(text, "/a", SC_EXISTS_MAY), SC_T_INT);
    assert_int_equal(types_at(text, "/b", SC_EXISTS_MAY), SC_T_BOOL);
    assert_int_equal(types_at(text, "/c", SC_EXISTS_MAY), SC_T_STRING);
    assert_int_equal(types_at(text, "/d", SC_EXISTS_MAY), SC_T_NULL);
    assert_int_equal(types_at(text, "/e", SC_EXISTS_MAY), SC_T_ARRAY);
}

static void a_circle_of_references_admits_anything_where_it_closes(void **state)
{
    const char *list =
        "{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},\"next\":{"
        "\"$ref\":\"#\"}}}";

    (void)state;
    assert_int_equal(types_at(list, "/v", SC_EXISTS_MAY), SC_T_INT);
    assert_int_equal(types_at(list, "/next", SC_EXISTS_MAY), SC_T_ANY);
    assert_int_equal(types_at(list, "/next/v", SC_EXISTS_IMPLICIT), SC_T_ANY);
    assert_int_equal(types_of("{\"$ref\":\"#\"}"), SC_T_ANY);
    assert_int_equal(
        types_of(
            "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"$ref\":"
            "\"#/$defs/a\"}}}"),
        SC_T_ANY);
}

static void locations_exist_as_surely_as_their_parents(void **state)
{
    const char *text =
        "{\"type\":\"object\",\"required\":[\"a\",\"n\"],\"properties\":{\"a\":{\"type\":"
        "\"object\",\"required\":[\"b\"],\"properties\":{\"b\":{\"type\":\"string\"}},"
        "\"additionalProperties\":false},\"n\":{\"type\":[\"object\",\"null\"],"
        "\"required\":[\"b\"],\"properties\":{\"b\":{\"type\":\"string\"}}},\"l\":{"
        "\"type\":\"array\",\"items\":[{\"type\":\"integer\"}],\"additionalItems\":{"
        "\"type\":\"string\"},\"maxItems\":3},\"t~/\":{\"type\":\"integer\"}},"
        "\"patternProperties\":{\"^x\":{\"type\":\"integer\"}},"
        "\"additionalProperties\":{\"type\":\"null\"}}";

    (void)state;
    assert_int_equal(types_at(text, "/a/b", SC_EXISTS_MUST), SC_T_STRING);
    assert_int_equal(types_at(text, "/a/c", SC_EXISTS_NEVER), 0);
    assert_int_equal(types_at(text, "/n/b", SC_EXISTS_MAY), SC_T_STRING);
    assert_int_equal(types_at(text, "/n/c", SC_EXISTS_IMPLICIT), SC_T_ANY);
    assert_int_equal(types_at(text, "/l/0", SC_EXISTS_MAY), SC_T_INT);
    assert_int_equal(types_at(text, "/l/2", SC_EXISTS_MAY), SC_T_STRING);
    assert_int_equal(types_at(text, "/l/3", SC_EXISTS_NEVER), 0);
    assert_int_equal(types_at(text, "/t~0~1", SC_EXISTS_MAY), SC_T_INT);
    assert_int_equal(types_at(text, "/xy", SC_EXISTS_MAY), SC_T_INT | SC_T_NULL);
    assert_int_equal(types_at(text, "/a/b/c", SC_EXISTS_NEVER), 0);
}

static void what_is_required_but_not_declared_has_the_shape_of_other_members(void **state)
{
    (void)state;
    assert_int_equal(types_at("{\"type\":\"object\",\"required\":[\"a\"]}", "/a", SC_EXISTS_MUST),
                     SC_T_ANY);
    assert_int_equal(types_at("{\"type\":\"object\",\"required\":[\"a\"],\"additionalProperties\":{"
                              "\"type\":\"string\"}}",
                              "/a", SC_EXISTS_MUST),
                     SC_T_STRING);
    /* no object can have it */
    assert_int_equal(types_of("{\"required\":[\"a\"],\"additionalProperties\":false}"),
                     SC_T_ANY & ~SC_T_OBJECT);
}

static void defaults_and_formats_survive_merging(void **state)
{
    const struct sc_shape *s = shape_of(
        "{\"allOf\":[{\"type\":[\"string\",\"null\"],\"default\": null},{\"format\":\"date\"}]}");

    (void)state;
    assert_true(s->has_default && span_eq_str(s->def, "null"));
    assert_int_equal(s->format, SC_F_DATE);
    s = shape_of(
        "{\"default\":{\"a\" : [1, 2]},\"reduce\":{\"strategy\":\"merge\"},\"title\":\"t\"}");
    assert_true(span_eq_str(s->def, "{\"a\":[1,2]}"));
    s = shape_of("{\"anyOf\":[{\"type\":\"string\",\"format\":\"integer\"},{\"type\":\"number\"},{"
                 "\"type\":\"string\",\"format\":\"number\"}]}");
    assert_int_equal(s->format, SC_F_NUMBER);
}

static void what_is_no_schema_is_refused_with_its_place(void **state)
{
    (void)state;
    assert_int_equal(refused("[]", "", "an object or a boolean"), E_INVALID);
    assert_int_equal(refused("{", "", "not JSON"), E_SYNTAX);
    assert_int_equal(refused("{\"properties\":{\"a/b\":{\"type\":\"strin\"}}}",
                             "/properties/a~1b/type", "unknown type"),
                     E_INVALID);
    assert_int_equal(refused("{\"items\":{\"$ref\":\"#/nowhere\"}}", "/items/$ref", "nowhere"),
                     E_INVALID);
    assert_int_equal(refused("{\"$ref\":\"http://elsewhere/x.json\"}", "/$ref", "nowhere"),
                     E_INVALID);
    assert_int_equal(refused("{\"allOf\":[]}", "/allOf", "a list"), E_INVALID);
}

static void a_name_of_the_scheme_flow_is_given_or_admits_anything(void **state)
{
    struct sc_schema_doc doc = {.uri = span_str("flow://write-schema"),
                                .text = span_str("{\"$id\":\"http://a/b\",\"type\":\"object\","
                                                 "\"properties\":{\"a\":{\"$ref\":\"#/$defs/s\"}},"
                                                 "\"$defs\":{\"s\":{\"type\":\"string\"}}}")};
    const char *text =
        "{\"allOf\":[{\"$ref\":\"flow://write-schema\"},{\"$ref\":\"flow://inferred-schema\"}]}";
    struct sc_schema_error err;
    const struct sc_shape *s;
    enum sc_exists exists;

    (void)state;
    sc_schema_free(held);
    assert_int_equal(sc_schema_new(span_str(text), &doc, 1, &err, &held), 0);
    assert_int_equal(sc_shape_at(sc_schema_root(held), span_str("/a"), &s, &exists), 0);
    assert_int_equal(s->types, SC_T_STRING);
    assert_int_equal(types_of(text), SC_T_ANY);
}

/* A catalog gives each schema all of its files. */
static void of_the_documents_given_those_are_read_that_a_reference_leads_to(void **state)
{
    const struct sc_schema_doc docs[] = {
        {span_str("file:///broken"), span_str("{\"type\":")},
        {span_str("file:///d/b.json"), span_str("{\"$defs\":{\"s\":{\"type\":\"string\"}}}")},
        {span_str("file:///a"), span_str("{\"properties\":{\"x\":{\"$ref\":\"d/b.json#/$defs/s\"},"
                                         "\"y\":{\"$ref\":\"#\"}}}")},
        {span_str("file:///named"), span_str("{\"$id\":\"http://n/\",\"type\":\"boolean\"}")},
    };
    struct sc_schema_error err;
    struct sc_schema *s;
    const struct sc_shape *at;
    enum sc_exists exists;

    (void)state;
    assert_int_equal(sc_schema_new(span_str("{\"$ref\":\"file:///a\"}"), docs, 4, &err, &s), 0);
    assert_int_equal(sc_shape_at(sc_schema_root(s), span_str("/x"), &at, &exists), 0);
    assert_int_equal(at->types, SC_T_STRING);
    sc_schema_free(s);
    assert_int_equal(sc_schema_new(span_str("{\"$ref\":\"http://n/\"}"), docs, 4, &err, &s), 0);
    assert_int_equal(sc_schema_root(s)->types, SC_T_BOOL);
    sc_schema_free(s);
    assert_int_equal(
        sc_schema_new(span_str("{\"items\":{\"$ref\":\"file:///broken\"}}"), docs, 4, &err, &s),
        E_SYNTAX);
    assert_string_equal(err.pointer, "/items/$ref");
    assert_non_null(strstr(err.reason, "no JSON"));
    assert_int_equal(sc_schema_new(span_str("{\"$ref\":\"#/nowhere\"}"), docs + 1, 3, &err, &s),
                     E_INVALID);
    assert_string_equal(err.pointer, "/$ref");
}

static void json_schemas_own_schemas_admit_anything_where_they_are_not_given(void **state)
{
    (void)state;
    assert_int_equal(types_of("{\"$ref\":\"http://json-schema.org/draft-07/schema#\"}"), SC_T_ANY);
    assert_int_equal(types_of("{\"$ref\":\"http://json-schema.org/draft-04/schema#/definitions/"
                              "positiveInteger\",\"type\":\"integer\"}"),
                     SC_T_INT);
    assert_int_equal(types_of("{\"$ref\":\"https://json-schema.org/draft/2020-12/schema\"}"),
                     SC_T_ANY);
    /* of one that is there nothing is left out */
    assert_int_equal(
        types_of("{\"$ref\":\"https://json-schema.org/draft/2019-09/schema\",\"$defs\":"
                 "{\"m\":{\"$id\":\"https://json-schema.org/draft/2019-09/schema\","
                 "\"type\":\"boolean\"}}}"),
        SC_T_BOOL);
    assert_int_equal(refused("{\"$ref\":\"http://json-schema.org.evil/x\"}", "/$ref", "nowhere"),
                     E_INVALID);
}

/* A dynamic reference is told by the way that leads to it; a shape knows no ways. */
static void a_dynamic_reference_is_each_schema_that_it_may_lead_to(void **state)
{
    const char *list =
        "\"$defs\":{\"s\":{\"$dynamicAnchor\":\"T\",\"type\":\"string\"},\"l\":{"
        "\"$id\":\"list\",\"type\":\"array\",\"items\":{\"$dynamicRef\":\"#T\"},\"$defs\":{\"d\":{"
        "\"$dynamicAnchor\":\"T\",\"not\":{}}}}}";
    char text[800];

    (void)state;
    (void)snprintf(text, sizeof text,
                   "{\"$id\":\"http://x/\",\"properties\":{\"a\":{\"$ref\":\"list\"}},%s}", list);
    assert_int_equal(types_at(text, "/a/0", SC_EXISTS_MAY), SC_T_STRING);
    /* a name that is not dynamic is itself */
    assert_int_equal(
        types_of("{\"$dynamicRef\":\"#T\",\"$defs\":{\"a\":{\"$anchor\":\"T\",\"type\":"
                 "\"integer\"},\"b\":{\"$id\":\"http://y/\",\"$dynamicAnchor\":\"T\","
                 "\"type\":\"null\"}}}"),
        SC_T_INT);
    /* the same in 2019-09: here it is the root, which is being read */
    assert_int_equal(
        types_at("{\"$id\":\"http://x/out\",\"$recursiveAnchor\":true,\"type\":\"object\","
                 "\"properties\":{\"a\":{\"$ref\":\"in#/$defs/q\"}},\"$defs\":{\"n\":{\"$id\":"
                 "\"in\",\"$recursiveAnchor\":true,\"type\":\"boolean\",\"$defs\":{\"q\":{"
                 "\"$recursiveRef\":\"#\"}}}}}",
                 "/a", SC_EXISTS_MAY),
        SC_T_ANY);
}

/* `id` was the base in draft 4, and is no keyword since: it counts where a reference leads nowhere
 * without it. */
static void an_id_of_draft_4_counts_without_a_dialect_where_it_is_needed(void **state)
{
    (void)state;
    assert_int_equal(types_of("{\"id\":\"http://x/a\",\"$ref\":\"inner\",\"definitions\":{\"i\":{"
                              "\"id\":\"inner\",\"type\":\"integer\"}}}"),
                     SC_T_INT);
    assert_int_equal(types_of("{\"$ref\":\"#i\",\"definitions\":{\"i\":{\"id\":\"#i\",\"type\":"
                              "\"integer\"}}}"),
                     SC_T_INT);
    assert_int_equal(
        types_at("{\"properties\":{\"a\":{\"id\":\"orders\",\"$ref\":\"#/definitions/i\"}},"
                 "\"definitions\":{\"i\":{\"type\":\"integer\"}}}",
                 "/a", SC_EXISTS_MAY),
        SC_T_INT);
    assert_int_equal(
        refused("{\"$schema\":\"https://json-schema.org/draft/2019-09/schema\",\"$ref\":"
                "\"#i\",\"definitions\":{\"i\":{\"id\":\"#i\"}}}",
                "/$ref", "nowhere"),
        E_INVALID);
}

/* Hundreds of types that refer to each other: the first way through them is a long one. */
static void a_long_way_of_references_admits_anything_at_its_end(void **state)
{
    struct sc_schema_error err;
    enum sc_exists exists;
    const struct sc_shape *s;
    struct writer w;

    (void)state;
    wr_init(&w, (size_t)1 << 20);
    wr_str(&w, "{\"$ref\":\"#/$defs/d0\",\"$defs\":{\"d1000\":{\"type\":\"object\"}");
    for (int i = 0; i < 1000; i++)
        wr_printf(&w,
                  ",\"d%d\":{\"type\":\"object\",\"properties\":{\"n\":{\"$ref\":\"#/$defs/d%d\"},"
                  "\"v\":{\"type\":\"string\"}}}",
                  i, i + 1);
    wr_str(&w, "}}");
    assert_int_equal(wr_err(&w), 0);
    sc_schema_free(held);
    assert_int_equal(sc_schema_new(blob_span(w.b), NULL, 0, &err, &held), 0);
    wr_fini(&w);
    assert_int_equal(sc_shape_at(sc_schema_root(held), span_str("/n/n/n/v"), &s, &exists), 0);
    assert_int_equal(s->types, SC_T_STRING);
}

/* Each $def is two of the next: 2^60 places, had they to be spelled out. */
static void parts_that_multiply_stay_small(void **state)
{
    struct writer w;
    char last[32];

    (void)state;
    wr_init(&w, 1 << 20);
    wr_str(&w, "{\"$ref\":\"#/$defs/d0\",\"$defs\":{");
    for (int i = 0; i < 60; i++) {
        wr_printf(
            &w,
            "\"d%d\":{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/d%d\"},\"b\":{"
            "\"anyOf\":[{\"$ref\":\"#/$defs/d%d\"},{\"$ref\":\"#/$defs/d%d\"}]}}},",
            i, i + 1, i + 1, i < 58 ? i + 2 : i + 1);
    }
    (void)snprintf(last, sizeof last, "\"d60\":{\"type\":\"string\"}}}");
    wr_str(&w, last);
    wr_u8(&w, 0);
    assert_int_equal(wr_err(&w), 0);
    assert_int_equal(types_of((const char *)w.b->data), SC_T_OBJECT);
    assert_int_equal(sc_schema_root(held)->weight, UINT32_MAX);
    wr_fini(&w);
}

static void deep_schemas_are_refused_not_followed(void **state)
{
    struct writer w;
    struct sc_schema_error err;
    struct sc_schema *s;

    (void)state;
    wr_init(&w, 1 << 24);
    for (int i = 0; i < 5000; i++)
        wr_str(&w, "{\"items\":");
    wr_str(&w, "{}");
    for (int i = 0; i < 5000; i++)
        wr_str(&w, "}");
    assert_int_equal(sc_schema_new(blob_span(w.b), NULL, 0, &err, &s), E_LIMIT);
    wr_fini(&w);
}

static void running_out_of_memory_is_an_answer(void **state)
{
    const char *text =
        "{\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"properties\":{\"a\":{\"default\":1}}}],"
        "\"$defs\":{\"a\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}}}";
    struct sc_schema_error err;
    struct sc_schema *s;
    int r = -1;

    (void)state;
    for (long i = 0; r < 0; i++) {
        mem_fail_after(i, 0);
        r = sc_schema_new(span_str(text), NULL, 0, &err, &s);
        mem_fail_after(-1, 0);
        assert_true(r == 0 || r == E_NOMEM); /* not: too large */
        assert_true(i < 1000);
    }
    sc_schema_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_come_from_type_enum_const_and_not),
        cmocka_unit_test(all_of_intersects_and_any_of_unites),
        cmocka_unit_test(conditions_unite_what_both_ways_admit),
        cmocka_unit_test(references_are_followed_by_id_anchor_and_pointer),
        cmocka_unit_test(a_circle_of_references_admits_anything_where_it_closes),
        cmocka_unit_test(locations_exist_as_surely_as_their_parents),
        cmocka_unit_test(what_is_required_but_not_declared_has_the_shape_of_other_members),
        cmocka_unit_test(defaults_and_formats_survive_merging),
        cmocka_unit_test(what_is_no_schema_is_refused_with_its_place),
        cmocka_unit_test(a_name_of_the_scheme_flow_is_given_or_admits_anything),
        cmocka_unit_test(of_the_documents_given_those_are_read_that_a_reference_leads_to),
        cmocka_unit_test(a_long_way_of_references_admits_anything_at_its_end),
        cmocka_unit_test(json_schemas_own_schemas_admit_anything_where_they_are_not_given),
        cmocka_unit_test(a_dynamic_reference_is_each_schema_that_it_may_lead_to),
        cmocka_unit_test(an_id_of_draft_4_counts_without_a_dialect_where_it_is_needed),
        cmocka_unit_test(parts_that_multiply_stay_small),
        cmocka_unit_test(deep_schemas_are_refused_not_followed),
        cmocka_unit_test(running_out_of_memory_is_an_answer),
    };

    return cmocka_run_group_tests(tests, NULL, teardown);
}
