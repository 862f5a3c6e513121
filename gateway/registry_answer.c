/*
 * Routes of the registry. A subject is `<topic>-key` or `<topic>-value` and has one version, 1: the
 * schema that is served now. A path is split at its slashes first, then each part is
 * percent-decoded, since subjects may hold slashes.
 */
#include "gateway/registry_answer.h"

#include <string.h>

#include "base/num.h"
#include "gateway/catalog.h"
#include "schema/json_reader.h"

#define PARTS_MAX     6
#define PART_BYTES    1024
#define SCHEMA_MAX    SC_SCHEMA_MAX_BYTES
#define CODE_SUBJECT  40401
#define CODE_VERSION  40402
#define CODE_SCHEMA   40403
#define CODE_INVALID  42201
#define CODE_BAD_VERS 42202
#define CODE_READONLY 42205

/* One schema that is served. */
struct served {
    struct span text;
    uint32_t id;
    bool json;
};

struct route {
    const struct registry_ask *ask;
    struct writer *w;
    struct span query;
    struct span part[PARTS_MAX]; /* decoded */
    size_t n;
    uint8_t text[PARTS_MAX][PART_BYTES];
};

void registry_error(struct writer *w, int code, const char *text)
{
    wr_printf(w, "{\"error_code\":%d,\"message\":", code);
    sc_json_quote(span_str(text), w);
    wr_str(w, "}");
}

/* The status is the code's first three digits. */
static int refuse(struct route *r, int code, const char *text)
{
    registry_error(r->w, code, text);
    return code >= 1000 ? code / 100 : code;
}

static int not_found(struct route *r)
{
    return refuse(r, 404, "HTTP 404 Not Found");
}

/* --- targets --- */

