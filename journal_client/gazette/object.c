/* Heads of answers to GETs, judged; and stores that are left alone. */
#include "journal_client/gazette/object.h"

#include <string.h>
#include <strings.h>

#include "base/num.h"

#define PAUSE_MS      1000
#define PAUSE_SLOW_MS 10000
#define PAUSE_MAX_MS  300000

/* --- answers --- */

static struct span trimmed(struct span s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = span_of(s.p + 1, s.n - 1);
    while (s.n > 0 && strchr(" \t\r\n", s.p[s.n - 1]) != NULL)
        s.n--;
    return s;
}

/* Cuts off up to c, which goes as well. False: there is none. */
static bool cut(struct span *s, char c, struct span *head)
{
    const uint8_t *at = s->n == 0 ? NULL : memchr(s->p, c, s->n);

    if (at == NULL)
        return false;
    *head = span_of(s->p, (size_t)(at - s->p));
    *s = span_of(at + 1, s->n - head->n - 1);
    return true;
}

static bool is_text(struct span s, const char *text)
{
    return s.n == strlen(text) && strncasecmp((const char *)s.p, text, s.n) == 0;
}

static bool parse_range(struct span v, struct gz_object_answer *a)
{
    struct span unit, from, to;

    if (!cut(&v, ' ', &unit) || !is_text(unit, "bytes"))
        return false;
    v = trimmed(v);
    if (!cut(&v, '-', &from) || !cut(&v, '/', &to) || num_parse_i64(from, &a->from) < 0 ||
        num_parse_i64(to, &a->to) < 0 || a->from < 0 || a->to < a->from)
        return false;
    a->size = -1;
    return is_text(v, "*") || (num_parse_i64(v, &a->size) == 0 && a->size > a->to);
}

void gz_object_header(struct gz_object_answer *a, struct span line)
{
    struct span name, version, code;
    int64_t status;

    line = trimmed(line);
    if (span_has_prefix(line, span_str("HTTP/"))) {
        *a = (struct gz_object_answer){.size = -1};
        if (!cut(&line, ' ', &version))
            return;
        if (!cut(&line, ' ', &code))
            code = line;
        if (num_parse_i64(code, &status) == 0 && status >= 100 && status < 600)
            a->status = (int)status;
        return;
    }
    if (!cut(&line, ':', &name))
        return;
    line = trimmed(line);
    if (is_text(name, "content-range")) {
        a->sound = !a->ranged && parse_range(line, a);
        a->ranged = true;
    } else if (is_text(name, "content-encoding")) {
        a->encoded = line.n > 0 && !is_text(line, "identity");
    }
}

int gz_object_judge(const struct gz_object_answer *a, const struct gz_object_ask *ask)
{
    if (a->status == 404)
        return E_NOTFOUND;
    if (a->status == 401 || a->status == 403)
        return E_DENIED;
    if (a->encoded && !ask->encoded)
        return E_IO;
    if (a->status == 200) /* the whole of it */
        return !a->ranged && (ask->to < 0 || (ask->from == 0 && ask->to + 1 == ask->size)) ? 0
                                                                                           : E_IO;
    if (a->status != 206 || ask->to < 0 || !a->sound || a->from != ask->from || a->to != ask->to)
        return E_IO;
    return a->size >= 0 && ask->size >= 0 && a->size != ask->size ? E_IO : 0;
}

/* --- stores that fail --- */

struct span gz_origin_of(struct span url)
{
    size_t at = 0, slashes = 0;

    while (at < url.n && (slashes += url.p[at] == '/') < 3)
        at++;
    if (at >= sizeof((struct gz_origin *)0)->name)
        at = sizeof((struct gz_origin *)0)->name - 1;
    return span_of(url.p, at);
}

static const struct gz_origin *find(const struct gz_origins *o, struct span name)
{
    for (size_t i = 0; i < GZ_ORIGINS && name.n > 0; i++) {
        if (span_eq_str(name, o->v[i].name))
            return &o->v[i];
    }
    return NULL;
}

static struct gz_origin *of(struct gz_origins *o, struct span url)
{
    return (struct gz_origin *)(uintptr_t)find(o, gz_origin_of(url));
}

static bool paused(const struct gz_origin *at, int64_t now_ms)
{
    return at != NULL && (now_ms < at->until_ms || at->tried);
}

bool gz_origin_paused(const struct gz_origins *o, struct span url, int64_t now_ms)
{
    return paused(find(o, gz_origin_of(url)), now_ms);
}

bool gz_origin_begin(struct gz_origins *o, struct span url, int64_t now_ms)
{
    struct gz_origin *at = of(o, url);

    if (paused(at, now_ms))
        return false;
    if (at != NULL)
        at->tried = true;
    return true;
}

/* A free place, or that of the store which may be asked again first. */
static struct gz_origin *make(struct gz_origins *o, struct span url)
{
    struct span name = gz_origin_of(url);
    struct gz_origin *at = &o->v[0];

    for (size_t i = 0; i < GZ_ORIGINS && at->name[0] != '\0'; i++) {
        if (o->v[i].name[0] == '\0' || o->v[i].until_ms < at->until_ms)
            at = &o->v[i];
    }
    *at = (struct gz_origin){0};
    memcpy(at->name, name.p, name.n);
    return at;
}

void gz_origin_ended(struct gz_origins *o, struct span url, int err, int64_t now_ms)
{
    struct gz_origin *at = of(o, url);

    if (at != NULL && now_ms < at->until_ms)
        return; /* it began before the pause */
    if (at != NULL)
        at->tried = false;
    if (err == 0 || err == E_NOTFOUND) {
        if (at != NULL)
            *at = (struct gz_origin){0};
        return;
    }
    if (err != E_IO && err != E_DENIED && err != E_TIMEOUT)
        return;
    if (at == NULL)
        at = make(o, url);
    int64_t pause = err == E_TIMEOUT ? PAUSE_SLOW_MS : PAUSE_MS;
    for (unsigned i = 0; i < at->failures && pause < PAUSE_MAX_MS; i++)
        pause *= 2;
    if (pause > PAUSE_MAX_MS)
        pause = PAUSE_MAX_MS;
    at->failures++;
    at->until_ms = now_ms + pause;
}
