/*
 * Schemas that clients send: the look-up, and the compatibility check.
 */
#include "gateway/registry_answer_int.h"

#include "schema/avro.h"
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

/* The text of a member of the body. E_NOTFOUND; E_INVALID: it is no text. */
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
    if (v.kind != SC_JSON_STRING || sc_json_unquote(v.text, out) < 0)
        return E_INVALID;
    return wr_err(out);
}

/* 0, or the status of a refusal. */
static int read_sent(struct route *r, struct sent *out)
{
    struct sc_json_error why = {0, NULL};
    struct writer type;
    int status = 0;

    out->json = false;
    if (r->ask->body.n == 0)
        return invalid(r, "Empty schema");
    if (sc_json_check(r->ask->body, &why) < 0)
        return route_refuse(r, 400, "HTTP 400 Bad Request: the body is no JSON", span_of("", 0));
    wr_init(&type, 64);
    int err = body_text(r, "/schemaType", &type);
    if (err == 0)
        out->json = type.b != NULL && span_eq_str(blob_span(type.b), "JSON");
    if (err != E_NOTFOUND &&
        (err < 0 || (!out->json && (type.b == NULL || !span_eq_str(blob_span(type.b), "AVRO")))))
        status = invalid(r, "Invalid schema type: it is neither AVRO nor JSON");
    else if (body_text(r, "/schema", &out->text) < 0 || out->text.b == NULL)
        status = invalid(r, "Empty schema");
    wr_fini(&type);
    return status;
}

/* Whether two Avro schemas are the same but for names' spelling and annotations. E_SYNTAX,
 * E_INVALID: the first one is none. */
static int same_avro(struct span a, struct span b, bool *same)
{
    struct writer x, y;

    *same = false;
    wr_init(&x, 2 * SC_SCHEMA_MAX_BYTES);
    wr_init(&y, 2 * SC_SCHEMA_MAX_BYTES);
    int err = sc_avro_canonical(a, &x);
    if (err == 0 && sc_avro_canonical(b, &y) == 0)
        *same = x.b != NULL && y.b != NULL && span_eq(blob_span(x.b), blob_span(y.b));
    wr_fini(&x);
    wr_fini(&y);
    return err;
}

/* The version of that text; what is served first. 0, or the status of a refusal. */
static int find(struct route *r, const struct registry_subject *s, const struct sent *sent,
                const struct registry_version **out)
{
    const struct span text = blob_span(sent->text.b);
    bool same = false;

    *out = NULL;
    for (int exact = 1; exact >= 0; exact--) {
        for (size_t i = 0; i <= s->versions_n; i++) {
            size_t at = i == 0 ? s->served : s->versions_n + 1 - i;
            const struct registry_version *v = at == 0 ? NULL : &s->versions[at - 1];

            if (v == NULL || v->json != sent->json)
                continue;
            same = span_eq(v->text, text);
            if (exact == 0 && !sent->json && same_avro(text, v->text, &same) < 0)
                return invalid(r, "Invalid schema: it is no Avro schema");
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
    struct sent sent;
    const struct registry_version *v;

    wr_init(&sent.text, SC_SCHEMA_MAX_BYTES);
    int status = read_sent(r, &sent);
    if (status == 0)
        status = find(r, s, &sent, &v);
    if (status == 0 && v == NULL) {
        status = route_refuse(r, CODE_SCHEMA, "Schema not found", span_of("", 0));
    } else if (status == 0) {
        route_put_version(r, r->t.part[1], v);
        status = 200;
    }
    wr_fini(&sent.text);
    return status;
}

/* The level is NONE: whatever is a schema goes. */
int route_compatible(struct route *r, const struct registry_subject *s,
                     const struct registry_version *only)
{
    struct writer canonical;
    struct sent sent;

    (void)s;
    (void)only;
    wr_init(&sent.text, SC_SCHEMA_MAX_BYTES);
    wr_init(&canonical, 2 * SC_SCHEMA_MAX_BYTES);
    int status = read_sent(r, &sent);
    if (status == 0 && !sent.json && sc_avro_canonical(blob_span(sent.text.b), &canonical) < 0)
        status = invalid(r, "Invalid schema: it is no Avro schema");
    if (status == 0) {
        wr_str(r->w, "{\"is_compatible\":true}");
        status = 200;
    }
    wr_fini(&canonical);
    wr_fini(&sent.text);
    return status;
}
