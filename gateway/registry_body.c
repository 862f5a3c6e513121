/*
 * Schemas that clients send: the look-up, and the compatibility check.
 */
#include <stdio.h>

#include "gateway/registry_answer_int.h"
#include "schema/avro_model.h"
#include "schema/json_reader.h"

/* A schema of a request. Owner: whoever has it. */
struct sent {
    struct writer text;
    bool json;
};

static int invalid(struct route *r, const char *text)
{
    return route_refuse(r, CODE_INVALID, text, span_of("", 0));
}

static int no_memory(struct route *r)
{
    r->w->err = E_NOMEM;
    return 503;
}

/* The text of a member of the body. E_NOTFOUND; E_INVALID: it is no text; E_NOMEM. */
static int body_text(const struct route *r, const char *pointer, struct writer *out)
{
    struct sc_json_value v;
    struct sc_pointer *p;
    int err = sc_pointer_new(span_str(pointer), &p);

    if (err < 0)
        return err;
    err = sc_json_find(r->ask->body, p, &v);
    sc_pointer_free(p);
    if (err < 0 || v.kind == SC_JSON_NULL)
        return E_NOTFOUND;
    err = v.kind != SC_JSON_STRING ? E_INVALID : sc_json_unquote(v.text, out);
    return err < 0 && err != E_NOMEM ? E_INVALID : err;
}

/* 0, or the status of a refusal. */
static int read_type(struct route *r, bool *json)
{
    struct writer type;

    wr_init(&type, 64);
    int err = body_text(r, "/schemaType", &type);
    bool given = err == 0 && type.b != NULL;
    *json = given && span_eq_str(blob_span(type.b), "JSON");
    bool good = err == E_NOTFOUND || *json || (given && span_eq_str(blob_span(type.b), "AVRO"));
    wr_fini(&type);
    if (err == E_NOMEM)
        return no_memory(r);
    return good ? 0 : invalid(r, "Invalid schema type: it is neither AVRO nor JSON");
}

/* The same. */
static int read_sent(struct route *r, struct sent *out)
{
    struct sc_json_error why = {0, NULL};

    out->json = false;
    if (r->ask->body.n == 0)
        return invalid(r, "Empty schema");
    if (sc_json_check(r->ask->body, &why) < 0)
        return route_refuse(r, 400, "HTTP 400 Bad Request: the body is no JSON", span_of("", 0));
    int status = read_type(r, &out->json);
    if (status != 0)
        return status;
    int err = body_text(r, "/schema", &out->text);
    if (err == E_NOMEM)
        return no_memory(r);
    return err < 0 || out->text.b == NULL ? invalid(r, "Empty schema") : 0;
}

/* 0, or the status of an answer. verdict: what is no schema is not compatible, and why. */
static int read_model(struct route *r, const struct sent *sent, bool verdict,
                      struct sc_avro_model **out)
{
    struct sc_schema_error why;
    struct sc_json_error json;
    char text[600];

    *out = NULL;
    int err = 0;
    if (sent->json)
        err = sc_json_check(blob_span(sent->text.b), &json);
    else
        err = sc_avro_model_new(blob_span(sent->text.b), &why, out);
    if (err == 0)
        return 0;
    if (err == E_NOMEM)
        return no_memory(r);
    if (sent->json)
        (void)snprintf(text, sizeof text, "Invalid schema: %s", json.reason);
    else
        (void)snprintf(text, sizeof text, "Invalid schema: %s%s%s",
                       why.reason[0] == '\0' ? err_text(err) : why.reason,
                       why.pointer[0] == '\0' ? "" : ": ", why.pointer);
    if (!verdict)
        return invalid(r, text);
    wr_str(r->w, "{\"is_compatible\":false,\"messages\":[");
    sc_json_quote(span_str(text), r->w);
    wr_str(r->w, "]}");
    return 200;
}

