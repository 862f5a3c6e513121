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

static int cmp_rank(const struct jc_journal *a, const struct jc_journal *b)
{
    if (a->create_revision != b->create_revision)
        return a->create_revision < b->create_revision ? -1 : 1;
    return strcmp(a->spec.name, b->spec.name);
}

static int cmp_rows(const void *va, const void *vb)
{
    const struct pub_index_row *a = va, *b = vb;
    int c = strcmp(a->collection, b->collection);

    return c != 0 ? c : cmp_rank(a->journal, b->journal);
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

static bool label_plain(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
           c == '_' || c == '+' || c == '/' || c == '.';
}

static char *label_encode(struct arena *a, const char *s)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = strlen(s), k = 0;
    char *out = arena_alloc(a, 3 * n + 1);

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        uint8_t c = (uint8_t)s[i];

        if (label_plain(c)) {
            out[k++] = (char)c;
        } else {
            out[k++] = '%';
            out[k++] = hex[c >> 4];
            out[k++] = hex[c & 15];
        }
    }
    out[k] = '\0';
    return out;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

/* NULL: malformed or out of memory (the caller cannot go on in either case). */
static char *label_decode(const char *s)
{
    size_t n = strlen(s), k = 0;
    char *out = mem_alloc(n + 1);

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (s[i] != '%') {
            out[k++] = s[i];
            continue;
        }
        int hi = n - i > 2 ? hex_digit(s[i + 1]) : -1;
        int lo = hi < 0 ? -1 : hex_digit(s[i + 2]);

        if (lo < 0 || (hi == 0 && lo == 0)) {
            mem_free(out);
            return NULL;
        }
        out[k++] = (char)(hi * 16 + lo);
        i += 2;
    }
    out[k] = '\0';
    return out;
}

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
    for (size_t i = 0; i < l->pointers_n; i++)
        mem_free(l->pointers[i]);
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
    struct span spans[PUBLISH_MAX_KEYS];

    if (l->pointers_n == 0)
        return 0;
    for (size_t i = 0; i < l->pointers_n; i++)
        spans[i] = span_str(l->pointers[i]);
    return sc_key_new(spans, l->pointers_n, &l->key);
}

/* Reads sluice.dev/key/0, /1, ... of one journal. */
static int pointers_of(const struct jc_spec *spec, char **out, size_t *n)
{
    for (*n = 0; *n < PUBLISH_MAX_KEYS; (*n)++) {
        char name[40];
        const char *value;
        int err;

        (void)snprintf(name, sizeof name, PUB_LABEL_KEY "%zu", *n);
        err = jc_spec_label(spec, name, &value);
        if (err == E_NOTFOUND)
            return 0;
        if (err < 0)
            return E_INVALID;
        if ((out[*n] = label_decode(value)) == NULL)
            return E_INVALID;
    }
    return 0;
}

static bool same_pointers(const struct pub_layout *l, const struct jc_spec *spec)
{
    char *got[PUBLISH_MAX_KEYS] = {NULL};
    size_t n = 0;
    bool same = pointers_of(spec, got, &n) == 0 && n == l->pointers_n;

    for (size_t i = 0; same && i < n; i++)
        same = strcmp(got[i], l->pointers[i]) == 0;
    for (size_t i = 0; i < PUBLISH_MAX_KEYS; i++)
        mem_free(got[i]);
    return same;
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
    if (pointers_of(&rows[0].journal->spec, l->pointers, &l->pointers_n) < 0) {
        /* entries read so far are freed with the layout */
        while (l->pointers_n < PUBLISH_MAX_KEYS && l->pointers[l->pointers_n] != NULL)
            l->pointers_n++;
        *why = "the collection's key labels are malformed";
        err = E_INVALID;
        goto out;
    }
    if ((err = layout_key(l)) < 0) {
        *why = err == E_NOMEM ? *why : "the collection's key labels are no JSON pointers";
        err = err == E_NOMEM ? err : E_INVALID;
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && !same_pointers(l, &rows[i].journal->spec)) {
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
        err = E_NOMEM;
        if ((l->pointers[i] = mem_strndup((const char *)keys[i].p, keys[i].n)) == NULL)
            goto out;
        l->pointers_n++;
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
        if (!span_eq_str(keys[i], l->pointers[i]))
            return false;
    return true;
}

bool pub_layout_same(const struct pub_layout *a, const struct pub_layout *b)
{
    if (a->n != b->n || a->pointers_n != b->pointers_n)
        return false;
    for (size_t i = 0; i < a->pointers_n; i++)
        if (strcmp(a->pointers[i], b->pointers[i]) != 0)
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
        labels[k++] = (struct jc_label){arena_printf(s->strings, PUB_LABEL_KEY "%zu", p),
                                        label_encode(s->strings, l->pointers[p])};
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
