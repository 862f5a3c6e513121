/* Shared by json_bench.c and the simdjson side of it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct bench_block {
    uint8_t *data;
    size_t *at; /* docs + 1 offsets */
    size_t len, docs;
};

#ifdef __cplusplus
extern "C" {
#endif
/* Each returns how many documents it found good. */
size_t simdjson_check_and_split(const struct bench_block *b);
size_t simdjson_uuids(const struct bench_block *b);
size_t simdjson_last_key(const struct bench_block *b);
#ifdef __cplusplus
}
#endif
