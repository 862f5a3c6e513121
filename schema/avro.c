/*
 * Puts a binding's Avro face together: selection, nodes, schema texts, walks. Pure, any thread.
 */
#include "schema/avro.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/writer.h"
#include "schema/avro_int.h"

void *av_alloc(struct av *av, size_t n, size_t bytes)
{
    void *p;

    if (av->err < 0)
        return NULL;
    if ((p = arena_array(av->a, n, bytes)) == NULL)
        (void)av_fail(av, jt_no_room(av->a, n * bytes), span_str(""), "the schema is too large",
                      (struct span){NULL, 0});
    return p;
}

struct span av_join(struct av *av, struct span a, const char *sep, struct span b)
{
    size_t k = strlen(sep);
    uint8_t *p = av_alloc(av, a.n + k + b.n + PG_SLACK, 1);

    if (p == NULL)
        return span_of("", 0);
    if (a.n > 0)
        memcpy(p, a.p, a.n);
    for (size_t i = 0; i < k; i++)
        p[a.n + i] = (uint8_t)sep[i];
    if (b.n > 0)
        memcpy(p + a.n + k, b.p, b.n);
    return span_of(p, a.n + k + b.n);
}

struct span av_copy(struct av *av, struct span s)
{
    return av_join(av, s, "", span_of("", 0));
}

int av_fail(struct av *av, int err, struct span pointer, const char *reason, struct span detail)
{
    if (av->err < 0)
        return av->err;
    av->err = err;
    (void)snprintf(av->e->pointer, sizeof av->e->pointer, "%.*s", SPAN_FMT(pointer));
    if (detail.p == NULL)
        (void)snprintf(av->e->reason, sizeof av->e->reason, "%s", reason);
    else
        (void)snprintf(av->e->reason, sizeof av->e->reason, "%s: %.*s", reason,
                       detail.n < 160 ? (int)detail.n : 160, (const char *)detail.p);
    return err;
}

void av_note(struct av *av, struct span field, const char *text)
{
    struct sc_avro_note *note;

    if (av->err < 0 || av->out->notes_n == AVRO_MAX_NOTES)
        return;
    for (size_t i = 0; av->out->notes != NULL && i < av->out->notes_n; i++) { /* said twice */
        note = &av->out->notes[i];
        if (span_eq_str(field, note->field) && strcmp(text, note->text) == 0)
            return;
    }
    if (av->out->notes == NULL &&
        (av->out->notes = av_alloc(av, AVRO_MAX_NOTES, sizeof *note)) == NULL)
        return;
    note = &av->out->notes[av->out->notes_n++];
    (void)snprintf(note->field, sizeof note->field, "%.*s",
                   field.n < sizeof note->field ? (int)field.n : (int)sizeof note->field - 1,
                   (const char *)field.p);
    (void)snprintf(note->text, sizeof note->text, "%s", text);
}

/* --- outputs --- */

static struct pg_output *key_outputs(struct av *av, struct pg_output **alone)
{
    size_t n = av->opts->key_n;
    struct pg_output *out = av_alloc(av, n + 1, sizeof *out);
    char name[32];

    *alone = av_alloc(av, n + 1, sizeof *out);
    for (size_t i = 0; i < n && av->err == 0; i++) {
        const struct av_field *f = &av->fields[i];
        struct pg_node *node;

        (void)snprintf(name, sizeof name, "p%zu", i + 1);
        out[i].avro_name = av_copy(av, span_str(name));
        if (f->exists == SC_EXISTS_NEVER) {
            (void)av_fail(av, E_INVALID, f->pointer, "a key that no document can have", f->field);
            break;
        }
        node =
            av_node(av, f->shape, av_join(av, span_str("root.Key.Parts."), "", span_str(name)), 0);
        if (node == NULL)
            break;
        if (node->op == PG_ARRAY || node->op == PG_MAP || node->op == PG_RECORD ||
            node->op == PG_NULL)
            (void)av_fail(av, E_INVALID, f->pointer, "a key must be a scalar", f->field);
        node->key = true;
        if (node->op == PG_RAW)
            av_note(av, f->field, "a key without one scalar type: its JSON text is used");
        out[i].absent = av_finish(av, node, f->shape, true, f->field);
        out[i].node = node;
        out[i].pointer = f->pointer;
    }
    if (av->err == 0)
        memcpy(*alone, out, n * sizeof *out);
    return out;
}

static struct pg_node *special_node(struct av *av, enum pg_op op)
{
    struct pg_node *node = av_alloc(av, 1, sizeof *node);

    if (node == NULL)
        return NULL;
    node->op = op;
    node->value_branch = 1;
    node->nullable = node->default_null = op == PG_PUBLISHED;
    return node;
}

static struct pg_output *value_outputs(struct av *av, size_t *n)
{
    struct pg_output *out = av_alloc(av, av->fields_n + 2, sizeof *out);

