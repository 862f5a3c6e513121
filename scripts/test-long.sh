#!/usr/bin/env bash
# The suites of scripts/test.sh at full length: hours, not minutes. The same last line and exit status.
exec env SLUICE_TEST_LONG=1 "$(dirname "${BASH_SOURCE[0]}")/test.sh" "$@"
