#!/usr/bin/env bash
# Times JSON to Avro on one core. Exit 1 below the goals of docs/avro.md when SLUICE_BENCH_STRICT=1.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:-$(mktemp -d)}
cd "$out"
[ -s small.ndjson ] || python3 "$root/tests/bench/gen_docs.py" 16
"${CC:-gcc}" -std=c17 -D_GNU_SOURCE -O2 -g -I"$root" "$root"/schema/*.c \
  "$root"/base/{arena,assert,blob,err,hash,mem,num,span,utf8,writer}.c "$root/tests/bench/avro_bench.c" \
  -o avro_bench -lavro -ljansson
taskset -c "${CORE:-0}" ./avro_bench small.ndjson big.ndjson | tee result.txt
if [ "${SLUICE_BENCH_STRICT:-0}" = 1 ]; then
  awk '{for (i = 1; i < NF; i++) if ($(i + 1) == "GB/s,") us = $i} $NF < 10 || us < 0.8 {bad = 1} END {exit bad}' result.txt
fi
