/*
 * Lists of the registry: subjects, schemas, versions, and what has an id. `offset` and `limit` cut
 * each of them as in Confluent's registry.
 */
#include "gateway/registry_answer_int.h"

#include "base/num.h"
#include "schema/json_reader.h"

/* A list that is being written, a page of it. */
struct list {
    struct route *r;
    uint64_t offset, limit;
    uint64_t seen, put;
};

/* False: the page is no number; answered. */
static bool list_begin(struct list *l, struct route *r)
{
    int64_t offset, limit;

    *l = (struct list){.r = r};
    if (registry_query_int(&r->t, "offset", 0, &offset) < 0 ||
        registry_query_int(&r->t, "limit", -1, &limit) < 0)
        return false;
    l->offset = offset < 0 ? 0 : (uint64_t)offset;
    l->limit = limit <= 0 ? UINT64_MAX : (uint64_t)limit;
    wr_str(r->w, "[");
    return true;
}

/* Whether the next element belongs to the page; its comma is written. */
static bool list_next(struct list *l)
{
    if (l->seen++ < l->offset || l->put == l->limit)
        return false;
    wr_str(l->r->w, l->put++ == 0 ? "" : ",");
    return true;
}

static int list_end(struct list *l)
{
    wr_str(l->r->w, "]");
    return 200;
}

static struct registry_subject *const *subjects_of(const struct route *r, size_t *n)
{
    return registry_history_of(r->ask->history, r->ask->task->name, n);
}

/* Which subjects a request is about, by their being served. */
struct filter {
    bool served, removed;
};

static struct filter filter_of(const struct route *r)
{
    if (registry_query_flag(&r->t, "deletedOnly"))
        return (struct filter){false, true};
    return (struct filter){true, registry_query_flag(&r->t, "deleted")};
}

static bool passes(struct filter f, const struct registry_subject *s)
{
    return s->versions_n > 0 && (s->served > 0 ? f.served : f.removed);
}

/* ":*:" stands for all contexts, ":.:" for the default one, which is the only one. */
static void prefix_of(const struct route *r, uint8_t buf[REGISTRY_PART_BYTES], struct span *prefix)
{
    (void)registry_query(&r->t, "subjectPrefix", buf, REGISTRY_PART_BYTES, prefix);
    if (span_has_prefix(*prefix, span_str(":*:")) || span_has_prefix(*prefix, span_str(":.:")))
        *prefix = span_of(prefix->p + 3, prefix->n - 3);
}

int route_subjects(struct route *r)
{
    const struct filter f = filter_of(r);
    uint8_t buf[REGISTRY_PART_BYTES];
    struct span prefix;
    struct list l;
    size_t n;
    struct registry_subject *const *s = subjects_of(r, &n);

    prefix_of(r, buf, &prefix);
    if (!list_begin(&l, r))
        return route_not_found(r);
    for (size_t i = 0; i < n; i++) {
        if (passes(f, s[i]) && span_has_prefix(span_str(s[i]->name), prefix) && list_next(&l))
            sc_json_quote(span_str(s[i]->name), r->w);
    }
    return list_end(&l);
}

int route_schemas(struct route *r)
{
    const struct filter f = {true, registry_query_flag(&r->t, "deleted")};
    const bool latest = registry_query_flag(&r->t, "latestOnly");
    uint8_t buf[REGISTRY_PART_BYTES], rule[64];
    struct span prefix, rules;
    struct list l;
    size_t n;
    struct registry_subject *const *s = subjects_of(r, &n);

    prefix_of(r, buf, &prefix);
    if (!list_begin(&l, r))
        return route_not_found(r);
    if (registry_query(&r->t, "ruleType", rule, sizeof rule, &rules) && rules.n > 0)
        return list_end(&l); /* no schema here has rules */
    for (size_t i = 0; i < n; i++) {
        if (!passes(f, s[i]) || !span_has_prefix(span_str(s[i]->name), prefix))
            continue;
        const struct registry_version *last = registry_subject_latest(s[i]);
        for (size_t k = 0; k < s[i]->versions_n; k++) {
            const struct registry_version *v = &s[i]->versions[k];
            if ((!latest || v == last) && list_next(&l))
                route_put_version(r, span_str(s[i]->name), v);
        }
    }
    return list_end(&l);
}

