/*
 * The drawing of avro_draw.h: types, their JSON schemas, values with what they become. The C
 * library makes the texts of times and doubles.
 */
#include "avro_draw.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/arena.h"

#define DEPTH_MAX 3

static struct arena mem;
static uint64_t state;

uint64_t draw_below(uint64_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % n;
}

static void *make(size_t bytes)
{
    void *p = arena_alloc(&mem, bytes);

    assert_non_null(p);
    return p;
}

void draw_seed(uint64_t seed)
{
    state = seed * 2 + 1;
}

void draw_begin(void)
{
    arena_init(&mem, SIZE_MAX / 2);
}

void draw_end(void)
{
    arena_fini(&mem);
}

struct want *want_of(int kind)
{
    struct want *w = make(sizeof *w);

    w->kind = (unsigned)kind;
    return w;
}

void want_add(struct want *to, struct span key, const struct want *w)
{
    struct want *copy = make(sizeof *copy);

    *copy = *w;
    copy->key = key;
    copy->next = NULL;
    if (to->last == NULL)
        to->first = copy;
    else
        to->last->next = copy;
    to->last = copy;
}

static struct span keep(struct writer *w)
{
    struct span s = {make(wr_len(w) + 1), wr_len(w)};

    assert_int_equal(wr_err(w), 0);
    if (s.n > 0)
        memcpy((void *)(uintptr_t)s.p, w->b->data, s.n);
    wr_fini(w);
    return s;
}

struct span draw_text(const char *format, ...)
{
    char buf[512];
    struct writer w;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(buf, sizeof buf, format, args);
    va_end(args);
    wr_init(&w, DRAW_TEXT_MAX);
    wr_str(&w, buf);
    return keep(&w);
}

/* --- collections --- */

static struct type *draw_type(unsigned depth)
{
    struct type *t = make(sizeof *t);

    do {
        t->kind = (enum kind)draw_below(K_KINDS);
    } while (depth == DEPTH_MAX && t->kind >= K_ARRAY && t->kind <= K_RECORD);
    t->nullable = t->kind == K_ANY || (t->kind != K_MIXED && draw_below(4) == 0);
    t->required = draw_below(2) == 0;
    t->has_default = t->kind == K_LONG && !t->nullable && draw_below(3) == 0;
    t->open = draw_below(2) == 0;
    t->n = t->kind == K_RECORD ? 1 + draw_below(DRAW_FIELDS_MAX)
                               : t->kind == K_ARRAY || t->kind == K_MAP;
    for (size_t i = 0; i < t->n; i++) {
        t->parts[i] = draw_type(depth + 1);
        (void)snprintf(t->parts[i]->name, sizeof t->parts[i]->name, "%c%u",
                       (char)('z' - (char)draw_below(26)), (unsigned)i);
    }
    return t;
}

static void put_schema(struct writer *w, const struct type *t)
{
    static const struct {
        const char *types, *more;
    } rows[] = {
        [K_LONG] = {"\"integer\"", ""},
        [K_DOUBLE] = {"\"number\"", ""},
        [K_STRING] = {"\"string\"", ""},
        [K_BOOL] = {"\"boolean\"", ""},
        [K_DATE] = {"\"string\"", ",\"format\":\"date\""},
        [K_TIME] = {"\"string\"", ",\"format\":\"date-time\""},
        [K_UUID] = {"\"string\"", ",\"format\":\"uuid\""},
        [K_DURATION] = {"\"string\"", ",\"format\":\"duration\""},
        [K_TEXT_NUMBER] = {"\"string\",\"integer\"", ",\"format\":\"integer\""},
        [K_NUMBER_TEXT] = {"\"string\",\"number\"", ",\"format\":\"number\""},
        [K_ARRAY] = {"\"array\"", ""},
        [K_MAP] = {"\"object\"", ""},
        [K_RECORD] = {"\"object\"", ""},
        [K_MIXED] = {"\"string\",\"boolean\"", ""},
    };
    const char *comma = "";

    if (t->kind == K_ANY) {
        wr_str(w, "{}");
        return;
    }
    wr_printf(w, "{\"type\":[%s%s]%s", rows[t->kind].types, t->nullable ? ",\"null\"" : "",
              rows[t->kind].more);
    if (t->has_default)
        wr_str(w, ",\"default\":7");
    if (t->kind == K_ARRAY || t->kind == K_MAP) {
        wr_str(w, t->kind == K_ARRAY ? ",\"items\":" : ",\"additionalProperties\":");
        put_schema(w, t->parts[0]);
    }
    if (t->kind == K_RECORD) {
        wr_printf(w, "%s,\"properties\":{", t->open ? "" : ",\"additionalProperties\":false");
        for (size_t i = 0; i < t->n; i++) {
            wr_printf(w, "%s\"%s\":", comma, t->parts[i]->name);
            put_schema(w, t->parts[i]);
            comma = ",";
        }
        wr_str(w, "},\"required\":[");
        comma = "";
        for (size_t i = 0; i < t->n; i++) {
            if (t->parts[i]->required) {
                wr_printf(w, "%s\"%s\"", comma, t->parts[i]->name);
                comma = ",";
            }
        }
        wr_u8(w, ']');
    }
    wr_u8(w, '}');
}

