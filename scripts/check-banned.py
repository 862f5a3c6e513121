#!/usr/bin/env python3
"""Functions that this code does not use. Usage: scripts/check-banned.py [ROOT]

Reads C as tokens: comments and strings do not count, and neither do members of the same name (x->free(y)). A use that
cannot be avoided carries its reason on its line or the line above: /* banned-ok: why */ (evbuffer_pullup: pullup-ok).
Prints each violation as file:line: text.
"""
import pathlib
import re
import sys

FOLDERS = ["base", "kafka_proto", "journal_client", "schema", "gateway", "app", "tests"]
BOUNDLESS = "strcpy strcat stpcpy sprintf vsprintf strncpy strncat gets alloca"
UNCHECKED = "atoi atol atoll atof strtol strtoul strtoll strtoull sscanf strtok"
SHARED_STATE = "rand srand localtime gmtime ctime asctime strerror usleep setenv putenv"
HEAP = "malloc calloc realloc reallocarray free strdup strndup asprintf vasprintf aligned_alloc posix_memalign"
WHY = {}
for names, why in [
    (BOUNDLESS, "no bound: use snprintf, writer, memcpy"),
    (UNCHECKED, "no error: use num_*"),
    (SHARED_STATE, "hidden state or not thread-safe"),
    (HEAP, "use mem_*, arena, blob"),
    ("evthread_use_pthreads", "no libevent object is touched by two threads"),
]:
    WHY.update({name: why for name in names.split()})
SLEEPS = {"sleep", "nanosleep", "clock_nanosleep"}
HEAP_HOME = "base/mem.c"

TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//(?:\\\n|[^\n])*)
      | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<include>^[ \t]*\#[ \t]*include[ \t]*[<"][^>"\n]*[>"])
      | (?P<word>[A-Za-z_]\w*)
      | (?P<number>\d[\w.]*)
      | (?P<arrow>->|\.)
      | (?P<other>[^\s])""",
    re.X | re.S | re.M,
)
EXCUSE = re.compile(r"(banned-ok|pullup-ok):\s*\w+")


def tokens(text):
    """(kind, text, line) of each token."""
    line, pos = 1, 0
    for m in TOKEN.finditer(text):
        line += text.count("\n", pos, m.start())
        pos = m.start()
        yield m.lastgroup, m.group(), line


def check(rel, text):
    """The violations of one file as (line, message)."""
    found = []
    excused = {"banned-ok": set(), "pullup-ok": set()}
    toks = []
    for kind, word, line in tokens(text):
        if kind == "comment":
            m = EXCUSE.search(word)
            if m:
                last = line + word.count("\n")
                excused[m.group(1)].update({line, last, last + 1})
        else:
            toks.append((kind, word, line))
    for i, (kind, word, line) in enumerate(toks):
        if kind == "include":
            if re.search(r"<assert\.h>", word) and line not in excused["banned-ok"]:
                found.append((line, "<assert.h>: use ASSERT of base/assert.h, which stays in release builds"))
            continue
        if kind != "word" or i + 1 == len(toks) or toks[i + 1][1] != "(":
            continue
        if i > 0 and toks[i - 1][0] == "arrow":
            continue
        why = WHY.get(word)
        if why and word in HEAP.split() and rel == HEAP_HOME:
            why = None
        if word in SLEEPS and rel.startswith("tests/unit/"):
            why = "a unit test does not sleep: pass a clock in"
        if why and line not in excused["banned-ok"]:
            found.append((line, f"{word}(): {why}"))
        if word == "evbuffer_pullup" and line not in excused["pullup-ok"]:
            found.append((line, "evbuffer_pullup(): a hidden copy on outputs; a small input says /* pullup-ok: why */"))
    if rel.endswith(".h") and not re.search(r"^#pragma once$", text, re.M):
        found.append((1, "a header without #pragma once"))
    return found


def main(argv):
    root = pathlib.Path(argv[1] if len(argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    checked = bad = 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".c", ".h", ".cc") or not path.is_file():
                continue
            rel = path.relative_to(root).as_posix()
            # Client programs of the lab are not part of our code.
            if rel.startswith("tests/lab/"):
                continue
            checked += 1
            for line, message in sorted(check(rel, path.read_text(errors="replace"))):
                print(f"{rel}:{line}: {message}")
                bad += 1
    if checked == 0:
        print(f"check-banned: no files in {root}", file=sys.stderr)
        return 1
    if bad:
        return 1
    print(f"banned functions: {checked} files")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
