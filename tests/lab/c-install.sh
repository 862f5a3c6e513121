#!/usr/bin/env bash
# kcat and librdkafka (Debian's), and rdkafka_performance compiled from the example source that Debian ships with
# librdkafka-dev (gzipped or not).
set -euo pipefail
. "$(dirname "$0")/lab-env.sh"
apt_need kcat librdkafka-dev build-essential
mkdir -p "$LAB/bin" "$LAB/src"
once "$LAB/.c.lock"
[ -x "$LAB/bin/rdkafka_performance" ] && exit 0
mkdir -p "$LAB/src/examples" "$LAB/src/src"
E=/usr/share/doc/librdkafka-dev/examples/rdkafka_performance.c
if [ -f "$E" ]; then cp "$E" "$LAB/src/examples/"
elif [ -f "$E.gz" ]; then gzip -dc "$E.gz" > "$LAB/src/examples/rdkafka_performance.c"
else echo "no example source of rdkafka_performance (documentation is not installed here)" >&2; exit 0; fi
# the example includes rd.h and rdtime.h of librdkafka's own tree; these few lines stand in for them
cat > "$LAB/src/src/rd.h" <<'H'
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <inttypes.h>
#include <time.h>
#include <unistd.h>
#include <getopt.h>
#include <sys/time.h>
typedef int64_t rd_ts_t;
static inline rd_ts_t rd_clock(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (rd_ts_t)t.tv_sec * 1000000 + t.tv_nsec / 1000; }
#define rd_snprintf snprintf
#define RD_MAX(a, b) ((a) > (b) ? (a) : (b))
#define RD_MIN(a, b) ((a) < (b) ? (a) : (b))
H
: > "$LAB/src/src/rdtime.h"
nice cc -O2 -w -D_GNU_SOURCE -I/usr/include/librdkafka -I"$LAB/src/src" "$LAB/src/examples/rdkafka_performance.c" \
  -o "$LAB/bin/rdkafka_performance" -lrdkafka -lpthread -lrt
echo "built $LAB/bin/rdkafka_performance"
