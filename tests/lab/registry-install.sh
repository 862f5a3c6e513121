#!/usr/bin/env bash
# Readers with registry clients, see registry/README.md. Usage: registry-install.sh [go] [java] [node] [rust]
# Into $LAB/registry; pinned by registry/go/go.sum, registry/java/pom.xml, registry/node/package-lock.json, registry/rust/Cargo.lock. The Python ones come with
# py-install.sh main. Idempotent; half a minute when new, rust (only by name) some minutes.
set -euo pipefail
. "$(dirname "$0")/lab-env.sh"
SRC=$LAB_DIR/registry; D=$LAB/registry
mkdir -p "$D/java" "$D/node" "$D/bin"
once "$LAB/.registry.lock"
same() { [ "$(cat "$D/.$1" 2>/dev/null)" = "$(cat "${@:2}" | sha256sum)" ]; }
keep() { cat "${@:2}" | sha256sum > "$D/.$1"; echo "installed $D/$1"; }
for r in ${*:-go java node}; do
  case $r in
    go)
      files=("$SRC/go/go.mod" "$SRC/go/go.sum" "$SRC/go/main.go")
      same go "${files[@]}" && continue
      (cd "$SRC/go" && nice go build -p 2 -trimpath -mod=readonly -o "$D/bin/registry-go" .)
      keep go "${files[@]}";;
    java)
      files=("$SRC/java/pom.xml" "$SRC/java/RegistryRead.java")
      same java "${files[@]}" && continue
      have mvn && have javac || apt_need maven default-jdk-headless
      cp "$SRC/java/pom.xml" "$D/java/"
      rm -rf "$D/java/libs"
      nice mvn -q -B -f "$D/java/pom.xml" dependency:copy-dependencies -DoutputDirectory="$D/java/libs" -DincludeScope=runtime
      nice javac -nowarn -d "$D/java" -cp "$D/java/libs/*" "$SRC/java/RegistryRead.java"
      keep java "${files[@]}";;
    node)
      files=("$SRC/node/package.json" "$SRC/node/package-lock.json")
      same node "${files[@]}" && continue
      have npm || apt_need nodejs npm
      cp "${files[@]}" "$D/node/"
      (cd "$D/node" && nice npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null)
      keep node "${files[@]}";;
    rust)
      files=("$SRC"/rust/Cargo.* "$SRC/rust/src/main.rs")
      same rust "${files[@]}" && continue
      (cd "$SRC/rust" && CARGO_TARGET_DIR=$D/rust nice cargo build -q --release -j 2 --locked)
      cp "$D/rust/release/registry-rust" "$D/bin/registry-rust"
      keep rust "${files[@]}";;
    *) echo "unknown reader $r" >&2; exit 1;;
  esac
done
