/*
 * Names, folders and their durability. Blocks; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

MUST_USE int jl_mkdirs(const char *path, bool sync);
MUST_USE int jl_sync_dir(const char *path);
/* Heap strings; NULL: out of memory. */
MUST_USE char *jl_path_open(const char *dir, const char *journal, int64_t begin);
MUST_USE char *jl_path_closed(const char *dir, const char *journal, int64_t begin, int64_t end,
                              const char *sha1);
MUST_USE char *jl_path_index(const char *dir, const char *journal, int64_t begin, int64_t end);
MUST_USE char *jl_path_join(const char *dir, const char *kind, const char *journal);
/* A closed fragment's file name. */
bool jl_name_parse(const char *name, int64_t *begin, int64_t *end, char sha1[41]);
/* Removes the files in one folder (not below it) whose name ends so. */
MUST_USE int jl_remove_files(const char *folder, const char *suffix);
void jl_why(char *why, size_t why_bytes, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
