/* `endpoint: {dekaf: {config: ...}}` of a task: its tokens and how it is served. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/num.h"
#include "gateway/catalog_int.h"
#include "gateway/secret.h"

#define TOKENS_MAX 8
/* Ids of other places: well away from this gateway's own (topics.h), and below what clients do
 * arithmetic with. */
#define NODE_BASE 1000
#define NODE_SPAN 1000000000

/* --- tokens --- */

/* Aliases may share the text of a token: it is wiped when everything was read. */
void cat_wipe_secrets(struct catalog_reader *r)
{
    for (const struct cat_chain *c = r->secrets.first; c != NULL; c = c->next) {
        const struct cat_node *n = c->item;
        union {
            const uint8_t *in;
            uint8_t *out;
        } u = {.in = n->text.p};

        mem_wipe(u.out, n->text.n);
    }
}

static void add_token(struct catalog_reader *r, const struct cat_node *n, const char **list,
                      size_t *count)
{
    struct secret s;
    const char *text;

    cat_chain(r, &r->secrets, n);
    if (!cat_text(r, n, &text))
        return;
    if (text[0] == '\0') {
        cat_fault(r, n, "an empty token would let everybody in");
    } else if (*count == TOKENS_MAX) {
        cat_fault(r, n, "at most %d tokens at once", TOKENS_MAX);
    } else {
        list[(*count)++] = text; /* also a faulty one: it is wiped with the catalog */
        if (secret_parse(span_str(text), &s) < 0)
            cat_fault(r, n, "this begins as a hash by `sluice token hash`, but is none");
        else
            secret_wipe(&s);
    }
}

/* The order counts: the first one is what rotation ends with. */
static void add_tokens(struct catalog_reader *r, const struct cat_node *n, struct catalog_task *t)
{
    const char **list = cat_array(r, TOKENS_MAX, sizeof(const char *));

    if (list == NULL)
        return;
    for (size_t i = 0; i < t->tokens_n; i++)
        list[i] = t->tokens[i];
    if (n->kind == CAT_LIST) {
        for (const struct cat_node *i = n->first; i != NULL; i = i->next)
            add_token(r, i, list, &t->tokens_n);
    } else {
        add_token(r, n, list, &t->tokens_n);
    }
    t->tokens = list;
}

/* --- redirect --- */

/* FNV-1a: all gateways give one place one id. */
static int32_t node_of(const char *host, uint16_t port)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (const char *p = host; *p != '\0'; p++)
        h = (h ^ (uint8_t)*p) * UINT64_C(0x100000001b3);
    h = (h ^ (port & 0xff)) * UINT64_C(0x100000001b3);
    h = (h ^ (port >> 8)) * UINT64_C(0x100000001b3);
    return (int32_t)(NODE_BASE + h % NODE_SPAN);
}

static void read_redirect(struct catalog_reader *r, const struct cat_node *n,
                          struct catalog_task *t)
{
    static const char *const schemes[] = {"tcp://", "tls://"};
    const char *text, *colon;
    uint64_t port;

    if (!cat_text(r, n, &text))
        return;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (strncmp(text, schemes[i], strlen(schemes[i])) == 0)
            text += strlen(schemes[i]);
    }
    colon = strrchr(text, ':');
    size_t len = colon == NULL ? 0 : (size_t)(colon - text);
    bool bracketed = len > 2 && text[0] == '[' && text[len - 1] == ']';
    struct span host = bracketed ? span_of(text + 1, len - 2) : span_of(text, len);
    bool fine = host.n > 0 && host.n <= 255 && num_parse_u64(span_str(colon + 1), &port) == 0 &&
                port >= 1 && port <= UINT16_MAX;

    for (size_t i = 0; fine && i < host.n; i++)
        fine = host.p[i] > ' ' && host.p[i] < 0x7f && host.p[i] != '/' &&
               (bracketed || host.p[i] != ':');
    if (!fine) {
        cat_fault(r, n, "HOST:PORT belongs here");
        return;
    }
    t->redirect_host = cat_copy(r, host);
    t->redirect_port = (uint16_t)port;
    if (t->redirect_host != NULL)
        t->redirect_node = node_of(t->redirect_host, t->redirect_port);
}

