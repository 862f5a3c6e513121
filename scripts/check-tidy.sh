#!/usr/bin/env bash
# clang-tidy over our C files, with the checks of .clang-tidy, each finding an error.
# Usage: scripts/check-tidy.sh [--changed REF] [--seconds N] [FILE...]
#   (none)         all tracked .c files outside tests/, those that differ from the last commit first
#   --changed REF  only those that differ from REF
#   --seconds N    start no new file after N seconds; says how many were left (default: no limit)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=0
ref=
files=()
while [ $# -gt 0 ]; do
  case $1 in
    --changed) ref=$2; shift;;
    --seconds) seconds=$2; shift;;
    -*) sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2;;
    *) files+=("$1");;
  esac
  shift
done
changed() { git -c safe.directory='*' diff --name-only --diff-filter=d "$1" -- 2>/dev/null || true; }
ours() { git -c safe.directory='*' ls-files -- 'base/*.c' 'kafka_proto/*.c' 'journal_client/*.c' 'schema/*.c' 'gateway/*.c' 'app/*.c'; }
if [ ${#files[@]} -eq 0 ]; then
  if [ -n "$ref" ]; then
    mapfile -t files < <(comm -12 <(changed "$ref" | sort) <(ours | sort))
  else
    mapfile -t files < <({ comm -12 <(changed HEAD~1 | sort) <(ours | sort); ours; } | awk '!seen[$0]++')
  fi
fi
[ ${#files[@]} -gt 0 ] || { echo "tidy: no files"; exit 0; }

# Compile commands and generated headers of the clang preset.
dir=${SLUICE_TIDY_BUILD:-build/clang}
mkdir -p build
{ [ -n "${SLUICE_TIDY_BUILD:-}" ] || { cmake --preset clang && cmake --build "$dir" --target kafka_proto gazette_proto -j"$(nproc)"; }; } > build/tidy-configure.log 2>&1 ||
  { tail -20 build/tidy-configure.log >&2; exit 1; }

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
export dir results
export until_s=$(( seconds > 0 ? $(date +%s) + seconds : 0 ))
tidy_one() {
  [ "$until_s" -eq 0 ] || [ "$(date +%s)" -lt "$until_s" ] || return 0
  local out
  if out=$(clang-tidy-14 -p "$dir" --quiet "$1" 2>/dev/null); then
    echo "$1" >> "$results/good"
  else
    { echo "$out" | grep -E '(warning|error):' || echo "$1: clang-tidy failed: $(tail -1 <<< "$out")"; } >> "$results/bad"
  fi
}
export -f tidy_one
printf '%s\0' "${files[@]}" | nice xargs -0 -n 1 -P "$(nproc)" bash -c 'tidy_one "$1"' _
touch "$results/good"
good=$(wc -l < "$results/good")
if [ -s "$results/bad" ]; then
  sed "s|^$PWD/||" "$results/bad" | sort -u
  exit 1
fi
echo "tidy: $good of ${#files[@]} files$([ "$good" -eq ${#files[@]} ] || echo ', the rest is beyond the time limit')"
