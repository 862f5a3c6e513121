#!/usr/bin/env bash
# HAProxy from the distribution, for the test of a gateway behind a TCP proxy.
set -euo pipefail
. "$(dirname "$0")/lab-env.sh"
apt_need haproxy
command -v haproxy /usr/sbin/haproxy | head -1
