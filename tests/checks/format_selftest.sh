#!/usr/bin/env bash
# scripts/check-format.sh fails on a file that clang-format would change.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
command -v clang-format-14 >/dev/null || { echo "clang-format-14 is not installed"; exit 77; }
cp "$ROOT/.clang-format" "$TREE/"
put good.c 'int f(void)\n{\n    return 1;\n}\n'
put bad.c 'int f(void) {\n  return 1; }\n'
accepts a_formatted_file "$ROOT/scripts/check-format.sh" "$TREE/good.c"
refuses an_unformatted_file 'bad.c:1:' "$ROOT/scripts/check-format.sh" "$TREE/good.c" "$TREE/bad.c"
exit $failed
