/*
 * Versions as the store keeps them, one key each, written once: a damaged one costs itself and no
 * other. The fingerprint is of the schema's text, so that no other text is taken for it.
 */
#include "base/mem.h"
#include "base/num.h"
#include "gateway/registry_int.h"
#include "schema/avro.h"
#include "schema/json_reader.h"

static void put_segment(struct writer *w, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '/' || *text == '%')
            wr_printf(w, "%%%02X", (unsigned)(uint8_t)*text);
        else
            wr_span(w, span_of(text, 1));
    }
}

void registry_version_key(const struct registry_subject *s, const struct registry_version *v,
                          struct writer *out)
{
    wr_str(out, REGISTRY_KEY_PREFIX);
    put_segment(out, s->task);
    wr_str(out, "/");
    put_segment(out, s->name);
    wr_printf(out, "/%010u", (unsigned)v->number);
}

void registry_version_write(const struct registry_version *v, struct writer *out)
{
    char fingerprint[17];

    num_hex16(sc_avro_fingerprint(v->text), fingerprint);
    wr_printf(out,
              "{\"id\":%u,\"type\":\"%s\",\"since_ms\":%lld,\"fingerprint\":\"%s\",\"schema\":",
              (unsigned)v->id, v->json ? "JSON" : "AVRO", (long long)v->since_ms, fingerprint);
    sc_json_quote(v->text, out);
    wr_str(out, "}");
}

/* --- reading --- */

/* Undoes put_segment up to the next slash; false: it never wrote that. */
static bool take_segment(struct span *key, char *out, size_t out_bytes)
{
    size_t n = 0;

    while (key->n > 0 && key->p[0] != '/') {
        size_t used = 1;
        char c = (char)key->p[0];

        if (c == '%') {
            if (!span_has_prefix(*key, span_str("%2F")) && !span_has_prefix(*key, span_str("%25")))
                return false;
            c = key->p[2] == 'F' ? '/' : '%';
            used = 3;
        }
        if (c == '\0')
            return false;
        if (n + 1 >= out_bytes)
            return false;
        out[n++] = c;
        *key = span_of(key->p + used, key->n - used);
    }
    out[n] = '\0';
    if (key->n == 0)
        return false;
    *key = span_of(key->p + 1, key->n - 1);
    return true;
}

/* The member's value; false: it is not there, or is of another kind. */
static bool member(struct span json, const char *pointer, enum sc_json_kind kind,
                   struct sc_json_value *out)
{
    struct sc_pointer *p;

    if (sc_pointer_new(span_str(pointer), &p) < 0)
        return false;
    int err = sc_json_find(json, p, out);
    sc_pointer_free(p);
    return err == 0 && out->kind == kind;
}

/* text: what v->text borrows from. */
static int parse(struct span json, struct registry_version *v, struct writer *text)
{
    struct sc_json_error why;
    struct sc_json_value id, type, since, print, schema;
    char fingerprint[19];
    uint64_t number;

    if (sc_json_check(json, &why) < 0 || !member(json, "/id", SC_JSON_NUMBER, &id) ||
        !member(json, "/type", SC_JSON_STRING, &type) ||
        !member(json, "/since_ms", SC_JSON_NUMBER, &since) ||
        !member(json, "/fingerprint", SC_JSON_STRING, &print) ||
        !member(json, "/schema", SC_JSON_STRING, &schema))
        return E_CORRUPT;
    if (num_parse_u64(id.text, &number) < 0 || number == 0 || number > INT32_MAX ||
        num_parse_i64(since.text, &v->since_ms) < 0)
        return E_CORRUPT;
    v->id = (uint32_t)number;
    v->json = span_eq_str(type.text, "\"JSON\"");
    if (sc_json_unquote(schema.text, text) < 0 || wr_err(text) < 0 || text->b == NULL)
        return wr_err(text) == E_NOMEM ? E_NOMEM : E_CORRUPT;
    v->text = blob_span(text->b);
    fingerprint[0] = '"';
    num_hex16(sc_avro_fingerprint(v->text), fingerprint + 1);
    fingerprint[17] = '"';
    return span_eq(print.text, span_of(fingerprint, 18)) ? 0 : E_CORRUPT;
}

int registry_history_load(struct registry_history *h, struct span key, struct span value)
{
    char task[4096], name[REGISTRY_NAME_MAX];
    struct registry_version v = {.saved = true};
    struct registry_subject *s;
    struct writer text;
    uint64_t number;
    int err;

    if (!span_has_prefix(key, span_str(REGISTRY_KEY_PREFIX)))
        return E_CORRUPT;
    key = span_of(key.p + sizeof REGISTRY_KEY_PREFIX - 1, key.n - (sizeof REGISTRY_KEY_PREFIX - 1));
    if (!take_segment(&key, task, sizeof task) || !take_segment(&key, name, sizeof name))
        return E_CORRUPT;
    while (key.n > 1 && key.p[0] == '0')
        key = span_of(key.p + 1, key.n - 1);
    if (num_parse_u64(key, &number) < 0 || number == 0 || number > INT32_MAX)
        return E_CORRUPT;
    if ((err = registry_history_subject(h, task, span_str(name), &s)) < 0)
        return err;
    v.number = (uint32_t)number;
    if (v.number > s->highest)
        s->highest = v.number;
    wr_init(&text, SC_SCHEMA_MAX_BYTES);
    if ((err = parse(value, &v, &text)) == 0)
        err = registry_subject_add(s, &v);
    wr_fini(&text);
    return err == E_EXISTS ? E_CORRUPT : err;
}
