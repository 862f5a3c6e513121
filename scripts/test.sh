#!/usr/bin/env bash
# Runs everything that is tested. The last line is "N passed, N failed, N skipped"; exit 1 when something failed.
# Usage: scripts/test.sh        Env:
#   SLUICE_TEST_PROFILE  full (default; an hour at most, installation included) or quick (ten minutes: no clang, no tsan)
#   SLUICE_TEST_BUDGET   seconds for all of it, shared out to the suites (full 3300, quick 540)
#   SLUICE_TEST_LONG=1   full sizes without a budget worth the name; scripts/test-long.sh
#   SLUICE_TEST_BEFORE   a file of PASS/FAIL/SKIP lines that count too (.ci/run: its checks)
#   CI=true              a skip has to be listed in tests/allowed_skips.txt
# Logs: build/test-logs.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
exec </dev/null
PROFILE=${SLUICE_TEST_PROFILE:-full}
case $PROFILE in
  full) BUDGET=${SLUICE_TEST_BUDGET:-3300};;
  quick) BUDGET=${SLUICE_TEST_BUDGET:-540};;
  *) echo "test.sh: SLUICE_TEST_PROFILE is full or quick, not $PROFILE" >&2; echo "0 passed, 1 failed, 0 skipped"; exit 2;;
esac
[ "${SLUICE_TEST_LONG:-}" = 1 ] && { PROFILE=full; BUDGET=${SLUICE_TEST_BUDGET:-36000}; }
LOGS=$PWD/build/test-logs
RESULTS=$LOGS/results
JOBS=$(nproc)
START=$SECONDS
rm -rf "$LOGS"; mkdir -p "$LOGS"
: > "$RESULTS"
[ -z "${SLUICE_TEST_BEFORE:-}" ] || cat "$SLUICE_TEST_BEFORE" >> "$RESULTS"

left() { echo $(( BUDGET - (SECONDS - START) )); }
at_least() { [ "$2" -gt "$1" ] && echo "$2" || echo "$1"; } # at_least FLOOR N
share() { at_least 60 $(( $(left) * $1 / 100 )); }          # share PERCENT: of the time that is left, not under a minute
detail() { sed 's/^/  | /' | cut -c1-300; }
closing() {
  local allow=()
  [ "${CI:-}" = true ] && allow=(tests/allowed_skips.txt)
  echo "took $(( SECONDS - START )) s, logs in build/test-logs"
  python3 scripts/count_results.py "$RESULTS" "${allow[@]}"
  exit $?
}