/* --- values --- */

static struct drawn draw(const struct type *t);

/* kept: what RawJSON says, which keeps escapes but is UTF-8. */
static struct drawn draw_string(void)
{
    static const struct {
        const char *json, *raw;
        struct span bytes;
    } pieces[] = {
#define PIECE(json, raw, bytes)                                                                    \
    {                                                                                              \
        json, raw,                                                                                 \
        {                                                                                          \
            (const uint8_t *)(bytes), sizeof(bytes) - 1                                            \
        }                                                                                          \
    }
        PIECE("a", "a", "a"),
        PIECE("some words ", "some words ", "some words "),
        PIECE("\xc3\xa9", "\xc3\xa9", "\xc3\xa9"),
        PIECE("\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"),
        PIECE("\\ud83d\\ude00", "\\ud83d\\ude00", "\xf0\x9f\x98\x80"),
        PIECE("\\u0000", "\\u0000", "\0"),
        PIECE("\\\"", "\\\"", "\""),
        PIECE("\\\\", "\\\\", "\\"),
        PIECE("\\n\\/", "\\n\\/", "\n/"),
        PIECE("\\ud800", "\\ud800", "\xef\xbf\xbd"),
        PIECE("\xff", "\xef\xbf\xbd", "\xef\xbf\xbd"),
        PIECE("{[,]}:", "{[,]}:", "{[,]}:"),
#undef PIECE
    };
    struct drawn out = {.want = want_of(W_BYTES)};
    struct writer json, raw, bytes;

    wr_init(&json, DRAW_TEXT_MAX);
    wr_init(&raw, DRAW_TEXT_MAX);
    wr_init(&bytes, DRAW_TEXT_MAX);
    wr_u8(&json, '"');
    wr_u8(&raw, '"');
    for (uint64_t n = draw_below(8); n > 0; n--) {
        size_t i = draw_below(sizeof pieces / sizeof *pieces);

        wr_str(&json, pieces[i].json);
        wr_str(&raw, pieces[i].raw);
        wr_span(&bytes, pieces[i].bytes);
    }
    wr_u8(&json, '"');
    wr_u8(&raw, '"');
    out.json = keep(&json);
    out.raw = keep(&raw);
    out.want->bytes = keep(&bytes);
    return out;
}

static struct drawn plain(struct span json, struct want *want)
{
    return (struct drawn){.json = json, .raw = json, .want = want};
}

static struct drawn draw_long(void)
{
    struct want *w = want_of(W_LONG);
    int64_t v = (int64_t)(draw_below(UINT64_C(1) << 53) << 11 | draw_below(2048));

    v = draw_below(2) == 0 ? v >> draw_below(64) : (int64_t)draw_below(1000);
    w->l = v;
    switch (draw_below(6)) {
    case 0:
        return plain(draw_text("%lld.0", (long long)v), w);
    case 1:
        w->l = v % 1000 * 1000;
        return plain(draw_text("%lldE+3", (long long)(v % 1000)), w);
    default:
        return plain(draw_text("%lld", (long long)v), w);
    }
}

static struct drawn draw_double(bool quoted)
{
    struct want *w = want_of(W_DOUBLE);
    uint64_t bits = draw_below(UINT64_C(1) << 53) << 11 | draw_below(2048);
    struct span s;

    memcpy(&w->d, &bits, sizeof bits);
    if (w->d - w->d != 0 || draw_below(2) == 0)
        w->d = (double)(int64_t)draw_below(1000000) / (double)(1 + draw_below(100));
    s = draw_text("%.*g", (int)(1 + draw_below(17)), w->d);
    w->d = strtod((const char *)s.p, NULL);
    return plain(quoted ? draw_text("\"%.*s\"", SPAN_FMT(s)) : s, w);
}

/* Days, microseconds; the texts come from the C library. */
static struct drawn draw_time(bool date)
{
    struct want *w = want_of(W_LONG);
    time_t seconds = (time_t)(draw_below(4000000000u)) - 1000000000;
    int offset = date ? 0 : (int)draw_below(25) - 12;
    time_t shifted = seconds + (time_t)offset * 3600;
    char buf[40], zone[16] = "Z";
    unsigned us = (unsigned)draw_below(1000000);
    struct tm tm;

