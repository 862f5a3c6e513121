/*
 * Routes of the registry, and what concerns one subject. A subject is `<topic>-key` or
 * `<topic>-value`; its versions are those of its history, the served one being the latest. One
 * that no topic has any more is what Confluent calls soft-deleted: `?deleted=true` shows it.
 */
#include "gateway/registry_answer.h"

#include <stdio.h>
#include <strings.h>

#include "base/num.h"
#include "gateway/registry_answer_int.h"
#include "schema/json_reader.h"

void registry_error(struct writer *w, int code, const char *text)
{
    wr_printf(w, "{\"error_code\":%d,\"message\":", code);
    sc_json_quote(span_str(text), w);
    wr_str(w, "}");
}

int route_refuse(struct route *r, int code, const char *format, struct span of)
{
    const char *at = strstr(format, "%s");
    struct writer text;

    wr_init(&text, 4 * (size_t)REGISTRY_PART_BYTES);
    wr_span(&text, at == NULL ? span_str(format) : span_of(format, (size_t)(at - format)));
    if (at != NULL) {
        wr_span(&text, of);
        wr_str(&text, at + 2);
    }
    wr_printf(r->w, "{\"error_code\":%d,\"message\":", code);
    if (wr_err(&text) == 0)
        sc_json_quote(blob_span(text.b), r->w);
    else
        r->w->err = wr_err(&text);
    wr_str(r->w, "}");
    wr_fini(&text);
    return code >= 1000 ? code / 100 : code;
}

static int refuse(struct route *r, int code, const char *text)
{
    return route_refuse(r, code, text, span_of("", 0));
}

int route_not_found(struct route *r)
{
    r->unknown = true;
    return refuse(r, 404, "HTTP 404 Not Found");
}

static int no_method(struct route *r)
{
    r->unknown = true;
    return refuse(r, 405, "HTTP 405 Method Not Allowed");
}

static bool is(const struct route *r, size_t i, const char *word)
{
    return registry_target_is(&r->t, i, word);
}

static bool reads(const struct route *r)
{
    return r->ask->method == HTTP_GET || r->ask->method == HTTP_HEAD;
}

static int read_only(struct route *r)
{
    return refuse(r, CODE_READONLY,
                  "Operation not permitted: this registry is read only (mode READONLY); schemas "
                  "come from the catalog");
}

/* --- subjects --- */

static bool cut(struct span *name, const char *suffix)
{
    size_t n = strlen(suffix);

    if (name->n <= n || memcmp(name->p + name->n - n, suffix, n) != 0)
        return false;
    name->n -= n;
    return true;
}

/* Where names are strict, other ways to write the topic are understood. */
static const struct registry_subject *by_topic(const struct route *r, struct span name)
{
    char subject[REGISTRY_NAME_MAX];
    const struct gw_topic *t;

    bool key = cut(&name, "-key");
    if (!key && !cut(&name, "-value"))
        return NULL;
    if ((t = gw_task_topic(r->ask->task, name)) == NULL)
        return NULL;
    size_t n = strlen(t->name), m = key ? 4 : 6;
    if (n + m > sizeof subject)
        return NULL;
    memcpy(subject, t->name, n);
    memcpy(subject + n, key ? "-key" : "-value", m);
    return registry_history_find(r->ask->history, r->ask->task->name, span_of(subject, n + m));
}

const struct registry_subject *route_subject(const struct route *r, struct span name)
{
    /* subjects of the default context may be written ":.:name" */
    if (span_has_prefix(name, span_str(":.:")))
        name = span_of(name.p + 3, name.n - 3);
    const struct registry_subject *s =
        registry_history_find(r->ask->history, r->ask->task->name, name);
    if (s == NULL)
        s = by_topic(r, name);
    return s != NULL && s->versions_n > 0 ? s : NULL;
}

int route_version(struct route *r, const struct registry_subject *s, struct span text,
                  const struct registry_version **out)
{
    uint64_t n;

    *out = NULL;
    while (text.n > 0 && text.p[0] == ' ')
        text = span_of(text.p + 1, text.n - 1);
    while (text.n > 0 && text.p[text.n - 1] == ' ')
        text.n--;
    if (span_eq_str(text, "-1") ||
        (text.n == 6 && strncasecmp((const char *)text.p, "latest", 6) == 0)) {
        *out = registry_subject_latest(s);
        return *out != NULL ? 0 : route_refuse(r, CODE_VERSION, "Version %s not found.", text);
    }
    if (num_parse_u64(text, &n) < 0 || n == 0 || n > INT32_MAX)
        return route_refuse(r, CODE_BAD_VERS,
                            "The specified version '%s' is not a valid version id. Allowed values "
                            "are between [1, 2^31-1] and the string \"latest\"",
                            text);
    *out = registry_subject_version(s, n);
    return *out != NULL ? 0 : route_refuse(r, CODE_VERSION, "Version %s not found.", text);
}

