/*
 * Topic names of tasks with strict_topic_names: each byte that is neither an ASCII letter nor a
 * digit is "." and two upper-case hex digits, "a/b-c" is "a.2Fb.2Dc". No two names share a form.
 * Pure.
 */
#pragma once

#include <stdbool.h>

#include "base/span.h"

/* out: 3 * name.n + 1 bytes. */
void gw_strict_name(struct span name, char *out);
/* The strict name that the client means: one that is written in another way (lower-case digits, a
 * byte encoded without need, a plain name with "/") is brought to the form above. False: it can be
 * none. out: 3 * name.n + 1 bytes. */
bool gw_strict_name_of(struct span asked, char *out);
