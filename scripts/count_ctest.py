#!/usr/bin/env python3
"""Turns a ctest JUnit file into result lines. Usage: scripts/count_ctest.py FILE.xml [PREFIX] >> results

One line for each case inside a program, where the program names its cases (cmocka, unittest -v), else one for the program:
    PASS unit_base_num_test/hashes_never_change
    FAIL unit_base_num_test                        the program died, leaked or failed after its cases
    SKIP golden_java (kafka-clients is not installed)
"""
import re
import sys
import xml.etree.ElementTree as ET

CMOCKA = re.compile(r"^\[\s*(OK|FAILED|SKIPPED)\s*\] (?!\d+ test)(\S+)\s*$")
UNITTEST = re.compile(r"^(\w+) \([\w.]+\)(?:.*?) \.\.\. (ok|FAIL|ERROR|skipped '(.*)')$")


def cases_of(text):
    """{case: (verdict, reason)} in the order of the output; the worst verdict of a name counts."""
    cases = {}
    for line in text.splitlines():
        m = CMOCKA.match(line)
        if m:
            verdict, name = {"OK": "PASS", "FAILED": "FAIL", "SKIPPED": "SKIP"}[m.group(1)], m.group(2)
            reason = "skipped by the test" if verdict == "SKIP" else ""
        else:
            m = UNITTEST.match(line)
            if not m:
                continue
            name, reason = m.group(1), m.group(3) or ""
            verdict = "PASS" if m.group(2) == "ok" else "SKIP" if m.group(3) is not None else "FAIL"
        if verdict == "FAIL" or name not in cases:
            cases[name] = (verdict, reason)
    return cases


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return re.sub(r"^skip\w*:\s*", "", lines[-1]) if lines else ""


def results(xml, prefix):
    for t in ET.parse(xml).getroot().iter("testcase"):
        name = prefix + t.get("name")
        out = t.findtext("system-out") or ""
        status = t.get("status")
        skipped = t.find("skipped")
        cases = cases_of(out)
        if status == "run":
            if not cases:
                yield "PASS", name, ""
        elif skipped is not None and "SKIP" in (skipped.get("message") or ""):
            yield "SKIP", name, last_line(out) or skipped.get("message")
            continue
        else:
            # A failed case explains the program's failure; without one the program itself is the failure.
            if not any(v == "FAIL" for v, _ in cases.values()):
                failure = t.find("failure")
                why = failure.get("message") if failure is not None else (skipped.get("message") if skipped is not None else status)
                yield "FAIL", name, why or "failed"
        for case, (verdict, reason) in cases.items():
            yield verdict, f"{name}/{case}", reason


def main(argv):
    for verdict, name, reason in results(argv[1], argv[2] if len(argv) > 2 else ""):
        print(f"{verdict} {name} ({reason})" if verdict == "SKIP" else f"{verdict} {name} {reason}".rstrip())


if __name__ == "__main__":
    main(sys.argv)
