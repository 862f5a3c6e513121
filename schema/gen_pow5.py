#!/usr/bin/env python3
"""Writes schema/pow5_table.c: the first 128 bits of 5^q, q from -342 to 308, for schema/number.c.

Positive powers are cut off, reciprocals rounded up, both normalised so that the top bit is set, as
Lemire's "Number Parsing at a Gigabyte per Second" (2021) asks. Run it by hand; the unit tests compare
the result of every conversion with the C library's.
"""
import sys


def power(q):
    if q >= 0:
        v = 5**q
        return v << (128 - v.bit_length()) if v.bit_length() <= 128 else v >> (v.bit_length() - 128)
    v = 5**-q
    z = (v - 1).bit_length()
    c = 2 ** (z + 127 if q >= -27 else 2 * z + 128) // v + 1
    return c >> max(0, c.bit_length() - 128)


def main():
    out = sys.stdout
    out.write("/* Made by schema/gen_pow5.py: high and low half of 5^q, q = -342 ... 308. */\n")
    out.write('#include "schema/number.h"\n\n/* clang-format off */\n')
    out.write("const uint64_t SC_POW5[SC_POW5_MAX - SC_POW5_MIN + 1][2] = {\n")
    for q in range(-342, 309):
        c = power(q)
        out.write("    {UINT64_C(0x%016x), UINT64_C(0x%016x)}, /* %d */\n" % (c >> 64, c & (2**64 - 1), q))
    out.write("};\n/* clang-format on */\n")


main()
