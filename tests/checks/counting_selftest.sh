#!/usr/bin/env bash
# The two counters behind scripts/test.sh: every case counts once, crashes and unlisted skips are failures.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
results() { python3 "$ROOT/scripts/count_results.py" "$TREE/results" "$@"; }
last_line_is() { # last_line_is NAME STATUS LINE COMMAND...
  local name=$1 status=$2 line=$3 out rc; shift 3
  out=$("$@" 2>&1); rc=$?
  if [ $rc -eq "$status" ] && [ "$(tail -1 <<< "$out")" = "$line" ]; then verdict "$name" 0; else echo "exit $rc: $out"; verdict "$name" 1; fi
}
put results 'PASS a 1.2s\nnoise\nPASS b\nSKIP c (no Java)\nPASSED d\n'
last_line_is skips_are_counted 0 '2 passed, 0 failed, 1 skipped' results
put allowed '# comment\nx y\n'
last_line_is an_unlisted_skip_fails 1 '2 passed, 1 failed, 0 skipped' results "$TREE/allowed"
put allowed 'c* Java is heavy\n'
last_line_is a_listed_skip_passes 0 '2 passed, 0 failed, 1 skipped' results "$TREE/allowed"
put allowed 'c\n'
refuses a_listed_skip_without_reason 'allowed:1: c has no reason' results "$TREE/allowed"
put results 'PASS a\nFAIL b why\n'
last_line_is a_failure_fails 1 '1 passed, 1 failed, 0 skipped' results
put results ''
last_line_is nothing_that_ran_is_a_failure 1 '0 passed, 0 failed, 0 skipped' results

put t.xml '<testsuite><testcase name="two" status="run"><system-out>[ RUN      ] a\n[       OK ] a\n[       OK ] b\n[  PASSED  ] 2 test(s).\n</system-out></testcase>
<testcase name="plain" status="run"><system-out>hello</system-out></testcase>
<testcase name="one_bad" status="fail"><failure message="Failed"/><system-out>[       OK ] a\n[  FAILED  ] b\n[  FAILED  ] 1 test(s), listed below:\n[  FAILED  ] b\n</system-out></testcase>
<testcase name="leak" status="fail"><failure message="Failed"/><system-out>[       OK ] a\n</system-out></testcase>
<testcase name="gone" status="fail"><failure message="SEGFAULT"/><system-out></system-out></testcase>
<testcase name="missing" status="notrun"><skipped message="Unable to find executable: x"/></testcase>
<testcase name="java" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>x\nskipped: no Java here\n</system-out></testcase>
<testcase name="py" status="run"><system-out>test_a (m.T) ... ok\ntest_b (m.T.test_b) ... ok\n</system-out></testcase></testsuite>'
want='PASS two/a
PASS two/b
PASS plain
PASS one_bad/a
FAIL one_bad/b
FAIL leak Failed
PASS leak/a
FAIL gone SEGFAULT
FAIL missing Unable to find executable: x
SKIP java (no Java here)
PASS py/test_a
PASS py/test_b'
got=$(python3 "$ROOT/scripts/count_ctest.py" "$TREE/t.xml")
[ "$got" = "$want" ]; rc=$?
[ $rc -eq 0 ] || diff <(echo "$want") <(echo "$got")
verdict each_case_of_a_program_counts_once $rc
exit $failed