void route_put_version(struct route *r, struct span subject, const struct registry_version *v)
{
    wr_str(r->w, "{\"subject\":");
    sc_json_quote(subject, r->w);
    wr_printf(r->w,
              ",\"version\":%u,\"id\":%u,\"schemaType\":\"%s\",\"schema\":", (unsigned)v->number,
              (unsigned)v->id, v->json ? "JSON" : "AVRO");
    sc_json_quote(v->text, r->w);
    wr_str(r->w, "}");
}

static int no_subject(struct route *r, struct span name)
{
    return route_refuse(r, CODE_SUBJECT, "Subject '%s' not found.", name);
}

static int one_version(struct route *r, const struct registry_subject *s)
{
    const struct registry_version *v;
    int status = route_version(r, s, r->t.part[3], &v);

    if (v == NULL)
        return status;
    if (r->t.n == 4)
        route_put_version(r, r->t.part[1], v);
    else if (is(r, 4, "schema"))
        wr_span(r->w, v->text);
    else if (is(r, 4, "referencedby")) /* no schema here refers to another */
        wr_str(r->w, "[]");
    else
        return route_not_found(r);
    return 200;
}

/* /subjects/{s}/metadata: of the latest version; none has any. */
static int metadata(struct route *r, const struct registry_subject *s)
{
    uint8_t buf[REGISTRY_PART_BYTES];
    struct span key;
    const struct registry_version *v = registry_subject_latest(s);

    if (v == NULL || registry_query(&r->t, "key", buf, sizeof buf, &key))
        return refuse(r, CODE_SCHEMA, "Schema not found");
    route_put_version(r, r->t.part[1], v);
    return 200;
}

/* /subjects/{s}... Whether a method is one that writes does not depend on what is there. */
static int subject(struct route *r)
{
    size_t n = r->t.n;
    bool post = r->ask->method == HTTP_POST, drop = r->ask->method == HTTP_DELETE;
    bool versions = n == 2 || is(r, 2, "versions");

    if (n > 5 || (!versions && !(n == 3 && is(r, 2, "metadata"))))
        return route_not_found(r);
    if ((drop && (n == 2 || n == 4)) || (post && n == 3 && versions))
        return read_only(r);
    if (n == 2 ? !post : !reads(r))
        return no_method(r);
    const struct registry_subject *s = route_subject(r, r->t.part[1]);
    bool deleted = registry_query_flag(&r->t, "deleted") ||
                   (n == 3 && registry_query_flag(&r->t, "deletedOnly")) ||
                   (n == 5 && is(r, 4, "referencedby"));
    if (s == NULL || (s->served == 0 && !deleted))
        return no_subject(r, r->t.part[1]);
    if (n == 2)
        return route_look_up(r, s);
    if (n == 3)
        return versions ? route_versions(r, s) : metadata(r, s);
    return one_version(r, s);
}

/* --- the rest --- */

/* /config and /mode: of all, or of one subject, which has none of its own. */
static int setting(struct route *r, const char *answer, int code, const char *none)
{
    if (r->t.n > 2)
        return route_not_found(r);
    if (r->ask->method == HTTP_PUT || r->ask->method == HTTP_DELETE)
        return read_only(r);
    if (!reads(r))
        return no_method(r);
    if (r->t.n == 2 && !registry_query_flag(&r->t, "defaultToGlobal") && !is(r, 1, ":.:"))
        return route_refuse(r, code, none, r->t.part[1]);
    wr_str(r->w, answer);
    return 200;
}

/* POST /compatibility/subjects/{s}/versions[/{v}] */
static int compatibility(struct route *r)
{
    const struct registry_version *v = NULL;
    int status;

    if (r->t.n < 4 || r->t.n > 5 || !is(r, 1, "subjects") || !is(r, 3, "versions"))
        return route_not_found(r);
    if (r->ask->method != HTTP_POST)
        return no_method(r);
    const struct registry_subject *s = route_subject(r, r->t.part[2]);
    if (s != NULL && s->served == 0)
        s = NULL;
    if (s == NULL && r->t.n == 5)
        return no_subject(r, r->t.part[2]);
    if (r->t.n == 5) {
        status = route_version(r, s, r->t.part[4], &v);
        if (v == NULL)
            return status;
    }
    return route_compatible(r, s, v);
}

