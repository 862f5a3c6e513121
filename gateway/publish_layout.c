/*
 * The layout of a collection: which journals it has, by which key its documents are routed, which
 * journal covers which key hashes. All of it lives in labels of the journals, so that another
 * program (and a restart) finds the same layout: collection, key-begin and key-end as Gazette's
 * users know them, and `sluice.dev/key/<i>` for the key's JSON pointers.
 */
#include "gateway/publish_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/num.h"
#include "gateway/backfill.h"

/* --- index of a listing
 * ----------------------------------------------------------------------------- */

static int cmp_rows(const void *va, const void *vb)
{
    const struct pub_index_row *a = va, *b = vb;
    int c = strcmp(a->collection, b->collection);

    return c != 0 ? c : gw_rank_cmp(a->journal, b->journal);
}

int pub_index_new(const struct jc_listing *l, struct pub_index **out)
{
    struct pub_index *ix;

    *out = NULL;
    if ((ix = mem_alloc(sizeof *ix + (l->n + 1) * sizeof ix->rows[0])) == NULL)
        return E_NOMEM;
    ix->n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const char *collection;

        if (jc_spec_label(&l->items[i]->spec, JC_LABEL_COLLECTION, &collection) < 0)
            continue;
        ix->rows[ix->n++] = (struct pub_index_row){collection, l->items[i]};
    }
    qsort(ix->rows, ix->n, sizeof ix->rows[0], cmp_rows);
    *out = ix;
    return 0;
}

const struct pub_index_row *pub_index_find(const struct pub_index *ix, struct span collection,
                                           size_t *n)
{
    size_t lo = 0, hi = ix->n, end;

    *n = 0;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (span_cmp(span_str(ix->rows[mid].collection), collection) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (end = lo; end < ix->n && span_eq_str(collection, ix->rows[end].collection); end++)
        ;
    *n = end - lo;
    return *n == 0 ? NULL : &ix->rows[lo];
}

/* --- label values
 * ----------------------------------------------------------------------------------- */

/* Exactly 8 hex digits; absent means the given default. */
static int range_label(const struct jc_spec *spec, const char *name, uint32_t absent, uint32_t *out)
{
    const char *text;
    uint64_t v;
    int err = jc_spec_label(spec, name, &text);

    *out = absent;
    if (err == E_NOTFOUND)
        return 0;
    if (err < 0)
        return err;
    if (strlen(text) != 8 || num_parse_hex(span_str(text), &v) < 0)
        return E_SYNTAX;
    *out = (uint32_t)v;
    return 0;
}

/* --- layout
 * ----------------------------------------------------------------------------------------- */

void pub_layout_free(struct pub_layout *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < l->n; i++) {
        jc_journal_unref(l->parts[i].journal);
        mem_free(l->parts[i].name);
    }
    arena_fini(&l->pointers_of);
    sc_key_free(l->key);
    mem_free(l->collection);
    mem_free(l);
}

static int layout_new(struct span collection, size_t parts, struct pub_layout **out)
{
    struct pub_layout *l = mem_zalloc(sizeof *l + parts * sizeof l->parts[0]);

    *out = NULL;
    if (l == NULL)
        return E_NOMEM;
    arena_init(&l->pointers_of, 4 * GW_KEY_BYTES_MAX + 65536);
    l->collection = mem_strndup((const char *)collection.p, collection.n);
    if (l->collection == NULL) {
        pub_layout_free(l);
        return E_NOMEM;
    }
    *out = l;
    return 0;
}

/* Compiles the key from the pointers. */
static int layout_key(struct pub_layout *l)
{
    return l->pointers_n == 0 ? 0 : sc_key_new(l->pointers, l->pointers_n, &l->key);
}

/* 1: the journal's key is the layout's; 0: it is another one, or none that can be read; E_NOMEM. */
static int same_pointers(const struct pub_layout *l, const struct jc_spec *spec)
{
    struct span got[GW_KEY_PARTS_MAX];
    struct arena a;
    size_t n = 0;

    arena_init(&a, 4 * GW_KEY_BYTES_MAX + 65536);
    int err = gw_label_key(spec, &a, got, &n);
    bool same = err == 0 && pub_layout_has_key(l, got, n);
    arena_fini(&a);
    return err == E_NOMEM ? err : same;
}

