/*
 * JSON files as trees, and trees as JSON text. YAML's reader is not used for JSON: it knows neither
 * pairs of surrogates nor tabs between tokens. Pure.
 */
#include <stdio.h>

#include "base/mem.h"
#include "gateway/catalog_tree.h"
#include "schema/json_reader.h"

struct json_walk {
    struct cat_builder b;
    struct span text;
    size_t at;
    uint32_t line;
};

static void skip_space(struct json_walk *j)
{
    for (; j->at < j->text.n; j->at++) {
        uint8_t c = j->text.p[j->at];
        if (c == '\n')
            j->line++;
        else if (c != ' ' && c != '\t' && c != '\r')
            return;
    }
}

/* The end of the string that begins at j->at. */
static size_t string_end(const struct json_walk *j)
{
    size_t i = j->at + 1;

    while (i < j->text.n && j->text.p[i] != '"')
        i += j->text.p[i] == '\\' ? 2 : 1;
    return i < j->text.n ? i + 1 : j->text.n;
}

static size_t word_end(const struct json_walk *j)
{
    size_t i = j->at;

    while (i < j->text.n && strchr(" \t\r\n,]}", j->text.p[i]) == NULL)
        i++;
    return i;
}

static void put_string(struct json_walk *j)
{
    size_t end = string_end(j);
    struct writer w;

    wr_init(&w, j->text.n + 8);
    if (sc_json_unquote(span_of(j->text.p + j->at, end - j->at), &w) < 0 || wr_err(&w) < 0) {
        j->b.tree->failed = j->b.stopped = true;
    } else {
        struct span s = w.b == NULL ? span_of("", 0) : blob_span(w.b);
        if (cat_wants_key(&j->b))
            cat_put_key(&j->b, s, j->line);
        else
            (void)cat_put_scalar(&j->b, CAT_TEXT, s, j->line);
    }
    if (w.b != NULL)
        mem_wipe(w.b->data, w.b->len); /* it may be a token */
    wr_fini(&w);
    j->at = end;
}

static void put_word(struct json_walk *j)
{
    size_t end = word_end(j);
    struct span s = span_of(j->text.p + j->at, end - j->at);
    enum cat_kind kind = s.p[0] == 't'   ? CAT_TRUE
                         : s.p[0] == 'f' ? CAT_FALSE
                         : s.p[0] == 'n' ? CAT_NULL
                                         : CAT_NUMBER;

    (void)cat_put_scalar(&j->b, kind, s, j->line);
    j->at = end;
}

/* The text is valid JSON: tokens may be taken as they come. */
static void walk(struct json_walk *j)
{
    for (skip_space(j); j->at < j->text.n && !j->b.stopped; skip_space(j)) {
        switch (j->text.p[j->at]) {
        case '{':
            (void)cat_open(&j->b, CAT_MAP, j->line);
            j->at++;
            break;
        case '[':
            (void)cat_open(&j->b, CAT_LIST, j->line);
            j->at++;
            break;
        case '}':
        case ']':
            cat_close(&j->b);
            j->at++;
            break;
        case ',':
        case ':':
            j->at++;
            break;
        case '"':
            put_string(j);
            break;
        default:
            put_word(j);
        }
    }
}

const struct cat_node *cat_tree_json(struct cat_tree *t, uint32_t file, struct span text)
{
    struct json_walk *j = mem_zalloc(sizeof *j);
    const struct cat_node *root = NULL;
    struct sc_json_error err;
    char why[160];

    if (j == NULL) {
        t->failed = true;
        return NULL;
    }
    t->file = file;
    if (text.n >= 3 && memcmp(text.p, "\xef\xbb\xbf", 3) == 0)
        text = span_of(text.p + 3, text.n - 3);
    j->b.tree = t;
    j->text = text;
    j->line = 1;
    if (sc_json_check(text, &err) < 0) {
        uint32_t line = 1;
        for (size_t i = 0; i < err.at && i < text.n; i++)
            line += text.p[i] == '\n';
        (void)snprintf(why, sizeof why, "not JSON: %.120s", err.reason);
        cat_stop(&j->b, line, why);
    } else {
        walk(j);
    }
    if (!j->b.stopped)
        root = j->b.root;
    mem_free(j);
    return root;
}
