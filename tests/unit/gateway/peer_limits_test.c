/* Connections and failed logins of one address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>

#include "gateway/peer_limits.h"

static struct peer_key key(const char *text)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    struct peer_key k = {{0}};

    if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
        peer_key_of((const struct sockaddr *)&in, &k);
    else if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1)
        peer_key_of((const struct sockaddr *)&in6, &k);
    else
        fail();
    return k;
}

static bool same(const char *a, const char *b)
{
    struct peer_key x = key(a);
    struct peer_key y = key(b);
    return memcmp(&x, &y, sizeof x) == 0;
}

static void an_address_is_an_ipv4_one_or_a_network_of_ipv6(void **state)
{
    (void)state;
    assert_true(same("192.0.2.1", "::ffff:192.0.2.1"));
    assert_false(same("192.0.2.1", "192.0.2.2"));
    assert_false(same("::ffff:192.0.2.1", "::ffff:192.0.2.2"));
    assert_true(same("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"));
    assert_false(same("2001:db8:1:2::1", "2001:db8:1:3::1"));
}

static void an_address_has_so_many_connections_and_no_more(void **state)
{
    struct peer_limits *pl;
    struct peer_key a = key("192.0.2.1");
    struct peer_key b = key("192.0.2.2");

    (void)state;
    assert_int_equal(peer_limits_new(2, 0, &pl), 0);
    assert_int_equal(peer_conn_add(pl, &a), 0);
    assert_int_equal(peer_conn_add(pl, &a), 0);
    assert_int_equal(peer_conn_add(pl, &a), E_LIMIT);
    assert_int_equal(peer_conn_add(pl, &b), 0);
    peer_conn_drop(pl, &a);
    assert_int_equal(peer_conn_add(pl, &a), 0);
    peer_conn_drop(pl, &a);
    peer_conn_drop(pl, &a);
    peer_conn_drop(pl, &b);
    assert_int_equal(peer_limits_known(pl), 0);
    peer_limits_free(pl);
}

static void too_many_failures_make_logins_wait_longer_and_longer(void **state)
{
    struct peer_limits *pl;
    struct peer_key a = key("192.0.2.1");
    int64_t now = 1000000;
    int last = 0;

    (void)state;
    assert_int_equal(peer_limits_new(0, 5, &pl), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(peer_login_wait(pl, &a, now), 0);
        peer_login_failed(pl, &a, now);
    }
    for (int i = 0; i < 12; i++) {
        int ms = peer_login_wait(pl, &a, now);
        assert_true(ms > last || ms == PEER_WAIT_MAX_MS);
        last = ms;
        peer_login_waited(pl, &a);
        peer_login_failed(pl, &a, now);
    }
    assert_int_equal(last, PEER_WAIT_MAX_MS);
    struct peer_key b = key("192.0.2.2");
    assert_int_equal(peer_login_wait(pl, &b, now), 0); /* others do not suffer */
    now += 5 * 60000;
    assert_int_equal(peer_login_wait(pl, &a, now), 0); /* and it ends */
    assert_int_equal(peer_limits_known(pl), 0);
    peer_limits_free(pl);
}

static void only_so_many_logins_of_an_address_wait(void **state)
{
    struct peer_limits *pl;
    struct peer_key a = key("2001:db8::1");

    (void)state;
    assert_int_equal(peer_limits_new(0, 1, &pl), 0);
    peer_login_failed(pl, &a, 0);
    for (int i = 0; i < PEER_WAITING_MAX; i++)
        assert_true(peer_login_wait(pl, &a, 0) > 0);
    assert_int_equal(peer_login_wait(pl, &a, 0), E_LIMIT);
    for (int i = 0; i < PEER_WAITING_MAX; i++)
        peer_login_waited(pl, &a);
    assert_true(peer_login_wait(pl, &a, 0) > 0);
    peer_login_waited(pl, &a);
    peer_limits_free(pl);
}

static void memory_is_bounded_however_many_addresses_fail(void **state)
{
    struct peer_limits *pl;
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct peer_key k = {{0}};

    (void)state;
    assert_int_equal(peer_limits_new(0, 5, &pl), 0);
    for (uint32_t i = 0; i < 3 * PEER_QUIET_MAX; i++) {
        in.sin_addr.s_addr = htonl(0x0a000000U + i);
        peer_key_of((const struct sockaddr *)&in, &k);
        assert_int_equal(peer_conn_add(pl, &k), 0);
        peer_login_failed(pl, &k, i);
        peer_conn_drop(pl, &k);
    }
    assert_int_equal(peer_limits_known(pl), PEER_QUIET_MAX);
    peer_limits_free(pl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_an_ipv4_one_or_a_network_of_ipv6),
        cmocka_unit_test(an_address_has_so_many_connections_and_no_more),
        cmocka_unit_test(too_many_failures_make_logins_wait_longer_and_longer),
        cmocka_unit_test(only_so_many_logins_of_an_address_wait),
        cmocka_unit_test(memory_is_bounded_however_many_addresses_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
