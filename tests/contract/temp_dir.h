/* A folder of its own for a test that needs files, removed with all that is in it. */
#pragma once

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline int temp_dir_rm(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline void temp_dir_remove(const char *path)
{
    (void)nftw(path, temp_dir_rm, 16, FTW_DEPTH | FTW_PHYS);
}

/* Writes the path; returns -1 when none can be made. */
static inline int temp_dir_make(char *path, size_t bytes)
{
    const char *base = getenv("TMPDIR");

    (void)snprintf(path, bytes, "%s/sluice-test-XXXXXX", base == NULL ? "/tmp" : base);
    return mkdtemp(path) == NULL ? -1 : 0;
}
