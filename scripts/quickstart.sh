#!/usr/bin/env bash
# From a fresh Debian 12 to a running gateway with documents in it. Usage: scripts/quickstart.sh [--once]
#   (no flag)  installs what is missing (apt, with sudo when you are not root), builds a release, starts the server on an
#              example collection, prints lines to paste for kcat, Java and Python, and runs until Ctrl-C
#   --once     the same, but consumes with kcat, prints the documents, stops the server and exits 0
# Env: SLUICE_QUICKSTART_DIR  data of the example (default build/quickstart); a second run finds its documents there
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD
ONCE=
case ${1:-} in
  '') ;;
  --once) ONCE=1;;
  -h|--help) sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0;;
  *) echo "usage: scripts/quickstart.sh [--once]" >&2; exit 2;;
esac
DIR=${SLUICE_QUICKSTART_DIR:-$ROOT/build/quickstart}
BIN=$ROOT/build/release/sluice
TOPIC=orders
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }

say "1/4  Installing what is missing"
"$ROOT/scripts/install-deps.sh" --build

say "2/4  Building a release (build/release)"
mkdir -p "$ROOT/build"
LOG=$ROOT/build/quickstart-build.log
{ cmake --preset release && cmake --build build/release --target sluice -j"$(nproc)"; } > "$LOG" 2>&1 ||
  { tail -30 "$LOG" >&2; echo "the build failed; all of it is in $LOG" >&2; exit 1; }
"$BIN" --version

say "3/4  Starting the server"
free_or_0() { # the port when nobody listens there, else 0: the server then picks one
  if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then echo 0; else echo "$1"; fi
}
K=$(free_or_0 9092); A=$(free_or_0 9094)
mkdir -p "$DIR"
PORTS=$DIR/ports.json; SLOG=$DIR/server.log
rm -f "$PORTS"
"$BIN" serve --data-dir "$DIR/data" --kafka-listen "127.0.0.1:$K" --admin-listen "127.0.0.1:$A" --ports-file "$PORTS" > "$SLOG" 2>&1 &
PID=$!
stop() {
  trap - EXIT INT TERM
  kill -TERM "$PID" 2>/dev/null || true
  wait "$PID" 2>/dev/null || true
}
trap stop EXIT
trap 'stop; exit 0' INT TERM
port() { sed -n 's/.*"'"$1"'" *: *\([0-9]*\).*/\1/p' "$PORTS" 2>/dev/null; }
for _ in $(seq 200); do
  [ -n "$(port admin)" ] && curl -fs "http://127.0.0.1:$(port admin)/readyz" >/dev/null && break
  kill -0 "$PID" 2>/dev/null || { cat "$SLOG" >&2; exit 1; }
  sleep 0.05
done
KAFKA=127.0.0.1:$(port kafka); ADMIN=http://127.0.0.1:$(port admin)
curl -fs "$ADMIN/readyz" >/dev/null || { cat "$SLOG" >&2; echo "the server is not ready after 10 s" >&2; exit 1; }
[ "$K" = 0 ] && echo "Port 9092 is taken: Kafka clients connect to $KAFKA."
[ "$A" = 0 ] && echo "Port 9094 is taken: the admin listener is at $ADMIN."
echo "Kafka: $KAFKA    admin: $ADMIN    data: ${DIR#"$ROOT"/}/data    log: ${SLOG#"$ROOT"/}"

say "4/4  Publishing examples/orders.ndjson"
# One key for the whole file: publishing it again, in a second run, adds nothing.
curl -fsS -H 'Content-Type: application/x-ndjson' -H "Idempotency-Key: quickstart-$(sha256sum examples/orders.ndjson | cut -c1-16)" \
  --data-binary @examples/orders.ndjson "$ADMIN/v1/collections/$TOPIC/documents?partitions=3&key=/order" > "$DIR/published.json" ||
  { cat "$SLOG" >&2; exit 1; }
echo "$(sed -n 's/.*"documents":\([0-9]*\),"partitions".*/\1/p' "$DIR/published.json") documents in the topic \"$TOPIC\", 3 partitions, key /order"

if [ -n "$ONCE" ]; then
  say "Reading them with kcat"
  kcat -C -q -b "$KAFKA" -t "$TOPIC" -o beginning -e -f '%t[%p] at %o  %k  %s\n' > "$DIR/consumed.txt"
  cat "$DIR/consumed.txt"
  GOT=$(wc -l < "$DIR/consumed.txt"); WANT=$(grep -c . examples/orders.ndjson)
  stop
  [ "$GOT" -ge "$WANT" ] || { echo "read $GOT documents of $WANT" >&2; exit 1; }
  say "$GOT documents read back; the server has stopped."
  exit 0
fi

say "The gateway runs. Paste into another terminal, in $ROOT:"
cat <<T

# kcat
kcat -C -b $KAFKA -t $TOPIC -o beginning -e

# Java: this fetches Kafka's own tools by Maven; with a Kafka at hand it is kafka-console-consumer.sh and the same flags
tests/lab/kt console-consumer --bootstrap-server $KAFKA --topic $TOPIC --partition 0 --offset earliest

# Python
python3 -m venv build/venv && build/venv/bin/pip -q install confluent-kafka
build/venv/bin/python - <<'PY'
from confluent_kafka import Consumer, TopicPartition, OFFSET_BEGINNING
c = Consumer({'bootstrap.servers': '$KAFKA', 'group.id': 'quickstart', 'enable.partition.eof': True})
c.assign([TopicPartition('$TOPIC', p, OFFSET_BEGINNING) for p in range(3)])
ends = 0
while ends < 3:
    m = c.poll(5)
    if m and not m.error():
        print(m.partition(), m.offset(), m.value().decode())
    else:
        ends += 1
PY

# One document more, while a consumer runs
echo '{"order":"B-1","status":"placed"}' | build/release/sluice publish $TOPIC --admin $ADMIN

# What is there: the page $ADMIN/ and
build/release/sluice topics --admin $ADMIN

Ctrl-C stops the server. The documents stay in ${DIR#"$ROOT"/}/data.
T
wait "$PID"
