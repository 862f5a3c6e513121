#!/usr/bin/env bash
# Every C file of ours is as clang-format leaves it (.clang-format). Usage: scripts/check-format.sh [FILE...]
# Without arguments: all tracked files. To mend: clang-format-14 -i FILE.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ $# -gt 0 ]; then
  files=("$@")
else
  mapfile -t files < <(git -c safe.directory='*' ls-files '*.c' '*.h' '*.cc')
fi
[ ${#files[@]} -gt 0 ] || { echo "check-format: no files" >&2; exit 1; }
clang-format-14 --dry-run -Werror --style=file "${files[@]}" || exit 1
echo "format: ${#files[@]} files"
