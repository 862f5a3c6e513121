#!/usr/bin/env bash
# Go clients (franz-go, sarama, kafka-go, confluent-kafka-go; versions in go/go.mod) -> $LAB/bin/lab-*
# Usage: go-install.sh [franz] [sarama] [kafkago] [confluent]      Needs the Go of go/go.mod or newer.
set -euo pipefail
. "$(dirname "$0")/lab-env.sh"
want=$(sed -n 's/^go //p' "$LAB_DIR/go/go.mod")
got=$(go env GOVERSION 2>/dev/null | sed 's/^go//')
[ -n "$got" ] && [ "$(printf '%s\n' "$want" "$got" | sort -V | head -1)" = "$want" ] ||
  { echo "needs Go $want or newer, found ${got:-none}" >&2; exit 1; }
mkdir -p "$LAB/bin"
once "$LAB/.go.lock"
cd "$LAB_DIR/go"
for c in ${*:-franz sarama kafkago confluent}; do
  sum=$(cat go.mod go.sum labdump/*.go "$c"/*.go | sha256sum | cut -d' ' -f1)
  [ "$(cat "$LAB/bin/.lab-$c.sum" 2>/dev/null)" = "$sum" ] && [ -x "$LAB/bin/lab-$c" ] && continue
  nice go build -p 2 -trimpath -mod=readonly -o "$LAB/bin/lab-$c" "./$c"
  echo "$sum" > "$LAB/bin/.lab-$c.sum"; echo "built $LAB/bin/lab-$c"
done
