/*
 * Typed looks at a catalog's values: each says what it wanted, and where, when it finds something
 * else. No message holds a value's text unless it was asked for by name: it might be a secret.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/num.h"
#include "gateway/catalog_int.h"

#define POINTER_MAX ((size_t)64 * 1024)

static void copy_cut(char *to, size_t bytes, const char *from, size_t n)
{
    if (n >= bytes)
        n = bytes - 1;
    memcpy(to, from, n);
    to[n] = '\0';
}

static void say(struct catalog_reader *r, bool warning, const char *file, uint32_t line,
                const struct cat_node *at, const char *text)
{
    struct catalog_faults *f = r->faults;
    struct writer w;

    if (warning)
        f->warnings++;
    else
        f->faults++;
    if (f->n == CATALOG_FAULTS_MAX)
        return;
    struct catalog_fault *one = &f->list[f->n++];
    *one = (struct catalog_fault){.line = line, .warning = warning};
    copy_cut(one->file, sizeof one->file, file, strlen(file));
    copy_cut(one->text, sizeof one->text, text, strlen(text));
    wr_init(&w, POINTER_MAX);
    cat_pointer(at, &w);
    if (w.b != NULL)
        copy_cut(one->pointer, sizeof one->pointer, (const char *)w.b->data, w.b->len);
    wr_fini(&w);
}

const char *cat_file_name(const struct catalog_reader *r, const struct cat_node *n)
{
    if (n != NULL && n->file < r->sources_n)
        return r->sources[n->file].name;
    return r->sources_n > 0 ? r->sources[0].name : r->catalog->path;
}

void cat_say(struct catalog_reader *r, bool warning, const char *file, uint32_t line,
             const struct cat_node *at, const char *text)
{
    say(r, warning, file, line, at, text);
}

__attribute__((format(printf, 4, 0))) static void
add(struct catalog_reader *r, bool warning, const struct cat_node *at, const char *fmt, va_list ap)
{
    char text[240];

    (void)vsnprintf(text, sizeof text, fmt, ap);
    say(r, warning, cat_file_name(r, at), at == NULL ? 0 : at->line, at, text);
}

void cat_fault(struct catalog_reader *r, const struct cat_node *at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add(r, false, at, fmt, ap);
    va_end(ap);
}

void cat_warn(struct catalog_reader *r, const struct cat_node *at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add(r, true, at, fmt, ap);
    va_end(ap);
}

void cat_unknown(struct catalog_reader *r, const struct cat_node *at)
{
    cat_warn(r, at, "unknown key");
}

void catalog_fault_text(const struct catalog_fault *f, char *out, size_t out_bytes)
{
    char line[24] = "";

    if (f->line > 0)
        (void)snprintf(line, sizeof line, ":%zu", f->line);
    (void)snprintf(out, out_bytes, "%s%s: %s%s%s%s", f->file, line, f->warning ? "warning: " : "",
                   f->pointer, f->pointer[0] != '\0' ? ": " : "", f->text);
}

/* --- memory --- */

void *cat_array(struct catalog_reader *r, size_t n, size_t each)
{
    void *p = arena_array(&r->catalog->arena, n, each);

    r->failed = r->failed || p == NULL;
    return p;
}

const char *cat_copy(struct catalog_reader *r, struct span s)
{
    const char *p = arena_strndup(&r->catalog->arena, (const char *)s.p, s.n);

    r->failed = r->failed || p == NULL;
    return p;
}

void cat_chain(struct catalog_reader *r, struct cat_list *l, const void *item)
{
    struct cat_chain *c = arena_alloc(&r->arena, sizeof *c);

    if (c == NULL) {
        r->failed = true;
        return;
    }
    c->item = item;
    if (l->last == NULL)
        l->first = c;
    else
        l->last->next = c;
    l->last = c;
    l->n++;
}

/* --- types --- */

const char *cat_kind_text(const struct cat_node *n)
{
    switch (n->kind) {
    case CAT_MAP:
        return "a mapping";
    case CAT_LIST:
        return "a list";
    case CAT_FALSE:
    case CAT_TRUE:
        return "a boolean";
    case CAT_NUMBER:
        return "a number";
    case CAT_TEXT:
        return "text";
    case CAT_NULL:
        break;
    }
    return "nothing";
}

static bool is_kind(struct catalog_reader *r, const struct cat_node *n, enum cat_kind kind,
                    const char *what)
{
    if (n->kind == kind)
        return true;
    cat_fault(r, n, "%s belongs here, not %s", what, cat_kind_text(n));
    return false;
}

bool cat_is_map(struct catalog_reader *r, const struct cat_node *n)
{
    return is_kind(r, n, CAT_MAP, "a mapping");
}

bool cat_is_list(struct catalog_reader *r, const struct cat_node *n)
{
    return is_kind(r, n, CAT_LIST, "a list");
}

bool cat_text(struct catalog_reader *r, const struct cat_node *n, const char **out)
{
    *out = NULL;
    if (!is_kind(r, n, CAT_TEXT, "text"))
        return false;
    if (memchr(n->text.p, 0, n->text.n) != NULL) {
        cat_fault(r, n, "text with a NUL in it");
        return false;
    }
    *out = cat_copy(r, n->text);
    return *out != NULL;
}

bool cat_bool(struct catalog_reader *r, const struct cat_node *n, bool *out)
{
    *out = n->kind == CAT_TRUE;
    if (n->kind == CAT_TRUE || n->kind == CAT_FALSE)
        return true;
    cat_fault(r, n, "true or false belongs here, not %s", cat_kind_text(n));
    return false;
}

bool cat_count(struct catalog_reader *r, const struct cat_node *n, int64_t max, int64_t *out)
{
    *out = 0;
    if (n->kind == CAT_NUMBER && num_parse_i64(n->text, out) == 0 && *out >= 0 && *out <= max)
        return true;
    *out = 0;
    cat_fault(r, n, "a whole number from 0 to %lld belongs here", (long long)max);
    return false;
}

bool cat_word(struct catalog_reader *r, const struct cat_node *n, const char *const *words,
              size_t words_n, size_t *out)
{
    char list[160];
    size_t k = 0;

    for (*out = 0; *out < words_n; (*out)++) {
        if (n->kind == CAT_TEXT && span_eq_str(n->text, words[*out]))
            return true;
    }
    list[0] = '\0';
    for (size_t i = 0; i < words_n && k < sizeof list; i++) {
        const char *between = i == 0 ? "" : i + 1 == words_n ? " or " : ", ";
        int n_written = snprintf(list + k, sizeof list - k, "%s%s", between, words[i]);
        k += n_written > 0 ? (size_t)n_written : 0;
    }
    cat_fault(r, n, "%s belongs here", list);
    return false;
}

bool cat_is(const struct cat_node *n, const char *key)
{
    return span_eq_str(n->key, key);
}

bool cat_among(const struct cat_node *n, const char *const *keys, size_t keys_n)
{
    for (size_t i = 0; i < keys_n; i++) {
        if (cat_is(n, keys[i]))
            return true;
    }
    return false;
}
