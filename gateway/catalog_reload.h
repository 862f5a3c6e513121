/*
 * Follows the files of a catalog while the server runs: reads them anew when one of them changed
 * and then stood still for a tick, or when asked to. A catalog with faults, or one that the
 * listeners cannot serve, changes nothing: it is logged and counted, and the one in force stays.
 *
 * Files are looked at and read by jobs; everything else runs on the thread of `home`.
 */
#pragma once

#include "base/executor.h"
#include "gateway/catalog.h"

struct catalog_reload;

struct catalog_reload_opts {
    const struct gw_config *config;    /* borrowed: catalog_path, and what catalog_admit needs */
    const struct catalog_files *files; /* what the catalog in force was read from; copied */
    struct executor *home;
    struct executor *jobs; /* may block */
    /* A new catalog, borrowed for the call. */
    void (*on_catalog)(void *arg, const struct catalog *c);
    void *arg;
};

MUST_USE int catalog_reload_start(const struct catalog_reload_opts *opts,
                                  struct catalog_reload **out);
/* About once a second. */
void catalog_reload_tick(struct catalog_reload *r);
/* Reads now, whether something changed or not. */
void catalog_reload_now(struct catalog_reload *r);
/* No call of on_catalog comes any more; a job may still run. */
void catalog_reload_stop(struct catalog_reload *r);
/* True while a job runs, or its result is on its way home. */
bool catalog_reload_busy(const struct catalog_reload *r);
/* After stop, when nothing is busy. NULL is allowed. */
void catalog_reload_free(struct catalog_reload *r);
