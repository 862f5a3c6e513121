/*
 * Journals, listings and selectors as counted immutable values. Each is one allocation plus its
 * strings; nothing here does I/O or takes a lock.
 */
#include "journal_client/spec.h"

#include "base/assert.h"
#include "base/mem.h"

/* The count is the one field of a shared value that changes. */
static struct jc_journal *journal_mut(const struct jc_journal *j)
{
    return (struct jc_journal *)(uintptr_t)j;
}

static struct jc_listing *listing_mut(const struct jc_listing *l)
{
    return (struct jc_listing *)(uintptr_t)l;
}

static char *put_str(char **at, const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = *at;

    memcpy(p, s, n);
    *at += n;
    return p;
}

int jc_journal_new_impl(const struct jc_spec *spec, int64_t create_revision, int64_t mod_revision,
                        void *impl, void (*impl_release)(void *impl), const struct jc_journal **out)
{
    size_t labels_bytes = spec->labels_n * sizeof(struct jc_label);
    size_t bytes = sizeof(struct jc_journal) + labels_bytes + strlen(spec->name) + 1;

    *out = NULL;
    for (size_t i = 0; i < spec->labels_n; i++)
        bytes += strlen(spec->labels[i].name) + strlen(spec->labels[i].value) + 2;
    struct jc_journal *j = mem_zalloc(bytes);
    if (j == NULL)
        return E_NOMEM;
    struct jc_label *labels = (struct jc_label *)(void *)(j + 1);
    char *at = (char *)labels + labels_bytes;
    j->spec = *spec;
    j->spec.name = put_str(&at, spec->name);
    j->spec.labels = spec->labels_n == 0 ? NULL : labels;
    for (size_t i = 0; i < spec->labels_n; i++) {
        labels[i].name = put_str(&at, spec->labels[i].name);
        labels[i].value = put_str(&at, spec->labels[i].value);
    }
    j->create_revision = create_revision;
    j->mod_revision = mod_revision;
    j->impl = impl;
    j->impl_release = impl_release;
    atomic_init(&j->refs, 1);
    *out = j;
    return 0;
}

int jc_journal_new(const struct jc_spec *spec, int64_t create_revision, int64_t mod_revision,
                   const struct jc_journal **out)
{
    return jc_journal_new_impl(spec, create_revision, mod_revision, NULL, NULL, out);
}

const struct jc_journal *jc_journal_ref(const struct jc_journal *j)
{
    atomic_fetch_add_explicit(&journal_mut(j)->refs, 1, memory_order_relaxed);
    return j;
}

void jc_journal_unref(const struct jc_journal *j)
{
    if (j == NULL)
        return;
    struct jc_journal *m = journal_mut(j);
    if (atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (m->impl_release != NULL)
        m->impl_release(m->impl);
    mem_free(m);
}

int jc_listing_new(int64_t revision, const struct jc_journal *const *items, size_t n,
                   const struct jc_listing **out)
{
    *out = NULL;
    struct jc_listing *l = mem_zalloc(sizeof *l + n * sizeof l->items[0]);
    if (l == NULL)
        return E_NOMEM;
    l->revision = revision;
    l->n = n;
    for (size_t i = 0; i < n; i++)
        l->items[i] = jc_journal_ref(items[i]);
    atomic_init(&l->refs, 1);
    *out = l;
    return 0;
}

const struct jc_listing *jc_listing_ref(const struct jc_listing *l)
{
    atomic_fetch_add_explicit(&listing_mut(l)->refs, 1, memory_order_relaxed);
    return l;
}

void jc_listing_unref(const struct jc_listing *l)
{
    if (l == NULL)
        return;
    struct jc_listing *m = listing_mut(l);
    if (atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < m->n; i++)
        jc_journal_unref(m->items[i]);
    mem_free(m);
}

const struct jc_journal *jc_listing_find(const struct jc_listing *l, struct span name)
{
    size_t low = 0;
    size_t high = l->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = span_cmp(span_str(l->items[mid]->spec.name), name);
        if (c == 0)
            return l->items[mid];
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

int jc_spec_label(const struct jc_spec *spec, const char *name, const char **value)
{
    const char *found = NULL;

    *value = NULL;
    for (size_t i = 0; i < spec->labels_n; i++) {
        if (strcmp(spec->labels[i].name, name) != 0)
            continue;
        if (found != NULL)
            return E_CONFLICT;
        found = spec->labels[i].value;
    }
    *value = found;
    return found == NULL ? E_NOTFOUND : 0;
}

static bool value_matches(const struct jc_match *m, const char *value)
{
    if (m->value == NULL || m->value[0] == '\0')
        return true;
    if (m->prefix)
        return span_has_prefix(span_str(value), span_str(m->value));
    return strcmp(m->value, value) == 0;
}

static bool match_holds(const struct jc_match *m, const struct jc_spec *spec)
{
    if (strcmp(m->name, "name") == 0)
        return value_matches(m, spec->name);
    for (size_t i = 0; i < spec->labels_n; i++) {
        if (strcmp(spec->labels[i].name, m->name) == 0 && value_matches(m, spec->labels[i].value))
            return true;
    }
    return false;
}

/* Whether any include of the same label name holds: several values of one name are alternatives. */
static bool any_alternative_holds(const struct jc_selector *sel, const char *name,
                                  const struct jc_spec *spec)
{
    for (size_t i = 0; i < sel->n; i++) {
        const struct jc_match *m = &sel->matches[i];
        if (!m->exclude && strcmp(m->name, name) == 0 && match_holds(m, spec))
            return true;
    }
    return false;
}

bool jc_selector_matches(const struct jc_selector *sel, const struct jc_spec *spec)
{
    for (size_t i = 0; i < sel->n; i++) {
        const struct jc_match *m = &sel->matches[i];
        if (m->exclude ? match_holds(m, spec) : !any_alternative_holds(sel, m->name, spec))
            return false;
    }
    return true;
}

int jc_selector_copy(const struct jc_selector *sel, struct jc_selector **out)
{
    size_t n = sel == NULL ? 0 : sel->n;
    size_t bytes = sizeof **out + n * sizeof(struct jc_match);

    *out = NULL;
    for (size_t i = 0; i < n; i++) {
        const char *value = sel->matches[i].value;
        bytes += strlen(sel->matches[i].name) + (value == NULL ? 0 : strlen(value)) + 2;
    }
    struct jc_selector *copy = mem_zalloc(bytes);
    if (copy == NULL)
        return E_NOMEM;
    struct jc_match *m = (struct jc_match *)(void *)(copy + 1);
    char *at = (char *)(m + n);
    for (size_t i = 0; i < n; i++) {
        m[i] = sel->matches[i];
        m[i].name = put_str(&at, sel->matches[i].name);
        m[i].value = put_str(&at, sel->matches[i].value == NULL ? "" : sel->matches[i].value);
    }
    copy->matches = m;
    copy->n = n;
    *out = copy;
    return 0;
}
