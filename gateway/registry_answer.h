/*
 * What the schema registry answers: Confluent's REST interface, read only, over the subjects of one
 * task (docs/registry.md). Pure: a request, a task and its history in, a status and a JSON body
 * out.
 */
#pragma once

#include "base/writer.h"
#include "gateway/http_parse.h"
#include "gateway/registry_compat.h"
#include "gateway/registry_history.h"
#include "gateway/registry_media.h"
#include "gateway/view.h"

/* All borrowed. */
struct registry_ask {
    enum http_method method; /* HEAD is answered as GET */
    const char *target;      /* as it came: split before it is percent-decoded */
    struct span body;
    const char *accept; /* headers; NULL: absent */
    const char *content_type;
    const struct gw_task *task;
    const struct registry_history *history; /* brought up to the view that task is of */
    enum registry_level level;              /* of /config, and what /compatibility applies */
    const char *cluster_id;
};

/* Appends the body to w, which is empty; returns the HTTP status. When wr_err(w) < 0 afterwards
 * there is none. */
int registry_answer(const struct registry_ask *ask, struct writer *w);
/* The subject whose versions the body is to be compared with; NULL: there is no such thing to do.
 * The body is not looked at. */
const struct registry_subject *registry_compared(const struct registry_ask *ask);
/* {"error_code": code, "message": text}. */
void registry_error(struct writer *w, int code, const char *text);
