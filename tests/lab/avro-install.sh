#!/usr/bin/env bash
# Avro readers for the differential tests, see avro/README.md. Usage: avro-install.sh [fastavro] [java] [node] [go] [rust]
# Into $LAB/avro; pinned by avro/java/pom.xml, avro/node/package-lock.json, avro/go/go.sum, avro/rust/Cargo.lock; fastavro
# comes with py-install.sh. Idempotent. Rust takes a minute or two.
set -euo pipefail
. "$(dirname "$0")/lab-env.sh"
SRC=$LAB_DIR/avro; D=$LAB/avro
mkdir -p "$D/java" "$D/node" "$D/bin"
once "$LAB/.avro.lock"
same() { [ "$(cat "$D/.$1" 2>/dev/null)" = "$(cat "${@:2}" | sha256sum)" ]; }
keep() { cat "${@:2}" | sha256sum > "$D/.$1"; echo "installed $D/$1"; }
for r in ${*:-fastavro java node go rust}; do
  case $r in
    fastavro) "$LAB_DIR/py-install.sh" main;;
    java)
      same java "$SRC/java/pom.xml" "$SRC"/java/*.java && continue
      have mvn && have javac || apt_need maven default-jdk-headless
      cp "$SRC/java/pom.xml" "$D/java/"
      rm -rf "$D/java/libs"
      nice mvn -q -B -f "$D/java/pom.xml" dependency:copy-dependencies -DoutputDirectory="$D/java/libs" -DincludeScope=runtime
      nice javac -d "$D/java" -cp "$D/java/libs/*" "$SRC"/java/*.java
      keep java "$SRC/java/pom.xml" "$SRC"/java/*.java;;
    node)
      same node "$SRC/node/package.json" "$SRC/node/package-lock.json" && continue
      have npm || apt_need nodejs npm
      cp "$SRC/node/package.json" "$SRC/node/package-lock.json" "$D/node/"
      (cd "$D/node" && nice npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null)
      keep node "$SRC/node/package.json" "$SRC/node/package-lock.json";;
    go)
      same go "$SRC/go/go.mod" "$SRC/go/go.sum" "$SRC/go/main.go" && continue
      (cd "$SRC/go" && nice go build -p 2 -trimpath -mod=readonly -o "$D/bin/avro-go" .)
      keep go "$SRC/go/go.mod" "$SRC/go/go.sum" "$SRC/go/main.go";;
    rust)
      same rust "$SRC"/rust/Cargo.* "$SRC/rust/src/main.rs" && continue
      (cd "$SRC/rust" && CARGO_TARGET_DIR=$D/rust nice cargo build -q --release -j 2 --locked)
      cp "$D/rust/release/lab-avro" "$D/bin/avro-rust"
      keep rust "$SRC"/rust/Cargo.* "$SRC/rust/src/main.rs";;
    *) echo "unknown reader $r" >&2; exit 1;;
  esac
done
