/* Bounds-checked reads: values, prefixes, varint vectors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/reader.h"
#include "base/writer.h"

static const uint8_t fixed[] = {
    0xfe,                                                       /* u8 254 */
    0xfe,                                                       /* i8 -2 */
    0x80, 0x01,                                                 /* i16 */
    0x80, 0x01,                                                 /* u16 */
    0x80, 0x00, 0x00, 0x02,                                     /* i32 */
    0x80, 0x00, 0x00, 0x02,                                     /* u32 */
    0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03,             /* i64 */
    0xc0, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,             /* f64 -2.5 */
    0xac, 0x02,                                                 /* uvarint 300 */
    0x01,                                                       /* varint -1 */
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, /* varint64 minimum */
};

/* Reads all of `fixed`; the first error. */
static int read_all(struct reader *r)
{
    uint8_t u8;
    int8_t i8;
    int16_t i16;
    uint16_t u16;
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    double f64;
    int err;

    if ((err = rd_u8(r, &u8)) != 0)
        return err;
    assert_int_equal(u8, 254);
    if ((err = rd_i8(r, &i8)) != 0)
        return err;
    assert_int_equal(i8, -2);
    if ((err = rd_i16(r, &i16)) != 0)
        return err;
    assert_int_equal(i16, INT16_MIN + 1);
    if ((err = rd_u16(r, &u16)) != 0)
        return err;
    assert_int_equal(u16, 0x8001);
    if ((err = rd_i32(r, &i32)) != 0)
        return err;
    assert_int_equal(i32, INT32_MIN + 2);
    if ((err = rd_u32(r, &u32)) != 0)
        return err;
    assert_int_equal(u32, 0x80000002);
    if ((err = rd_i64(r, &i64)) != 0)
        return err;
    assert_true(i64 == INT64_MIN + 3);
    if ((err = rd_f64(r, &f64)) != 0)
        return err;
    assert_true(f64 == -2.5);
    if ((err = rd_uvarint32(r, &u32)) != 0)
        return err;
    assert_int_equal(u32, 300);
    if ((err = rd_varint32(r, &i32)) != 0)
        return err;
    assert_int_equal(i32, -1);
    if ((err = rd_varint64(r, &i64)) != 0)
        return err;
    assert_true(i64 == INT64_MIN);
    return 0;
}

static void values_are_read_in_network_order(void **state)
{
    (void)state;
    struct reader r = reader_of(span_of(fixed, sizeof fixed));

    assert_int_equal(read_all(&r), 0);
    assert_int_equal(rd_left(&r), 0);
}

static void every_prefix_is_short(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof fixed; n++) {
        struct reader r = reader_of(span_of(fixed, n));
        assert_int_equal(read_all(&r), E_SHORT);
    }
    struct reader r = reader_of((struct span){NULL, 0});
    assert_int_equal(read_all(&r), E_SHORT);
}

static void a_failed_read_leaves_the_reader_in_place(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0x80, 0x80, 0x80};
    struct reader r = reader_of(span_of(bytes, sizeof bytes));
    const uint8_t *p = NULL;
    uint32_t u32;
    int32_t i32;
    int64_t i64;
    double f64;

    assert_int_equal(rd_take(&r, 4, &p), E_SHORT);
    assert_int_equal(rd_take(&r, SIZE_MAX, &p), E_SHORT);
    assert_int_equal(rd_u32(&r, &u32), E_SHORT);
    assert_int_equal(rd_i32(&r, &i32), E_SHORT);
    assert_int_equal(rd_i64(&r, &i64), E_SHORT);
    assert_int_equal(rd_f64(&r, &f64), E_SHORT);
    assert_int_equal(rd_uvarint32(&r, &u32), E_SHORT);
    assert_int_equal(rd_varint32(&r, &i32), E_SHORT);
    assert_int_equal(rd_varint64(&r, &i64), E_SHORT);
    assert_null(p);
    assert_ptr_equal(r.p, bytes);
    assert_int_equal(rd_take(&r, 3, &p), 0);
    assert_ptr_equal(p, bytes);
    assert_int_equal(rd_take(&r, 0, &p), 0);
}

static void varints_that_overflow_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[11];
        size_t n;
        int err32;
        int err64;
    } rows[] = {
        {{0xff, 0xff, 0xff, 0xff, 0x0f}, 5, 0, 0},
        {{0xff, 0xff, 0xff, 0xff, 0x1f}, 5, E_SYNTAX, 0},       /* bit 32 */
        {{0xff, 0xff, 0xff, 0xff, 0x8f}, 5, E_SYNTAX, E_SHORT}, /* goes on */
        {{0xff, 0xff, 0xff, 0xff, 0x8f, 0x00}, 6, E_SYNTAX, 0}, /* over-long for 32 bits */
        {{0x80, 0x00}, 2, 0, 0},                                /* padded: allowed */
        {{255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, 10, E_SYNTAX, 0},
        {{255, 255, 255, 255, 255, 255, 255, 255, 255, 2}, 10, E_SYNTAX, E_SYNTAX},
        {{255, 255, 255, 255, 255, 255, 255, 255, 255, 129, 0}, 11, E_SYNTAX, E_SYNTAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct span s = span_of(rows[i].bytes, rows[i].n);
        struct reader r = reader_of(s);
        uint32_t u32;
        int64_t i64;
        assert_int_equal(rd_uvarint32(&r, &u32), rows[i].err32);
        assert_int_equal(rd_left(&r), rows[i].err32 == 0 ? 0 : rows[i].n);
        r = reader_of(s);
        assert_int_equal(rd_varint64(&r, &i64), rows[i].err64);
        assert_int_equal(rd_left(&r), rows[i].err64 == 0 ? 0 : rows[i].n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read_in_network_order),
        cmocka_unit_test(every_prefix_is_short),
        cmocka_unit_test(a_failed_read_leaves_the_reader_in_place),
        cmocka_unit_test(varints_that_overflow_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
