/*
 * The durable memory of a topic, as JSON in the store's key-values (topic_state.h). A value that
 * does not parse is E_CORRUPT: the caller must not go on as if the topic were new, or its epoch
 * could fall.
 */
#include "gateway/topic_state.h"

#include <jansson.h>
#include <string.h>

#include "base/mem.h"
#include "schema/json_reader.h"

static void free_name(const struct topic_pair *p)
{
    union {
        const char *in;
        char *out;
    } u = {.in = p->name};
    mem_free(u.out);
}

void topic_state_fini(struct topic_state *s)
{
    for (size_t i = 0; i < s->pairs_n; i++)
        free_name(&s->pairs[i]);
    free_name(&s->first);
    mem_free(s->pairs);
    *s = (struct topic_state){0};
}

static int copy_pairs(const struct topic_pair *list, size_t n, struct topic_state *out)
{
    out->pairs = mem_array(n == 0 ? 1 : n, sizeof *out->pairs);
    if (out->pairs == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        if ((out->pairs[i].name = mem_strdup(list[i].name)) == NULL)
            return E_NOMEM;
        out->pairs[i].create_revision = list[i].create_revision;
        out->pairs[i].life = list[i].life;
        out->pairs_n = i + 1;
    }
    return 0;
}

static bool same_journal(const struct topic_pair *a, const struct topic_pair *b)
{
    return a->create_revision == b->create_revision && strcmp(a->name, b->name) == 0;
}

/* What the id is made of stays as long as partition 0 is the same journal (its life apart: a
 * journal that lost bytes is another epoch of the same topic). It may differ from partition 0 after
 * a move. */
static int copy_first(const struct topic_state *s, const struct topic_pair *list, size_t n,
                      struct topic_state *out)
{
    bool kept = s->first.name != NULL &&
                (n == 0 || (s->pairs_n > 0 && same_journal(&s->pairs[0], &list[0])));
    const struct topic_pair *first = kept ? &s->first : n > 0 ? &list[0] : NULL;

    if (first == NULL)
        return 0;
    out->first.create_revision = first->create_revision;
    return (out->first.name = mem_strdup(first->name)) == NULL ? E_NOMEM : 0;
}

static bool is_prefix(const struct topic_state *s, const struct topic_pair *list, size_t n)
{
    if (s->pairs_n > n)
        return false;
    for (size_t i = 0; i < s->pairs_n; i++) {
        if (!same_journal(&s->pairs[i], &list[i]) || s->pairs[i].life != list[i].life)
            return false;
    }
    return true;
}

int topic_state_next(const struct topic_state *s, const struct topic_pair *list, size_t n,
                     struct topic_state *next, bool *changed)
{
    bool prefix = is_prefix(s, list, n);

    *next =
        (struct topic_state){.known = true, .generation = s->generation, .backfill = s->backfill};
    *changed = !s->known || !prefix || s->pairs_n != n;
    if (s->known && !prefix && next->generation < INT32_MAX - 1)
        next->generation++;
    int err = copy_pairs(list, n, next);
    if (err == 0)
        err = copy_first(s, list, n, next);
    if (err < 0)
        topic_state_fini(next);
    return err;
}

int topic_state_with_backfill(const struct topic_state *s, int32_t backfill,
                              struct topic_state *next)
{
    *next =
        (struct topic_state){.known = s->known, .generation = s->generation, .backfill = backfill};
    int err = copy_pairs(s->pairs, s->pairs_n, next);
    if (err == 0)
        err = copy_first(s, s->pairs, s->pairs_n, next);
    if (err < 0)
        topic_state_fini(next);
    return err;
}

static int parse_pair(const json_t *pair, struct topic_pair *out)
{
    const char *name = json_string_value(json_array_get(pair, 0));
    const json_t *revision = json_array_get(pair, 1);

    if (name == NULL || !json_is_integer(revision))
        return E_CORRUPT;
    if ((out->name = mem_strdup(name)) == NULL)
        return E_NOMEM;
    out->create_revision = json_integer_value(revision);
    out->life = json_integer_value(json_array_get(pair, 2)); /* 0 when absent */
    return 0;
}

static int parse_pairs(const json_t *list, struct topic_state *out)
{
    size_t n = json_array_size(list);

    out->pairs = mem_array(n == 0 ? 1 : n, sizeof *out->pairs);
    if (out->pairs == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        int err = parse_pair(json_array_get(list, i), &out->pairs[i]);
        if (err < 0)
            return err;
        out->pairs_n = i + 1;
    }
    return 0;
}

int topic_state_parse(struct span json, struct topic_state *out)
{
    int err = E_CORRUPT;

    *out = (struct topic_state){0};
    json_t *root = json_loadb((const char *)json.p, json.n, JSON_REJECT_DUPLICATES, NULL);
    const json_t *generation = json_object_get(root, "generation");
    const json_t *list = json_object_get(root, "journals");
    if (!json_is_integer(generation) || !json_is_array(list))
        goto out;
    json_int_t g = json_integer_value(generation);
    json_int_t b = json_integer_value(json_object_get(root, "backfill")); /* 0 when absent */
    if (g < 0 || g >= INT32_MAX || b < 0 || b >= INT32_MAX)
        goto out;
    out->backfill = (int32_t)b;
    out->known = true;
    out->generation = (int32_t)g;
    const json_t *first = json_object_get(root, "first");
    if ((err = parse_pairs(list, out)) == 0)
        err = first != NULL ? parse_pair(first, &out->first)
                            : copy_first(out, out->pairs, out->pairs_n, out);
out:
    json_decref(root);
    if (err < 0)
        topic_state_fini(out);
    return err;
}

static void write_pair(const struct topic_pair *p, struct writer *out)
{
    wr_str(out, "[");
    sc_json_quote(span_str(p->name), out);
    wr_printf(out, ",%lld", (long long)p->create_revision);
    if (p->life != 0)
        wr_printf(out, ",%lld", (long long)p->life);
    wr_str(out, "]");
}

void topic_state_write(const struct topic_state *s, struct writer *out)
{
    wr_printf(out, "{\"generation\":%d,\"backfill\":%d", s->generation, s->backfill);
    if (s->first.name != NULL &&
        (s->pairs_n == 0 || s->first.create_revision != s->pairs[0].create_revision ||
         strcmp(s->first.name, s->pairs[0].name) != 0)) {
        wr_str(out, ",\"first\":");
        write_pair(&s->first, out);
    }
    wr_str(out, ",\"journals\":[");
    for (size_t i = 0; i < s->pairs_n; i++) {
        wr_str(out, i == 0 ? "" : ",");
        write_pair(&s->pairs[i], out);
    }
    wr_str(out, "]}");
}
