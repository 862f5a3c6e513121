#!/usr/bin/env bash
# Python clients, one venv per set that would clash. Usage: py-install.sh [set...]   (no argument: main)
#   main  confluent-kafka 2.16.1 (bundles librdkafka), kafka-python 3.0.12, aiokafka 0.14.0, registry clients
#   old   kafka-python 2.0.2 + confluent-kafka 1.9.2   (what long-lived deployments still run)
#   ng    kafka-python-ng 2.2.3 + confluent-kafka 2.3.0
#   tests what tests/integration itself needs (pytest)
#   faust quix bytewax faststream, spark35 spark4: one venv each
# py/requirements-SET.txt pins every package, those that others pull in as well. Idempotent: a venv is
# made anew when its file changed.
set -euo pipefail
. "$(dirname "$0")/lab-env.sh"
PY=${PY:-python3}
have "$PY" || apt_need python3
"$PY" -c 'import ensurepip' 2>/dev/null || apt_need python3-venv
once "$LAB/.py.lock"
mk() { # mk VENV REQUIREMENTS
  local v=$LAB/$1 req=$2 want
  want=$(sha256sum "$req" | cut -d' ' -f1)
  [ -f "$v/.locked" ] && [ "$(cat "$v/.locked")" = "$want" ] && return 0
  rm -f "$v/.locked"
  [ -x "$v/bin/python" ] || "$PY" -m venv "$v"
  nice "$v/bin/pip" install -q --disable-pip-version-check --no-input -r "$req"
  nice "$v/bin/pip" check --disable-pip-version-check >/dev/null
  echo "$want" > "$v/.locked"; echo "installed $v"
}
[ $# -gt 0 ] || set -- main
for s in "$@"; do
  case $s in
    main) v=py;;
    old) v=py-old; apt_need build-essential python3-dev librdkafka-dev;; # no wheel for Python 3.11: built on Debian's librdkafka
    ng|tests|faust|quix|bytewax|faststream|spark35|spark4) v=py-$s;;
    *) echo "unknown set $s" >&2; exit 1;;
  esac
  mk "$v" "$LAB_DIR/py/requirements-$s.txt"
done
