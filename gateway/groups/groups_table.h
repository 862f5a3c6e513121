/* The table of all groups, their deadlines, their rows in the store. Private to the service's
 * files; groups thread. */
#pragma once

#include "gateway/groups/groups_int.h"

/* Fills the table from the store; before the thread runs. */
MUST_USE int groups_load(struct groups *gs);
void groups_table_fini(struct groups *gs);
/* The group with the nearest deadline; NULL: none has one. */
struct group *groups_first_due(const struct groups *gs);
/* Moves g's deadline; GROUP_NEVER: it has none. */
void groups_set_due(struct groups *gs, struct group *g, int64_t next_ms);
/* Answers those who are done; nothing else. */
void groups_answer(struct groups *gs, struct group *g, struct group_out *out);
/* Out of the table, and freed. Nothing of it is on its way. */
void groups_drop(struct groups *gs, struct group *g);
