/* A backfill's state as JSON, and the label on a journal. Pure. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "gateway/backfill_int.h"
#include "journal_client/uuid.h"

char *backfill_key(struct span collection)
{
    size_t n = sizeof BF_KEY_PREFIX + collection.n;
    char *key = mem_alloc(n);

    if (key != NULL)
        (void)snprintf(key, n, BF_KEY_PREFIX "%.*s", SPAN_FMT(collection));
    return key;
}

size_t backfill_state_format(const struct backfill_state *s, char out[BACKFILL_STATE_MAX])
{
    int n = snprintf(out, BACKFILL_STATE_MAX,
                     "{\"state\":\"%s\",\"begin\":\"%016" PRIx64 "\",\"complete\":\"%016" PRIx64
                     "\",\"completes\":\"%016" PRIx64 "\"}",
                     s->phase == BACKFILL_ACTIVE ? "active" : "complete", s->begin, s->complete,
                     s->completes);

    return (size_t)n;
}

static int clock_member(const json_t *root, const char *name, uint64_t *out)
{
    const char *text = json_string_value(json_object_get(root, name));

    return text == NULL ? E_CORRUPT : jc_clock_parse_hex(span_str(text), out);
}

int backfill_state_parse(struct span json, struct backfill_state *out)
{
    json_t *root = json_loadb((const char *)json.p, json.n, JSON_REJECT_DUPLICATES, NULL);
    const char *phase = json_string_value(json_object_get(root, "state"));
    struct backfill_state s = {0};
    int err = E_CORRUPT;

    *out = s;
    if (phase == NULL || clock_member(root, "begin", &s.begin) < 0 ||
        clock_member(root, "complete", &s.complete) < 0 ||
        clock_member(root, "completes", &s.completes) < 0 || s.begin == 0)
        goto out;
    if (strcmp(phase, "active") == 0)
        s.phase = BACKFILL_ACTIVE;
    else if (strcmp(phase, "complete") == 0)
        s.phase = BACKFILL_COMPLETED;
    else
        goto out;
    *out = s;
    err = 0;
out:
    json_decref(root);
    return err;
}

void backfill_label_of(const struct jc_spec *spec, struct backfill_label *out)
{
    size_t n = 0, good = 0;

    *out = (struct backfill_label){0};
    for (size_t i = 0; i < spec->labels_n; i++) {
        uint64_t clock;

        if (strcmp(spec->labels[i].name, JC_LABEL_TRUNCATED_AT) != 0)
            continue;
        n++;
        if (jc_clock_parse_hex(span_str(spec->labels[i].value), &clock) < 0)
            continue;
        good++;
        if (clock > out->clock)
            out->clock = clock;
    }
    out->plain = n == 1 && good == 1;
}