static int hex(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool decode(struct span raw, uint8_t out[PART_BYTES], struct span *part)
{
    size_t n = 0;

    for (size_t i = 0; i < raw.n; i++) {
        uint8_t c = raw.p[i];
        if (c == '%') {
            int hi = raw.n - i > 2 ? hex(raw.p[i + 1]) : -1;
            int lo = hi < 0 ? -1 : hex(raw.p[i + 2]);
            if (lo < 0)
                return false;
            c = (uint8_t)(hi * 16 + lo);
            i += 2;
        }
        if (n == PART_BYTES || c == '\0')
            return false;
        out[n++] = c;
    }
    *part = span_of(out, n);
    return true;
}

static bool split(struct route *r, const char *target)
{
    size_t len = strcspn(target, "?#");

    r->query = target[len] == '?' ? span_str(target + len + 1) : span_str("");
    for (size_t i = 0; i < len;) {
        if (target[i] == '/') {
            i++;
            continue;
        }
        size_t n = strcspn(target + i, "/?#");
        if (r->n == PARTS_MAX || !decode(span_of(target + i, n), r->text[r->n], &r->part[r->n]))
            return false;
        r->n++;
        i += n;
    }
    return true;
}

/* Whether the query says name=true. */
static bool flag(const struct route *r, const char *name)
{
    size_t n = strlen(name);
    struct span q = r->query;

    while (q.n > 0) {
        const uint8_t *amp = memchr(q.p, '&', q.n);
        size_t len = amp == NULL ? q.n : (size_t)(amp - q.p);
        if (len == n + 5 && memcmp(q.p, name, n) == 0 && memcmp(q.p + n, "=true", 5) == 0)
            return true;
        q = span_of(q.p + len + (amp != NULL), q.n - len - (amp != NULL));
    }
    return false;
}

static bool is(const struct route *r, size_t i, const char *word)
{
    return i < r->n && span_eq_str(r->part[i], word);
}

/* --- subjects --- */

static bool served_of(const struct gw_topic *t, bool key, struct served *out)
{
    const struct gw_encoder *e = t->encoder;

    *out = (struct served){.json = false};
    if (e->avro != NULL && (key ? e->avro_key : e->avro_value)) {
        out->text = key ? sc_avro_key_schema(e->avro->avro) : sc_avro_value_schema(e->avro->avro);
        out->id = key ? sc_avro_key_id(e->avro->avro) : sc_avro_value_id(e->avro->avro);
        return true;
    }
    if (key || t->binding == NULL || t->binding->json_id == 0)
        return false;
    out->json = true;
    out->text = span_str(t->binding->collection->read_schema);
    out->id = t->binding->json_id;
    return true;
}

static bool cut(struct span *name, const char *suffix)
{
    size_t n = strlen(suffix);

    if (name->n <= n || memcmp(name->p + name->n - n, suffix, n) != 0)
        return false;
    name->n -= n;
    return true;
}

/* Subjects of the default context may be written ":.:name". */
static bool find_subject(const struct route *r, struct span name, struct served *out)
{
    const struct gw_topic *t;

    if (span_has_prefix(name, span_str(":.:")))
        name = span_of(name.p + 3, name.n - 3);
    bool key = cut(&name, "-key");
    if (!key && !cut(&name, "-value"))
        return false;
    t = gw_task_topic(r->ask->task, name);
    return t != NULL && served_of(t, key, out);
}

typedef void each_fn(struct route *r, const char *topic, bool key, const struct served *s,
                     void *arg);

/* Subjects in their order of topics. */
static void each(struct route *r, each_fn *fn, void *arg)
{
    const struct gw_task *t = r->ask->task;
    struct served s;

    for (size_t i = 0; i < t->topics_n; i++) {
        for (int value = 0; value < 2; value++) {
            if (served_of(&t->topics[i], value == 0, &s))
                fn(r, t->topics[i].name, value == 0, &s, arg);
        }
    }
}

static void put_subject(struct route *r, const char *topic, bool key)
{
    struct writer name;

    wr_init(&name, 4096);
    wr_str(&name, topic);
    wr_str(&name, key ? "-key" : "-value");
    if (wr_err(&name) == 0)
        sc_json_quote(blob_span(name.b), r->w);
    else
        r->w->err = wr_err(&name);
    wr_fini(&name);
}

static void put_version(struct route *r, const struct served *s)
{
    wr_printf(r->w, ",\"version\":1,\"id\":%u,\"schemaType\":\"%s\",\"schema\":", (unsigned)s->id,
              s->json ? "JSON" : "AVRO");
    sc_json_quote(s->text, r->w);
    wr_str(r->w, "}");
}

/* --- lists --- */

struct list {
    uint32_t id;   /* 0: all */
    bool versions; /* with their version */
    bool whole;    /* with their schema */
    size_t n;
    uint32_t max;
    struct served found;
};

static void list_one(struct route *r, const char *topic, bool key, const struct served *s,
                     void *arg)
{
    struct list *l = arg;

    if (l->id != 0 && s->id != l->id)
        return;
    wr_str(r->w, l->n++ == 0 ? "" : ",");
    if (l->versions || l->whole)
        wr_str(r->w, "{\"subject\":");
    put_subject(r, topic, key);
    if (l->whole)
        put_version(r, s);
    else if (l->versions)
        wr_str(r->w, ",\"version\":1}");
}

static int list_of(struct route *r, struct list l)
{
    wr_str(r->w, "[");
    if (!flag(r, "deletedOnly"))
        each(r, list_one, &l);
    wr_str(r->w, "]");
    return 200;
}

/* --- schemas --- */

static void look_for(struct route *r, const char *topic, bool key, const struct served *s,
                     void *arg)
{
    struct list *l = arg;

    (void)r;
    (void)topic;
    (void)key;
    if (s->id > l->max)
        l->max = s->id;
    if (s->id == l->id)
        l->found = *s;
}

static int by_id(struct route *r)
{
    struct list l = {.id = 0};
    uint64_t id;

    if (num_parse_u64(r->part[2], &id) < 0 || id > INT32_MAX)
        return not_found(r);
    l.id = (uint32_t)id;
    each(r, look_for, &l);
    if (l.found.text.p == NULL)
        return refuse(r, CODE_SCHEMA, "Schema not found");
    if (is(r, 3, "schema") && r->n == 4) {
        wr_span(r->w, l.found.text);
        return 200;
    }
    if ((is(r, 3, "subjects") || is(r, 3, "versions")) && r->n == 4)
        return list_of(r, (struct list){.id = l.id, .versions = is(r, 3, "versions")});
    if (r->n != 3)
        return not_found(r);
    wr_str(r->w, l.found.json ? "{\"schemaType\":\"JSON\"," : "{");
    if (flag(r, "fetchMaxId"))
        wr_printf(r->w, "\"maxId\":%u,", (unsigned)l.max);
    wr_str(r->w, "\"schema\":");
    sc_json_quote(l.found.text, r->w);
    wr_str(r->w, "}");
    return 200;
}

/* 0, or the status of a refusal. */
static int check_version(struct route *r, struct span v)
{
    uint64_t n;

    if (span_eq_str(v, "latest") || span_eq_str(v, "-1"))
        return 0;
    if (num_parse_u64(v, &n) < 0 || n == 0 || n > INT32_MAX)
        return refuse(r, CODE_BAD_VERS,
                      "The specified version is not a valid version id. Allowed values are between "
                      "[1, 2^31-1] and the string \"latest\"");
    return n == 1 ? 0 : refuse(r, CODE_VERSION, "Version not found.");
}

/* The text of a member of the body; false: it is not there or no text. */
static bool body_text(const struct route *r, const char *pointer, struct writer *out)
{
    struct sc_json_value v;
    struct sc_pointer *p;

    if (sc_pointer_new(span_str(pointer), &p) < 0)
        return false;
    int err = sc_json_find(r->ask->body, p, &v);
    sc_pointer_free(p);
    return err == 0 && v.kind == SC_JSON_STRING && sc_json_unquote(v.text, out) == 0 &&
           wr_err(out) == 0 && out->b != NULL;
}

/* Whether two Avro schemas are the same but for names' spelling and annotations. E_SYNTAX,
 * E_INVALID: the first one is none. */
static int same_avro(struct span a, struct span b, bool *same)
{
    struct writer x, y;

    wr_init(&x, 2 * SCHEMA_MAX);
    wr_init(&y, 2 * SCHEMA_MAX);
    int err = sc_avro_canonical(a, &x);
    if (err == 0 && sc_avro_canonical(b, &y) == 0)
        *same = x.b != NULL && y.b != NULL && span_eq(blob_span(x.b), blob_span(y.b));
    wr_fini(&x);
    wr_fini(&y);
    return err;
}

/* Reads the schema of the body. 0, or the status of a refusal; *same: it is the one that is served.
 */
static int judge_body(struct route *r, const struct served *s, bool *same)
{
    struct sc_json_error why = {0, NULL};
    struct writer text, type;
    int status = 0;

    *same = false;
    wr_init(&text, SCHEMA_MAX);
    wr_init(&type, 64);
    bool json = sc_json_check(r->ask->body, &why) == 0 && body_text(r, "/schemaType", &type) &&
                span_eq_str(blob_span(type.b), "JSON");
    if (why.reason != NULL || !body_text(r, "/schema", &text))
        status =
            refuse(r, CODE_INVALID, "Invalid schema: the body is no JSON object with a schema");
    else if (json)
        *same = s->json && span_eq(blob_span(text.b), s->text);
    else if (s->json ? sc_avro_canonical(blob_span(text.b), &type) == E_SYNTAX
                     : same_avro(blob_span(text.b), s->text, same) < 0)
        status = refuse(r, CODE_INVALID, "Invalid schema: it is no Avro schema");
    wr_fini(&text);
    wr_fini(&type);
    return status;
}

static int look_up(struct route *r, const struct served *s)
{
    bool same;
    int status = judge_body(r, s, &same);

    if (status != 0)
        return status;
    if (!same)
        return refuse(r, CODE_SCHEMA, "Schema not found");
    wr_str(r->w, "{\"subject\":");
    sc_json_quote(r->part[1], r->w);
    put_version(r, s);
    return 200;
}

/* --- routes --- */

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

static int no_method(struct route *r)
{
    return refuse(r, 405, "HTTP 405 Method Not Allowed");
}

static int subject(struct route *r)
{
    struct served s;
    int status;

    if (r->n == 2 && r->ask->method == HTTP_DELETE)
        return read_only(r);
    if (!reads(r) && (r->n != 2 || r->ask->method != HTTP_POST))
        return r->n <= 4 ? read_only(r) : no_method(r);
    if (!find_subject(r, r->part[1], &s))
        return refuse(r, CODE_SUBJECT, "Subject not found.");
    if (r->n == 2)
        return reads(r) ? no_method(r) : look_up(r, &s);
    if (!is(r, 2, "versions") || r->n > 5)
        return not_found(r);
    if (r->n == 3) {
        wr_str(r->w, flag(r, "deletedOnly") ? "[]" : "[1]");
        return 200;
    }
    if ((status = check_version(r, r->part[3])) != 0)
        return status;
    if (r->n == 4) {
        wr_str(r->w, "{\"subject\":");
        sc_json_quote(r->part[1], r->w);
        put_version(r, &s);
    } else if (is(r, 4, "schema")) {
        wr_span(r->w, s.text);
    } else if (is(r, 4, "referencedby")) {
        wr_str(r->w, "[]");
    } else {
        return not_found(r);
    }
    return 200;
}

/* /config and /mode: of all, or of one subject, which has none of its own. */
static int setting(struct route *r, const char *answer, int code, const char *none)
{
    if (r->n > 2)
        return not_found(r);
    if (!reads(r))
        return read_only(r);
    if (r->n == 2 && !flag(r, "defaultToGlobal"))
        return refuse(r, code, none);
    wr_str(r->w, answer);
    return 200;
}

/* POST /compatibility/subjects/{s}/versions[/{v}]: the level is NONE, so that any schema goes. */
static int compatibility(struct route *r)
{
    struct served s;
    bool same;
    int status;

    if (!is(r, 1, "subjects") || !is(r, 3, "versions") || r->n > 5)
        return not_found(r);
    if (r->ask->method != HTTP_POST)
        return no_method(r);
    if (!find_subject(r, r->part[2], &s))
        return refuse(r, CODE_SUBJECT, "Subject not found.");
    if (r->n == 5 && (status = check_version(r, r->part[4])) != 0)
        return status;
    if ((status = judge_body(r, &s, &same)) != 0)
        return status;
    wr_str(r->w, "{\"is_compatible\":true}");
    return 200;
}

static int schemas(struct route *r)
{
    if (!reads(r))
        return no_method(r);
    if (r->n == 1)
        return list_of(r, (struct list){.whole = true});
    if (is(r, 1, "types") && r->n == 2) {
        wr_str(r->w, "[\"JSON\",\"AVRO\"]");
        return 200;
    }
    return is(r, 1, "ids") && r->n >= 3 ? by_id(r) : not_found(r);
}

int registry_answer(const struct registry_ask *ask, struct writer *w)
{
    struct route r = {.ask = ask, .w = w};

    if (!split(&r, ask->target))
        return not_found(&r);
    if (is(&r, 0, "subjects") && r.n > 1)
        return subject(&r);
    if (is(&r, 0, "schemas"))
        return schemas(&r);
    if (is(&r, 0, "config"))
        return setting(&r, "{\"compatibilityLevel\":\"NONE\"}", 40408,
                       "Subject does not have subject-level compatibility configured");
    if (is(&r, 0, "mode"))
        return setting(&r, "{\"mode\":\"READONLY\"}", 40409,
                       "Subject does not have subject-level mode configured");
    if (is(&r, 0, "compatibility") && r.n > 3)
        return compatibility(&r);
    bool root = r.n == 0, list = is(&r, 0, "subjects"), contexts = is(&r, 0, "contexts");
    if (!root && ((!list && !contexts) || r.n > 1))
        return not_found(&r);
    if (!reads(&r))
        return no_method(&r);
    if (list)
        return list_of(&r, (struct list){.id = 0});
    wr_str(w, root ? "{}" : "[\".\"]");
    return 200;
}
