#!/usr/bin/env bash
# scripts/check-layers.sh fails on each kind of wrong arrow, and only on those.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
check() { "$ROOT/scripts/check-layers.sh" "$TREE"; }

put base/a.c '/* Kafka is a word for comments */\n#include "base/a.h"\n'
put gateway/b.c '#include <event2/event.h>\n#include "kafka_proto/kp.h"\n#include "base/a.h"\n#include "gateway/b_int.h"\n'
put app/c.c '#include "gateway/b.h"\n'
accepts arrows_that_point_down check

fresh; put base/a.c 'int x;\n#include "gateway/b.h"\n'
refuses an_arrow_that_points_up '^base/a.c:2: base/ may not include "gateway/b.h"' check
fresh; put schema/a.c '#include "journal_client/store.h"\n'
refuses siblings_that_know_each_other '^schema/a.c:1: ' check
fresh; put gateway/a.c '#include "app/config.h"\n'
refuses the_gateway_above_itself '^gateway/a.c:1: ' check
fresh; put app/a.c '#include "gateway/b_int.h"\n'
refuses a_private_header_of_another_folder 'private to gateway/' check
fresh; put app/a.c '#include "config.h"\n'
refuses an_include_without_its_folder 'not included by its folder' check
fresh; put journal_client/local/a.c '  #  include <event2/buffer.h>\n'
refuses libevent_below_the_gateway '^journal_client/local/a.c:1: libevent' check
fresh; put base/a.c '/* fine */ int kafka_port; /* kafka */\n'
refuses kafka_words_in_base '^base/a.c:1: base/ knows nothing of Kafka' check
fresh
refuses an_empty_tree 'no files' check
exit $failed