static int schemas(struct route *r)
{
    bool known = r->t.n == 1 || (r->t.n == 2 && is(r, 1, "types")) ||
                 (r->t.n >= 3 && r->t.n <= 4 && (is(r, 1, "ids") || is(r, 1, "guids")));

    if (!known)
        return route_not_found(r);
    if (!reads(r))
        return no_method(r);
    if (r->t.n == 1)
        return route_schemas(r);
    if (is(r, 1, "ids"))
        return route_id(r);
    if (is(r, 1, "guids"))
        return r->t.n == 4 && !is(r, 3, "ids")
                   ? route_not_found(r)
                   : route_refuse(r, CODE_SCHEMA, "Schema %s not found", r->t.part[2]);
    wr_str(r->w, "[\"JSON\",\"AVRO\"]");
    return 200;
}

/* /v1/metadata/id, /v1/metadata/version */
static int server(struct route *r)
{
    if (r->t.n != 3 || !is(r, 1, "metadata") || (!is(r, 2, "id") && !is(r, 2, "version")))
        return route_not_found(r);
    if (!reads(r))
        return no_method(r);
    if (is(r, 2, "version")) {
        wr_str(r->w, "{\"version\":\"sluice\",\"commitId\":\"\"}");
        return 200;
    }
    wr_str(r->w, "{\"scope\":{\"path\":[],\"clusters\":{\"kafka-cluster\":");
    sc_json_quote(span_str(r->ask->cluster_id == NULL ? "" : r->ask->cluster_id), r->w);
    wr_str(r->w, ",\"schema-registry-cluster\":\"sluice\"}},\"id\":\"\"}");
    return 200;
}

static int contexts(struct route *r)
{
    if (r->t.n == 2 && r->ask->method == HTTP_DELETE)
        return read_only(r);
    if (r->t.n > 1)
        return route_not_found(r);
    return reads(r) ? route_contexts(r) : no_method(r);
}

static int root(struct route *r)
{
    if (!reads(r) && r->ask->method != HTTP_POST)
        return no_method(r);
    wr_str(r->w, "{}");
    return 200;
}

static int route(struct route *r)
{
    char config[64];

    if (r->t.n == 0)
        return root(r);
    if (is(r, 0, "subjects") && r->t.n > 1)
        return subject(r);
    if (is(r, 0, "subjects"))
        return reads(r) ? route_subjects(r) : no_method(r);
    if (is(r, 0, "schemas"))
        return schemas(r);
    (void)snprintf(config, sizeof config, "{\"compatibilityLevel\":\"%s\"}",
                   registry_level_name(r->ask->level));
    if (is(r, 0, "config"))
        return setting(r, config, CODE_CONFIG,
                       "Subject '%s' does not have subject-level compatibility configured");
    if (is(r, 0, "mode"))
        return setting(r, "{\"mode\":\"READONLY\"}", CODE_MODE,
                       "Subject '%s' does not have subject-level mode configured");
    if (is(r, 0, "compatibility"))
        return compatibility(r);
    if (is(r, 0, "contexts"))
        return contexts(r);
    return is(r, 0, "v1") ? server(r) : route_not_found(r);
}

/* 415 and 406 are of what is there: the path and the method come first. */
static int check_media(struct route *r)
{
    enum http_method method = r->ask->method;
    bool body = method == HTTP_POST || method == HTTP_PUT;
    bool good = !body || registry_reads(r->ask->content_type);
    struct writer unseen, *w = r->w;

    if (good && registry_accepts(r->ask->accept) != NULL)
        return 0;
    wr_init(&unseen, w->max);
    r->w = &unseen;
    (void)route(r);
    r->w = w;
    wr_fini(&unseen);
    if (r->unknown)
        return 0;
    return good ? refuse(r, 406, "HTTP 406 Not Acceptable")
                : refuse(r, 415, "HTTP 415 Unsupported Media Type");
}

int registry_answer(const struct registry_ask *ask, struct writer *w)
{
    struct route r = {.ask = ask, .w = w};
    int err = registry_target_parse(ask->target, &r.t);

    if (err == E_SYNTAX)
        return refuse(&r, 400, "HTTP 400 Bad Request");
    if (err < 0)
        return route_not_found(&r);
    int status = check_media(&r);
    return status != 0 ? status : route(&r);
}

const struct registry_subject *registry_compared(const struct registry_ask *ask)
{
    struct route r = {.ask = ask};

    if (ask->method != HTTP_POST || registry_target_parse(ask->target, &r.t) < 0)
        return NULL;
    if (r.t.n == 2 && is(&r, 0, "subjects"))
        return route_subject(&r, r.t.part[1]);
    if (r.t.n >= 4 && is(&r, 0, "compatibility") && is(&r, 1, "subjects"))
        return route_subject(&r, r.t.part[2]);
    return NULL;
}
