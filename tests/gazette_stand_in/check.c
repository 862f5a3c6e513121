/* What a broker checks of requests, with the texts that it gives for the commonest faults; and how
 * selectors match, and registers change. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/gazette_stand_in/stand_in_int.h"

#define TOKEN_SYMBOLS "-_+/."
#define PATH_SYMBOLS  TOKEN_SYMBOLS "=%"

static bool refuse(char *why, size_t n, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static bool refuse(char *why, size_t n, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(why, n, fmt, ap);
    va_end(ap);
    return false;
}

static bool letter(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 0x80;
}

static bool check_token(const char *s, size_t len, const char *symbols, size_t min, size_t max,
                        const char *field, char *why, size_t n)
{
    if (len < min || len > max)
        return refuse(why, n, "%s: invalid length (%zu; expected %zu <= length <= %zu)", field, len,
                      min, max);
    for (size_t i = 0; i < len; i++) {
        if (!letter((unsigned char)s[i]) && strchr(symbols, s[i]) == NULL)
            return refuse(why, n, "%s: not a valid token (%.*s)", field, (int)len, s);
    }
    return true;
}

static bool clean_path(struct span s)
{
    size_t part = 0;

    for (size_t i = 0; i <= s.n; i++) {
        if (i < s.n && s.p[i] != '/')
            continue;
        struct span x = span_of(s.p + part, i - part);
        if (x.n == 0 || span_eq_str(x, ".") || span_eq_str(x, ".."))
            return false;
        part = i + 1;
    }
    return true;
}

bool si_check_name(const char *name, const char *field, char *why, size_t n)
{
    size_t len = (size_t)(strchrnul(name, ';') - name);

    if (!check_token(name, len, PATH_SYMBOLS, 4, 512, field, why, n))
        return false;
    if (name[0] == '/')
        return refuse(why, n, "%s: cannot begin with '/' (%s)", field, name);
    if (!clean_path(span_of(name, len)))
        return refuse(why, n, "%s: must be a clean path (%s)", field, name);
    return true;
}

bool si_check_labels(const Gz__LabelSet *set, bool selector, const char *field, char *why, size_t n)
{
    char path[128];

    for (size_t i = 0; set != NULL && i < set->n_labels; i++) {
        const Gz__Label *l = set->labels[i], *p = i == 0 ? NULL : set->labels[i - 1];
        (void)snprintf(path, sizeof path, "%s.Labels[%zu].Name", field, i);
        if (!check_token(l->name, strlen(l->name), TOKEN_SYMBOLS, 2, 64, path, why, n))
            return false;
        (void)snprintf(path, sizeof path, "%s.Labels[%zu].Value", field, i);
        if (!check_token(l->value, strlen(l->value), PATH_SYMBOLS, 0, 1024, path, why, n))
            return false;
        if (l->prefix && !selector)
            return refuse(why, n,
                          "%s.Labels[%zu]: Prefix may not be set outside of a LabelSelector", field,
                          i);
        int cmp = p == NULL ? -1 : strcmp(p->name, l->name);
        if (cmp > 0)
            return refuse(why, n,
                          "%s: Labels not in unique, sorted order (index %zu; label name %s <= %s)",
                          field, i, l->name, p->name);
        if (cmp == 0 && strcmp(p->value, l->value) >= 0)
            return refuse(
                why, n,
                "%s: Labels not in unique, sorted order (index %zu; label %s value %s <= %s)",
                field, i, l->name, l->value, p->value);
        if (cmp == 0 && p->value[0] == '\0')
            return refuse(why, n,
                          "%s: Label has empty & non-empty values (index %zu; label %s value %s)",
                          field, i, l->name, l->value);
    }
    return true;
}

static bool has_label(const Gz__LabelSet *set, const char *name)
{
    for (size_t i = 0; set != NULL && i < set->n_labels; i++) {
        if (strcmp(set->labels[i]->name, name) == 0)
            return true;
    }
    return false;
}

static bool check_stores(const Gz__FragmentSpec *f, char *why, size_t n)
{
    static const char *const schemes[] = {"s3://", "gs://", "azure://", "azure-ad://", "file://"};

    for (size_t i = 0; i < f->n_stores; i++) {
        const char *s = f->stores[i];
        bool known = false;
        for (size_t k = 0; k < sizeof schemes / sizeof schemes[0]; k++)
            known = known || strncmp(s, schemes[k], strlen(schemes[k])) == 0;
        if (!known)
            return refuse(why, n, "Fragment.Stores[%zu]: invalid scheme (%s)", i, s);
        if (s[strcspn(s, "?") - 1] != '/')
            return refuse(why, n, "Fragment.Stores[%zu]: path component doesn't end in '/' (%s)", i,
                          s);
    }
    return true;
}

static int64_t seconds(const Gz__Duration *d)
{
    return d == NULL ? 0 : d->seconds;
}

static bool check_fragment(const Gz__FragmentSpec *f, char *why, size_t n)
{
    Gz__FragmentSpec none;

    gz__fragment_spec__init(&none);
    if (f == NULL)
        f = &none;
    if (f->length < 1 << 10 || f->length > INT64_C(1) << 34)
        return refuse(why, n, "Fragment: invalid Length (%lld; expected %d <= length <= %lld)",
                      (long long)f->length, 1 << 10, 1LL << 34);
    if (f->compression_codec < 1 || f->compression_codec > GZ__CODEC__CODEC_GZIP_OFFLOAD)
        return refuse(why, n, "Fragment.CompressionCodec: invalid value (%d)",
                      (int)f->compression_codec);
    if (!check_stores(f, why, n))
        return false;
    if (seconds(f->refresh_interval) < 1 || seconds(f->refresh_interval) > 86400)
        return refuse(
            why, n, "Fragment: invalid RefreshInterval (%llds; expected 1s <= interval <= 24h0m0s)",
            (long long)seconds(f->refresh_interval));
    if (seconds(f->flush_interval) != 0 && seconds(f->flush_interval) < 60)
        return refuse(why, n, "Fragment: invalid FlushInterval (%llds; expected >= 1m0s)",
                      (long long)seconds(f->flush_interval));
    return true;
}

bool si_check_spec(const Gz__JournalSpec *s, char *why, size_t n)
{
    if (strchr(s->name, ';') != NULL)
        return refuse(why, n,
                      ": Name cannot have a metadata path segment (%s; expected no segment)",
                      s->name);
    if (!si_check_name(s->name, ".Name", why, n))
        return false;
    if (s->replication < 1 || s->replication > 5)
        return refuse(why, n, ": invalid Replication (%d; expected 1 <= Replication <= 5)",
                      s->replication);
    if (!si_check_labels(s->labels, false, ".Labels", why, n))
        return false;
    if (has_label(s->labels, "name"))
        return refuse(why, n, ": Labels cannot include label \"name\"");
    if (has_label(s->labels, "prefix"))
        return refuse(why, n, ": Labels cannot include label \"prefix\"");
    if (has_label(s->labels, "app.gazette.dev/message-type") &&
        !has_label(s->labels, "content-type"))
        return refuse(
            why, n, ".Labels: expected content-type label alongside app.gazette.dev/message-type");
    char inner[400];
    if (!check_fragment(s->fragment, inner, sizeof inner))
        return refuse(why, n, ".%s", inner);
    if (s->max_append_rate < 0)
        return refuse(why, n, ": invalid MaxAppendRate (%lld; expected >= 0)",
                      (long long)s->max_append_rate);
    if (s->flags > 4 || s->flags == 3)
        return refuse(why, n, ".Flags: invalid combination (%u)", s->flags);
    return true;
}

/* --- selectors --- */