    *n = 0;
    for (size_t i = 0; i < av->fields_n && av->err == 0; i++) {
        const struct av_field *f = &av->fields[i];
        struct span name = av_join(av, span_str("root."), "", f->name);
        struct pg_output *o = &out[(*n)++];
        const struct sc_shape *shape = f->shape;
        struct pg_node *node;

        if (f->pointer.n == 0) /* a document is an object, whatever else its schema admits */
            shape = mk_intersect(&av->mk, shape, mk_types(&av->mk, SC_T_OBJECT));
        o->avro_name = f->name;
        o->pointer = f->pointer;
        if (f->published) {
            o->node = special_node(av, PG_PUBLISHED);
            o->absent = av_copy(av, span_of("", 1));
            continue;
        }
        if ((node = av_node(av, shape, name, f->pointer.n == 0 ? 0 : 1)) == NULL)
            break;
        o->absent = av_finish(av, node, shape, f->exists == SC_EXISTS_MUST, f->field);
        o->node = node;
    }
    if (av->opts->deletions == SC_DELETE_CDC && av->err == 0) {
        struct pg_output *o = &out[(*n)++];

        o->avro_name = av_copy(av, span_str(SC_DELETED_FIELD));
        o->pointer = av_copy(av, span_str("/_meta/op"));
        o->node = special_node(av, PG_DELETED);
        o->absent = av_copy(av, span_of("", 1));
    }
    return out;
}

static struct span taken_text(struct av *av, struct writer *w)
{
    struct span s = span_of("", 0);

    if (wr_err(w) < 0)
        (void)av_fail(av, wr_err(w), span_str(""), "the schema is too large",
                      (struct span){NULL, 0});
    else
        s = av_copy(av, blob_span(w->b));
    wr_fini(w);
    return s;
}

static struct pg_field *fields_of(struct av *av, const struct pg_output *out, size_t n)
{
    struct pg_field *f = arena_array(&av->tmp, n + 1, sizeof *f);

    if (f == NULL) {
        av->err = E_NOMEM;
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        f[i] = (struct pg_field){.node = out[i].node, .avro_name = out[i].avro_name};
    return f;
}

static void write_texts(struct av *av, const struct pg_output *key, size_t key_n,
                        const struct pg_output *value, size_t value_n)
{
    const struct pg_field *kf = fields_of(av, key, key_n), *vf = fields_of(av, value, value_n);
    struct writer w;

    if (kf == NULL || vf == NULL)
        return;
    wr_init(&w, AVRO_ARENA_BYTES);
    wr_str(&w, "{\"type\":\"record\",\"name\":\"Key\",\"namespace\":\"root\",\"fields\":[{\"name\":"
               "\"_flow_key\",\"type\":");
    av_write_record(&w, span_str("root.Key.Parts"), kf, key_n, NULL);
    wr_str(&w, "}]}");
    av->out->key_schema = taken_text(av, &w);
    wr_init(&w, AVRO_ARENA_BYTES);
    av_write_record(&w, span_str("root"), vf, value_n, NULL);
    av->out->value_schema = taken_text(av, &w);
}

static void compile(struct av *av)
{
    struct pg_output *key, *alone, *value;
    size_t value_n;

    av_select(av);
    if (av->err < 0)
        return;
    key = key_outputs(av, &alone);
    value = value_outputs(av, &value_n);
    if (av->err < 0)
        return;
    av_walk(av, &av->out->both, key, av->opts->key_n, value, value_n);
    if (av->err == 0)
        av_walk(av, &av->out->key_only, alone, av->opts->key_n, NULL, 0);
    if (av->err == 0)
        write_texts(av, key, av->opts->key_n, value, value_n);
}

int sc_avro_new(const struct sc_schema *schema, const struct sc_avro_opts *opts,
                struct sc_schema_error *err, struct sc_avro **out)
{
    static atomic_uint_fast64_t serial = 1;
    struct av av = {.opts = opts, .root = sc_schema_root(schema), .e = err};

    *out = NULL;
    *err = (struct sc_schema_error){.pointer = ""};
    if (opts->key_n == 0) {
        (void)snprintf(err->reason, sizeof err->reason, "a collection has at least one key");
        return E_INVALID;
    }
    if ((av.out = mem_zalloc(sizeof *av.out)) == NULL)
        return E_NOMEM;
    arena_init(&av.out->arena, AVRO_ARENA_BYTES);
    arena_init(&av.tmp, AVRO_ARENA_BYTES);
    av.a = &av.out->arena;
    av.mk.a = &av.tmp;
    av.out->serial = atomic_fetch_add(&serial, 1);
    av.out->deletions = opts->deletions;
    av.out->key_id = av.out->value_id = 1;
    if ((shape_types(av.root) & SC_T_OBJECT) == 0)
        (void)av_fail(&av, E_INVALID, span_str(""), "the schema admits no object",
                      (struct span){NULL, 0});
    else
        compile(&av);
    arena_fini(&av.tmp);
    if (av.err < 0) {
        sc_avro_free(av.out);
        return av.err;
    }
    *out = av.out;
    return 0;
}

void sc_avro_free(struct sc_avro *a)
{
    if (a == NULL)
        return;
    arena_fini(&a->arena);
    mem_free(a);
}

struct span sc_avro_key_schema(const struct sc_avro *a)
{
    return a->key_schema;
}

struct span sc_avro_value_schema(const struct sc_avro *a)
{
    return a->value_schema;
}

enum sc_deletions sc_avro_deletions(const struct sc_avro *a)
{
    return a->deletions;
}

size_t sc_avro_notes(const struct sc_avro *a, const struct sc_avro_note **out)
{
    *out = a->notes;
    return a->notes_n;
}

void sc_avro_set_ids(struct sc_avro *a, uint32_t key_id, uint32_t value_id)
{
    a->key_id = key_id;
    a->value_id = value_id;
}

uint32_t sc_avro_key_id(const struct sc_avro *a)
{
    return a->key_id;
}

uint32_t sc_avro_value_id(const struct sc_avro *a)
{
    return a->value_id;
}

void sc_avro_frame(uint32_t id, uint8_t out[SC_FRAME_BYTES])
{
    out[0] = 0;
    be_store32(out + 1, id);
}
