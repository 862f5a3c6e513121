/* Field reports 41, 47, 53, 55, 57, 59 and 61 for collections as Avro. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <locale.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "avro_lab.h"
#include "base/mem.h"
#include "base/writer.h"
#include "schema/json_reader.h"

static void case_41_defaults_fit_the_first_branch_or_are_left_out(void **state)
{
    (void)state;
    lab_compile(
        OBJECT(
            ID
            ",\"a\":{\"type\":\"string\",\"default\":\"u\"},\"b\":{\"type\":[\"integer\",\"null\"],"
            "\"default\":null},\"c\":{\"type\":[\"integer\",\"null\"],\"default\":3},\"d\":{"
            "\"const\":\"x\"},\"e\":{\"enum\":[\"p\",\"q\"],\"default\":\"q\"},\"f\":{},\"g\":{"
            "\"type\":\"integer\",\"default\":\"no\"},\"h\":{\"type\":\"number\",\"default\":"
            "1e400},\"i\":{\"type\":\"integer\",\"default\":9223372036854775807},\"j\":{\"type\":"
            "\"object\",\"properties\":{\"k\":{\"type\":\"integer\"}},\"default\":{\"k\":5}},\"l\":"
            "{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"default\":[1,2]}",
            NEEDS_ID),
        "/id", SC_DELETE_TOMBSTONE);
    lab_schema_has("{\"name\":\"a\",\"type\":\"string\",\"default\":\"u\"}");
    lab_schema_has("{\"name\":\"b\",\"type\":[\"null\",\"long\"],\"default\":null}");
    lab_schema_has("{\"name\":\"c\",\"type\":[\"long\",\"null\"],\"default\":3}");
    lab_schema_has("{\"name\":\"e\",\"type\":\"string\",\"default\":\"q\"}");
    lab_schema_has("{\"name\":\"g\",\"type\":[\"null\",\"long\"],\"default\":null}");
    lab_schema_has("{\"name\":\"h\",\"type\":\"double\"}");
    lab_schema_has("{\"name\":\"i\",\"type\":\"long\"}");
    assert_true(lab_noted("g"));
    lab_value_is(
        "{\"id\":\"1\"}",
        "{\"id\":\"1\",\"a\":\"u\",\"b\":null,\"c\":3,\"d\":null,\"e\":\"q\",\"f\":null,\"g\":null,"
        "\"h\":inf,\"i\":9223372036854775807,\"j\":{\"k\":5,\"_flow_extra\":{}},\"l\":[1,2]}");
    lab_value_is(
        "{\"id\":\"1\",\"c\":null,\"a\":\"\",\"f\":null}",
        "{\"id\":\"1\",\"a\":\"\",\"b\":null,\"c\":null,\"d\":null,\"e\":\"q\",\"f\":null,"
        "\"g\":null,"
        "\"h\":inf,\"i\":9223372036854775807,\"j\":{\"k\":5,\"_flow_extra\":{}},\"l\":[1,2]}");
}

static void case_47_no_name_is_defined_twice(void **state)
{
    (void)state;
    lab_compile(
        OBJECT(
            ID
            ",\"a\":{\"$ref\":\"#/$defs/addr\"},\"b\":{\"$ref\":\"#/$defs/addr\"},\"c\":{\"type\":"
            "\"object\",\"properties\":{\"street\":{\"type\":\"integer\"}}},\"root\":{\"type\":"
            "\"object\",\"properties\":{\"root\":{\"$ref\":\"#/$defs/addr\"}}},\"self\":{\"$ref\":"
            "\"#\"},\"string\":{\"$ref\":\"#/$defs/addr\"}",
            NEEDS_ID ",\"$defs\":{\"addr\":{\"type\":\"object\",\"properties\":{\"street\":{"
                     "\"type\":\"string\"},\"kind\":{\"enum\":[\"x\",\"y\"]}},"
                     "\"additionalProperties\":false}}"),
        "/id", SC_DELETE_TOMBSTONE);
    lab_value_is(
        "{\"id\":\"1\",\"a\":{\"street\":\"s\"},\"b\":{\"kind\":\"x\"},\"c\":{\"street\":1},"
        "\"root\":{"
        "\"root\":{}},\"self\":{\"id\":[ ]},\"string\":{}}",
        "{\"id\":\"1\",\"a\":{\"kind\":null,\"street\":\"s\"},\"b\":{\"kind\":\"x\",\"street\":"
        "null},"
        "\"c\":{\"street\":1,\"_flow_extra\":{}},\"root\":{\"root\":{\"kind\":null,\"street\":null}"
        ","
        "\"_flow_extra\":{}},\"self\":{\"json\":\"{\\\"id\\\":[]}\"},\"string\":{\"kind\":null,"
        "\"street\":null}}");
}

static void case_53_integers_beyond_2_53_are_exact(void **state)
{
    (void)state;
    lab_compile(
        OBJECT(
            "\"id\":{\"type\":\"integer\"},\"a\":{\"type\":\"integer\"},\"b\":{\"type\":"
            "\"integer\"},"
            "\"c\":{\"type\":\"integer\"},\"d\":{\"type\":\"number\"},\"e\":{\"type\":\"integer\"}",
            NEEDS_ID),
        "/id", SC_DELETE_TOMBSTONE);
    lab_value_is("{\"id\":13911860366432393,\"a\":9007199254740993,\"b\":9223372036854775807,\"c\":"
                 "-9223372036854775808,\"d\":1.0,\"e\":1e3}",
                 "{\"id\":13911860366432393,\"a\":9007199254740993,\"b\":9223372036854775807,\"c\":"
                 "-9223372036854775808,\"d\":1,\"e\":1000}");
    lab_key_is("{\"id\":13911860366432393}", "{\"_flow_key\":{\"p1\":13911860366432393}}");
}

static void case_55_a_nul_is_a_byte_like_any_other(void **state)
{
    struct sc_avro_record rec;
    struct sc_transcode_error err;
    static const char raw[] = "{\"id\":\"a\0b\"}";

    (void)state;
    lab_compile(
        OBJECT(ID ",\"s\":{\"type\":\"string\"},\"x\\u0000y\":{\"type\":\"integer\"},\"tail\":{"
                  "\"type\":\"integer\"}",
               NEEDS_ID),
        "/id", SC_DELETE_TOMBSTONE);
    lab_value_is("{\"id\":\"k\\u0000ey\",\"s\":\"a\\u0000b\",\"x\\u0000y\":1,\"tail\":7}",
                 "{\"id\":\"k\\u0000ey\",\"s\":\"a\\u0000b\",\"tail\":7,\"x_y\":1}");
    lab_key_is("{\"id\":\"k\\u0000ey\"}", "{\"_flow_key\":{\"p1\":\"k\\u0000ey\"}}");
    /* raw it is no JSON; the next document is as good as ever */
    assert_int_equal(sc_transcode(lab_av, lab_scratch, span_of(raw, sizeof raw - 1), &rec, &err),
                     E_SYNTAX);
    lab_value_is("{\"id\":\"1\"}", "{\"id\":\"1\",\"s\":null,\"tail\":null,\"x_y\":null}");
}