static bool value_matches(const Gz__Label *want, const char *have)
{
    if (want->value[0] == '\0')
        return true;
    return want->prefix ? strncmp(have, want->value, strlen(want->value)) == 0
                        : strcmp(have, want->value) == 0;
}

static bool label_matches(const Gz__Label *want, const Gz__LabelSet *set, const char *journal)
{
    if (journal != NULL && strcmp(want->name, "name") == 0)
        return value_matches(want, journal);
    if (journal != NULL && strcmp(want->name, "prefix") == 0)
        return strncmp(journal, want->value, strlen(want->value)) == 0;
    for (size_t i = 0; set != NULL && i < set->n_labels; i++) {
        if (strcmp(set->labels[i]->name, want->name) == 0 &&
            value_matches(want, set->labels[i]->value))
            return true;
    }
    return false;
}

/* Of each name any value will do; all names must match. */
static bool includes(const Gz__LabelSet *want, const Gz__LabelSet *set, const char *journal)
{
    bool got = true;

    for (size_t i = 0; want != NULL && i < want->n_labels; i++) {
        if (i == 0 || strcmp(want->labels[i - 1]->name, want->labels[i]->name) != 0) {
            if (!got)
                return false;
            got = false;
        }
        got = got || label_matches(want->labels[i], set, journal);
    }
    return got;
}

bool si_matches(const Gz__LabelSelector *sel, const Gz__LabelSet *set, const char *journal)
{
    if (sel == NULL)
        return true;
    for (size_t i = 0; sel->exclude != NULL && i < sel->exclude->n_labels; i++) {
        if (label_matches(sel->exclude->labels[i], set, journal))
            return false;
    }
    return includes(sel->include, set, journal);
}

/* --- registers --- */

static int by_label(const void *a, const void *b)
{
    const Gz__Label *const *x = a, *const *y = b;
    int cmp = strcmp((*x)->name, (*y)->name);

    return cmp != 0 ? cmp : strcmp((*x)->value, (*y)->value);
}

static bool has_exactly(const Gz__LabelSet *set, const Gz__Label *l)
{
    for (size_t i = 0; set != NULL && i < set->n_labels; i++) {
        if (by_label(&set->labels[i], &l) == 0)
            return true;
    }
    return false;
}

Gz__LabelSet *si_registers_next(const Gz__LabelSet *a, const Gz__LabelSet *subtract,
                                const Gz__LabelSet *unite)
{
    size_t n = (a == NULL ? 0 : a->n_labels) + (unite == NULL ? 0 : unite->n_labels);
    Gz__Label **v = mem_array(n + 1, sizeof *v);
    Gz__LabelSet set, *out = NULL;
    uint8_t *bytes = NULL;

    gz__label_set__init(&set);
    if (v == NULL)
        return NULL;
    n = 0;
    for (size_t i = 0; a != NULL && i < a->n_labels; i++) {
        if (!has_exactly(subtract, a->labels[i]) && !has_label(unite, a->labels[i]->name))
            v[n++] = a->labels[i];
    }
    for (size_t i = 0; unite != NULL && i < unite->n_labels; i++)
        v[n++] = unite->labels[i];
    qsort(v, n, sizeof *v, by_label);
    set.labels = v;
    set.n_labels = n;
    size_t size = gz__label_set__get_packed_size(&set);
    if (n > 0 && (bytes = mem_alloc(size + 1)) != NULL) {
        (void)gz__label_set__pack(&set, bytes);
        out = gz__label_set__unpack(NULL, size, bytes);
    }
    mem_free(bytes);
    mem_free(v);
    return out;
}
