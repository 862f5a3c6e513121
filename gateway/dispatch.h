/*
 * The table of what this gateway serves: one row an API. ApiVersions advertises exactly these rows.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gateway/request.h"

struct api_row {
    int16_t key;
    int16_t min; /* advertised and served */
    int16_t max;
    gw_handler *handler;
};

extern const struct api_row api_rows[]; /* by key */
extern const size_t api_rows_n;
/* NULL: not served. */
const struct api_row *api_row_find(int16_t key);
