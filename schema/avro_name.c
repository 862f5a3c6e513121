/*
 * How the chosen fields are called: their own name where Avro admits it, else one with other
 * characters folded to _, and a number behind it where that is taken. Names in scripts that Avro
 * does not know may all fold to the same one, so what is taken is looked up, and the numbers of a
 * name are not tried from the beginning again. Pure.
 */
#include <stdio.h>

#include "base/keymap.h"
#include "schema/avro_int.h"

/* A name that is taken. */
struct name_use {
    unsigned next; /* the number to try for the next field of this name */
};

struct names {
    struct av *av;
    struct keymap taken; /* struct name_use */
};

bool av_is_name(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];

        if (c != '_' && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return s.n > 0;
}

/* The field's name as an Avro name: every character that is none becomes _. */
static struct span fold(struct av *av, struct span field)
{
    uint8_t *p = av_alloc(av, field.n + 2 + PG_SLACK, 1);
    size_t n = 0;

    if (p == NULL)
        return field;
    if (field.n == 0 || (field.p[0] >= '0' && field.p[0] <= '9'))
        p[n++] = '_';
    for (size_t i = 0; i < field.n; i++) {
        uint8_t c = field.p[i];

        if ((c & 0xc0) == 0x80)
            continue; /* inside a character */
        p[n++] = av_is_name(span_of(&c, 1)) || (c >= '0' && c <= '9') ? c : '_';
    }
    return span_of(p, n);
}

static struct name_use *use_of(const struct names *names, struct span name)
{
    return keymap_get(&names->taken, name);
}

/* name lives as long as names. */
static void take(struct names *names, struct span name)
{
    struct av *av = names->av;
    struct name_use *use = arena_alloc(&av->tmp, sizeof *use);

    if (use == NULL || keymap_put(&names->taken, name, use) < 0) {
        av->err = av->err < 0 ? av->err : E_NOMEM;
        return;
    }
    use->next = 2;
}

/* Whether folding changed more than the slashes between the tokens of a pointer. */
static bool is_foreign(struct span field, struct span name)
{
    if (field.n != name.n)
        return true;
    for (size_t i = 0; i < field.n; i++) {
        if (field.p[i] != name.p[i] && field.p[i] != '/')
            return true;
    }
    return false;
}

static void name_one(struct names *names, struct av_field *f)
{
    struct av *av = names->av;
    struct span name = fold(av, f->field), base = name;
    struct name_use *use = use_of(names, base);
    bool foreign = is_foreign(f->field, name) || use != NULL;
    char suffix[16], text[200];

    if (use != NULL) {
        do {
            (void)snprintf(suffix, sizeof suffix, "_%u", use->next++);
            name = av_join(av, base, "", span_str(suffix));
        } while (av->err == 0 && use_of(names, name) != NULL);
    }
    if (av->err == 0)
        take(names, name);
    f->name = name;
    if (!foreign || av->err < 0)
        return;
    if (av->opts->strict_names) {
        (void)av_fail(av, E_INVALID, f->pointer, "not an Avro name (" AVRO_NAME_RULE "), or taken",
                      f->field);
        return;
    }
    (void)snprintf(text, sizeof text, "served as %.*s: names match %s and are unique",
                   name.n < 100 ? (int)name.n : 100, (const char *)name.p, AVRO_NAME_RULE);
    av_note(av, f->field, text);
}

void av_name_fields(struct av *av)
{
    struct names names = {.av = av};

    if (av->opts->deletions == SC_DELETE_CDC)
        take(&names, span_str(SC_DELETED_FIELD));
    /* names that need no change first, so that they keep themselves */
    for (size_t i = 0; i < av->fields_n && av->err == 0; i++) {
        struct av_field *f = &av->fields[i];

        if (av_is_name(f->field) && use_of(&names, f->field) == NULL) {
            f->name = f->field;
            take(&names, f->name);
        }
    }
    for (size_t i = 0; i < av->fields_n && av->err == 0; i++) {
        if (av->fields[i].name.p == NULL)
            name_one(&names, &av->fields[i]);
    }
    keymap_fini(&names.taken);
}
