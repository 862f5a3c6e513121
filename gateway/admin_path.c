/* Targets of the admin API: which route, which name, which parameters. Pure. */
#include "gateway/admin_int.h"

#include <strings.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

/* Percent-decodes into the arena, NUL-terminated. A NUL inside is refused: names are C strings
 * further down. */
static int decode(struct span raw, bool form, struct arena *a, struct span *out)
{
    char *s = arena_alloc(a, raw.n + 1);
    size_t k = 0;

    *out = span_of("", 0);
    if (s == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < raw.n; i++) {
        char c = (char)raw.p[i];

        if (c == '%') {
            int hi = raw.n - i > 2 ? hex_value((char)raw.p[i + 1]) : -1;
            int lo = hi < 0 ? -1 : hex_value((char)raw.p[i + 2]);

            if (lo < 0 || hi + lo == 0)
                return E_SYNTAX;
            c = (char)(hi * 16 + lo);
            i += 2;
        } else if (c == '+' && form) {
            c = ' ';
        }
        s[k++] = c;
    }
    s[k] = '\0';
    *out = span_of(s, k);
    return 0;
}

static int parse_query(struct span q, struct arena *a, struct admin_target *out)
{
    int err;

    if ((out->params = arena_array(a, ADMIN_PARAMS_MAX, sizeof out->params[0])) == NULL)
        return E_NOMEM;
    while (q.n > 0) {
        const uint8_t *amp = memchr(q.p, '&', q.n), *eq;
        struct span item = span_of(q.p, amp == NULL ? q.n : (size_t)(amp - q.p));
        struct span name = item, value = span_of("", 0);
        struct admin_param *param;

        q.p += item.n + (amp != NULL);
        q.n -= item.n + (amp != NULL);
        if (item.n == 0)
            continue;
        if (out->params_n == ADMIN_PARAMS_MAX)
            return E_SYNTAX;
        if ((eq = memchr(item.p, '=', item.n)) != NULL) {
            name.n = (size_t)(eq - item.p);
            value = span_of(eq + 1, item.n - name.n - 1);
        }
        param = &out->params[out->params_n];
        if ((err = decode(name, true, a, &param->name)) < 0 ||
            (err = decode(value, true, a, &param->value)) < 0)
            return err;
        out->params_n++;
    }
    return 0;
}

static bool cut_prefix(struct span *s, const char *prefix)
{
    struct span p = span_str(prefix);

    if (!span_has_prefix(*s, p))
        return false;
    s->p += p.n;
    s->n -= p.n;
    return true;
}

static bool cut_suffix(struct span *s, const char *suffix)
{
    size_t n = strlen(suffix);

    if (s->n < n || memcmp(s->p + s->n - n, suffix, n) != 0)
        return false;
    s->n -= n;
    return true;
}

/* What follows /v1/KIND: nothing, a name, or a name and one more word. */
static bool match_named(struct span path, const char *kind, const char *suffix,
                        enum admin_route all, enum admin_route one, enum admin_route more,
                        struct admin_target *out, struct span *name)
{
    if (!cut_prefix(&path, kind))
        return false;
    if (path.n == 0) {
        out->route = all;
        return true;
    }
    if (path.p[0] != '/' || path.n == 1)
        return false;
    path.p++;
    path.n--;
    out->route = one;
    if (suffix != NULL && cut_suffix(&path, suffix))
        out->route = more;
    *name = path;
    return path.n > 0;
}

/* The longer words first: "/backfill" alone is one, too. */
static bool match_collection(struct span path, struct admin_target *out, struct span *name)
{
    static const struct {
        const char *suffix;
        enum admin_route route;
    } rows[] = {
        {"/documents", ADMIN_DOCUMENTS},
        {"/backfill/begin", ADMIN_BACKFILL_BEGIN},
        {"/backfill/complete", ADMIN_BACKFILL_COMPLETE},
        {"/backfill", ADMIN_BACKFILL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (match_named(path, "/v1/collections", rows[i].suffix, ADMIN_COLLECTIONS,
                        ADMIN_COLLECTION, rows[i].route, out, name) &&
            out->route == rows[i].route)
            return true;
    return match_named(path, "/v1/collections", NULL, ADMIN_COLLECTIONS, ADMIN_COLLECTION,
                       ADMIN_COLLECTION, out, name);
}

static bool match_journal(struct span path, struct admin_target *out, struct span *name)
{
    static const struct {
        const char *suffix;
        enum admin_route route;
    } rows[] = {
        {"/content", ADMIN_CONTENT},
        {"/close", ADMIN_CLOSE},
        {"/fragments", ADMIN_FRAGMENTS},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (match_named(path, "/v1/journals", rows[i].suffix, ADMIN_JOURNALS, ADMIN_JOURNAL,
                        rows[i].route, out, name) &&
            out->route == rows[i].route)
            return true;
    return match_named(path, "/v1/journals", NULL, ADMIN_JOURNALS, ADMIN_JOURNAL, ADMIN_JOURNAL,
                       out, name);
}

static bool match(struct span path, struct admin_target *out, struct span *name)
{
    static const struct {
        const char *path;
        enum admin_route route;
    } fixed[] = {
        {"/", ADMIN_STATUS},
        {"/healthz", ADMIN_HEALTHZ},
        {"/readyz", ADMIN_READYZ},
        {"/metrics", ADMIN_METRICS},
        {"/v1/connections", ADMIN_CONNECTIONS},
    };

    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        if (span_eq_str(path, fixed[i].path)) {
            out->route = fixed[i].route;
            return true;
        }
    }
    return match_collection(path, out, name) || match_journal(path, out, name) ||
           match_named(path, "/v1/groups", "/reset", ADMIN_GROUPS, ADMIN_GROUP, ADMIN_GROUP_RESET,
                       out, name) ||
           match_named(path, "/v1/topics", NULL, ADMIN_TOPICS, ADMIN_TOPIC, ADMIN_TOPIC, out, name);
}

int admin_target_parse(const char *uri, struct arena *a, struct admin_target *out)
{
    struct span path, query = {NULL, 0}, name = {NULL, 0};
    const char *end, *mark;
    int err;

    memset(out, 0, sizeof *out);
    out->name = span_of("", 0);
    if (strncasecmp(uri, "http://", 7) ==
        0) { /* absolute form: the authority is not our business */
        uri = strchr(uri + 7, '/');
        if (uri == NULL)
            uri = "/";
    }
    end = uri + strcspn(uri, "#");
    mark = memchr(uri, '?', (size_t)(end - uri));
    path = span_of(uri, (size_t)((mark == NULL ? end : mark) - uri));
    if (mark != NULL)
        query = span_of(mark + 1, (size_t)(end - mark - 1));
    if (!match(path, out, &name))
        return E_NOTFOUND;
    if (name.p != NULL && (err = decode(name, false, a, &out->name)) < 0)
        return err;
    return parse_query(query, a, out);
}

bool admin_param(const struct admin_target *t, const char *name, struct span *out)
{
    for (size_t i = t->params_n; i > 0; i--) {
        if (span_eq_str(t->params[i - 1].name, name)) {
            *out = t->params[i - 1].value;
            return true;
        }
    }
    return false;
}
