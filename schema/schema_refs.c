/*
 * Which schema a $ref names: $id sets the base of what lies below it, $anchor names a schema within
 * its resource, a fragment that begins with / is a JSON pointer. References resolve by RFC 3986.
 * Nothing is fetched: only documents that were given exist. What a $dynamicRef means depends on the
 * way through the schemas that led to it; here it may mean each that it could. Pure.
 */
#include "schema/shape_int.h"

static void *grow(struct refs *r, void *old, size_t n, size_t *cap, size_t bytes)
{
    void *p;

    if (n < *cap)
        return old;
    *cap = *cap == 0 ? 8 : *cap * 2;
    if ((p = arena_array(r->a, *cap, bytes)) == NULL) {
        r->err = jt_no_room(r->a, *cap * bytes);
        return NULL;
    }
    if (n > 0)
        memcpy(p, old, n * bytes);
    return p;
}

/* --- references (RFC 3986, section 5) --- */

struct uri {
    struct span scheme, authority, path, query, fragment; /* .p == NULL: not there */
};

static size_t until(struct span s, size_t from, const char *stops)
{
    while (from < s.n && strchr(stops, s.p[from]) == NULL)
        from++;
    return from;
}

static struct uri uri_split(struct span s)
{
    struct uri u = {.path = {NULL, 0}};
    size_t i = 0, e;

    e = until(s, 0, ":/?#");
    if (e > 0 && e < s.n && s.p[e] == ':') {
        u.scheme = span_of(s.p, e);
        i = e + 1;
    }
    if (s.n - i >= 2 && s.p[i] == '/' && s.p[i + 1] == '/') {
        e = until(s, i + 2, "/?#");
        u.authority = span_of(s.p + i + 2, e - i - 2);
        i = e;
    }
    e = until(s, i, "?#");
    u.path = span_of(s.p + i, e - i);
    i = e;
    if (i < s.n && s.p[i] == '?') {
        e = until(s, i, "#");
        u.query = span_of(s.p + i + 1, e - i - 1);
        i = e;
    }
    if (i < s.n)
        u.fragment = span_of(s.p + i + 1, s.n - i - 1);
    return u;
}

/* Copies a path without its . and .. segments; bytes written. */
static size_t remove_dots(struct span path, uint8_t *to)
{
    size_t n = 0, i = 0;

    while (i < path.n) {
        size_t start = i, seg, len;

        if (path.p[i] == '/')
            i++;
        seg = i;
        while (i < path.n && path.p[i] != '/')
            i++;
        len = i - seg;
        if (len == 1 && path.p[seg] == '.') {
            if (i == path.n)
                to[n++] = '/';
        } else if (len == 2 && path.p[seg] == '.' && path.p[seg + 1] == '.') {
            while (n > 0 && to[n - 1] != '/')
                n--;
            n -= n > 0;
            if (i == path.n)
                to[n++] = '/';
        } else {
            memcpy(to + n, path.p + start, i - start);
            n += i - start;
        }
    }
    return n;
}

static void put(uint8_t *to, size_t *n, const char *before, struct span s, const char *after)
{
    for (; *before != 0; before++)
        to[(*n)++] = (uint8_t)*before;
    if (s.n > 0)
        memcpy(to + *n, s.p, s.n);
    *n += s.n;
    for (; *after != 0; after++)
        to[(*n)++] = (uint8_t)*after;
}

/* ref seen from base, without its fragment. */
static struct span uri_resolve(struct refs *r, struct span base_text, struct span ref_text)
{
    struct uri base = uri_split(base_text), ref = uri_split(ref_text);
    uint8_t *to = arena_alloc(r->a, base_text.n + ref_text.n + 16);
    uint8_t *path = arena_alloc(r->a, base_text.n + ref_text.n + 16);
    struct span query = ref.query, merged = ref.path;
    size_t n = 0, m = 0;
    bool same = ref.scheme.p == NULL, own = ref.authority.p != NULL || !same;

    if (to == NULL || path == NULL) {
        r->err = jt_no_room(r->a, base_text.n + ref_text.n + 16);
        return span_of("", 0);
    }
    if (!own && ref.path.n == 0) {
        merged = base.path;
        query = ref.query.p != NULL ? ref.query : base.query;
    } else if (!own && ref.path.p[0] != '/') {
        size_t dir = base.path.n;

        while (dir > 0 && base.path.p[dir - 1] != '/')
            dir--;
        if (dir == 0 && base.authority.p != NULL)
            path[m++] = '/';
        put(path, &m, "", span_of(base.path.p, dir), "");
        put(path, &m, "", ref.path, "");
        merged = span_of(path, m);
    }
    if (!same || base.scheme.p != NULL)
        put(to, &n, "", same ? base.scheme : ref.scheme, ":");
    if (own ? ref.authority.p != NULL : base.authority.p != NULL)
        put(to, &n, "//", own ? ref.authority : base.authority, "");
    n += remove_dots(merged, to + n);
    if (query.p != NULL)
        put(to, &n, "?", query, "");
    return span_of(to, n);
}

/* --- the index --- */

static void add_anchor(struct refs *r, uint32_t resource, struct span name, bool dynamic,
                       const struct jt_node *node)
{
    struct refs_anchor *p =
        grow(r, r->anchors, r->anchors_n, &r->anchors_cap, sizeof r->anchors[0]);

    if (p == NULL)
        return;
    r->anchors = p;
    r->anchors[r->anchors_n++] =
        (struct refs_anchor){.resource = resource, .dynamic = dynamic, .name = name, .node = node};
}