static int cmp_parts(const void *va, const void *vb)
{
    const struct pub_part *a = va, *b = vb;

    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static int layout_add(struct pub_layout *l, const struct jc_journal *j, size_t index,
                      const char **why)
{
    struct pub_part *part = &l->parts[l->n];
    struct backfill_label label;
    uint32_t begin, end;

    if (range_label(&j->spec, JC_LABEL_KEY_BEGIN, 0, &begin) < 0 ||
        range_label(&j->spec, JC_LABEL_KEY_END, UINT32_MAX, &end) < 0 || begin > end) {
        *why = "a journal of the collection has malformed key-begin or key-end labels";
        return E_INVALID;
    }
    if ((part->name = mem_strdup(j->spec.name)) == NULL)
        return E_NOMEM;
    part->journal = jc_journal_ref(j);
    part->begin = begin;
    part->end = end;
    part->index = index;
    l->n++;
    backfill_label_of(&j->spec, &label);
    if (label.clock > l->truncated_at)
        l->truncated_at = label.clock;
    return 0;
}

int pub_layout_of(const struct pub_index_row *rows, size_t n, struct pub_layout **out,
                  const char **why)
{
    struct pub_layout *l = NULL;
    int err;

    *out = NULL;
    *why = "out of memory";
    if ((err = layout_new(span_str(rows[0].collection), n, &l)) < 0)
        goto out;
    err = gw_label_key(&rows[0].journal->spec, &l->pointers_of, l->pointers, &l->pointers_n);
    if (err < 0) {
        *why = err == E_NOMEM ? *why : "the collection's key labels are malformed";
        err = err == E_NOMEM ? err : E_INVALID;
        goto out;
    }
    if ((err = layout_key(l)) < 0) {
        *why = err == E_NOMEM ? *why : "the collection's key labels are no JSON pointers";
        err = err == E_NOMEM ? err : E_INVALID;
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        int same = i == 0 ? 1 : same_pointers(l, &rows[i].journal->spec);
        if (same < 0) {
            err = same;
            goto out;
        }
        if (same == 0) {
            *why = "the journals of the collection carry different keys";
            err = E_INVALID;
            goto out;
        }
        if ((err = layout_add(l, rows[i].journal, i, why)) < 0)
            goto out;
    }
    qsort(l->parts, l->n, sizeof l->parts[0], cmp_parts);
    *out = l;
    l = NULL;
out:
    pub_layout_free(l);
    return err;
}

static int plan_part(struct pub_layout *l, size_t i, size_t partitions)
{
    struct pub_part *part = &l->parts[i];
    size_t room = strlen(l->collection) + sizeof "/pivot=00000000";

    part->begin = (uint32_t)(((uint64_t)i << 32) / partitions);
    part->end = (uint32_t)((((uint64_t)i + 1) << 32) / partitions - 1);
    part->index = i;
    if ((part->name = mem_alloc(room)) == NULL)
        return E_NOMEM;
    if (part->begin == 0)
        (void)snprintf(part->name, room, "%s/pivot=00", l->collection);
    else
        (void)snprintf(part->name, room, "%s/pivot=%08" PRIx32, l->collection, part->begin);
    l->n++;
    return 0;
}

int pub_layout_plan(struct span collection, size_t partitions, const struct span *keys,
                    size_t keys_n, struct pub_layout **out, const char **why)
{
    struct pub_layout *l = NULL;
    size_t bytes = 0;
    int err;

    *out = NULL;
    *why = "out of memory";
    if (partitions == 0 || partitions > PUBLISH_MAX_PARTITIONS || keys_n > PUBLISH_MAX_KEYS) {
        *why = "too many partitions or key pointers";
        return E_INVALID;
    }
    if ((err = layout_new(collection, partitions, &l)) < 0)
        goto out;
    l->planned = true;
    for (size_t i = 0; i < keys_n; i++) {
        if (keys[i].n == 0 || keys[i].p[0] != '/' || memchr(keys[i].p, 0, keys[i].n) != NULL) {
            *why = "a key must be a JSON pointer such as /id";
            err = E_INVALID;
            goto out;
        }
        if ((bytes += keys[i].n) > GW_KEY_BYTES_MAX) {
            *why = "the key's pointers are too long";
            err = E_INVALID;
            goto out;
        }
        const char *copy = arena_strndup(&l->pointers_of, (const char *)keys[i].p, keys[i].n);
        if (copy == NULL) {
            err = E_NOMEM;
            goto out;
        }
        l->pointers[l->pointers_n++] = span_of(copy, keys[i].n);
    }
    if ((err = layout_key(l)) < 0) {
        *why = err == E_NOMEM ? *why : "a key must be a JSON pointer such as /id";
        err = err == E_NOMEM ? err : E_INVALID;
        goto out;
    }
    for (size_t i = 0; i < partitions; i++)
        if ((err = plan_part(l, i, partitions)) < 0)
            goto out;
    *out = l;
    l = NULL;
out:
    pub_layout_free(l);
    return err;
}

const struct pub_part *pub_layout_route(const struct pub_layout *l, uint32_t hash)
{
    size_t lo = 0, hi = l->n;

    while (lo < hi) { /* the first part that begins behind the hash */
        size_t mid = lo + (hi - lo) / 2;

        if (l->parts[mid].begin <= hash)
            lo = mid + 1;
        else
            hi = mid;
    }
    /* Ranges do not overlap in a layout of ours; in a foreign one the nearest begin wins. */
    while (lo > 0) {
        if (l->parts[--lo].end >= hash)
            return &l->parts[lo];
    }
    return NULL;
}

bool pub_layout_has_key(const struct pub_layout *l, const struct span *keys, size_t keys_n)
{
    if (l->pointers_n != keys_n)
        return false;
    for (size_t i = 0; i < keys_n; i++)
        if (!span_eq(keys[i], l->pointers[i]))
            return false;
    return true;
}

bool pub_layout_same(const struct pub_layout *a, const struct pub_layout *b)
{
    if (a->n != b->n || a->pointers_n != b->pointers_n)
        return false;
    for (size_t i = 0; i < a->pointers_n; i++)
        if (!span_eq(a->pointers[i], b->pointers[i]))
            return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->parts[i].begin != b->parts[i].begin || a->parts[i].end != b->parts[i].end ||
            a->parts[i].index != b->parts[i].index)
            return false;
    return true;
}

