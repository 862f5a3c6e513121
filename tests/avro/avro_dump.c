/*
 * What the schema folder makes of JSON schemas and documents, for tests in other languages. One
 * case a line on standard input:
 *
 *   {"schema": {..}, "key": ["/id"], "projections": {"field": "/pointer"}, "depth": 1, "include":
 * [], "require": [], "exclude": [], "deletions": "kafka|cdc|header", "strict_names": false, "docs":
 * ["text of a document", ..], "docs_hex": ["7b7d", ..], "refs": {"uri": {..}}}
 *
 * One answer a line: {"key_schema": "..", "value_schema": "..", "notes": [..], "records": [{"key":
 * "hex", "value": "hex" or null, "deleted": false} or {"error": "E_INVALID", "pointer": "..",
 * "reason": ".."}]}, or {"error": .., "pointer": .., "reason": ..} when there is no schema.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "schema/json_tree.h"
#include "schema/transcode.h"

#define LIST_MAX 4096

static void put_hex(struct writer *w, struct span s)
{
    wr_u8(w, '"');
    for (size_t i = 0; i < s.n; i++)
        wr_printf(w, "%02x", s.p[i]);
    wr_u8(w, '"');
}

static void put_text(struct writer *w, const char *key, const char *text)
{
    wr_printf(w, "\"%s\":", key);
    sc_json_quote(span_str(text), w);
}

static size_t strings(const struct jt_node *list, struct span *out)
{
    size_t n = 0;

    for (const struct jt_node *e = list == NULL ? NULL : list->first; e != NULL && n < LIST_MAX;
         e = e->next)
        out[n++] = e->str;
    return n;
}

static void put_record(struct writer *w, const struct sc_avro *a, struct sc_scratch *s,
                       struct span doc)
{
    struct sc_avro_record rec;
    struct sc_transcode_error err;
    int r = sc_transcode(a, s, doc, &rec, &err);

    if (r < 0) {
        wr_str(w, "{");
        put_text(w, "error", err_name(r));
        wr_u8(w, ',');
        put_text(w, "pointer", err.pointer);
        wr_u8(w, ',');
        put_text(w, "reason", err.reason);
        wr_printf(w, ",\"at\":%zu}", err.at);
        return;
    }
    wr_str(w, "{\"key\":");
    put_hex(w, rec.key);
    wr_str(w, ",\"value\":");
    if (rec.value.p == NULL)
        wr_str(w, "null");
    else
        put_hex(w, rec.value);
    wr_printf(w, ",\"deleted\":%s}", rec.deleted ? "true" : "false");
}

static int hex_of(uint8_t c)
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

static void put_records(struct writer *w, const struct sc_avro *a, const struct jt_node *c)
{
    const struct jt_node *docs = jt_get(c, "docs"), *hex = jt_get(c, "docs_hex");
    struct sc_scratch *s;
    const char *comma = "";

    if (sc_scratch_new(&s) < 0)
        return;
    for (const struct jt_node *d = docs == NULL ? NULL : docs->first; d != NULL; d = d->next) {
        wr_str(w, comma);
        put_record(w, a, s, d->str);
        comma = ",";
    }
    for (const struct jt_node *d = hex == NULL ? NULL : hex->first; d != NULL; d = d->next) {
        uint8_t *bytes = mem_alloc(d->str.n / 2 + 1);

        if (bytes == NULL)
            break;
        for (size_t i = 0; i + 1 < d->str.n; i += 2)
            bytes[i / 2] = (uint8_t)(hex_of(d->str.p[i]) * 16 + hex_of(d->str.p[i + 1]));
        wr_str(w, comma);
        put_record(w, a, s, span_of(bytes, d->str.n / 2));
        comma = ",";
        mem_free(bytes);
    }
    sc_scratch_free(s);
}

static void put_fault(struct writer *w, int r, const struct sc_schema_error *err)
{
    wr_str(w, "{");
    put_text(w, "error", err_name(r));
    wr_u8(w, ',');
    put_text(w, "pointer", err->pointer);
    wr_u8(w, ',');
    put_text(w, "reason", err->reason);
    wr_str(w, "}\n");
}

static void put_answer(struct writer *w, const struct sc_avro *a, const struct jt_node *c)
{
    const struct sc_avro_note *notes;
    size_t n = sc_avro_notes(a, &notes);

    wr_str(w, "{\"key_schema\":");
    sc_json_quote(sc_avro_key_schema(a), w);
    wr_str(w, ",\"value_schema\":");
    sc_json_quote(sc_avro_value_schema(a), w);
    wr_str(w, ",\"notes\":[");
    for (size_t i = 0; i < n; i++) {
        wr_str(w, i > 0 ? ",{" : "{");
        put_text(w, "field", notes[i].field);
        wr_u8(w, ',');
        put_text(w, "text", notes[i].text);
        wr_u8(w, '}');
    }
    wr_str(w, "],\"records\":[");
    put_records(w, a, c);
    wr_str(w, "]}\n");
}

static void run_case(struct writer *w, const struct jt_node *c)
{
    static struct span key[LIST_MAX], include[LIST_MAX], require[LIST_MAX], exclude[LIST_MAX];
    static struct sc_projection projections[LIST_MAX];
    static struct sc_schema_doc refs[LIST_MAX];
    const struct jt_node *schema = jt_get(c, "schema"), *depth = jt_get(c, "depth");
    const struct jt_node *del = jt_get(c, "deletions"), *strict = jt_get(c, "strict_names");
    const struct jt_node *proj = jt_get(c, "projections"), *more = jt_get(c, "refs");
    struct sc_selection sel = {.depth = 1};
    struct sc_avro_opts opts = {.key = key, .projections = projections, .select = &sel};
    struct sc_schema_error err;
    struct sc_schema *s;
    struct sc_avro *a;
    size_t refs_n = 0;
    int r;

    sel.include = include;
    sel.include_n = strings(jt_get(c, "include"), include);
    sel.require = require;
    sel.require_n = strings(jt_get(c, "require"), require);
    sel.exclude = exclude;
    sel.exclude_n = strings(jt_get(c, "exclude"), exclude);
    if (depth != NULL && depth->kind == SC_JSON_NUMBER)
        sel.depth = (uint32_t)(depth->text.p[0] - '0');
    else if (depth != NULL)
        sel.depth = depth->kind == SC_JSON_TRUE ? SC_DEPTH_ALL : 0;
    opts.key_n = strings(jt_get(c, "key"), key);
    for (const struct jt_node *p = proj == NULL ? NULL : proj->first; p != NULL; p = p->next)
        projections[opts.projections_n++] =
            (struct sc_projection){.field = p->key, .pointer = p->str};
    for (const struct jt_node *p = more == NULL ? NULL : more->first; p != NULL; p = p->next)
        refs[refs_n++] = (struct sc_schema_doc){.uri = p->key, .text = p->text};
    if (del != NULL && span_eq_str(del->str, "cdc"))
        opts.deletions = SC_DELETE_CDC;
    if (del != NULL && span_eq_str(del->str, "header"))
        opts.deletions = SC_DELETE_HEADER;
    opts.strict_names = strict != NULL && strict->kind == SC_JSON_TRUE;
    if ((r = sc_schema_new(schema->text, refs, refs_n, &err, &s)) < 0) {
        put_fault(w, r, &err);
        return;
    }
    r = sc_avro_new(s, &opts, &err, &a);
    sc_schema_free(s);
    if (r < 0) {
        put_fault(w, r, &err);
        return;
    }
    put_answer(w, a, c);
    sc_avro_free(a);
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;

    while ((n = getline(&line, &cap, stdin)) > 0) {
        struct sc_json_error err;
        struct jt_node *c;
        struct writer w;
        struct arena a;
        uint32_t nodes = 0;

        arena_init(&a, SIZE_MAX / 2);
        wr_init(&w, SIZE_MAX / 2);
        if (jt_parse(span_of(line, (size_t)n), &a, &nodes, &err, &c) < 0 ||
            jt_get(c, "schema") == NULL) {
            (void)fprintf(stderr, "not a case: %s at byte %zu\n",
                          err.reason == NULL ? "no schema" : err.reason, err.at);
            return 1;
        }
        run_case(&w, c);
        (void)fwrite(w.b->data, 1, wr_len(&w), stdout);
        (void)fflush(stdout);
        wr_fini(&w);
        arena_fini(&a);
    }
    free(line); /* banned-ok: getline's own memory */
    return 0;
}
