/* The system's clocks. */
#include "base/clock.h"

#include <stddef.h>
#include <time.h>

static int64_t system_wall_ns(void *arg)
{
    struct timespec ts;

    (void)arg;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int64_t system_mono_ms(void *arg)
{
    struct timespec ts;

    (void)arg;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

const struct clock *clock_system(void)
{
    static const struct clock system = {system_wall_ns, system_mono_ms, NULL};

    return &system;
}