static uint32_t add_resource(struct refs *r, struct span uri, const struct jt_node *root)
{
    struct refs_resource *p =
        grow(r, r->resources, r->resources_n, &r->resources_cap, sizeof r->resources[0]);

    if (p == NULL)
        return 0;
    r->resources = p;
    r->resources[r->resources_n] = (struct refs_resource){.uri = uri, .root = root};
    return (uint32_t)r->resources_n++;
}

static bool is_one_of(struct span key, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (span_eq_str(key, *names))
            return true;
    }
    return false;
}

/* map: the members of node are names, not keywords. */
static void index_node(struct refs *r, const struct jt_node *node, uint32_t resource, bool map,
                       bool old)
{
    static const char *const data[] = {"const", "enum", "default", "examples", "example", NULL};
    static const char *const maps[] = {"properties",  "patternProperties", "$defs",
                                       "definitions", "dependentSchemas",  "dependencies",
                                       NULL};
    const struct jt_node *id;

    if (node->kind == SC_JSON_OBJECT && !map) {
        id = jt_get(node, old ? "id" : "$id");
        if (id != NULL && id->kind == SC_JSON_STRING && id->str.n > 0) {
            if (id->str.p[0] == '#')
                add_anchor(r, resource, span_of(id->str.p + 1, id->str.n - 1), false, node);
            else
                resource =
                    add_resource(r, uri_resolve(r, r->resources[resource].uri, id->str), node);
        }
        for (unsigned i = 0; i < 2; i++) {
            id = jt_get(node, i == 0 ? "$anchor" : "$dynamicAnchor");
            if (id != NULL && id->kind == SC_JSON_STRING)
                add_anchor(r, resource, id->str, i == 1, node);
        }
        id = jt_get(node, "$recursiveAnchor");
        if (id != NULL && id->kind == SC_JSON_TRUE)
            add_anchor(r, resource, span_str(""), true, node);
    }
    if (r->err < 0)
        return;
    r->resource_of[node->id] = resource;
    for (const struct jt_node *m = node->first; m != NULL; m = m->next) {
        bool keyword = node->kind == SC_JSON_OBJECT && !map;

        if (keyword && is_one_of(m->key, data))
            continue;
        index_node(r, m, resource, keyword && is_one_of(m->key, maps), old);
    }
}

void refs_index(struct refs *r, struct span uri, const struct jt_node *root)
{
    const struct jt_node *dialect = jt_get(root, "$schema");
    uint32_t resource = add_resource(r, uri, root);
    bool old = dialect == NULL && r->ids;

    if (r->err < 0)
        return;
    if (dialect != NULL && dialect->kind == SC_JSON_STRING)
        old = memmem(dialect->str.p, dialect->str.n, "draft-04", 8) != NULL ||
              memmem(dialect->str.p, dialect->str.n, "draft-03", 8) != NULL;
    index_node(r, root, resource, false, old);
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static struct span percent_decode(struct refs *r, struct span s)
{
    uint8_t *to = arena_alloc(r->a, s.n + 1);
    size_t n = 0;

    if (to == NULL) {
        r->err = jt_no_room(r->a, s.n + 1);
        return s;
    }
    for (size_t i = 0; i < s.n; i++) {
        int hi, lo;

        if (s.p[i] == '%' && s.n - i > 2 && (hi = hex_digit(s.p[i + 1])) >= 0 &&
            (lo = hex_digit(s.p[i + 2])) >= 0) {
            to[n++] = (uint8_t)(hi * 16 + lo);
            i += 2;
        } else {
            to[n++] = s.p[i];
        }
    }
    return span_of(to, n);
}

/* Names that are known without being given: what they say is left out. */
static bool is_open(struct span uri)
{
    static const char *const names[] = {"flow:", "http://json-schema.org/draft-0",
                                        "http://json-schema.org/schema",
                                        "https://json-schema.org/draft/"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (span_has_prefix(uri, span_str(names[i])))
            return true;
    }
    return false;
}

struct span refs_uri(struct refs *r, const struct jt_node *node, struct span ref)
{
    return uri_resolve(r, r->resources[r->resource_of[node->id]].uri, ref);
}

const struct jt_node *refs_resolve(struct refs *r, const struct jt_node *node, struct span ref,
                                   bool *open)
{
    struct span uri, fragment = uri_split(ref).fragment;
    size_t i;

    *open = false;
    uri = refs_uri(r, node, ref);
    /* the newest first: a document's own $id stands behind the name it was given by */
    for (i = r->resources_n; i > 0; i--) {
        if (span_eq(r->resources[i - 1].uri, uri))
            break;
    }
    *open = i == 0 && is_open(uri);
    if (i == 0 || r->err < 0)
        return NULL;
    i--;
    if (fragment.n == 0)
        return r->resources[i].root;
    fragment = percent_decode(r, fragment);
    if (fragment.p[0] == '/')
        return jt_at(r->resources[i].root, fragment);
    for (size_t k = 0; k < r->anchors_n; k++) {
        if (span_eq(r->anchors[k].name, fragment) &&
            span_eq(r->resources[r->anchors[k].resource].uri, uri))
            return r->anchors[k].node;
    }
    return NULL;
}

const struct jt_node *refs_candidate(const struct refs *r, const struct jt_node *target,
                                     struct span ref, size_t *at)
{
    const struct span name = uri_split(ref).fragment;

    for (size_t k = 0; *at == 0; k++) {
        if (k == r->anchors_n) { /* its name is no dynamic one: it is what it is */
            *at = SIZE_MAX;
            return target;
        }
        if (r->anchors[k].dynamic && r->anchors[k].node == target &&
            span_eq(r->anchors[k].name, name))
            break;
    }
    while (*at < r->anchors_n) {
        const struct refs_anchor *anchor = &r->anchors[(*at)++];

        if (anchor->dynamic && span_eq(anchor->name, name))
            return anchor->node;
    }
    return NULL;
}
