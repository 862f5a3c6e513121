/* The file of --catalog, for `serve` and `check`. Main thread. */
#pragma once

#include "app/cli.h"
#include "app/config.h"
#include "gateway/catalog.h"

/* Reads the catalog that the settings name (none: 0, *out NULL) and reports each fault and warning
 * as "FILE:LINE: text" by say. Also refuses one that the
 * listeners of gw cannot serve. E_INVALID: it
 * cannot be used. *faults (may be NULL): how many. *out is a
 * reference for the caller. files (may be NULL): see catalog_read. */
MUST_USE int serve_catalog(const struct config *c, const struct gw_config *gw,
                           void (*say)(void *arg, bool warning, const char *text), void *arg,
                           struct catalog_files *files, const struct catalog **out, size_t *faults);
