/*
 * Which journals belong to a collection, and which of them a binding shows. Values of partition
 * fields stand in labels as Flow writes them: text percent-encoded, everything else behind "%_".
 * Pure.
 */
#include <stdio.h>

#include "gateway/catalog.h"
#include "journal_client/spec.h"

#define FIELD_LABEL "estuary.dev/field/"

bool catalog_under(struct span journal, const char *prefix)
{
    struct span p = span_str(prefix);

    return span_has_prefix(journal, p) && journal.n > p.n && journal.p[p.n] == '/';
}

const struct catalog_collection *catalog_by_prefix(const struct catalog *c, struct span journal)
{
    const struct catalog_collection *best = NULL;

    for (size_t i = 0; i < c->collections_n; i++) {
        const struct catalog_collection *one = &c->collections[i];

        if (one->prefix != NULL && catalog_under(journal, one->prefix) &&
            (best == NULL || strlen(one->prefix) > strlen(best->prefix)))
            best = one;
    }
    return best;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* Whether the encoded text stands for these bytes. */
static bool decodes_to(const char *encoded, struct span text)
{
    size_t k = 0;

    for (const char *p = encoded; *p != '\0'; p++) {
        uint8_t c = (uint8_t)*p;

        if (c == '%') {
            int hi = hex_digit(p[1]);
            int lo = hi < 0 ? -1 : hex_digit(p[2]);
            if (lo < 0)
                return false;
            c = (uint8_t)(hi * 16 + lo);
            p += 2;
        }
        if (k == text.n || text.p[k++] != c)
            return false;
    }
    return k == text.n;
}

static bool is_value(const char *label, const struct catalog_value *v)
{
    bool other = label[0] == '%' && label[1] == '_';

    if (v->is_text)
        return !other && decodes_to(label, v->text);
    return other && decodes_to(label + 2, v->text);
}

/* unreadable: what counts when the field's label cannot be told: it is there twice, or the field's
 * name is longer than a label's can be. */
static bool has_one(const struct catalog_field_values *f, const struct jc_spec *spec,
                    bool unreadable)
{
    char name[300];
    const char *label;

    int n = snprintf(name, sizeof name, FIELD_LABEL "%s", f->field);
    if (n < 0 || (size_t)n >= sizeof name)
        return unreadable;
    int err = jc_spec_label(spec, name, &label);
    if (err < 0)
        return err != E_NOTFOUND && unreadable;
    for (size_t i = 0; i < f->values_n; i++) {
        if (is_value(label, &f->values[i]))
            return true;
    }
    return false;
}

bool catalog_selects(const struct catalog_selector *s, const struct jc_spec *spec)
{
    for (size_t i = 0; i < s->include_n; i++) {
        if (!has_one(&s->include[i], spec, false))
            return false;
    }
    for (size_t i = 0; i < s->exclude_n; i++) {
        if (has_one(&s->exclude[i], spec, true)) /* in doubt it is not shown */
            return false;
    }
    return true;
}
