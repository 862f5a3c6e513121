/* Private to registry_*.c. */
#pragma once

#include "gateway/registry_history.h"

#define REGISTRY_KEY_MAX ((size_t)16384)

/* registry_history.c. Finds or makes a subject. E_NOMEM. */
MUST_USE int registry_history_subject(struct registry_history *h, const char *task,
                                      struct span name, struct registry_subject **out);
/* Adds a copy. E_EXISTS: there is one of that number; E_NOMEM. */
MUST_USE int registry_subject_add(struct registry_subject *s, const struct registry_version *v);