build() { # build PRESET TARGET...: all targets without TARGET. A failure is a result, success is not.
  local preset=$1 t0=$SECONDS log=$LOGS/build-$1.log; shift
  local targets=()
  [ $# -eq 0 ] || targets=(--target "$@")
  if { cmake --preset "$preset" && timeout "$(at_least 120 "$(left)")" cmake --build "build/$preset" -j"$JOBS" "${targets[@]}" -- -k 0; } > "$log" 2>&1; then
    echo "build $preset: $(( SECONDS - t0 )) s"
  else
    echo "FAIL build/$preset see build/test-logs/build-$preset.log" >> "$RESULTS"
    echo "build $preset: FAILED after $(( SECONDS - t0 )) s"
    grep -E 'error|FAILED|undefined reference|CMake Error' "$log" | head -30 | detail
    return 1
  fi
}

count() { grep -cE "^$1 " "$2" || true; }
run_ctest() { # run_ctest PRESET PREFIX LIMIT ARG...
  local preset=$1 prefix=$2 limit=$3 t0=$SECONDS rc; shift 3
  local log=$LOGS/ctest-$preset.log xml=$LOGS/ctest-$preset.xml lines=$LOGS/ctest-$preset.results
  timeout "$limit" ctest --test-dir "build/$preset" -j"$JOBS" --timeout 300 --output-on-failure --no-tests=error \
    --test-output-size-passed 10000000 --test-output-size-failed 10000000 --output-junit "$xml" "$@" > "$log" 2>&1
  rc=$?
  : > "$lines"
  [ -s "$xml" ] && python3 scripts/count_ctest.py "$xml" "$prefix" > "$lines"
  # ctest can fail without a failed case: no tests, the time limit, a file that cannot be read.
  if [ $rc -ne 0 ] && ! grep -q '^FAIL' "$lines"; then
    echo "FAIL ${prefix}ctest exit $rc$([ $rc -ne 124 ] || echo ", over its $limit s")" >> "$lines"
  fi
  cat "$lines" >> "$RESULTS"
  echo "ctest $preset: $(( SECONDS - t0 )) s of $limit: $(count PASS "$lines") passed, $(count FAIL "$lines") failed, $(count SKIP "$lines") skipped"
  if grep -q '^FAIL' "$lines"; then
    grep '^FAIL' "$lines" | detail
    sed -n '/Failed\|\*\*\*\|\[  FAILED\|ERROR\|Error:\|SUMMARY:\|[0-9]: error\|Sanitizer/p' "$log" | head -80 | detail
  fi
}

run_lines() { # run_lines NAME LIMIT COMMAND...: a script that prints PASS/FAIL/SKIP lines itself
  local name=$1 limit=$2 log=$LOGS/$1.log t0=$SECONDS rc; shift 2
  timeout --kill-after=30 "$limit" "$@" 2>&1 | tee "$log" | { grep --line-buffered -v '^PASS ' || true; }
  rc=${PIPESTATUS[0]}
  if [ "$rc" -eq 124 ] || [ "$rc" -eq 137 ]; then
    echo "FAIL $name is over its $limit s" | tee -a "$log" # what it did not reach is not proven
  elif [ "$rc" -ne 0 ] && ! grep -q '^FAIL ' "$log"; then
    echo "FAIL $name exit $rc" | tee -a "$log"
  elif ! grep -qE '^(PASS|FAIL|SKIP) ' "$log"; then
    echo "FAIL $name printed no result" | tee -a "$log"
  fi
  grep -E '^(PASS|FAIL|SKIP) ' "$log" >> "$RESULTS"
  echo "$name: $(( SECONDS - t0 )) s of $limit: $(count PASS "$log") passed, $(count FAIL "$log") failed, $(count SKIP "$log") skipped"
}

LAB=$(. tests/lab/lab-env.sh && echo "$LAB") # where the clients are installed
export LAB

echo "== dependencies"
t0=$SECONDS
if ! scripts/install-deps.sh > "$LOGS/install.log" 2>&1; then
  tail -20 "$LOGS/install.log"
  echo "FAIL install-deps see build/test-logs/install.log" >> "$RESULTS"
  command -v python3 >/dev/null || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
fi
echo "dependencies: $(( SECONDS - t0 )) s"

echo "== dev: AddressSanitizer, UndefinedBehaviorSanitizer"
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
build dev
run_ctest dev "" "$(share 40)"

if [ "$PROFILE" = full ]; then
  echo "== clang: warnings are errors"
  build clang && echo "PASS build/clang" >> "$RESULTS"
  echo "== tsan: threads"
  mapfile -t stress < <(basename -s .c -a tests/stress/*_test.c | sed 's/^/stress_/')
  TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1} # a race ends the program, and the test with it
  export TSAN_OPTIONS
  build tsan "${stress[@]}"
  run_ctest tsan tsan/ "$(share 25)" -R '^stress_'
  echo "== golden: bytes of kafka-clients"
  # What these compare with; the integration tests use both too.
  { timeout 300 tests/lab/kafka-install.sh; timeout 300 tests/lab/py-install.sh main; } > "$LOGS/install-lab.log" 2>&1
  SLUICE_BUILD_DIR=$PWD/build/dev run_lines golden "$(share 20)" tests/golden/run.sh
fi
if [ "${SLUICE_TEST_LONG:-}" = 1 ]; then
  echo "== fuzz: libFuzzer, ${SLUICE_FUZZ_SECONDS:=60} s for each target"
  mapfile -t targets < <(basename -s .c -a tests/fuzz/*_fuzz.c)
  build fuzz "${targets[@]}"
  for f in "${targets[@]}"; do
    # New inputs stay beside the logs: the corpus in the tree is chosen by hand.
    mkdir -p "$LOGS/fuzz-$f"
    if "build/fuzz/tests/$f" -max_total_time="$SLUICE_FUZZ_SECONDS" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$LOGS/$f-" \
      "$LOGS/fuzz-$f" "tests/fuzz/corpus/$f" > "$LOGS/fuzz-$f.log" 2>&1; then
      echo "PASS fuzz/$f" >> "$RESULTS"
    else
      echo "FAIL fuzz/$f see build/test-logs/fuzz-$f.log" >> "$RESULTS"
      tail -40 "$LOGS/fuzz-$f.log" | detail
    fi
  done
fi
integration() { # integration NAME STORE LIMIT BUDGET: its logs are in a folder of that name
  SLUICE_TEST_STORE=$2 SLUICE_TEST_PROFILE=$([ "$PROFILE" = quick ] && echo quick || echo ci) SLUICE_TEST_BUDGET=$4 \
    SLUICE_BIN=$PWD/build/dev/sluice SLUICE_TEST_OUT=$LOGS/$1 run_lines "$1" "$3" tests/integration/run.sh
}
# The share of the suites that runs over brokers: its sizes are those of so many seconds, and it takes five minutes on two
# quiet cores; a loaded machine may take twice as long.
brokers=$([ "$PROFILE" = quick ] && echo 60 || echo 420)
reserve=$(( brokers * 3 / 2 ))
echo "== integration: real clients"
limit=$(at_least 120 $(( $(left) - 30 - reserve )))
# The script plans with its budget and installs clients before it; the hard limit stands behind it.
integration integration local "$limit" $(( limit * 7 / 10 ))
echo "== integration over the stand-in broker"
integration stand_in stand-in "$(at_least "$reserve" "$(left)")" "$brokers"
if [ "$PROFILE" = full ]; then
  echo "== integration over a real broker, where there is one"
  integration real_broker real "$(at_least "$reserve" "$(left)")" "$brokers"
fi
echo "== all"
closing
