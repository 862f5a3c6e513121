/*
 * Properties that hold for every API, version and direction, on random messages from the tables.
 * Inputs lie in buffers of their exact size, so that AddressSanitizer sees any read past the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "kp_random.h"

#define BUDGET ((size_t)16 << 20)

typedef void (*check_fn)(const struct kp_desc *d, int16_t version, struct kp_random *r);

/* Calls check for each message of each version, `times` over, with an emptied arena. */
static void for_each_message(check_fn check, int times)
{
    struct arena a;
    struct kp_random r = {.state = UINT64_C(0x9e3779b97f4a7c15), .a = &a};

    arena_init(&a, BUDGET);
    for (size_t i = 0; i < kp_apis_n; i++) {
        const struct kp_api *api = &kp_apis[i];
        for (int16_t v = api->min; v <= api->max; v++) {
            for (int k = 0; k < times; k++) {
                check(api->request, v, &r);
                arena_reset(&a);
                check(api->response, v, &r);
                arena_reset(&a);
            }
        }
    }
    arena_fini(&a);
}

static struct blob *encode(const struct kp_desc *d, int16_t version, const void *msg,
                           struct arena *a)
{
    struct writer w;

    wr_init(&w, BUDGET);
    assert_int_equal(kp_encode(d, version, msg, a, &w), 0);
    struct blob *b = wr_take(&w);
    assert_non_null(b);
    return b;
}

/* Decodes from a heap copy of exactly n bytes; *copy is freed by the caller with mem_free. */
static int decode_copy(const struct kp_desc *d, int16_t version, const uint8_t *p, size_t n,
                       struct arena *a, void *out, uint8_t **copy)
{
    *copy = mem_alloc(n == 0 ? 1 : n);
    assert_non_null(*copy);
    memcpy(*copy, p, n);
    struct reader r = {*copy, *copy + n};
    return kp_decode(d, version, &r, a, out);
}

static void check_round_trip(const struct kp_desc *d, int16_t version, struct kp_random *r)
{
    void *msg = kp_random_message(r, d, version), *got = kp_random_alloc(r, d->size);
    struct blob *b = encode(d, version, msg, r->a);
    uint8_t *copy;

    assert_int_equal(decode_copy(d, version, b->data, b->len, r->a, got, &copy), 0);
    if (!kp_same_struct(d, msg, got))
        fail_msg("%s version %d comes back different", d->name, version);
    struct blob *again = encode(d, version, got, r->a);
    assert_true(span_eq(blob_span(b), blob_span(again)));
    blob_unref(again);
    blob_unref(b);
    mem_free(copy);
}

static void every_message_survives_encoding_and_decoding(void **state)
{
    (void)state;
    for_each_message(check_round_trip, 20);
}

static void check_prefixes(const struct kp_desc *d, int16_t version, struct kp_random *r)
{
    void *msg = kp_random_message(r, d, version), *got = kp_random_alloc(r, d->size);
    struct blob *b = encode(d, version, msg, r->a);

    for (size_t n = 0; n < b->len; n++) {
        uint8_t *copy;
        struct arena a;
        arena_init(&a, BUDGET);
        int err = decode_copy(d, version, b->data, n, &a, got, &copy);
        if (err != E_SHORT)
            fail_msg("%s version %d cut at %zu of %zu: %s", d->name, version, n, b->len,
                     err_name(err));
        arena_fini(&a);
        mem_free(copy);
    }
    blob_unref(b);
}

static void every_prefix_of_a_message_is_short(void **state)
{
    (void)state;
    for_each_message(check_prefixes, 1);
}

static void check_trailing(const struct kp_desc *d, int16_t version, struct kp_random *r)
{
    void *msg = kp_random_message(r, d, version), *got = kp_random_alloc(r, d->size);
    struct writer w;
    uint8_t *copy;

    wr_init(&w, BUDGET);
    assert_int_equal(kp_encode(d, version, msg, r->a, &w), 0);
    wr_u8(&w, 0);
    struct blob *b = wr_take(&w);
    assert_non_null(b);
    assert_int_equal(decode_copy(d, version, b->data, b->len, r->a, got, &copy), E_TRAILING);
    blob_unref(b);
    mem_free(copy);
}

static void a_byte_behind_a_message_is_refused(void **state)
{
    (void)state;
    for_each_message(check_trailing, 1);
}

/* Whatever damaged bytes decode to can be encoded, and then decodes to the same again. */
static void check_damaged(const struct kp_desc *d, int16_t version, struct kp_random *r)
{
    void *msg = kp_random_message(r, d, version), *got = kp_random_alloc(r, d->size);
    struct blob *b = encode(d, version, msg, r->a);

    for (int k = 0; k < 20 && b->len > 0; k++) {
        size_t at = kp_random_below(r, (uint32_t)b->len);
        uint8_t old = b->data[at];
        uint8_t *copy, *copy2;
        b->data[at] = (uint8_t)kp_random_below(r, 256);
        if (decode_copy(d, version, b->data, b->len, r->a, got, &copy) == 0) {
            struct blob *again = encode(d, version, got, r->a);
            void *got2 = kp_random_alloc(r, d->size);
            assert_int_equal(decode_copy(d, version, again->data, again->len, r->a, got2, &copy2),
                             0);
            assert_true(kp_same_struct(d, got, got2));
            mem_free(copy2);
            blob_unref(again);
        }
        mem_free(copy);
        b->data[at] = old;
    }
    blob_unref(b);
}

