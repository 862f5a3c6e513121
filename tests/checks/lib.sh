# Sourced by the self-tests of the checks: a scratch tree, and what a check must say about it.
# Prints one cmocka-like line a case, so that scripts/test.sh counts each.
set -uo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TREE=$(mktemp -d)
trap 'rm -rf "$TREE"' EXIT
failed=0

put() { # put FILE TEXT: a file of the scratch tree
  mkdir -p "$TREE/$(dirname "$1")"
  printf '%b' "$2" > "$TREE/$1"
}
verdict() { # verdict NAME OK-STATUS
  if [ "$2" -eq 0 ]; then echo "[       OK ] $1"; else echo "[  FAILED  ] $1"; failed=1; fi
}
refuses() { # refuses NAME PATTERN COMMAND...: the command must fail and print the pattern
  local name=$1 pattern=$2 out rc; shift 2
  out=$("$@" 2>&1); rc=$?
  if [ $rc -ne 0 ] && grep -qE -- "$pattern" <<< "$out"; then verdict "$name" 0; else echo "exit $rc: $out"; verdict "$name" 1; fi
}
accepts() { # accepts NAME COMMAND...
  local name=$1 out rc; shift
  out=$("$@" 2>&1); rc=$?
  [ $rc -eq 0 ] || echo "exit $rc: $out"
  verdict "$name" $rc
}
fresh() { rm -rf "$TREE"; mkdir -p "$TREE"; }
