/* Private to registry_answer.c (routes), registry_list.c and registry_body.c. */
#pragma once

#include "gateway/registry_answer.h"
#include "gateway/registry_target.h"

#define CODE_SUBJECT  40401
#define CODE_VERSION  40402
#define CODE_SCHEMA   40403
#define CODE_CONFIG   40408
#define CODE_MODE     40409
#define CODE_INVALID  42201
#define CODE_BAD_VERS 42202
#define CODE_READONLY 42205

/* One request that is being answered. */
struct route {
    const struct registry_ask *ask;
    struct writer *w;
    struct registry_target t;
    bool unknown; /* no such path, or no such method of it */
};

/* registry_answer.c */
/* Writes the error; the status is the code's first three digits. `of` (text NULL: none) stands in
 * for the one %s of the format. */
int route_refuse(struct route *r, int code, const char *format, struct span of);
int route_not_found(struct route *r);
/* The subject that the name means, whether it is served or not; NULL. */
const struct registry_subject *route_subject(const struct route *r, struct span name);
/* A version by its text: a number, `latest` or `-1`. *out, or NULL and the status of a refusal. */
int route_version(struct route *r, const struct registry_subject *s, struct span text,
                  const struct registry_version **out);
/* {"subject":...,"version":...,...} */
void route_put_version(struct route *r, struct span subject, const struct registry_version *v);

/* registry_list.c: arrays. */
int route_subjects(struct route *r);
int route_schemas(struct route *r);
int route_versions(struct route *r, const struct registry_subject *s);
int route_id(struct route *r);
/* A list that is there and has nothing in it, or these. */
int route_contexts(struct route *r);

/* registry_body.c: schemas that clients send. */
int route_look_up(struct route *r, const struct registry_subject *s);
/* versions: those to hold it against. */
int route_compatible(struct route *r, const struct registry_subject *s,
                     const struct registry_version *only);