static void damaged_messages_are_refused_or_mean_something(void **state)
{
    (void)state;
    for_each_message(check_damaged, 5);
}

/* The n-th allocation fails, for rising n, until none does. */
static void check_out_of_memory(const struct kp_desc *d, int16_t version, struct kp_random *r)
{
    void *msg = kp_random_message(r, d, version), *got = kp_random_alloc(r, d->size);
    struct blob *b = encode(d, version, msg, r->a);
    int err = E_NOMEM;

    for (long n = 0; err != 0; n++) {
        struct reader in = reader_of(blob_span(b));
        struct arena a;
        arena_init(&a, BUDGET);
        mem_fail_after(n, 0);
        err = kp_decode(d, version, &in, &a, got);
        mem_fail_after(-1, 0);
        arena_fini(&a);
        if (err != 0)
            assert_int_equal(err, E_NOMEM);
    }
    err = E_NOMEM;
    for (long n = 0; err != 0; n++) {
        struct writer w;
        struct arena a;
        wr_init(&w, BUDGET);
        arena_init(&a, BUDGET);
        mem_fail_after(n, 0);
        err = kp_encode(d, version, msg, &a, &w);
        mem_fail_after(-1, 0);
        wr_fini(&w);
        arena_fini(&a);
        if (err != 0)
            assert_int_equal(err, E_NOMEM);
    }
    blob_unref(b);
}

static void out_of_memory_is_an_answer_at_every_allocation(void **state)
{
    (void)state;
    for_each_message(check_out_of_memory, 2);
}

static void check_versions(const struct kp_desc *d, int16_t version, struct kp_random *r)
{
    void *msg = kp_random_message(r, d, version);
    struct reader none = {(const uint8_t *)"", (const uint8_t *)""};
    struct writer w;

    wr_init(&w, BUDGET);
    assert_int_equal(kp_encode(d, (int16_t)(d->min - 1), msg, r->a, &w), E_VERSION);
    assert_int_equal(kp_encode(d, (int16_t)(d->max + 1), msg, r->a, &w), E_VERSION);
    assert_int_equal(wr_len(&w), 0);
    assert_int_equal(kp_decode(d, (int16_t)(d->min - 1), &none, r->a, msg), E_VERSION);
    assert_int_equal(kp_decode(d, (int16_t)(d->max + 1), &none, r->a, msg), E_VERSION);
    wr_fini(&w);
}

static void versions_outside_of_the_table_are_refused(void **state)
{
    (void)state;
    for_each_message(check_versions, 1);
}

/* Each field that a version lacks is legal at its default, whatever the version. */
static void check_defaults(const struct kp_desc *d, int16_t version, struct kp_random *r)
{
    void *msg = kp_random_alloc(r, d->size), *got = kp_random_alloc(r, d->size);
    uint8_t *copy;

    kp_defaults(d, msg);
    struct blob *b = encode(d, version, msg, r->a);
    assert_int_equal(decode_copy(d, version, b->data, b->len, r->a, got, &copy), 0);
    assert_true(kp_same_struct(d, msg, got));
    blob_unref(b);
    mem_free(copy);
}

static void defaults_can_be_encoded_in_every_version(void **state)
{
    (void)state;
    for_each_message(check_defaults, 1);
}

static void apis_are_sorted_and_found_by_key(void **state)
{
    (void)state;
    for (size_t i = 0; i < kp_apis_n; i++) {
        const struct kp_api *api = &kp_apis[i];
        assert_ptr_equal(kp_api_find(api->key), api);
        assert_true(i == 0 || kp_apis[i - 1].key < api->key);
        assert_true(api->min <= api->max);
        assert_int_equal(api->request_bytes, api->request->size);
        assert_int_equal(api->response_bytes, api->response->size);
        assert_true(kp_api_speaks(api, api->min) && kp_api_speaks(api, api->max));
        assert_false(kp_api_speaks(api, (int16_t)(api->max + 1)));
    }
    assert_null(kp_api_find(-1));
    assert_null(kp_api_find(7)); /* ControlledShutdown */
    assert_null(kp_api_find(INT16_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_survives_encoding_and_decoding),
        cmocka_unit_test(every_prefix_of_a_message_is_short),
        cmocka_unit_test(a_byte_behind_a_message_is_refused),
        cmocka_unit_test(damaged_messages_are_refused_or_mean_something),
        cmocka_unit_test(out_of_memory_is_an_answer_at_every_allocation),
        cmocka_unit_test(versions_outside_of_the_table_are_refused),
        cmocka_unit_test(defaults_can_be_encoded_in_every_version),
        cmocka_unit_test(apis_are_sorted_and_found_by_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