    (void)gmtime_r(&shifted, &tm);
    if (date) {
        w->l = seconds / 86400 - (seconds % 86400 < 0);
        (void)strftime(buf, sizeof buf, "%Y-%m-%d", &tm);
        return plain(draw_text("\"%s\"", buf), w);
    }
    if (offset != 0)
        (void)snprintf(zone, sizeof zone, "%c%02d:00", offset < 0 ? '-' : '+', abs(offset));
    w->l = (int64_t)seconds * 1000000 + us;
    (void)strftime(buf, sizeof buf, "%Y-%m-%dT%H:%M:%S", &tm);
    return plain(draw_text("\"%s.%06u%s\"", buf, us, zone), w);
}

static struct drawn draw_uuid(void)
{
    struct want *w = want_of(W_BYTES);
    unsigned a = (unsigned)draw_below(UINT32_MAX), b = (unsigned)draw_below(65536),
             c = (unsigned)draw_below(65536);
    unsigned long long d = draw_below(UINT64_C(1) << 48);

    w->bytes = draw_text("%08x-%04x-%04x-%04x-%012llx", a, b, c, b ^ c, d);
    return plain(draw_below(3) == 0 ? draw_text("\"%08x%04x%04x%04x%012llx\"", a, b, c, b ^ c, d)
                                    : draw_text("\"%.*s\"", SPAN_FMT(w->bytes)),
                 w);
}

static struct drawn draw_duration(void)
{
    struct want *w = want_of(W_BYTES);
    uint32_t y = (uint32_t)draw_below(50), m = (uint32_t)draw_below(12),
             d = (uint32_t)draw_below(31);
    uint32_t h = (uint32_t)draw_below(24), s = (uint32_t)draw_below(60), parts[3];
    uint8_t *bytes = make(12);

    parts[0] = 12 * y + m;
    parts[1] = d;
    parts[2] = (h * 3600 + s) * 1000;
    for (unsigned i = 0; i < 12; i++)
        bytes[i] = (uint8_t)(parts[i / 4] >> 8 * (i % 4));
    w->bytes = span_of(bytes, 12);
    return plain(draw_text("\"P%uY%uM%uDT%uH%uS\"", y, m, d, h, s), w);
}

/* Any JSON at all; what it becomes is its own text, or null. */
static struct drawn draw_any(bool null)
{
    static const enum kind kinds[] = {K_LONG, K_DOUBLE, K_STRING, K_BOOL, K_ARRAY, K_RECORD};
    struct type part = {.kind = K_STRING};
    struct type t = {.kind = kinds[draw_below(6)], .n = 1, .parts = {&part}, .open = false};
    struct drawn d;

    (void)snprintf(part.name, sizeof part.name, "any");
    if (null && draw_below(5) == 0)
        return plain(draw_text("null"), want_of(W_NULL));
    if (draw_below(8) == 0)
        d = plain(draw_text("123456789012345678901234567890.50e400"), NULL);
    else
        d = draw(&t);
    d.want = want_of(W_JSON);
    d.want->bytes = d.raw;
    return d;
}

static struct drawn draw_list(const struct type *t)
{
    bool map = t->kind == K_MAP;
    struct drawn out = {.want = want_of(map ? W_MAP : W_LIST)};
    struct writer json, raw;

    wr_init(&json, DRAW_TEXT_MAX);
    wr_init(&raw, DRAW_TEXT_MAX);
    wr_u8(&json, map ? '{' : '[');
    wr_u8(&raw, map ? '{' : '[');
    for (uint64_t i = 0, n = draw_below(draw_below(10) == 0 ? 80 : 5); i < n; i++) {
        struct drawn v = draw(t->parts[0]);
        struct span key = draw_text("key %llu", (unsigned long long)i);

        if (i > 0) {
            wr_u8(&json, ',');
            wr_u8(&raw, ',');
        }
        if (map) {
            wr_printf(&json, "\"%.*s\":", SPAN_FMT(key));
            wr_printf(&raw, "\"%.*s\":", SPAN_FMT(key));
        }
        wr_span(&json, v.json);
        wr_span(&raw, v.raw);
        want_add(out.want, key, v.want);
    }
    wr_u8(&json, map ? '}' : ']');
    wr_u8(&raw, map ? '}' : ']');
    out.json = keep(&json);
    out.raw = keep(&raw);
    return out;
}

static void put_member(struct writer *json, struct writer *raw, struct span name,
                       const struct drawn *v)
{
    if (wr_len(json) > 1) {
        wr_u8(json, ',');
        wr_u8(raw, ',');
    }
    wr_printf(json, "\"%.*s\":", SPAN_FMT(name));
    wr_printf(raw, "\"%.*s\":", SPAN_FMT(name));
    wr_span(json, v->json);
    wr_span(raw, v->raw);
}

/* What an absent member becomes. */
static struct want *absent(const struct type *t)
{
    struct want *w = want_of(t->has_default ? W_LONG : W_NULL);

    w->l = 7;
    return w;
}

