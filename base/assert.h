/*
 * Invariants. ASSERT stays in release builds: a broken invariant ends the process with file and
 * line, before it can damage data. Input from outside is never checked with it: bad input gets an
 * error code.
 */
#pragma once

_Noreturn void assert_fail(const char *expr, const char *file, int line, const char *func);

#define ASSERT(expr) ((expr) ? (void)0 : assert_fail(#expr, __FILE__, __LINE__, __func__))
