/*
 * Time as an argument: code asks a `struct clock`, tests inject one. wall_ns is for stamps that are
 * stored; mono_ms is for deadlines and never goes back. Any thread.
 */
#pragma once

#include <stdint.h>

struct clock {
    int64_t (*wall_ns)(void *arg); /* nanoseconds since the Unix epoch */
    int64_t (*mono_ms)(void *arg); /* milliseconds since an arbitrary start, monotonic */
    void *arg;
};

/* CLOCK_REALTIME and CLOCK_MONOTONIC; static, never freed. */
const struct clock *clock_system(void);

static inline int64_t clock_wall_ns(const struct clock *c)
{
    return c->wall_ns(c->arg);
}

static inline int64_t clock_mono_ms(const struct clock *c)
{
    return c->mono_ms(c->arg);
}
