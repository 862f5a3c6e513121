#!/usr/bin/env bash
# scripts/check-banned.py fails on each kind of banned use, and not on comments, strings or members.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
check() { python3 "$ROOT/scripts/check-banned.py" "$TREE"; }

put base/mem.c 'void f(void *p) { free(p); }\n'
put gateway/a.c '/* strcpy(a) */ // sprintf(\nconst char *s = "gets(\\"x\\")";\nvoid g(void) { x->free(y); z.malloc(1); localtime_r(t, &tm); my_free(p); }\n'
put gateway/a.h '#pragma once\n'
accepts comments_strings_members_and_the_heap_itself check

for name in strcpy strcat sprintf strtok atoi strtol sscanf alloca gets rand localtime strerror usleep malloc calloc realloc free strdup; do
  fresh; put schema/a.c "int a;\nint f(void) { return $name (1); }\n"
  refuses "the_function_$name" "^schema/a.c:2: $name\\(\\)" check
done
fresh; put base/other.c 'void f(void *p) { free(p); }\n'
refuses the_heap_elsewhere_in_base '^base/other.c:1: free' check
fresh; put gateway/a.c 'void f(void) {\n evbuffer_pullup(out, -1);\n}\n'
refuses a_pullup_without_reason '^gateway/a.c:2: evbuffer_pullup' check
fresh; put gateway/a.c 'void f(void) {\n /* pullup-ok: 16 bytes of input */\n evbuffer_pullup(in, 16);\n}\n'
accepts a_pullup_with_reason check
fresh; put gateway/a.c 'void f(void) {\n free(s); /* banned-ok: jansson made it */\n free(s);\n free(s);\n}\n'
refuses an_excuse_covers_one_use '^gateway/a.c:4: free' check
fresh; put gateway/a.c 'void f(void) {\n free(s); /* banned-ok: */\n}\n'
refuses an_excuse_without_reason '^gateway/a.c:2: free' check
fresh; put app/a.c '#include <assert.h>\n'
refuses the_standard_assert '^app/a.c:1: <assert.h>' check
fresh; put tests/unit/base/a_test.c 'void f(void) { sleep(1); }\n'
refuses a_unit_test_that_sleeps '^tests/unit/base/a_test.c:1: sleep' check
fresh; put base/a.h 'int a;\n'
refuses a_header_without_guard 'pragma once' check
fresh
refuses an_empty_tree 'no files' check
exit $failed