static void case_57_deep_nesting_is_bounded(void **state)
{
    static const size_t depths[] = {100, 1000, 9000, 100000, 1000000};
    struct sc_avro_record rec;
    struct sc_transcode_error err;
    struct writer w;

    (void)state;
    lab_compile(OBJECT(ID ",\"raw\":{},\"self\":{\"$ref\":\"#\"}", NEEDS_ID), "/id",
                SC_DELETE_TOMBSTONE);
    for (size_t i = 0; i < 2 * sizeof depths / sizeof depths[0]; i++) {
        size_t depth = depths[i / 2];
        int r;

        wr_init(&w, 1 << 26);
        wr_str(&w, i % 2 == 0 ? "{\"id\":\"1\",\"raw\":" : "{\"id\":\"1\",\"skipped\":");
        for (size_t k = 0; k < depth; k++)
            wr_str(&w, k % 2 == 0 ? "[" : "{\"a\":");
        wr_str(&w, "0");
        for (size_t k = depth; k > 0; k--)
            wr_u8(&w, (k - 1) % 2 == 0 ? ']' : '}');
        wr_str(&w, "}");
        r = sc_transcode(lab_av, lab_scratch, blob_span(w.b), &rec, &err);
        assert_int_equal(r, depth < SC_JSON_MAX_DEPTH ? 0 : E_LIMIT);
        wr_fini(&w);
    }
    wr_init(&w, 1 << 20);
    for (size_t k = 0; k < 100000; k++)
        wr_u8(&w, '[');
    assert_int_equal(sc_transcode(lab_av, lab_scratch, blob_span(w.b), &rec, &err), E_LIMIT);
    wr_fini(&w);
    lab_misfits("{\"id\":[[[[1]]]]}", E_INVALID, "/id");
}

static void check_doubles(void)
{
    char text[11000], *p = text;

    p += snprintf(
        p, 200,
        "{\"id\":\"1\",\"n\":[1e400,-1e400,1e-400,-1e-400,4.9e-324,0.1,1.7976931348623157e308,0.");
    for (size_t i = 0; i < 10000; i++)
        *p++ = (char)('1' + i % 9);
    (void)snprintf(p, 100, ",9007199254740993,123456789012345678901234567890]}");
    lab_value_is(text,
                 "{\"id\":\"1\",\"n\":[inf,-inf,0,-0,4.9406564584124654e-324,0.10000000000000001,"
                 "1.7976931348623157e+308,0.12345678912345678,9007199254740992,"
                 "1.2345678901234568e+29]}");
}