/* Whether the version is the schema that was sent, written in another way perhaps. */
static int is_same(const struct sent *sent, const struct sc_avro_model *model,
                   const struct registry_version *v, bool *same)
{
    struct sc_avro_model *other;
    struct sc_schema_error why;
    int err;

    *same = false;
    if (v->json != sent->json)
        return 0;
    if (v->json) {
        err = sc_json_same(blob_span(sent->text.b), v->text, same);
    } else if ((err = sc_avro_model_new(v->text, &why, &other)) == 0) {
        err = sc_avro_model_same(model, other, same);
        sc_avro_model_free(other);
    }
    return err == E_NOMEM ? err : 0;
}

/* The version of that schema; of several what is served comes first, then the newest. E_NOMEM. */
static int find(const struct registry_subject *s, const struct sent *sent,
                const struct sc_avro_model *model, const struct registry_version **out)
{
    const struct span text = blob_span(sent->text.b);

    *out = NULL;
    for (int exact = 1; exact >= 0; exact--) {
        for (size_t i = 0; i <= s->versions_n; i++) {
            size_t at = i == 0 ? s->served : s->versions_n + 1 - i;
            const struct registry_version *v = at == 0 ? NULL : &s->versions[at - 1];
            bool same = v != NULL && v->json == sent->json && span_eq(v->text, text);
            int err = v == NULL || exact == 1 ? 0 : is_same(sent, model, v, &same);

            if (err < 0)
                return err;
            if (same) {
                *out = v;
                return 0;
            }
        }
    }
    return 0;
}

int route_look_up(struct route *r, const struct registry_subject *s)
{
    const struct registry_version *v = NULL;
    struct sc_avro_model *model = NULL;
    struct sent sent;

    wr_init(&sent.text, SC_SCHEMA_MAX_BYTES);
    int status = read_sent(r, &sent);
    if (status == 0)
        status = read_model(r, &sent, false, &model);
    if (status == 0) {
        int err = find(s, &sent, model, &v);
        if (err < 0)
            r->w->err = err;
        status = 200;
        if (v != NULL)
            route_put_version(r, r->t.part[1], v);
        else
            status = route_refuse(r, CODE_SCHEMA, "Schema not found", span_of("", 0));
    }
    sc_avro_model_free(model);
    wr_fini(&sent.text);
    return status;
}

/* --- compatibility --- */

static int refuse_unknown(struct route *r, int err)
{
    if (err == E_UNSUPPORTED)
        return invalid(r, "Compatibility is not known: of JSON schemas this registry compares "
                          "equal ones only");
    if (err == E_LIMIT)
        return invalid(r, "Invalid schema: it is too large to be compared");
    r->w->err = err;
    return 503;
}

static void put_verdict(struct route *r, bool good, bool verbose, const struct writer *messages)
{
    wr_printf(r->w, "{\"is_compatible\":%s", good ? "true" : "false");
    if (verbose) {
        wr_str(r->w, ",\"messages\":[");
        if (messages->b != NULL)
            wr_span(r->w, blob_span(messages->b));
        wr_str(r->w, "]");
    }
    wr_str(r->w, "}");
    if (wr_err(messages) < 0)
        r->w->err = wr_err(messages);
}

int route_compatible(struct route *r, const struct registry_subject *s,
                     const struct registry_version *only)
{
    const enum registry_level level = r->ask->level;
    const bool verbose = registry_query_flag(&r->t, "verbose");
    struct sc_avro_model *model = NULL;
    struct writer messages;
    struct sent sent;
    bool good = true;
    int err = 0;

    wr_init(&sent.text, SC_SCHEMA_MAX_BYTES);
    wr_init(&messages, (size_t)16 << 20);
    int status = read_sent(r, &sent);
    if (status == 0)
        status = read_model(r, &sent, verbose, &model);
    if (status == 0) {
        const struct registry_new is = {.text = blob_span(sent.text.b), .avro = model};

        if (only != NULL)
            err = registry_compat_version(level, &is, only, &messages, &good);
        else if (s != NULL) /* of a subject that is not there, nothing stands against it */
            err = registry_compat_subject(level, &is, s, &messages, &good);
        status = err < 0 ? refuse_unknown(r, err) : 200;
        if (err == 0)
            put_verdict(r, good, verbose, &messages);
    }
    sc_avro_model_free(model);
    wr_fini(&messages);
    wr_fini(&sent.text);
    return status;
}