/* --- creation
 * --------------------------------------------------------------------------------------- */

void pub_specs_free(struct pub_specs *s)
{
    if (s == NULL)
        return;
    if (s->strings != NULL)
        arena_fini(s->strings);
    mem_free(s->strings);
    mem_free(s->changes);
    mem_free(s->specs);
    mem_free(s->labels);
    mem_free(s);
}

static int cmp_labels(const void *va, const void *vb)
{
    const struct jc_label *a = va, *b = vb;

    return strcmp(a->name, b->name);
}

static int specs_part(struct pub_specs *s, const struct pub_layout *l, size_t i, const char **why)
{
    struct jc_label *labels = &s->labels[i * s->labels_each];
    const struct pub_part *part = &l->parts[i];
    size_t k = 0;

    labels[k++] = (struct jc_label){"content-type", "application/x-ndjson"};
    labels[k++] = (struct jc_label){JC_LABEL_COLLECTION, l->collection};
    labels[k++] =
        (struct jc_label){JC_LABEL_KEY_BEGIN, arena_printf(s->strings, "%08" PRIx32, part->begin)};
    labels[k++] =
        (struct jc_label){JC_LABEL_KEY_END, arena_printf(s->strings, "%08" PRIx32, part->end)};
    for (size_t p = 0; p < l->pointers_n; p++)
        labels[k++] =
            (struct jc_label){arena_printf(s->strings, GW_LABEL_KEY "%zu", p),
                              gw_label_encode(s->strings, (const char *)l->pointers[p].p)};
    if (l->truncated_at != 0) {
        char clock[17];

        num_hex16(l->truncated_at, clock);
        labels[k++] =
            (struct jc_label){JC_LABEL_TRUNCATED_AT, arena_printf(s->strings, "%s", clock)};
    }
    for (size_t p = 0; p < k; p++)
        if (labels[p].name == NULL || labels[p].value == NULL)
            return E_NOMEM;
    qsort(labels, k, sizeof labels[0], cmp_labels);
    s->specs[i] = (struct jc_spec){.name = part->name, .labels = labels, .labels_n = k};
    s->changes[i] = (struct jc_change){.upsert = &s->specs[i]};
    return jc_spec_check(&s->specs[i], why);
}

int pub_specs_new(const struct pub_layout *l, struct pub_specs **out, const char **why)
{
    struct pub_specs *s = mem_zalloc(sizeof *s);
    int err = E_NOMEM;

    *out = NULL;
    *why = "out of memory";
    if (s == NULL)
        return E_NOMEM;
    s->n = l->n;
    s->labels_each = 5 + l->pointers_n;
    if ((s->strings = mem_zalloc(sizeof *s->strings)) == NULL)
        goto out;
    arena_init(s->strings, (size_t)64 << 20);
    s->changes = mem_array(l->n, sizeof s->changes[0]);
    s->specs = mem_array(l->n, sizeof s->specs[0]);
    s->labels = mem_array(l->n * s->labels_each, sizeof s->labels[0]);
    if (s->changes == NULL || s->specs == NULL || s->labels == NULL)
        goto out;
    for (size_t i = 0; i < l->n; i++)
        if ((err = specs_part(s, l, i, why)) < 0)
            goto out;
    err = 0;
    *out = s;
    s = NULL;
out:
    pub_specs_free(s);
    return err;
}