/* --- settings --- */

static void read_value_format(struct catalog_reader *r, const struct cat_node *n,
                              enum catalog_format *out)
{
    static const char *const words[] = {"json", "avro"};
    size_t i;

    if (CAT_WORD(r, n, words, &i))
        *out = i == 0 ? CATALOG_FORMAT_JSON : CATALOG_FORMAT_AVRO;
}

static void read_key_format(struct catalog_reader *r, const struct cat_node *n,
                            enum catalog_format *out)
{
    static const char *const words[] = {"json", "avro", "scalar"};
    static const enum catalog_format means[] = {CATALOG_FORMAT_JSON, CATALOG_FORMAT_AVRO,
                                                CATALOG_FORMAT_SCALAR};
    size_t i;

    if (CAT_WORD(r, n, words, &i))
        *out = means[i];
}

static void read_sluice(struct catalog_reader *r, const struct cat_node *n, struct catalog_task *t)
{
    static const char *const codecs[] = {"none", "gzip", "snappy", "lz4", "zstd"};
    static const char *const signals[] = {"none", "headers"};
    static const char *const on_error[] = {"stop", "skip", "raw"};
    static const enum catalog_on_error means[] = {CATALOG_ON_ERROR_STOP, CATALOG_ON_ERROR_SKIP,
                                                  CATALOG_ON_ERROR_RAW};
    size_t i;

    if (!cat_is_map(r, n))
        return;
    for (const struct cat_node *m = n->first; m != NULL; m = m->next) {
        if (cat_is(m, "tokens")) {
            if (cat_is_list(r, m))
                add_tokens(r, m, t);
        } else if (cat_is(m, "value_format")) {
            read_value_format(r, m, &t->value_format);
        } else if (cat_is(m, "key_format")) {
            read_key_format(r, m, &t->key_format);
        } else if (cat_is(m, "compression")) {
            t->has_codec =
                CAT_WORD(r, m, codecs, &i) && kp_codec_parse(span_str(codecs[i]), &t->codec) == 0;
        } else if (cat_is(m, "truncation_signal")) {
            t->signal = CAT_WORD(r, m, signals, &i) && i == 1;
        } else if (cat_is(m, "on_schema_error")) {
            if (CAT_WORD(r, m, on_error, &i))
                t->on_error = means[i];
        } else if (cat_is(m, "redirect")) {
            read_redirect(r, m, t);
        } else {
            cat_unknown(r, m);
        }
    }
}

static void read_deletions(struct catalog_reader *r, const struct cat_node *n,
                           struct catalog_task *t)
{
    static const char *const words[] = {"default", "kafka", "cdc", "header"};
    static const enum sc_deletions means[] = {SC_DELETE_TOMBSTONE, SC_DELETE_TOMBSTONE,
                                              SC_DELETE_CDC, SC_DELETE_HEADER};
    size_t i;

    if (CAT_WORD(r, n, words, &i))
        t->deletions = means[i];
}

void cat_read_config(struct catalog_reader *r, const struct cat_node *n, struct catalog_task *t)
{
    const struct cat_source *file;

    if (n->kind == CAT_TEXT) { /* the settings are in a file of their own */
        if ((file = cat_source(r, n, n->text)) == NULL || file->root == NULL)
            return;
        n = file->root;
    }
    if (!cat_is_map(r, n))
        return;
    if (cat_member(n, "sops") != NULL) {
        cat_fault(r, n,
                  "encrypted settings cannot be read: decrypt them first, or give hashes of "
                  "the tokens");
        return;
    }
    for (const struct cat_node *m = n->first; m != NULL; m = m->next) {
        if (cat_is(m, "token"))
            add_tokens(r, m, t);
        else if (cat_is(m, "strict_topic_names"))
            (void)cat_bool(r, m, &t->strict_names);
        else if (cat_is(m, "allow_empty_topics"))
            (void)cat_bool(r, m, &t->allow_empty);
        else if (cat_is(m, "deletions"))
            read_deletions(r, m, t);
        else if (cat_is(m, "sluice"))
            read_sluice(r, m, t);
        else if (!cat_is(m, "advanced"))
            cat_unknown(r, m);
    }
}
