#!/usr/bin/env bash
# Points real, unmodified Kafka clients at a broker (Kafka or the gateway) and checks that each reads every record.
# smoke.sh -b HOST:PORT -t TOPIC -n EXPECTED [-P] [-a ADMIN_URL] [-g PREFIX] [-k LOGDIR] [-r REQLOG] [name...]
#   EXPECTED  records in TOPIC (all partitions)
#   -P        only clients that work without consumer groups
#   -a URL    the broker is a gateway whose offsets are byte positions: instead of "sum of end offsets = EXPECTED",
#             java-get-offsets must print the high watermarks of URL/v1/topics
#   -r REQLOG the request log of a traced Kafka, for one API line per client
# LAB_CONSOLE_MS (4000): silence after which Java's console consumer gives up.
# smoke.sh [-P] -l lists the names; names may be globs. A client that is not installed is skipped.
# Closing line: 'N passed, N failed, N skipped'.
set -uo pipefail
. "$(dirname "$0")/lab-env.sh"
C=${LAB_CONSOLE_MS:-4000}; B=127.0.0.1:9092; T=hello; N=0; G=smoke-$$; K=; R=; A=; LIST=; PLAIN=
while getopts b:t:n:g:k:r:a:lP o; do
  case $o in b) B=$OPTARG;; t) T=$OPTARG;; n) N=$OPTARG;; g) G=$OPTARG;; k) K=$OPTARG;; r) R=$OPTARG;; a) A=$OPTARG;;
    l) LIST=1;; P) PLAIN=1;; *) exit 2;; esac
