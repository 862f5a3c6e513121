/* Which listeners may be opened at all. Names are numeric: nothing is resolved over a network. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/listener.h"

static char why[256];

static int check(const char *host, const char *advertise, bool anonymous)
{
    const struct gw_listen where = {.host = host, .port = 9092};
    const struct gw_config config = {
        .kafka = &where, .kafka_n = 1, .advertise_host = advertise, .allow_anonymous = anonymous};

    why[0] = '\0';
    int err = listener_check(&config, why, sizeof why);
    assert_true((err == 0) == (why[0] == '\0')); /* a refusal says why */
    return err;
}

static void this_machine_alone_needs_no_more(void **state)
{
    (void)state;
    assert_int_equal(check("127.0.0.1", NULL, false), 0);
    assert_int_equal(check("::1", NULL, false), 0);
    assert_int_equal(check("127.3.2.1", "gw.test", false), 0);
}

static void a_public_listener_needs_an_advertised_address(void **state)
{
    (void)state;
    assert_int_equal(check("0.0.0.0", NULL, true), E_INVALID);
    assert_non_null(strstr(why, "--kafka-advertise"));
    assert_int_equal(check("::", NULL, true), E_INVALID);
    assert_int_equal(check("192.0.2.1", NULL, true), E_INVALID);
    assert_int_equal(check("0.0.0.0", "gw.test", true), 0);
    assert_int_equal(check("::", "192.0.2.7", true), 0);
}

static void a_wildcard_is_never_advertised_and_loopback_not_on_a_public_listener(void **state)
{
    (void)state;
    const char *wild[] = {"0.0.0.0", "::", "*", "", "::ffff:0.0.0.0"};
    const char *loop[] = {"127.0.0.1", "localhost", "::1", "127.1.2.3"};

    for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) {
        assert_int_equal(check("0.0.0.0", wild[i], true), E_INVALID);
        assert_int_equal(check("127.0.0.1", wild[i], true), E_INVALID);
    }
    for (size_t i = 0; i < sizeof loop / sizeof loop[0]; i++) {
        assert_int_equal(check("0.0.0.0", loop[i], true), E_INVALID);
        assert_int_equal(check("127.0.0.1", loop[i], true), 0);
    }
}

static void a_public_listener_without_authentication_must_be_wanted(void **state)
{
    (void)state;
    assert_int_equal(check("0.0.0.0", "gw.test", false), E_INVALID);
    assert_non_null(strstr(why, "--allow-anonymous"));
}

static void a_listener_with_logins_may_be_public_and_tells_its_own_address(void **state)
{
    (void)state;
    struct gw_listen sasl = {.host = "0.0.0.0", .port = 9092, .sasl = true};
    struct gw_config config = {.kafka = &sasl, .kafka_n = 1};

    assert_int_equal(listener_check(&config, why, sizeof why), E_INVALID);
    sasl.advertise_host = "gw.test";
    assert_int_equal(listener_check(&config, why, sizeof why), 0);
    sasl.advertise_host = "localhost";
    config.advertise_host = "gw.test"; /* its own goes first */
    assert_int_equal(listener_check(&config, why, sizeof why), E_INVALID);
    config.kafka_n = 0;
    assert_int_equal(listener_check(&config, why, sizeof why), E_INVALID);
}

static void tls_is_refused_and_not_served_in_plain_text(void **state)
{
    (void)state;
    const struct gw_listen tls = {.host = "127.0.0.1", .port = 9092, .tls = true};
    struct gw_config config = {.kafka = &tls, .kafka_n = 1};

    assert_int_equal(listener_check(&config, why, sizeof why), E_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(this_machine_alone_needs_no_more),
        cmocka_unit_test(a_public_listener_needs_an_advertised_address),
        cmocka_unit_test(a_wildcard_is_never_advertised_and_loopback_not_on_a_public_listener),
        cmocka_unit_test(a_public_listener_without_authentication_must_be_wanted),
        cmocka_unit_test(a_listener_with_logins_may_be_public_and_tells_its_own_address),
        cmocka_unit_test(tls_is_refused_and_not_served_in_plain_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
