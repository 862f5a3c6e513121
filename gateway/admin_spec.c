/*
 * A journal's spec as an operator sends it: one JSON object. Members that are absent keep what the
 * journal has; a member that is unknown is a fault, because a typing error would otherwise change
 * another thing than was meant. Pure.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/admin_int.h"

#define LABELS_MAX 1000

static int refuse(const char **why, const char *text)
{
    *why = text;
    return E_INVALID;
}

static int cmp_labels(const void *va, const void *vb)
{
    const struct jc_label *a = va, *b = vb;
    int c = strcmp(a->name, b->name);

    return c != 0 ? c : strcmp(a->value, b->value);
}

static size_t count_labels(json_t *labels)
{
    const char *name;
    json_t *value;
    size_t n = 0;

    json_object_foreach(labels, name, value)
    {
        n += json_is_array(value) ? json_array_size(value) : 1;
    }
    return n;
}

/* The strings go to the arena: the JSON ends before the spec does. */
static int read_labels(json_t *labels, struct arena *a, struct jc_spec *spec, const char **why)
{
    size_t n = count_labels(labels), at = 0;
    struct jc_label *list;
    const char *name;
    json_t *value;

    if (!json_is_object(labels))
        return refuse(why, "\"labels\" is an object of names and values");
    if (n > LABELS_MAX)
        return refuse(why, "a journal has at most 1000 labels");
    if ((list = arena_array(a, n, sizeof list[0])) == NULL)
        return E_NOMEM;
    json_object_foreach(labels, name, value)
    {
        bool many = json_is_array(value);

        for (size_t i = 0; i < (many ? json_array_size(value) : 1); i++) {
            const char *text = json_string_value(many ? json_array_get(value, i) : value);

            if (text == NULL)
                return refuse(why, "a label's value is a string or an array of strings");
            list[at].name = arena_strndup(a, name, strlen(name));
            list[at].value = arena_strndup(a, text, strlen(text));
            if (list[at].name == NULL || list[at].value == NULL)
                return E_NOMEM;
            at++;
        }
    }
    if (n > 1)
        qsort(list, n, sizeof list[0], cmp_labels);
    spec->labels = list;
    spec->labels_n = n;
    return 0;
}

static int read_members(json_t *root, struct arena *a, struct admin_spec *out, const char **why)
{
    const struct {
        const char *name;
        int64_t *out;
    } ints[] = {
        {"fragment_bytes", &out->spec.fragment_bytes},
        {"fragment_age_ms", &out->spec.fragment_age_ms},
        {"retention_ms", &out->spec.retention_ms},
        {"retention_bytes", &out->spec.retention_bytes},
        {"expect_mod_revision", &out->expect_mod_revision},
    };
    const char *name;
    json_t *value;

    if (!json_is_object(root))
        return refuse(why, "the body is one JSON object");
    json_object_foreach(root, name, value)
    {
        size_t i = 0;
        int err;

        if (strcmp(name, "labels") == 0) {
            if ((err = read_labels(value, a, &out->spec, why)) < 0)
                return err;
            continue;
        }
        while (i < sizeof ints / sizeof ints[0] && strcmp(name, ints[i].name) != 0)
            i++;
        if (i == sizeof ints / sizeof ints[0])
            return refuse(why, "unknown member; known are labels, fragment_bytes, fragment_age_ms, "
                               "retention_ms, retention_bytes and expect_mod_revision");
        if (!json_is_integer(value))
            return refuse(why, "sizes, times and revisions are whole numbers");
        *ints[i].out = json_integer_value(value);
    }
    return 0;
}

int admin_spec_parse(struct span json, const char *name, const struct jc_journal *now,
                     struct arena *a, struct admin_spec *out, const char **why)
{
    json_t *root = json_loadb((const char *)json.p, json.n, JSON_REJECT_DUPLICATES, NULL);
    int err;

    memset(out, 0, sizeof *out);
    if (root == NULL)
        return refuse(why, "the body is not JSON, or names a member twice");
    if (now != NULL)
        out->spec = now->spec;
    out->spec.name = name;
    out->expect_mod_revision = -1;
    if ((err = read_members(root, a, out, why)) == 0 && out->expect_mod_revision < -1)
        err = refuse(why, "expect_mod_revision is a revision, 0 (must not exist) or -1 (any)");
    if (err == 0)
        err = jc_spec_check(&out->spec, why);
    json_decref(root);
    return err;
}
