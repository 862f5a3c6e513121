/* Settings from flags, environment and file; refusals; the generated page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "app/serve_config.h"

static struct config_faults faults;

static const char *file_with(const char *text)
{
    static char path[] = "/tmp/sluice-config-test-XXXXXX";
    FILE *f;
    int fd;

    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    fd = mkstemp(path);
    assert_true(fd >= 0);
    f = fdopen(fd, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    return path;
}

static int load(const struct config_arg *args, size_t n, char **environment, const char *text,
                struct config *out)
{
    const char *path = text == NULL ? NULL : file_with(text);
    int err = config_load(args, n, environment, path, out, &faults);

    if (path != NULL)
        assert_int_equal(unlink(path), 0);
    return err;
}

static bool fault_says(const char *part)
{
    for (size_t i = 0; i < faults.n && i < CONFIG_FAULTS_MAX; i++)
        if (strstr(faults.text[i], part) != NULL)
            return true;
    return false;
}

static void without_anything_the_defaults_hold(void **state)
{
    struct config c;

    (void)state;
    assert_int_equal(load(NULL, 0, NULL, NULL, &c), 0);
    assert_string_equal(c.data_dir, "./sluice-data");
    assert_int_equal(c.kafka_listen.n, 1);
    assert_string_equal(c.kafka_listen.v[0], "127.0.0.1:9092");
    assert_string_equal(c.admin_listen, "127.0.0.1:9094");
    assert_int_equal(c.cache_bytes, 256 << 20);
    assert_int_equal(c.idempotency_window, INT64_C(7) * 24 * 3600 * 1000);
    assert_false(c.allow_anonymous);
    config_fini(&c);
}

static void every_default_is_legal_for_its_kind(void **state)
{
    struct config c;
    struct serve_config sc;

    (void)state;
    assert_int_equal(load(NULL, 0, NULL, NULL, &c), 0);
    assert_int_equal(serve_config_make(&c, &sc, &faults), 0);
    assert_int_equal(faults.n, 0);
    assert_true(sc.gw.workers >= 1);
    config_fini(&c);
}

static void flag_beats_environment_beats_file_beats_default(void **state)
{
    static char env1[] = "SLUICE_PARTITIONS=5", env2[] = "SLUICE_WORKERS=6";
    char *env[] = {env1, env2, NULL};
    struct config_arg args[] = {{"partitions", "9"}};
    struct config c;

    (void)state;
    assert_int_equal(load(args, 1, env, "partitions: 2\nworkers: 3\nio-threads: 4\n", &c), 0);
    assert_int_equal(c.partitions, 9);
    assert_int_equal(c.workers, 6);
    assert_int_equal(c.io_threads, 4);
    config_fini(&c);
}

static void the_strongest_source_gives_the_whole_list(void **state)
{
    static char env1[] = "SLUICE_KAFKA_LISTEN=127.0.0.1:1,127.0.0.1:2";
    char *env[] = {env1, NULL};
    struct config_arg args[] = {{"kafka-listen", "127.0.0.1:7"}, {"kafka-listen", "127.0.0.1:8"}};
    static const char file[] = "kafka-listen: [127.0.0.1:3, 127.0.0.1:4, 127.0.0.1:5]\n";
    struct config c;

    (void)state;
    assert_int_equal(load(NULL, 0, NULL, file, &c), 0);
    assert_int_equal(c.kafka_listen.n, 3);
    config_fini(&c);
    assert_int_equal(load(NULL, 0, env, file, &c), 0);
    assert_int_equal(c.kafka_listen.n, 2);
    assert_string_equal(c.kafka_listen.v[1], "127.0.0.1:2");
    config_fini(&c);
    assert_int_equal(load(args, 2, env, file, &c), 0);
    assert_int_equal(c.kafka_listen.n, 2);
    assert_string_equal(c.kafka_listen.v[0], "127.0.0.1:7");
    config_fini(&c);
}

static void file_faults_are_all_named_with_their_line(void **state)
{
    struct config c;

    (void)state;
    assert_int_equal(load(NULL, 0, NULL,
                          "partitions: 2\n"
                          "partitons: 3\n"
                          "workers: many\n"
                          "cache-bytes: 1\n"
                          "partitions: 4\n"
                          "data-dir: [a, b]\n"
                          "allow-anonymous: maybe\n",
                          &c),
                     E_INVALID);
    assert_true(fault_says(":2: unknown setting \"partitons\""));
    assert_true(fault_says(":3: workers: \"many\" is not a number"));
    assert_true(fault_says(":4: cache-bytes: 1 is out of range"));
    assert_true(fault_says(":5: partitions: given twice"));
    assert_true(fault_says(":6: data-dir: a single value belongs here"));
    assert_true(fault_says(":7: allow-anonymous: \"maybe\" is neither true nor false"));
    assert_int_equal(faults.n, 6);
    config_fini(&c);
}

/* libyaml's time grows with the square of the depth, and it stops at the end of a document. */
static void a_deep_file_and_a_second_document_are_refused_at_once(void **state)
{
    static char deep[200010] = "a: ";
    struct config c;

    (void)state;
    memset(deep + 3, '[', 200000);
    assert_int_equal(load(NULL, 0, NULL, deep, &c), E_INVALID);
    assert_true(fault_says(":1: nested too deep"));
    config_fini(&c);
    assert_int_equal(load(NULL, 0, NULL, "workers: 1\n---\nworkers: 2\n", &c), E_INVALID);
    assert_true(fault_says(":2: a second document"));
    config_fini(&c);
}

