/* See registry_compat.h. The words of the messages are those of Confluent's registry, since its
 * clients show them to people as they come. */
#include "gateway/registry_compat.h"

#include <stdio.h>
#include <strings.h>

#include "base/mem.h"
#include "schema/avro_compat.h"
#include "schema/json_reader.h"

#define OLD_TEXT_MAX 10240 /* of an old schema in a message */

static const char *const LEVELS[] = {"NONE",           "BACKWARD",           "BACKWARD_TRANSITIVE",
                                     "FORWARD",        "FORWARD_TRANSITIVE", "FULL",
                                     "FULL_TRANSITIVE"};

const char *registry_level_name(enum registry_level level)
{
    return LEVELS[level];
}

int registry_level_parse(const char *text, enum registry_level *out)
{
    for (size_t i = 0; i < sizeof LEVELS / sizeof LEVELS[0]; i++) {
        if (strcasecmp(text, LEVELS[i]) == 0) {
            *out = (enum registry_level)i;
            return 0;
        }
    }
    return E_INVALID;
}

static bool is_transitive(enum registry_level level)
{
    return level == REGISTRY_BACKWARD_TRANSITIVE || level == REGISTRY_FORWARD_TRANSITIVE ||
           level == REGISTRY_FULL_TRANSITIVE;
}

static bool asks_new_reads_old(enum registry_level level)
{
    return level != REGISTRY_NONE && level != REGISTRY_FORWARD &&
           level != REGISTRY_FORWARD_TRANSITIVE;
}

static bool asks_old_reads_new(enum registry_level level)
{
    return level >= REGISTRY_FORWARD;
}

/* --- messages --- */

static void put(struct writer *messages, const struct writer *text)
{
    if (wr_err(text) < 0) {
        messages->err = wr_err(text);
        return;
    }
    if (wr_len(messages) > 0)
        wr_u8(messages, ',');
    sc_json_quote(blob_span(text->b), messages);
}

/* reader, writer: "new" and "old", or the other way round. */
static void describe(const struct sc_incompat *i, const char *reader, const char *writer,
                     struct writer *w)
{
    switch (i->kind) {
    case SC_INCOMPAT_FIXED_SIZE:
        wr_printf(w,
                  "The size of FIXED type field at path '%s' in the %s schema does not match with "
                  "the %s schema",
                  i->path, reader, writer);
        break;
    case SC_INCOMPAT_TYPE:
        wr_printf(w,
                  "The type (path '%s') of a field in the %s schema does not match with the %s "
                  "schema",
                  i->path, reader, writer);
        break;
    case SC_INCOMPAT_NAME:
        wr_printf(w, "The name of the schema has changed (path '%s')", i->path);
        break;
    case SC_INCOMPAT_SYMBOLS:
        wr_printf(w, "The %s schema is missing enum symbols '%s' at path '%s' in the %s schema",
                  reader, i->text, i->path, writer);
        break;
    case SC_INCOMPAT_BRANCH:
        wr_printf(w,
                  "The %s schema is missing a type inside a union field at path '%s' in the %s "
                  "schema",
                  reader, i->path, writer);
        break;
    case SC_INCOMPAT_NO_DEFAULT:
        wr_printf(
            w,
            "The field '%s' at path '%s' in the %s schema has no default value and is missing "
            "in the %s schema",
            i->text, i->path, reader, writer);
        break;
    case SC_INCOMPAT_AMBIGUOUS:
        wr_printf(
            w,
            "The field '%s' at path '%s' in the %s schema is several fields in the %s schema, "
            "by its aliases",
            i->text, i->path, reader, writer);
        break;
    }
}

