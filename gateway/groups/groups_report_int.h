/*
 * Between groups_report.c, which takes questions and answers those that only look, and
 * groups_change.c. Groups thread.
 */
#pragma once

#include "gateway/groups/groups_report.h"

/* The answer goes back; the ask is not touched afterwards. fault: static text, for a status other
 * than 200. */
void groups_ask_finish(struct groups_ask *ask, int status, const char *fault);
/* "key":"value" as JSON. */
void groups_ask_quote(struct writer *w, const char *key, const char *value);
/* Each of a group without members, ask->g; each ends in groups_ask_finish, now or later. */
void groups_ask_delete(struct groups *gs, struct groups_ask *ask);
void groups_ask_plan(struct groups *gs, struct groups_ask *ask);
void groups_ask_reset(struct groups *gs, struct groups_ask *ask);
