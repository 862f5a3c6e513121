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

bool span_find(const struct span *sorted, size_t n, struct span key, size_t *at)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int order = span_cmp(sorted[mid], key);
        if (order == 0) {
            *at = mid;
            return true;
        }
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return false;
}
