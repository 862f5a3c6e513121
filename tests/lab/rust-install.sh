#!/usr/bin/env bash
# Rust clients: rdkafka 0.39.0 (builds librdkafka from the crate) and rskafka 0.6.0 -> $LAB/bin/lab-rdkafka, lab-rskafka
# Takes about 4 minutes. Needs Rust >= 1.85.
set -euo pipefail
. "$(dirname "$0")/lab-env.sh"
have cargo || { echo "needs Rust 1.85 or newer, found none" >&2; exit 1; }
apt_need build-essential zlib1g-dev
mkdir -p "$LAB/rust" "$LAB/bin"
once "$LAB/.rust.lock"
sum=$(cat "$LAB_DIR"/rust/Cargo.* "$LAB_DIR"/rust/src/* | sha256sum | cut -d' ' -f1)
[ "$(cat "$LAB/bin/.lab-rust.sum" 2>/dev/null)" = "$sum" ] && [ -x "$LAB/bin/lab-rskafka" ] && exit 0
cd "$LAB_DIR/rust"
CARGO_TARGET_DIR=$LAB/rust/target nice cargo build -q --release -j 2 --locked
cp "$LAB"/rust/target/release/lab-{rdkafka,rskafka} "$LAB/bin/"
echo "$sum" > "$LAB/bin/.lab-rust.sum"; echo "built $LAB/bin/lab-rdkafka $LAB/bin/lab-rskafka"
