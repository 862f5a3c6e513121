#!/usr/bin/env bash
# Node clients into $LAB/node by package-lock.json. kafkajs and @platformatic/kafka are pure JS; node-rdkafka and
# @confluentinc/kafka-javascript carry librdkafka's source in their packages and are compiled here (4 minutes).
# Usage: node-install.sh [--native]     Needs Node >= 18 (KafkaJS), >= 20 (@platformatic/kafka).
set -euo pipefail
. "$(dirname "$0")/lab-env.sh"
have node && have npm || apt_need nodejs npm
mkdir -p "$LAB/node"
once "$LAB/.node.lock"
cd "$LAB/node"
want=$(cat "$LAB_DIR/node/package.json" "$LAB_DIR/node/package-lock.json" | sha256sum | cut -d' ' -f1)
if [ "$(cat .locked 2>/dev/null)" != "$want" ]; then
  cp "$LAB_DIR/node/package.json" "$LAB_DIR/node/package-lock.json" .
  rm -f .locked .native-*
  nice npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
  echo "$want" > .locked; echo "installed $LAB/node"
fi
[ "${1:-}" = --native ] || exit 0
apt_need build-essential libssl-dev zlib1g-dev libzstd-dev liblz4-dev libcurl4-openssl-dev libsasl2-dev pkg-config
NODEDIR=$(dirname "$(dirname "$(readlink -f "$(command -v node)")")"); [ -d "$NODEDIR/include/node" ] || NODEDIR=/usr
[ -d "$NODEDIR/include/node" ] || apt_need libnode-dev
export npm_config_nodedir=$NODEDIR npm_config_build_from_source=true JOBS=2 MAKEFLAGS=-j2 BUILD_LIBRDKAFKA=1
export CKJS_LINKING=dynamic   # static would fetch the sources of zlib, openssl, zstd and curl
for p in node-rdkafka @confluentinc/kafka-javascript; do
  f=.native-${p//[@\/]/_}; [ -f "$f" ] && continue
  echo "building $p"
  for try in 1 2; do   # with -j2 the first pass may stop right after librdkafka's configure wrote config.h: run it again
    nice npm rebuild "$p" --foreground-scripts > "build-${p##*/}.log" 2>&1 && break
    [ $try = 1 ] || { tail -20 "build-${p##*/}.log"; exit 1; }
  done
  touch "$f"
done