done
shift $((OPTIND-1)); WANT=("$@")
NODE="node $LAB_DIR/node/consume.js"; PYC="$LAB_DIR/py/consume.py"; J=$KAFKA_LIBS/.done
MAIN=$LAB/py/bin/python; OLD=$LAB/py-old/bin/python; NG=$LAB/py-ng/bin/python
# class | name | needs (file or command) | command line; each prints records=N somewhere, or for admin tools 'ok'
#   class d: works without consumer groups; g: joins a group or asks about groups
TAB() { cat <<E2
d|kcat-direct|kcat|lines kcat -C -q -b $B -t $T -o beginning -e
g|kcat-group|kcat|lines timeout 20 kcat -q -b $B -G $G-kcat -X auto.offset.reset=earliest -e $T
d|kcat-list|kcat|admin kcat -L -b $B
d|kcat-query|kcat|admin kcat -Q -b $B -t $T:0:1
g|rdperf-group|$LAB/bin/rdkafka_performance|rdperf $LAB/bin/rdkafka_performance -G $G-rdp -b $B -t $T -X auto.offset.reset=earliest -e
g|py-confluent|$MAIN|$MAIN $PYC confluent -b $B -t $T -g $G-pyc
g|py-confluent-next|$MAIN|$MAIN $PYC confluent -m next -b $B -t $T -g $G-pycn
d|py-confluent-direct|$MAIN|$MAIN $PYC confluent -m direct -b $B -t $T
g|py-confluent-2.3|$NG|$NG $PYC confluent -b $B -t $T -g $G-pyc23
d|py-confluent-2.3-direct|$NG|$NG $PYC confluent -m direct -b $B -t $T
d|py-confluent-1.9-direct|$OLD|$OLD $PYC confluent -m direct -b $B -t $T
g|kafka-python|$MAIN|$MAIN $PYC kafka-python -b $B -t $T -g $G-kp
d|kafka-python-direct|$MAIN|$MAIN $PYC kafka-python -m direct -b $B -t $T
g|kafka-python-2.0|$OLD|$OLD $PYC kafka-python -b $B -t $T -g $G-kp20
d|kafka-python-2.0-direct|$OLD|$OLD $PYC kafka-python -m direct -b $B -t $T
g|kafka-python-ng|$NG|$NG $PYC kafka-python -b $B -t $T -g $G-kpng
d|kafka-python-ng-direct|$NG|$NG $PYC kafka-python -m direct -b $B -t $T
g|aiokafka|$MAIN|$MAIN $PYC aiokafka -b $B -t $T -g $G-aio
d|aiokafka-direct|$MAIN|$MAIN $PYC aiokafka -m direct -b $B -t $T
g|franz|$LAB/bin/lab-franz|$LAB/bin/lab-franz -b $B -t $T -g $G-fr
g|franz-next|$LAB/bin/lab-franz|$LAB/bin/lab-franz -m next -b $B -t $T -g $G-frn
d|franz-direct|$LAB/bin/lab-franz|$LAB/bin/lab-franz -m direct -b $B -t $T
d|franz-direct-committed|$LAB/bin/lab-franz|$LAB/bin/lab-franz -m direct -rc -nosession -b $B -t $T
g|franz-admin|$LAB/bin/lab-franz|fradmin $LAB/bin/lab-franz -m admin -b $B -t $T
d|franz-admin-direct|$LAB/bin/lab-franz|fradmin $LAB/bin/lab-franz -m admin-direct -b $B -t $T
g|sarama|$LAB/bin/lab-sarama|$LAB/bin/lab-sarama -b $B -t $T -g $G-sa
g|sarama-4.1|$LAB/bin/lab-sarama|$LAB/bin/lab-sarama -ver 4.1.0 -b $B -t $T -g $G-sa41
g|sarama-1.0|$LAB/bin/lab-sarama|$LAB/bin/lab-sarama -ver 1.0.0 -b $B -t $T -g $G-sa10
d|sarama-direct|$LAB/bin/lab-sarama|$LAB/bin/lab-sarama -m direct -b $B -t $T
d|sarama-4.1-direct|$LAB/bin/lab-sarama|$LAB/bin/lab-sarama -ver 4.1.0 -m direct -b $B -t $T
d|sarama-1.0-direct|$LAB/bin/lab-sarama|$LAB/bin/lab-sarama -ver 1.0.0 -m direct -b $B -t $T
g|kafka-go|$LAB/bin/lab-kafkago|$LAB/bin/lab-kafkago -b $B -t $T -g $G-kgo
d|kafka-go-direct|$LAB/bin/lab-kafkago|$LAB/bin/lab-kafkago -m direct -b $B -t $T
g|confluent-go|$LAB/bin/lab-confluent|$LAB/bin/lab-confluent -b $B -t $T -g $G-cgo
g|confluent-go-next|$LAB/bin/lab-confluent|$LAB/bin/lab-confluent -m next -b $B -t $T -g $G-cgon
g|rust-rdkafka|$LAB/bin/lab-rdkafka|$LAB/bin/lab-rdkafka $B $T $G-rr
d|rskafka|$LAB/bin/lab-rskafka|$LAB/bin/lab-rskafka $B $T
g|kafkajs|$LAB/node/.locked|$NODE kafkajs $B $T $G-kjs
d|kafkajs-direct|$LAB/node/.locked|$NODE kafkajs-direct $B $T
g|platformatic|$LAB/node/.locked|$NODE platformatic $B $T $G-pl
g|platformatic-next|$LAB/node/.locked|$NODE platformatic-next $B $T $G-pln
d|platformatic-direct|$LAB/node/.locked|$NODE platformatic-direct $B $T
g|node-rdkafka|$LAB/node/.native-node-rdkafka|$NODE node-rdkafka $B $T $G-nrd
g|confluent-js|$LAB/node/.native-_confluentinc_kafka-javascript|$NODE confluent $B $T $G-cjs
g|confluent-js-next|$LAB/node/.native-_confluentinc_kafka-javascript|$NODE confluent-next $B $T $G-cjsn
g|java-console|$J|lines $LAB_DIR/kt console-consumer --bootstrap-server $B --topic $T --from-beginning --timeout-ms $C --group $G-jc
g|java-console-next|$J|lines $LAB_DIR/kt console-consumer --bootstrap-server $B --topic $T --from-beginning --timeout-ms $C --group $G-jcn --command-property group.protocol=consumer
d|java-console-partitions|$J|jparts $LAB_DIR/kt console-consumer --bootstrap-server $B --topic $T --offset earliest --timeout-ms $C
d|java-direct|$J|$LAB_DIR/kt class LabClient direct $B $T
g|java-perf|$J|jperf $LAB_DIR/kt consumer-perf-test --bootstrap-server $B --topic $T --group $G-jp --num-records $N --timeout 10000 --hide-header
g|java-verifiable|$J|jver $LAB_DIR/kt verifiable-consumer --bootstrap-server $B --topic $T --group-id $G-jv --reset-policy earliest --max-messages $N
d|java-get-offsets|$J|jgo $LAB_DIR/kt get-offsets --bootstrap-server $B --topic $T
g|java-groups-describe|$J|admin $LAB_DIR/kt consumer-groups --bootstrap-server $B --describe --all-groups
g|java-groups-list|$J|admin $LAB_DIR/kt groups --bootstrap-server $B --list
d|java-topics|$J|admin $LAB_DIR/kt topics --bootstrap-server $B --describe --topic $T
d|java-configs|$J|admin $LAB_DIR/kt configs --bootstrap-server $B --describe --entity-type topics --entity-name $T --all
d|java-api-versions|$J|admin $LAB_DIR/kt broker-api-versions --bootstrap-server $B
d|java-cluster-id|$J|admin $LAB_DIR/kt cluster cluster-id --bootstrap-server $B
g|quix|$LAB/py-quix/.locked|$LAB/py-quix/bin/python $LAB_DIR/py/frameworks.py quix $B $T $G-quix $N
g|faust|$LAB/py-faust/.locked|$LAB/py-faust/bin/python $LAB_DIR/py/frameworks.py faust $B $T $G-faust $N
g|bytewax|$LAB/py-bytewax/.locked|$LAB/py-bytewax/bin/python $LAB_DIR/py/frameworks.py bytewax $B $T $G-bw $N
g|faststream|$LAB/py-faststream/.locked|$LAB/py-faststream/bin/python $LAB_DIR/py/frameworks.py faststream $B $T $G-fs $N
E2
}
lines() { timeout 50 "$@" | wc -l | sed 's/^/records=/'; }                   # one record a line -> records=N
admin() { timeout 40 "$@" && echo ok; }
fradmin() { timeout 40 "$@" | awk '{print > "/dev/stderr"} !/err=<nil>/{bad=1} END{if (NR && !bad) print "ok"}'; }
rdperf() { timeout 40 "$@" 2>&1 | sed -n 's/.*% \([0-9]*\) messages .*consumed.*/records=\1/p' | tail -1; }
jperf() { timeout 60 "$@" | awk -F', ' 'NF>4{print "records="$5}'; }
jver() { timeout 60 "$@" | grep -o '"name":"records_consumed","count":[0-9]*\|"count":[0-9]*.*records_consumed' | grep -o 'count":[0-9]*' | awk -F: '{s+=$2} END{print "records="s}'; }
jgo() {
  local got; got=$(timeout 40 "$@") || return 1
  if [ -z "$A" ]; then awk -F: '{s+=$3} END{print "records="s}' <<<"$got"; return; fi
  curl -fsS "$A/v1/topics" | python3 "$LAB_DIR/py/end_offsets.py" "$T" > "$K/want-offsets" || return 1
  diff <(sort <<<"$got") <(sort "$K/want-offsets") >&2 && echo ok
}
jparts() {                                                                   # a console consumer for each partition
  local n=0 p c out
  p=$(kcat -L -b "$B" -t "$T" | grep -c '^ *partition ') || return 1
  for ((c=0; c<p; c++)); do out=$(timeout 40 "$@" --partition $c | wc -l); n=$((n+out)); done
  echo "records=$n"
}
pick() { TAB | if [ -n "$PLAIN" ]; then grep '^d|'; else cat; fi | cut -d'|' -f2-; }
[ -n "$LIST" ] && { pick | cut -d'|' -f1 | tr '\n' ' '; echo; exit 0; }
K=${K:-$(mktemp -d "${TMPDIR:-/tmp}/smoke.XXXXXX")}; mkdir -p "$K"
pass=0; fail=0; skip=0
while IFS='|' read -r name need cmd; do
  if [ ${#WANT[@]} -gt 0 ]; then m=; for w in "${WANT[@]}"; do [[ $name == $w ]] && m=1; done; [ -n "$m" ] || continue; fi
  if ! { [ -e "$need" ] || command -v "$need" >/dev/null 2>&1; }; then echo "SKIP $name (not installed)"; skip=$((skip+1)); continue; fi
  off=0; [ -n "$R" ] && off=$(stat -c %s "$R")
  t0=$(date +%s.%N)
  case $cmd in
    lines*|admin*|fradmin*|rdperf*|jperf*|jver*|jgo*|jparts*) $cmd > "$K/$name.out" 2> "$K/$name.err" < /dev/null;;
    *) timeout 60 $cmd > "$K/$name.out" 2> "$K/$name.err" < /dev/null;;
  esac
  t1=$(date +%s.%N); got=$(grep -o 'records=[0-9]*' "$K/$name.out" | tail -1 | cut -d= -f2)
  s=$(awk -v a="$t0" -v b="$t1" 'BEGIN{printf "%.1f", b-a}')
  if [ "$got" = "$N" ] || tail -1 "$K/$name.out" | grep -qx ok; then echo "PASS $name ${got:+records=$got }${s}s"; pass=$((pass+1))
  else echo "FAIL $name got=${got:-none} want=$N ${s}s ($K/$name.err: $(grep -v '^$' "$K/$name.err" | tail -1 | cut -c1-140))"; fail=$((fail+1)); fi
  if [ -n "$R" ]; then sleep 0.3; python3 "$LAB_DIR/reqlog.py" "$R" --from "$off" --oneline | sed "s/^/     /"; fi
done < <(pick)
echo "$pass passed, $fail failed, $skip skipped"
[ $fail -eq 0 ]
