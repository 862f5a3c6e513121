/*
 * The end of the process after a broken invariant. Uses only write(2): the heap, the log lock and
 * stdio may be what is broken.
 */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

_Noreturn void assert_fail(const char *expr, const char *file, int line, const char *func)
{
    char msg[512];
    int n = snprintf(msg, sizeof msg, "%s:%d: %s: invariant broken: %s\n", file, line, func, expr);

    if (n > 0) {
        size_t len = (size_t)n < sizeof msg ? (size_t)n : sizeof msg - 1;
        /* Nothing can be done when stderr is gone; abort() follows in any case. */
        ssize_t ignored = write(STDERR_FILENO, msg, len);
        (void)ignored;
    }
    abort();
}
