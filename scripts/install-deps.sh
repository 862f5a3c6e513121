#!/usr/bin/env bash
# Installs the Debian 12 packages that are missing. Usage: scripts/install-deps.sh [--build] [--test]   (default: both)
#   --build  what the release build and the quickstart need
#   --test   what the tests, the checks and the client lab need on top
# Uses sudo when you are not root. A run that has nothing to do asks dpkg once and takes no network.
set -euo pipefail

BUILD=(
  gcc                       # 12.2.0
  g++                       # 12.2.0
  cmake                     # 3.25.1
  ninja-build               # 1.11.1
  pkg-config                # 1.8.1
  python3                   # 3.11.2: the generator of the message tables
  libevent-dev              # 2.1.12
  libssl-dev                # 3.0
  libjansson-dev            # 2.14
  libsqlite3-dev            # 3.40.1
  libpcre2-dev              # 10.42
  libyaml-dev               # 0.2.5
  libnghttp2-dev            # 1.52.0
  libprotobuf-c-dev         # 1.4.1
  protobuf-c-compiler       # 1.4.1: the broker's messages
  libcurl4-openssl-dev      # 7.88.1
  liblz4-dev                # 1.9.4
  libzstd-dev               # 1.5.4
  libsnappy-dev             # 1.1.9
  zlib1g-dev                # 1.2.13
  libisal-dev               # 2.30.0
  ca-certificates           # 20230311
  curl                      # 7.88.1: quickstart
  kcat                      # 1.7.1: quickstart
)
TEST=(
  git                       # 2.39.5: the checks look at tracked files
  procps                    # 4.0.2
  locales                   # 2.36: a locale with a comma in numbers is made by a test
  clang-14                  # 14.0.6
  clang-format-14           # 14.0.6
  clang-tidy-14             # 14.0.6
  libclang-rt-14-dev        # 14.0.6: sanitizers and libFuzzer
  libcmocka-dev             # 1.1.5
  libavro-dev               # 1.11.1; tests read with it what we write
  librdkafka-dev            # 2.0.2: a test client, old on purpose
  python3-dev               # 3.11.2
  python3-venv              # 3.11.2: virtual environments of the Python clients
  build-essential           # 12.9: clients that are built from source
)

usage() { sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
want=()
while [ $# -gt 0 ]; do
  case $1 in
    --build) want+=("${BUILD[@]}");;
    --test) want+=("${TEST[@]}");;
    -h|--help) usage; exit 0;;
    *) usage >&2; exit 2;;
  esac
  shift
done
[ ${#want[@]} -gt 0 ] || want=("${BUILD[@]}" "${TEST[@]}")

missing_of() {
  local have
  have=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null | awk '$2 == "installed" {print $1}' || true)
  printf '%s\n' "$@" | sort -u | comm -23 - <(printf '%s\n' "$have" | sort -u)
}

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || {
  echo "install-deps: this needs apt (Debian 12). Elsewhere install by hand: ${want[*]}" >&2
  exit 1
}
mapfile -t missing < <(missing_of "${want[@]}")
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=(env)
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "install-deps: not root and no sudo. Ask an administrator for: ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo env)
fi
as_root+=(DEBIAN_FRONTEND=noninteractive)

echo "install-deps: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Lists that are there may be enough; they are renewed only when they are not, or when they are too old to name a file.
apt_install() { "${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}" </dev/null >"$log" 2>&1; }
if ! apt_install; then
  "${as_root[@]}" apt-get update -q </dev/null >"$log" 2>&1 && apt_install || {
    tail -20 "$log" >&2
    echo "install-deps: apt could not install: ${missing[*]}" >&2
    exit 1
  }
fi
mapfile -t missing < <(missing_of "${want[@]}")
[ ${#missing[@]} -eq 0 ] || { echo "install-deps: still missing: ${missing[*]}" >&2; exit 1; }
