#!/usr/bin/env bash
# Integration tests: real clients against a real server. run.sh [suite...]      e.g. run.sh bad_input offsets_basic
# Prints 'PASS name seconds', 'FAIL name reason', 'SKIP name (reason)' for each test and the time of each suite; exit 1
# when a test failed. scripts/test.sh counts these lines. Settings: docs/testing.md and scale.py.
#   SLUICE_BIN         the server (default build/dev/sluice, built when missing)
#   SLUICE_TEST_STORE  the store below it: local (default), stand-in (a broker of tests/gazette_stand_in beside SLUICE_BIN) or
#                      real (etcd and the broker that GAZETTE_BIN, LAB/bin or PATH name; one SKIP line where there is none).
#                      Over the two latter, run.sh without suites runs the share of a CI run: PART below
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
HERE=$PWD; ROOT=$(cd ../.. && pwd); LABD=$ROOT/tests/lab
. "$LABD/lab-env.sh"
START=$(date +%s)
STORE=${SLUICE_TEST_STORE:-local}
case $STORE in
  local) PREFIX=integration;;
  stand-in) PREFIX=stand_in;;
  real)
    PREFIX=real_broker
    BROKER=
    for b in "${GAZETTE_BIN:-}" "$LAB/bin/gazette" "$(command -v gazette)"; do [ -x "$b" ] && BROKER=$b && break; done
    [ -n "$BROKER" ] || { echo "SKIP real_broker/all (needs a Gazette broker: GAZETTE_BIN names one)"; exit 0; };;
  *) echo "FAIL integration/setup SLUICE_TEST_STORE is local, stand-in or real, not $STORE"; exit 1;;
esac

install() { # install SECONDS SCRIPT ARG... : what cannot be installed is skipped by the tests that need it
  local limit=$1; shift
  timeout "$limit" "$LABD/$1" "${@:2}" > "$OUT/install-$1.log" 2>&1 ||
    echo "NOTE $* did not succeed: $(tail -1 "$OUT/install-$1.log" | cut -c1-200)"
}
OUT=${SLUICE_TEST_OUT:-$ROOT/build/test-logs/$PREFIX}; mkdir -p "$OUT"
[ "${SLUICE_TEST_PROFILE:-}" = quick ] && SETS="main tests" || SETS="main old ng tests"
apt_need python3 python3-venv curl
install 300 py-install.sh $SETS
install 120 c-install.sh
if [ "${SLUICE_TEST_PROFILE:-}" != quick ]; then
  install 200 node-install.sh
  install 300 go-install.sh
  install 300 kafka-install.sh
  install 120 haproxy-install.sh
fi
[ "${SLUICE_TEST_LONG:-}" = 1 ] && install 900 rust-install.sh
PYTEST=$LAB/py-tests/bin/python
[ -x "$PYTEST" ] || { echo "FAIL integration/setup no pytest: $(tail -1 "$OUT/install-py-install.sh.log")"; exit 1; }
if [ -z "${SLUICE_BIN:-}" ]; then
  SLUICE_BIN=$ROOT/build/dev/sluice
  [ -x "$SLUICE_BIN" ] || (cd "$ROOT" && cmake --preset dev > "$OUT/build.log" 2>&1 && cmake --build build/dev --target sluice sluice_gazette_stand_in -j2 >> "$OUT/build.log" 2>&1)
fi
export SLUICE_BIN
[ -x "$SLUICE_BIN" ] || { echo "FAIL integration/setup no server binary $SLUICE_BIN"; tail -5 "$OUT/build.log" 2>/dev/null; exit 1; }
ulimit -n "$(ulimit -H -n)" 2>/dev/null
echo "$PREFIX: set up in $(( $(date +%s) - START )) s"

declare -A PART=() # of a suite, the tests to run (pytest -k); all where there is none
if [ $# -gt 0 ]; then SUITES=("$@")
elif [ "$STORE" != local ]; then
  # The offset model, truncation and all clients as a whole; of the rest, one way through each part of the gateway that asks the store.
  if [ "${SLUICE_TEST_PROFILE:-}" = quick ]; then
    SUITES=(offsets_basic lab)
    PART=([offsets_basic]='last_byte or anywhere_in_a_document or high_watermark or out_of_range or by_time' [lab]='kcat-direct or py-confluent-direct or kafka-python-direct')
  else
    SUITES=(lifecycle offsets_basic offsets_journal offset_model truncation hidden_ranges epochs backfill groups lab)
    PART=(
      [lifecycle]='restart_keeps or readable_as_soon or a_retry or one_key or two_requests or partition_in_order or publish_and_read'
      [offsets_basic]='not idle_consumers and not flood and not kcat_starts and not java_seeks and not empty_wait'
      [offsets_journal]='served_as_its_bytes_say[0] or everything_removed'
      [hidden_ranges]='only_acks or many_acks_first or runs_over_many_blocks or a_middle_below or a_tail_below'
      [groups]='every_version or case_31 or static_members or commits_belong or answered_commit or never_blocks or goes_on_where_it_was[confluent]'
    )
  fi
else
  SUITES=(lifecycle offsets_basic offsets_journal offset_model hidden_ranges epochs cases_clients bad_input real_data kill9 backfill million lab)
  for f in test_*.py; do    # and those that came later
    f=${f#test_}; f=${f%.py}
    [[ " ${SUITES[*]} " == *" $f "* ]] || SUITES+=("$f")
  done
fi
bad=0
for s in "${SUITES[@]}"; do
  t0=$(date +%s)
  part=(); [ -z "${PART[$s]:-}" ] || part=(-k "${PART[$s]}")
  env SLUICE_TEST_LINES_FD=3 PYTHONDONTWRITEBYTECODE=1 "$PYTEST" -m pytest -q -rfE --tb=short -p no:cacheprovider -c "$HERE/pytest.ini" \
    "${part[@]}" --basetemp="${TMPDIR:-/tmp}/sluice-it-$$" "$HERE/test_$s.py" 3>&1 > "$OUT/$s.log" 2>&1
  rc=$?
  [ $rc -eq 0 ] || [ $rc -eq 5 ] || { bad=1; sed -n '/^=* FAILURES\|^=* ERRORS/,$p' "$OUT/$s.log" | cut -c1-400 | head -${SLUICE_TEST_DETAIL:-60} | sed 's/^/  | /'; }
  echo "$PREFIX/$s: $(( $(date +%s) - t0 )) s"
  rm -rf "${TMPDIR:-/tmp}/sluice-it-$$"
done
echo "$PREFIX: $(( $(date +%s) - START )) s in all, logs in ${OUT#"$ROOT"/}"
exit $bad
