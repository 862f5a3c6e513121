#!/usr/bin/env bash
# Apache Kafka $KAFKA_VERSION (broker, tools, connect) from Maven Central into $KAFKA_LIBS by java/kafka-pom.xml, and
# the lab's own Java client (java/LabClient.java) compiled against it. Idempotent.
set -euo pipefail
. "$(dirname "$0")/lab-env.sh"
sum=$(cat "$LAB_DIR"/java/LabClient.java | sha256sum | cut -d' ' -f1)
C=$LAB/kafka/$KAFKA_VERSION/classes
[ -f "$KAFKA_LIBS/.done" ] && [ "$(cat "$C/.sum" 2>/dev/null)" = "$sum" ] && exit 0
have mvn || apt_need maven
have javac || apt_need openjdk-17-jdk-headless
D=$LAB/kafka/$KAFKA_VERSION; mkdir -p "$D"
once "$LAB/.kafka.lock"
if [ ! -f "$KAFKA_LIBS/.done" ]; then
  rm -rf "$KAFKA_LIBS"
  cp "$LAB_DIR/java/kafka-pom.xml" "$D/pom.xml"
  nice mvn -q -B -f "$D/pom.xml" -Dkafka.version="$KAFKA_VERSION" dependency:copy-dependencies \
    -DoutputDirectory="$KAFKA_LIBS" -DincludeScope=runtime
  rm -f "$KAFKA_LIBS"/slf4j-reload4j-*.jar   # older lines pull these in; keep exactly one slf4j backend
  touch "$KAFKA_LIBS/.done"
  echo "installed kafka $KAFKA_VERSION: $(ls "$KAFKA_LIBS"/*.jar | wc -l) jars"
fi
mkdir -p "$C"
nice javac -nowarn -d "$C" -cp "$KAFKA_LIBS/*" "$LAB_DIR/java/LabClient.java"
echo "$sum" > "$C/.sum"
