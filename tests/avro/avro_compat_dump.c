/*
 * Verdicts on pairs of Avro schemas, for a comparison with other libraries. One pair a line on
 * standard input: {"reader": "text", "writer": "text"}. One answer a line: {"ok": false, "error":
 * ".."} when one of them is no schema, else {"ok": true, "compatible": false, "list": [{"type": ..,
 * "path": .., "text": ..}]}.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/writer.h"
#include "schema/avro_compat.h"
#include "schema/json_tree.h"

static void put_list(struct writer *w, const struct sc_incompats *list)
{
    wr_printf(w, "{\"ok\":true,\"compatible\":%s,\"list\":[", list->n == 0 ? "true" : "false");
    for (size_t i = 0; i < list->n; i++) {
        const struct sc_incompat *x = &list->list[i];

        wr_printf(w, "%s{\"type\":\"%s\",\"path\":", i == 0 ? "" : ",", sc_incompat_name(x->kind));
        sc_json_quote(span_str(x->path), w);
        wr_str(w, ",\"text\":");
        sc_json_quote(span_str(x->text), w);
        wr_str(w, "}");
    }
    wr_str(w, "]}");
}

static void answer(const struct jt_node *pair, struct writer *w)
{
    static struct sc_incompats list;
    struct sc_schema_error why = {"", ""};
    struct sc_avro_model *r = NULL, *wr = NULL;
    const struct jt_node *a = jt_get(pair, "reader"), *b = jt_get(pair, "writer");

    int err = a == NULL || b == NULL ? E_INVALID : sc_avro_model_new(a->str, &why, &r);
    if (err == 0)
        err = sc_avro_model_new(b->str, &why, &wr);
    if (err == 0)
        err = sc_avro_reads(r, wr, &list);
    if (err == 0) {
        put_list(w, &list);
    } else {
        wr_str(w, "{\"ok\":false,\"error\":");
        sc_json_quote(span_str(why.reason[0] == '\0' ? err_text(err) : why.reason), w);
        wr_str(w, "}");
    }
    sc_avro_model_free(r);
    sc_avro_model_free(wr);
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;

    while ((n = getline(&line, &cap, stdin)) > 0) {
        struct sc_json_error json;
        struct jt_node *pair;
        struct arena a;
        struct writer w;
        uint32_t nodes = 0;

        arena_init(&a, (size_t)64 << 20);
        wr_init(&w, (size_t)64 << 20);
        if (jt_parse(span_of(line, (size_t)n), &a, &nodes, &json, &pair) < 0)
            return 2;
        answer(pair, &w);
        wr_str(&w, "\n");
        if (wr_err(&w) < 0 || fwrite(w.b->data, 1, w.b->len, stdout) != w.b->len)
            return 2;
        wr_fini(&w);
        arena_fini(&a);
    }
    free(line); /* banned-ok: getline's own memory */
    return fflush(stdout) == 0 ? 0 : 2;
}
