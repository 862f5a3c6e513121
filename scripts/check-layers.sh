#!/usr/bin/env bash
# The layer map, checked on the include lines. Usage: scripts/check-layers.sh [ROOT]
#   base <- kafka_proto, journal_client, schema <- gateway <- app; siblings do not know each other;
#   *_int.h is private to its folder; libevent stays in gateway/, app/ and journal_client/gazette/; base/ has no Kafka words in its code.
# Prints each violation as file:line: text.
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"
declare -A MAY=(
  [base]="base"
  [kafka_proto]="kafka_proto base"
  [journal_client]="journal_client base"
  [schema]="schema base"
  [gateway]="gateway kafka_proto journal_client schema base"
  [app]="app gateway kafka_proto journal_client schema base"
)
bad=0
checked=0
complain() { echo "$1"; bad=1; }

for folder in base kafka_proto journal_client schema gateway app; do
  [ -d "$folder" ] || continue
  while IFS= read -r -d '' file; do
    checked=$((checked + 1))
    while IFS=: read -r line text; do
      [[ $text =~ \"([^\"]+)\" ]] || continue
      target=${BASH_REMATCH[1]}
      top=${target%%/*}
      if [ "$top" = "$target" ]; then
        complain "$file:$line: \"$target\" is not included by its folder"
      elif [[ " ${MAY[$folder]} " != *" $top "* ]]; then
        complain "$file:$line: $folder/ may not include \"$target\""
      elif [ "$top" != "$folder" ] && [[ $target == *_int.h ]]; then
        complain "$file:$line: \"$target\" is private to $top/"
      fi
    done < <(grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$file" || true)
    case $folder in
      gateway|app) ;;
      *)
        [[ $file == journal_client/gazette/* ]] || while IFS=: read -r line text; do
          complain "$file:$line: libevent belongs into gateway/ and app/"
        done < <(grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*<(event2/|event\.h|evhttp\.h|evutil\.h)' "$file" || true)
        ;;
    esac
    if [ "$folder" = base ]; then
      while IFS=: read -r line text; do
        complain "$file:$line: base/ knows nothing of Kafka:$text"
      done < <(awk '
        { s = $0; out = ""
          while (s != "") {
            if (inside) { i = index(s, "*/"); if (!i) break; s = substr(s, i + 2); inside = 0 }
            else { i = index(s, "/*"); if (!i) { out = out s; break } out = out substr(s, 1, i - 1); s = substr(s, i + 2); inside = 1 }
          }
          sub(/\/\/.*/, "", out)
          if (tolower(out) ~ /kafka|broker|topic|consumer/) print FNR ":" out }' "$file")
    fi
  done < <(find "$folder" \( -name '*.c' -o -name '*.h' -o -name '*.cc' \) -print0 | sort -z)
done
[ $checked -gt 0 ] || { echo "check-layers: no files in $PWD" >&2; exit 1; }
[ $bad -eq 0 ] || exit 1
echo "layers: $checked files"
