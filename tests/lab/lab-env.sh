# Sourced by every lab script: pinned versions and folders; nothing here downloads.
# Everything that is installed goes under $LAB. All traffic is loopback.
if [ -z "${LAB:-}" ]; then
  LAB=/opt/lab
  { [ -w "$LAB" ] || mkdir -p "$LAB" 2>/dev/null; } || LAB=${XDG_CACHE_HOME:-$HOME/.cache}/sluice-lab
fi
export LAB
export KAFKA_VERSION=${KAFKA_VERSION:-4.3.1}
export KAFKA_LIBS=$LAB/kafka/$KAFKA_VERSION/libs
export GOTOOLCHAIN=local                          # the Go that is there, never one that is downloaded
LAB_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export LAB_DIR
mkdir -p "$LAB"
have() { command -v "$1" >/dev/null 2>&1; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
apt_need() {                                      # apt_need pkg... : installs only what is missing
  local miss=() p
  for p in "$@"; do
    case $(dpkg-query -W -f '${Status}' "$p" 2>/dev/null) in *' installed') ;; *) miss+=("$p");; esac
  done
  [ ${#miss[@]} -eq 0 ] && return 0
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "${miss[@]}" >/dev/null 2>&1 || {
    as_root apt-get update -q >/dev/null 2>&1
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "${miss[@]}" >/dev/null
  }
}
once() {                                          # once FILE: the caller runs alone; two test runs may share $LAB
  exec 9>"$1"; flock 9
}
port_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
wait_port() {                                     # wait_port PORT [seconds]
  local n=$(( ${2:-30} * 10 ))
  while [ $n -gt 0 ]; do port_open "$1" && return 0; sleep 0.1; n=$((n-1)); done
  return 1
}