static void put_faults(const struct sc_incompats *list, bool new_reads, struct writer *messages)
{
    for (size_t i = 0; i < list->n; i++) {
        struct writer text;

        wr_init(&text, 8192);
        wr_printf(&text, "{errorType:'%s', description:'", sc_incompat_name(list->list[i].kind));
        describe(&list->list[i], new_reads ? "new" : "old", new_reads ? "old" : "new", &text);
        wr_printf(&text, "', additionalInfo:'%s'}", list->list[i].text);
        put(messages, &text);
        wr_fini(&text);
    }
}

static void put_old(const struct registry_version *old, enum registry_level level,
                    struct writer *messages)
{
    bool whole = old->text.n <= OLD_TEXT_MAX;
    struct writer text;

    wr_init(&text, OLD_TEXT_MAX + 1024);
    wr_printf(&text, "{oldSchemaVersion: %u}", (unsigned)old->number);
    put(messages, &text);
    wr_fini(&text);
    wr_init(&text, OLD_TEXT_MAX + 1024);
    wr_str(&text, whole ? "{oldSchema: '" : "{oldSchema: <truncated> '");
    wr_span(&text, span_of(old->text.p, whole ? old->text.n : OLD_TEXT_MAX));
    wr_str(&text, whole ? "'}" : "...'}");
    put(messages, &text);
    wr_fini(&text);
    wr_init(&text, 256);
    wr_printf(&text, "{validateFields: 'false', compatibility: '%s'}", registry_level_name(level));
    put(messages, &text);
    wr_fini(&text);
}

/* --- checks --- */

static int check_avro(enum registry_level level, const struct registry_new *is,
                      const struct sc_avro_model *old, struct writer *messages, bool *good)
{
    struct sc_incompats *list = mem_alloc(sizeof *list);
    int err = list == NULL ? E_NOMEM : 0;

    if (err == 0 && asks_old_reads_new(level) && (err = sc_avro_reads(old, is->avro, list)) == 0) {
        put_faults(list, false, messages);
        *good = *good && list->n == 0;
    }
    if (err == 0 && asks_new_reads_old(level) && (err = sc_avro_reads(is->avro, old, list)) == 0) {
        put_faults(list, true, messages);
        *good = *good && list->n == 0;
    }
    mem_free(list);
    return err;
}

static int check_json(const struct registry_new *is, const struct registry_version *old)
{
    bool same;
    int err = sc_json_same(is->text, old->text, &same);

    if (err < 0)
        return err;
    return same ? 0 : E_UNSUPPORTED;
}

int registry_compat_version(enum registry_level level, const struct registry_new *is,
                            const struct registry_version *old, struct writer *messages, bool *good)
{
    struct sc_avro_model *model;
    struct sc_schema_error why;
    int err;

    *good = true;
    if (level == REGISTRY_NONE)
        return 0;
    if (old->json != (is->avro == NULL)) {
        struct writer text;

        *good = false;
        wr_init(&text, 256);
        wr_str(&text, "Incompatible because of different schema type");
        put(messages, &text);
        wr_fini(&text);
        return 0;
    }
    if (old->json)
        return check_json(is, old);
    if ((err = sc_avro_model_new(old->text, &why, &model)) < 0)
        return err == E_NOMEM ? err : E_UNSUPPORTED; /* not one of ours */
    err = check_avro(level, is, model, messages, good);
    sc_avro_model_free(model);
    if (err == 0 && !*good)
        put_old(old, level, messages);
    return err;
}

int registry_compat_subject(enum registry_level level, const struct registry_new *is,
                            const struct registry_subject *s, struct writer *messages, bool *good)
{
    const struct registry_version *latest = registry_subject_latest(s);
    int err;

    *good = true;
    if (level == REGISTRY_NONE || latest == NULL)
        return 0;
    err = registry_compat_version(level, is, latest, messages, good);
    for (size_t i = s->versions_n; is_transitive(level) && err == 0 && *good && i > 0; i--) {
        if (&s->versions[i - 1] != latest)
            err = registry_compat_version(level, is, &s->versions[i - 1], messages, good);
    }
    return err;
}
