#!/usr/bin/env python3
"""Adds up result lines. Usage: scripts/count_results.py FILE [ALLOWED_SKIPS]

FILE holds `PASS name ...`, `FAIL name ...`, `SKIP name (reason)` lines; other lines are information. Lists the failures and
the skips, then prints `N passed, N failed, N skipped`. With ALLOWED_SKIPS (`name reason` a line, the name may be a glob) a
skip that the file does not allow is a failure. Exit 1 when something failed or nothing ran.
"""
import fnmatch
import sys


def allowed(path):
    rows = []
    with open(path, encoding="utf-8") as f:
        for n, line in enumerate(f, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            name, _, reason = line.partition(" ")
            if not reason.strip():
                raise SystemExit(f"{path}:{n}: {name} has no reason")
            rows.append(name)
    return rows


def main(argv):
    rows = allowed(argv[2]) if len(argv) > 2 else None
    passed, failed, skipped = [], [], []
    with open(argv[1], encoding="utf-8", errors="replace") as f:
        for line in f:
            verdict, _, rest = line.strip().partition(" ")
            name = rest.split(" ", 1)[0]
            if verdict == "PASS":
                passed.append(rest)
            elif verdict == "FAIL":
                failed.append(rest)
            elif verdict == "SKIP":
                if rows is None or any(name == r or fnmatch.fnmatchcase(name, r) for r in rows):
                    skipped.append(rest)
                else:
                    failed.append(f"{rest}: a skip that tests/allowed_skips.txt does not list")
    for title, lines in (("skipped:", skipped), ("FAILED:", failed)):
        if lines:
            print(title)
            for line in lines:
                print(f"  {line}")
    print(f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
