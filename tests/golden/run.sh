#!/usr/bin/env bash
# The codec against kafka-clients, both ways. Prints 'PASS name', 'FAIL name reason' or 'SKIP name (reason)' for each
# test; exit 1 when one failed. What each one does: README.md.
#   SLUICE_BUILD_DIR     a configured build folder (default build/dev); missing programs are built there
#   KAFKA_CLIENTS_JAR    see fetch-kafka-clients.sh
#   SLUICE_GOLDEN_TIMES  random messages of each API, version and direction (default 20)
#   SLUICE_GOLDEN_SEED   default: the time
# `run.sh update` writes messages.hex anew instead.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
HERE=$PWD; ROOT=$(cd ../.. && pwd)
BUILD=${SLUICE_BUILD_DIR:-$ROOT/build/dev}
GOLDEN=$BUILD/tests/golden/kp_golden
BATCH=$BUILD/tests/unit_kafka_proto_batch_golden_test
SEED=${SLUICE_GOLDEN_SEED:-$(date +%s)}
TMP=$(mktemp -d); trap 'rm -rf "$TMP"' EXIT
bad=0

result() { # result NAME STATUS TEXT: 77 is a skip
  case $2 in
    0) echo "PASS $1" ;;
    77) echo "SKIP $1 ($3)" ;;
    *) echo "FAIL $1 $3"; bad=1 ;;
  esac
}
dump_batches() { mkdir -p "$TMP/ours" && (cd "$ROOT" && SLUICE_BATCH_DUMP=$TMP/ours "$BATCH"); } # it reads the tree
last() { tail -1 "$1" | cut -c1-300; }

if [ ! -x "$GOLDEN" ] || [ ! -x "$BATCH" ]; then
  { [ -f "$BUILD/build.ninja" ] || cmake --preset dev -B "$BUILD" -S "$ROOT"; } > "$TMP/build" 2>&1 &&
    cmake --build "$BUILD" --target kp_golden unit_kafka_proto_batch_golden_test -j2 >> "$TMP/build" 2>&1
  [ -x "$GOLDEN" ] && [ -x "$BATCH" ] || { result golden/build 1 "$(last "$TMP/build")"; exit 1; }
fi

JAVA_TESTS="golden/messages_current golden/our_messages_in_java golden/tables golden/java_batches_current golden/our_batches_in_java"
skip_java() { for t in $JAVA_TESTS; do result "$t" 77 "$1"; done; }

java_tests() {
  local jar=${CP%%:*}
  javac -d "$TMP/classes" -cp "$CP" java/KafkaGolden.java batch/BatchGolden.java > "$TMP/javac" 2>&1 ||
    { result golden/java_sources 1 "$(grep -m1 error "$TMP/javac")"; return; }
  golden() { java -Xmx256m -cp "$TMP/classes:$CP" "$@"; }

  "$GOLDEN" apis | golden KafkaGolden fill > "$TMP/messages.hex" 2> "$TMP/err"
  if [ "${1:-}" = update ]; then
    cp "$TMP/messages.hex" messages.hex; echo "messages.hex: $(wc -l < messages.hex) messages"; return
  fi
  cmp -s messages.hex "$TMP/messages.hex"
  result golden/messages_current $? "messages.hex is not what kafka-clients writes (run.sh update): $(last "$TMP/err")"

  "$GOLDEN" emit "$SEED" "${SLUICE_GOLDEN_TIMES:-20}" | golden KafkaGolden verify > "$TMP/verify" 2>&1
  result golden/our_messages_in_java $? "seed $SEED: $(last "$TMP/verify")"

  python3 compare_tables.py "$jar" > "$TMP/tables"
  result golden/tables $? "$(head -1 "$TMP/tables") ... $(last "$TMP/tables")"

  mkdir "$TMP/java"
  golden BatchGolden write "$TMP/java" > "$TMP/batch" 2>&1 && diff -q batch "$TMP/java" -x '*.java' -x '*.md' >> "$TMP/batch" 2>&1
  result golden/java_batches_current $? "$(last "$TMP/batch")"
  { dump_batches && golden BatchGolden read "$TMP/ours"; } > "$TMP/batch" 2>&1
  result golden/our_batches_in_java $? "$(last "$TMP/batch")"
}

if ! command -v javac > /dev/null; then
  skip_java "no Java compiler"
elif ! CP=$("$HERE/fetch-kafka-clients.sh" 2> "$TMP/fetch"); then
  skip_java "kafka-clients is not there: $(last "$TMP/fetch")"
else
  java_tests "$@"
  [ "${1:-}" = update ] && exit
fi

"$GOLDEN" check messages.hex > "$TMP/check" 2>&1
result golden/java_messages_in_ours $? "$(last "$TMP/check")"

PY=${LAB:-/opt/lab}/py/bin/python # has kafka-python, when the lab is installed
[ -x "$PY" ] || PY=python3
{ dump_batches && "$PY" batch_check.py "$TMP/ours"; } > "$TMP/batch" 2>&1
result golden/our_batches_in_kafka_python $? "$(last "$TMP/batch")"
exit $bad