static void what_is_no_mapping_is_refused(void **state)
{
    struct config c;

    (void)state;
    assert_int_equal(load(NULL, 0, NULL, "- a\n", &c), E_INVALID);
    assert_true(fault_says(":1: the file must be a mapping"));
    config_fini(&c);
    assert_int_equal(load(NULL, 0, NULL, "a: [\n", &c), E_INVALID);
    config_fini(&c);
    assert_int_equal(load(NULL, 0, NULL, "# nothing\n", &c), 0);
    config_fini(&c);
    assert_int_equal(config_load(NULL, 0, NULL, "/nonexistent/x.yaml", &c, &faults), E_INVALID);
    assert_true(fault_says("/nonexistent/x.yaml: No such file"));
    config_fini(&c);
}

static void what_this_build_lacks_is_refused_by_name(void **state)
{
    static const struct {
        const char *name, *value, *says;
    } rows[] = {
        {"store", "s3", "neither local nor gazette"},
        {"registry-listen", "tls://127.0.0.1:8081", "needs tls-cert"},
        {"registry-listen", "0.0.0.0:8081", "asks nobody"},
        {"group-upstream", "kafka://h:1", "cannot hand groups"},
        {"kafka-listen", "tls://127.0.0.1:1", "needs tls-cert"},
        {"kafka-listen", "sasl://127.0.0.1:1", "needs a catalog"},
        {"kafka-listen", "sasl-tls://127.0.0.1:1", "needs tls-cert"},
        {"kafka-listen", "nowhere", "is not ADDR:PORT"},
        {"admin-listen", "::1:9094", "is not ADDR:PORT"},
        {"log-level", "loud", "is not debug"},
        {"log-format", "xml", "neither text nor json"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct config_arg arg = {rows[i].name, rows[i].value};
        struct serve_config sc;
        struct config c;

        assert_int_equal(load(&arg, 1, NULL, NULL, &c), 0);
        assert_int_equal(serve_config_make(&c, &sc, &faults), E_INVALID);
        assert_true(fault_says(rows[i].says));
        config_fini(&c);
    }
}

static void a_store_of_brokers_is_looked_at_before_any_is_asked(void **state)
{
    static const struct {
        const char *name, *value, *says;
    } rows[] = {
        {"store", "gazette://http://127.0.0.1:8080", "store: a broker is HOST:PORT"},
        {"store", "gazette://127.0.0.1:8080,", NULL},
        {"store", "gazette://", "store: no broker is given"},
        {"fragment-codec", "lz4", "fragment-codec: \"lz4\" is neither none, gzip, zstd nor snappy"},
        {"fragment-codec", "zstd", NULL},
        {"fragment-store", "/tmp/x", "fragment-store: \"/tmp/x\" is no URL"},
        {"fragment-store", "s3://bucket", "fragment-store: \"s3://bucket\" does not end with /"},
        {"fragment-store", "file:///", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct config_arg args[] = {{"store", "gazette://127.0.0.1:8080"},
                                    {rows[i].name, rows[i].value}};
        bool other = strcmp(rows[i].name, "store") == 0;
        struct serve_config sc;
        struct config c;

        assert_int_equal(load(args + other, 2 - other, NULL, NULL, &c), 0);
        assert_int_equal(serve_config_make(&c, &sc, &faults), rows[i].says == NULL ? 0 : E_INVALID);
        if (rows[i].says == NULL)
            serve_config_fini(&sc);
        else
            assert_true(fault_says(rows[i].says));
        config_fini(&c);
    }
}

static void public_listeners_need_an_address_and_a_word(void **state)
{
    struct config_arg args[] = {{"kafka-listen", "0.0.0.0:9092"},
                                {"admin-listen", "[::]:9094"},
                                {"kafka-advertise", "kafka.example.org:9092"},
                                {"allow-anonymous", "true"}};
    struct serve_config sc;
    struct config c;

    (void)state;
    assert_int_equal(load(args, 2, NULL, NULL, &c), 0);
    assert_int_equal(serve_config_make(&c, &sc, &faults), E_INVALID);
    assert_true(fault_says("kafka-advertise HOST:PORT must name"));
    assert_true(fault_says("kafka-listen: 0.0.0.0:9092 is not on loopback and asks nobody"));
    assert_true(fault_says("admin-listen: [::]:9094 is not on loopback"));
    config_fini(&c);
    assert_int_equal(load(args, 4, NULL, NULL, &c), 0);
    assert_int_equal(serve_config_make(&c, &sc, &faults), 0);
    assert_string_equal(sc.gw.advertise_host, "kafka.example.org");
    assert_int_equal(sc.gw.advertise_port, 9092);
    assert_string_equal(sc.gw.admin.host, "::");
    config_fini(&c);
}

static void listener_addresses_are_taken_apart(void **state)
{
    static const struct {
        const char *text, *host;
        uint16_t port;
        bool tls, sasl;
    } rows[] = {
        {"127.0.0.1:9092", "127.0.0.1", 9092, false, false},
        {"localhost:0", "localhost", 0, false, false},
        {"[::1]:65535", "::1", 65535, false, false},
        {"tls://h:1", "h", 1, true, false},
        {"SASL://h:1", "h", 1, false, true},
        {"sasl-tls://[::]:1", "::", 1, true, true},
    };
    static const char *const bad[] = {"",      "h",        ":1",   "h:",    "h:65536",
                                      "h:x",   "::1:1",    "[]:1", "h:1:2", "http://h:1",
                                      "h/a:1", "tls://:1", "h:-1", "h: 1"};
    struct gw_listen l;
    char host[HOST_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(serve_parse_listen(rows[i].text, &l, host), 0);
        assert_string_equal(l.host, rows[i].host);
        assert_int_equal(l.port, rows[i].port);
        assert_int_equal(l.tls, rows[i].tls);
        assert_int_equal(l.sasl, rows[i].sasl);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(serve_parse_listen(bad[i], &l, host), E_SYNTAX);
}

static size_t unknown_n;

static void count_unknown(const char *name)
{
    assert_string_equal(name, "SLUICE_PARTITONS");
    unknown_n++;
}

static void mistyped_variables_are_reported(void **state)
{
    static char a[] = "SLUICE_PARTITONS=3", b[] = "SLUICE_ADMIN=x", c[] = "PATH=/",
                d[] = "SLUICE_WORKERS=1";
    char *env[] = {a, b, c, d, NULL};

    (void)state;
    unknown_n = 0;
    config_unknown_env(env, count_unknown);
    assert_int_equal(unknown_n, 1);
}

/* Tests run in the source folder. */
static void docs_config_md_is_current(void **state)
{
    FILE *f = fopen("docs/config.md", "rb");
    static char text[1 << 16];
    struct writer w;
    size_t n;

    (void)state;
    assert_non_null(f);
    n = fread(text, 1, sizeof text, f);
    (void)fclose(f);
    wr_init(&w, sizeof text);
    config_markdown(&w);
    assert_int_equal(wr_err(&w), 0);
    assert_int_equal(n, wr_len(&w));
    assert_memory_equal(text, w.b->data, n);
    wr_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_anything_the_defaults_hold),
        cmocka_unit_test(every_default_is_legal_for_its_kind),
        cmocka_unit_test(flag_beats_environment_beats_file_beats_default),
        cmocka_unit_test(the_strongest_source_gives_the_whole_list),
        cmocka_unit_test(file_faults_are_all_named_with_their_line),
        cmocka_unit_test(a_deep_file_and_a_second_document_are_refused_at_once),
        cmocka_unit_test(what_is_no_mapping_is_refused),
        cmocka_unit_test(what_this_build_lacks_is_refused_by_name),
        cmocka_unit_test(a_store_of_brokers_is_looked_at_before_any_is_asked),
        cmocka_unit_test(public_listeners_need_an_address_and_a_word),
        cmocka_unit_test(listener_addresses_are_taken_apart),
        cmocka_unit_test(mistyped_variables_are_reported),
        cmocka_unit_test(docs_config_md_is_current),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
