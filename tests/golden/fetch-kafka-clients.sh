#!/usr/bin/env bash
# Prints the class path of kafka-clients (the jar itself comes first) and fetches what is missing.
#   KAFKA_CLIENTS_JAR   a jar to use; its neighbours in the same folder join the class path
#   else the newest below $LAB/kafka/*/libs (LAB as in tests/lab/lab-env.sh, default /opt/lab)
#   else Maven puts the pinned version with its dependencies into the user's cache
set -euo pipefail
VERSION=4.3.1
LAB=${LAB:-/opt/lab}
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sluice-golden/kafka-clients-$VERSION

with_neighbours() { # what kafka-clients needs to run: codecs and slf4j, without a logging backend
  local dir; dir=$(dirname "$1")
  printf '%s' "$1"
  for jar in "$dir"/{slf4j-api,zstd-jni,lz4-java,snappy-java}-*.jar; do [ -f "$jar" ] && printf ':%s' "$jar"; done
  echo
}
newest() { printf '%s\n' "$@" | sort -V | tail -1; }

if [ -n "${KAFKA_CLIENTS_JAR:-}" ]; then
  [ -f "$KAFKA_CLIENTS_JAR" ] || { echo "no such file: $KAFKA_CLIENTS_JAR" >&2; exit 1; }
  with_neighbours "$KAFKA_CLIENTS_JAR"; exit 0
fi
for dir in "$LAB" "${XDG_CACHE_HOME:-$HOME/.cache}/sluice-lab"; do
  jar=$(newest "$dir"/kafka/*/libs/kafka-clients-[0-9]*.jar)
  [ -f "$jar" ] && { with_neighbours "$jar"; exit 0; }
done
if [ ! -f "$CACHE/.done" ]; then
  command -v mvn >/dev/null || { echo "kafka-clients is missing, and so is mvn to fetch it" >&2; exit 1; }
  tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
  cat > "$tmp/pom.xml" <<POM
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>sluice</groupId><artifactId>golden</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-clients</artifactId><version>$VERSION</version></dependency>
  </dependencies>
</project>
POM
  mkdir -p "$CACHE"
  timeout 300 mvn -q -B -f "$tmp/pom.xml" dependency:copy-dependencies -DoutputDirectory="$CACHE" -DincludeScope=runtime >&2
  touch "$CACHE/.done"
fi
with_neighbours "$CACHE/kafka-clients-$VERSION.jar"
