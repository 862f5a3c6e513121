/*
 * The tree of a JSON text. Checked strictly as a whole first, so that building it only has to
 * split. Recursion is bounded by JT_MAX_DEPTH. Pure, any thread.
 */
#include "schema/json_tree.h"

#include "base/num.h"
#include "schema/json_int.h"

struct build {
    struct arena *a;
    uint32_t n;
    int err;
};

static struct span unescaped(struct build *b, struct span raw)
{
    const uint8_t *p = raw.p, *end = raw.p + raw.n;
    uint8_t *to;
    size_t n = 0;

    if (raw.n == 0 || memchr(raw.p, '\\', raw.n) == NULL)
        return raw;
    if ((to = arena_alloc(b->a, raw.n)) == NULL) {
        b->err = jt_no_room(b->a, raw.n);
        return raw;
    }
    while (p < end) {
        uint8_t bytes[4];
        size_t len = 1, taken = 1;

        bytes[0] = *p;
        if (*p == '\\')
            taken = js_unescape(p, end, bytes, &len);
        memcpy(to + n, bytes, len);
        n += len;
        p += taken;
    }
    return span_of(to, n);
}

static void append(struct jt_node *parent, struct jt_node *child)
{
    if (parent->last == NULL)
        parent->first = child;
    else
        parent->last->next = child;
    parent->last = child;
    parent->n++;
}

static struct jt_node *build(struct build *b, struct span text, unsigned depth);

static void build_members(struct build *b, struct jt_node *node, unsigned depth)
{
    struct js_object it = {node->text.p + 1, node->text.p + node->text.n, true};
    struct js_member m;

    while (b->err == 0 && js_object_next(&it, &m)) {
        struct jt_node *child = build(b, m.value, depth + 1);

        if (child != NULL) {
            child->key = unescaped(b, m.key);
            append(node, child);
        }
    }
}

static void build_elements(struct build *b, struct jt_node *node, unsigned depth)
{
    const uint8_t *end = node->text.p + node->text.n, *p = js_ws(node->text.p + 1, end);

    while (b->err == 0 && p < end && *p != ']') {
        const uint8_t *value = p;
        struct jt_node *child;

        p = js_skip_value(p, end);
        if ((child = build(b, span_of(value, (size_t)(p - value)), depth + 1)) != NULL)
            append(node, child);
        p = js_ws(p, end);
        if (p < end && *p == ',')
            p = js_ws(p + 1, end);
    }
}

/* NULL with b->err set. */
static struct jt_node *build(struct build *b, struct span text, unsigned depth)
{
    struct jt_node *node = NULL;

    if (depth > JT_MAX_DEPTH || b->n == UINT32_MAX) {
        b->err = E_LIMIT;
        return NULL;
    }
    if ((node = arena_alloc(b->a, sizeof *node)) == NULL) {
        b->err = jt_no_room(b->a, sizeof *node);
        return NULL;
    }
    node->id = b->n++;
    node->kind = js_kind(text.p[0]);
    node->text = text;
    if (node->kind == SC_JSON_STRING)
        node->str = unescaped(b, span_of(text.p + 1, text.n - 2));
    else if (node->kind == SC_JSON_OBJECT)
        build_members(b, node, depth);
    else if (node->kind == SC_JSON_ARRAY)
        build_elements(b, node, depth);
    return b->err == 0 ? node : NULL;
}

int jt_parse(struct span text, struct arena *a, uint32_t *nodes_n, struct sc_json_error *err,
             struct jt_node **out)
{
    struct build b = {.a = a, .n = *nodes_n};
    const uint8_t *p, *end;
    struct jt_node *root;
    int r;

    *out = NULL;
    if ((r = sc_json_check(text, err)) < 0)
        return r;
    p = js_ws(text.p, text.p + text.n);
    end = text.p + text.n;
    while (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\n' || end[-1] == '\r')
        end--;
    if ((root = build(&b, span_of(p, (size_t)(end - p)), 0)) == NULL) {
        *err = (struct sc_json_error){.reason = b.err == E_LIMIT ? "too large, or nested too deeply"
                                                                 : "out of memory"};
        return b.err;
    }
    *nodes_n = b.n;
    *out = root;
    return 0;
}

const struct jt_node *jt_member(const struct jt_node *node, struct span key)
{
    const struct jt_node *found = NULL;

    if (node == NULL || node->kind != SC_JSON_OBJECT)
        return NULL;
    for (const struct jt_node *m = node->first; m != NULL; m = m->next) {
        if (span_eq(m->key, key))
            found = m;
    }
    return found;
}

const struct jt_node *jt_get(const struct jt_node *node, const char *key)
{
    return jt_member(node, span_str(key));
}

static const struct jt_node *step(const struct jt_node *node, struct span token)
{
    uint64_t index;

    if (node->kind == SC_JSON_OBJECT) {
        const struct jt_node *found = NULL;

        /* the token may hold ~0 and ~1: compare byte by byte */
        for (const struct jt_node *m = node->first; m != NULL; m = m->next) {
            size_t k = 0, i = 0;

            for (; i < token.n && k < m->key.n; i++, k++) {
                uint8_t c = token.p[i];

                if (c == '~' && i + 1 < token.n)
                    c = token.p[++i] == '1' ? '/' : '~';
                if (c != m->key.p[k])
                    break;
            }
            if (i == token.n && k == m->key.n)
                found = m;
        }
        return found;
    }
    if (node->kind != SC_JSON_ARRAY || num_parse_u64(token, &index) < 0)
        return NULL;
    node = node->first;
    for (; node != NULL && index > 0; index--)
        node = node->next;
    return node;
}

const struct jt_node *jt_at(const struct jt_node *node, struct span pointer)
{
    size_t i = 0;

    while (node != NULL && i < pointer.n) {
        size_t start = ++i;

        if (pointer.p[start - 1] != '/')
            return NULL;
        while (i < pointer.n && pointer.p[i] != '/')
            i++;
        node = step(node, span_of(pointer.p + start, i - start));
    }
    return node;
}
