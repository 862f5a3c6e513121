/*
 * A few threads that run jobs which may block (pread, fsync) or compute for long. No order between
 * jobs. Jobs never touch worker-owned data: they answer by posting to an executor.
 */
#pragma once

#include "base/err.h"
#include "base/executor.h"

struct jobpool;

/* threads >= 1. name (<= 10 bytes) shows up in thread lists. */
MUST_USE int jobpool_new(unsigned threads, const char *name, struct jobpool **out);
/* Runs what is queued, joins the threads, frees. NULL is allowed. */
void jobpool_free(struct jobpool *p);
struct executor *jobpool_executor(struct jobpool *p);
