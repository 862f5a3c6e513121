/* cmocka's names for programs that are no cmocka tests (fuzz targets, stress): a failure ends the
 * process. Include before the fakes. */
#pragma once

#include "base/assert.h"

#define PLAIN_ASSERTS

#define assert_true(x)         ASSERT(x)
#define assert_false(x)        ASSERT(!(x))
#define assert_null(x)         ASSERT((x) == NULL)
#define assert_non_null(x)     ASSERT((x) != NULL)
#define assert_int_equal(a, b) ASSERT((a) == (b))