/* Members in any order; some twice, of which the last counts. top: the document itself, of which
 * undeclared members are dropped. */
static struct drawn draw_record(const struct type *t, bool top)
{
    struct drawn out = {.want = want_of(W_RECORD)};
    struct want *extra = want_of(W_MAP);
    size_t from = draw_below(t->n), step = draw_below(2) == 0 ? 1 : t->n - 1;
    struct writer json, raw;

    wr_init(&json, DRAW_TEXT_MAX);
    wr_init(&raw, DRAW_TEXT_MAX);
    wr_u8(&json, '{');
    wr_u8(&raw, '{');
    for (size_t i = 0; i < t->n; i++) {
        const struct type *part = t->parts[t->n == 1 ? 0 : (from + i * step) % t->n];
        struct span name = draw_text("%s", part->name);
        struct drawn v;

        if (!part->required && draw_below(3) == 0) {
            want_add(out.want, name, absent(part));
            continue;
        }
        if (draw_below(6) == 0) { /* may well be of a wrong type: it does not count */
            v = draw_any(true);
            put_member(&json, &raw, name, &v);
        }
        v = draw(part);
        put_member(&json, &raw, name, &v);
        want_add(out.want, name, v.want);
    }
    for (uint64_t i = draw_below(3); i > 0; i--) {
        struct span name = draw_text("%s-%llu", i == 1 ? "odd" : "more", (unsigned long long)i);
        struct drawn v = draw_any(true);

        put_member(&json, &raw, name, &v);
        want_add(extra, name, v.want);
    }
    wr_u8(&json, '}');
    wr_u8(&raw, '}');
    out.json = keep(&json);
    out.raw = keep(&raw);
    if (t->open && !top)
        want_add(out.want, draw_text("_flow_extra"), extra);
    return out;
}

static struct drawn draw(const struct type *t)
{
    struct drawn d;

    if (t->nullable && t->kind != K_ANY && draw_below(4) == 0)
        return plain(draw_text("null"), want_of(W_NULL));
    switch (t->kind) {
    case K_LONG:
        return draw_long();
    case K_DOUBLE:
        return draw_double(false);
    case K_BOOL:
        d = plain(draw_text(draw_below(2) == 0 ? "true" : "false"), want_of(W_BOOL));
        d.want->l = d.json.n == 4;
        return d;
    case K_DATE:
    case K_TIME:
        return draw_time(t->kind == K_DATE);
    case K_UUID:
        return draw_uuid();
    case K_DURATION:
        return draw_duration();
    case K_TEXT_NUMBER:
        if (draw_below(2) == 0)
            return draw_string();
        d = plain(draw_text("%lld", (long long)draw_below(UINT64_C(1) << 60)), want_of(W_BYTES));
        d.want->bytes = d.json;
        return d;
    case K_NUMBER_TEXT:
        return draw_double(draw_below(2) == 0);
    case K_ARRAY:
    case K_MAP:
        return draw_list(t);
    case K_RECORD:
        return draw_record(t, false);
    case K_MIXED:
        d = draw_below(2) == 0 ? draw_string() : plain(draw_text("true"), NULL);
        d.want = want_of(W_JSON);
        d.want->bytes = d.raw;
        return d;
    case K_ANY:
        return draw_any(true);
    case K_STRING:
    case K_KINDS:
    default:
        return draw_string();
    }
}

struct span draw_spaced(struct span json)
{
    static const char *const spaces[] = {"", "", " ", "\t", "\r\n  "};
    bool inside = false;
    struct writer w;

    wr_init(&w, DRAW_TEXT_MAX * 8);
    for (size_t i = 0; i < json.n; i++) {
        bool mark = !inside && strchr("{}[]:,", json.p[i]) != NULL && json.p[i] != 0;

        if (mark)
            wr_str(&w, spaces[draw_below(5)]);
        wr_u8(&w, json.p[i]);
        if (mark)
            wr_str(&w, spaces[draw_below(5)]);
        if (inside && json.p[i] == '\\')
            wr_u8(&w, json.p[++i]);
        else if (json.p[i] == '"')
            inside = !inside;
    }
    return keep(&w);
}

struct type *draw_collection(void)
{
    struct type *t;

    do {
        t = draw_type(0);
    } while (t->kind != K_RECORD);
    t->nullable = false;
    t->parts[0]->kind = draw_below(2) == 0 ? K_LONG : K_STRING;
    t->parts[0]->n = 0;
    t->parts[0]->nullable = t->parts[0]->has_default = false;
    t->parts[0]->required = true;
    return t;
}

struct span draw_schema(const struct type *t)
{
    struct writer w;

    wr_init(&w, DRAW_TEXT_MAX);
    put_schema(&w, t);
    return keep(&w);
}

struct drawn draw_document(const struct type *t)
{
    return draw_record(t, true);
}
