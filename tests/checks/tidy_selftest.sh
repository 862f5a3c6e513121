#!/usr/bin/env bash
# scripts/check-tidy.sh fails on a finding and passes a clean file.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
command -v clang-tidy-14 >/dev/null || { echo "clang-tidy-14 is not installed"; exit 77; }
cp "$ROOT/.clang-tidy" "$TREE/"
put good.c 'int twice(int x);\nint twice(int x)\n{\n    return 2 * x;\n}\n'
put bad.c 'int f(int x);\nint f(int x)\n{\n    if (x == 1)\n        return 1;\n    else if (x == 1)\n        return 2;\n    return x / 0;\n}\n'
printf '[{"directory":"%s","command":"clang-14 -c good.c","file":"good.c"},{"directory":"%s","command":"clang-14 -c bad.c","file":"bad.c"}]' \
  "$TREE" "$TREE" > "$TREE/compile_commands.json"
export SLUICE_TIDY_BUILD=$TREE
accepts a_clean_file "$ROOT/scripts/check-tidy.sh" "$TREE/good.c"
refuses a_finding 'bad.c:[0-9]+:[0-9]+: ' "$ROOT/scripts/check-tidy.sh" "$TREE/good.c" "$TREE/bad.c"
exit $failed