int route_versions(struct route *r, const struct registry_subject *s)
{
    const bool removed = s->served == 0;
    const bool negative = removed && registry_query_flag(&r->t, "deletedAsNegative");
    struct list l;

    if (!list_begin(&l, r))
        return route_not_found(r);
    if (!passes(filter_of(r), s))
        return list_end(&l);
    for (size_t i = 0; i < s->versions_n; i++) {
        if (list_next(&l))
            wr_printf(r->w, "%s%u", negative ? "-" : "", (unsigned)s->versions[i].number);
    }
    return list_end(&l);
}

/* --- ids --- */

/* The subject's newest version with that id, what is served first; NULL. */
static const struct registry_version *with_id(const struct registry_subject *s, uint32_t id)
{
    const struct registry_version *v = registry_subject_latest(s);

    if (v != NULL && v->id == id)
        return v;
    for (size_t i = s->versions_n; i > 0; i--) {
        if (s->versions[i - 1].id == id)
            return &s->versions[i - 1];
    }
    return NULL;
}

/* Of the task: what is served before what was. max: the largest id. */
static const struct registry_version *find_id(const struct route *r, uint32_t id, uint32_t *max)
{
    const struct registry_version *found = NULL;
    bool served = false;
    size_t n;
    struct registry_subject *const *s = subjects_of(r, &n);

    *max = 0;
    for (size_t i = 0; i < n; i++) {
        const struct registry_version *v = with_id(s[i], id);

        for (size_t k = 0; k < s[i]->versions_n; k++)
            *max = s[i]->versions[k].id > *max ? s[i]->versions[k].id : *max;
        if (v == NULL || served)
            continue;
        served = s[i]->served > 0 && v == registry_subject_latest(s[i]);
        if (found == NULL || served)
            found = v;
    }
    return found;
}

/* Who has that id: subjects, or subjects with their versions. */
static int users(struct route *r, uint32_t id, bool versions)
{
    const struct filter f = filter_of(r);
    uint8_t buf[REGISTRY_PART_BYTES];
    struct span only;
    struct list l;
    size_t n;
    struct registry_subject *const *s = subjects_of(r, &n);
    bool narrow = registry_query(&r->t, "subject", buf, sizeof buf, &only) && only.n > 0;
    const struct registry_subject *wanted = narrow ? route_subject(r, only) : NULL;

    if (!list_begin(&l, r))
        return route_not_found(r);
    for (size_t i = 0; i < n; i++) {
        if (!passes(f, s[i]) || (narrow && s[i] != wanted))
            continue;
        if (!versions && with_id(s[i], id) != NULL && list_next(&l))
            sc_json_quote(span_str(s[i]->name), r->w);
        for (size_t k = 0; versions && k < s[i]->versions_n; k++) {
            if (s[i]->versions[k].id != id || !list_next(&l))
                continue;
            wr_str(r->w, "{\"subject\":");
            sc_json_quote(span_str(s[i]->name), r->w);
            wr_printf(r->w, ",\"version\":%u}", (unsigned)s[i]->versions[k].number);
        }
    }
    return list_end(&l);
}

int route_id(struct route *r)
{
    uint32_t max = 0;
    int64_t id;

    if (num_parse_i64(r->t.part[2], &id) < 0 || id > INT32_MAX || id < INT32_MIN)
        return route_not_found(r);
    const struct registry_version *v = id <= 0 ? NULL : find_id(r, (uint32_t)id, &max);
    bool subjects = registry_target_is(&r->t, 3, "subjects");
    bool versions = registry_target_is(&r->t, 3, "versions");
    bool bare = registry_target_is(&r->t, 3, "schema");
    if (r->t.n == 4 && !subjects && !versions && !bare)
        return route_not_found(r);
    if (v == NULL)
        return route_refuse(r, CODE_SCHEMA, "Schema %s not found", r->t.part[2]);
    if (subjects || versions)
        return users(r, (uint32_t)id, versions);
    if (bare) {
        wr_span(r->w, v->text);
        return 200;
    }
    wr_str(r->w, v->json ? "{\"schemaType\":\"JSON\"," : "{");
    if (registry_query_flag(&r->t, "fetchMaxId"))
        wr_printf(r->w, "\"maxId\":%u,", (unsigned)max);
    wr_str(r->w, "\"schema\":");
    sc_json_quote(v->text, r->w);
    wr_str(r->w, "}");
    return 200;
}

int route_contexts(struct route *r)
{
    uint8_t buf[REGISTRY_PART_BYTES];
    struct span prefix;
    struct list l;

    (void)registry_query(&r->t, "contextPrefix", buf, sizeof buf, &prefix);
    if (!list_begin(&l, r))
        return route_not_found(r);
    if (span_has_prefix(span_str("."), prefix) && list_next(&l))
        wr_str(r->w, "\".\"");
    return list_end(&l);
}