/* argv ends in NULL. */
static void run_command(const char *const *argv)
{
    union {
        const char *const *in;
        char *const *out;
    } u = {.in = argv};
    int status;
    pid_t pid;

    assert_int_equal(posix_spawnp(&pid, argv[0], NULL, NULL, u.out, environ), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Makes a German locale below dir, with a comma in numbers, and takes it. A machine need not have
 * it; it must have localedef and its sources (package locales). */
static void take_comma_locale(const char *dir)
{
    char path[128];
    const char *const argv[] = {"localedef", "--no-archive", "-i", "de_DE",
                                "-f",        "UTF-8",        path, NULL};

    (void)snprintf(path, sizeof path, "%s/de_DE.UTF-8", dir);
    run_command(argv);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    assert_int_equal(setenv("LOCPATH", dir, 1), 0); /* banned-ok: one thread */
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    assert_non_null(setlocale(LC_NUMERIC, "de_DE.UTF-8"));
    (void)snprintf(path, sizeof path, "%.1f", 0.5);
    assert_string_equal(path, "0,5");
}

static void remove_locale(const char *dir)
{
    const char *const argv[] = {"rm", "-r", dir, NULL};

    (void)setlocale(LC_NUMERIC, "C"); /* NOLINT(concurrency-mt-unsafe): one thread */
    run_command(argv);
}

static void case_59_doubles_are_the_nearest_in_any_locale(void **state)
{
    /* the first by table, the last by the C library: it lies between two doubles */
    const struct span doc = span_str("{\"id\":\"1\",\"n\":[0.1,"
                                     "1.00000000000000011102230246251565404236316680908203125]}");
    char dir[] = "/tmp/sluice-locale-XXXXXX";
    struct sc_avro_record rec;
    uint8_t copy[64];
    size_t n;

    (void)state;
    lab_compile(OBJECT(ID ",\"n\":{\"type\":\"array\",\"items\":{\"type\":\"number\"}}", NEEDS_ID),
                "/id", SC_DELETE_TOMBSTONE);
    check_doubles();
    rec = lab_encode(doc);
    n = rec.value.n;
    assert_true(n <= sizeof copy);
    memcpy(copy, rec.value.p, n);
    assert_non_null(mkdtemp(dir));
    take_comma_locale(dir);
    rec = lab_encode(doc);
    remove_locale(dir);
    assert_true(span_eq(rec.value, span_of(copy, n)));
}

static void case_61_a_malformed_document_is_an_error_of_its_own(void **state)
{
    static const char *const bad[] = {
        "",
        "{",
        "{\"id\":\"1\"",
        "{\"id\":\"1\",}",
        "{\"id\":\"\\u12\"}",
        "{\"id\" 1}",
        "[\"id\"}",
        "{\"id\":\"1\"}}",
        "{\"id\":\"1\"} x",
        "{\"x\":01,\"id\":\"1\"}",
        "nul",
        "{\"x\":\"\\u12\",\"id\":\"1\"}",
        "{\"id\":\"1\",\"raw\":[1,]}",
        "{\"id\":\"1\",\"raw\":{\"a\":tru}}",
        "{\"id\":\"1\",\"raw\":1.}",
        "{'id':1}",
        "{\"id\":\"1\",\"n\":-}",
        "{\"id\":\"1\",\"n\":1e}",
        "{\"id\":\"1\",\"n\":nulL}",
        "{\"id\":\"a\nb\"}",
        "{\"id\":\"\\x\"}",
        "{\"id\":\"1\" \"n\":1}",
        "{\"id\":\"1\",\"l\":[1 2]}",
        "{\"id\":\"1\",\"l\":[1,]}",
        "{\"id\":\"1\",\"m\":{\"a\":1,}}",
        "{\"id\":\"1\",\"m\":{\"a\"}}",
    };

    (void)state;
    lab_compile(
        OBJECT(ID ",\"raw\":{},\"n\":{\"type\":\"integer\"},\"l\":{\"type\":\"array\","
                  "\"items\":{\"type\":"
                  "\"integer\"}},\"m\":{\"type\":\"object\",\"additionalProperties\":{\"type\":"
                  "\"integer\"}}",
               NEEDS_ID),
        "/id", SC_DELETE_TOMBSTONE);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        lab_misfits(bad[i], E_SYNTAX, "");
        lab_value_is(" \t{\"id\" : \"1\"}\r\n",
                     "{\"id\":\"1\",\"l\":null,\"m\":null,\"n\":null,\"raw\":null}");
    }
}

/* --- members, duplicates, errors --- */

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(case_41_defaults_fit_the_first_branch_or_are_left_out),
        T(case_47_no_name_is_defined_twice),
        T(case_53_integers_beyond_2_53_are_exact),
        T(case_55_a_nul_is_a_byte_like_any_other),
        T(case_57_deep_nesting_is_bounded),
        T(case_59_doubles_are_the_nearest_in_any_locale),
        T(case_61_a_malformed_document_is_an_error_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
