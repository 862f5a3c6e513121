/* Order of spans; the rest is inline in the header. */
#include "base/span.h"

int span_cmp(struct span a, struct span b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n == 0 ? 0 : memcmp(a.p, b.p, n);

    if (c != 0)
        return c < 0 ? -1 : 1;
    if (a.n == b.n)
        return 0;
    return a.n < b.n ? -1 : 1;
}
