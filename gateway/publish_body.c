/*
 * A published body becomes the bytes of its transaction: each document is checked, routed by its
 * key and copied with room for a UUID. Every fault is collected, so that one answer names them all.
 * Pure: no clock, no store; runs in a job. The UUIDs are written later, by pub_stamp, when the
 * committer's turn has come.
 */
#include "gateway/publish_int.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/mem.h"

static const char ACK_HEAD[] = "{\"_meta\":{\"uuid\":\"";
static const char ACK_TAIL[] = "\",\"ack\":true}}\n";

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct span trim(struct span s)
{
    while (s.n > 0 && is_space(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* Where faults are: the first byte of the line that is being looked at, and its number. */
struct place {
    const uint8_t *line_at;
    size_t line;
};

/* Moves a place forward to the line that holds `to`. */
static void place_advance(struct place *pl, const uint8_t *to)
{
    const uint8_t *nl;

    while (pl->line_at < to &&
           (nl = memchr(pl->line_at, '\n', (size_t)(to - pl->line_at))) != NULL) {
        pl->line_at = nl + 1;
        pl->line++;
    }
}

__attribute__((format(printf, 4, 5))) static void
fault(struct pub_parsed *out, const struct place *from, const uint8_t *at, const char *fmt, ...)
{
    struct pub_fault *f;
    struct place pl = *from;
    va_list ap;

    out->faults_total++;
    if (out->faults_n == PUB_FAULTS_MAX)
        return;
    place_advance(&pl, at);
    f = &out->faults[out->faults_n++];
    f->line = pl.line;
    f->at = (size_t)(at - pl.line_at);
    va_start(ap, fmt);
    (void)vsnprintf(f->reason, sizeof f->reason, fmt, ap);
    va_end(ap);
}

static int docs_push(struct pub_parsed *out, struct pub_doc doc)
{
    if (out->docs_n == out->docs_cap) {
        size_t cap = out->docs_cap == 0 ? 64 : out->docs_cap * 2;
        struct pub_doc *grown = mem_realloc(out->docs, cap * sizeof *grown);

        if (grown == NULL)
            return E_NOMEM;
        out->docs = grown;
        out->docs_cap = cap;
    }
    out->docs[out->docs_n++] = doc;
    return 0;
}

/* Which part the document goes to; *part is NULL after a fault was noted. E_NOMEM. */
static int route(const struct pub_layout *l, struct span doc, const struct place *pl,
                 struct pub_parsed *out, const struct pub_part **part)
{
    struct span which = {NULL, 0};
    uint32_t hash;
    int err;

    *part = NULL;
    if (l->key == NULL) {
        hash = (uint32_t)(hash_bytes(doc, 0) >> 32);
    } else if ((err = sc_key_hash(l->key, doc, &hash, &which)) < 0) {
        int n = which.n > 100 ? 100 : (int)which.n;

        if (err == E_NOMEM)
            return err;
        fault(out, pl, doc.p, "key %.*s %s", n, which.p == NULL ? "" : (const char *)which.p,
              err == E_NOTFOUND ? "is missing" : "is not a string, number, boolean or null");
        return 0;
    }
    if ((*part = pub_layout_route(l, hash)) == NULL) {
        out->unroutable = true;
        fault(out, pl, doc.p, "no partition covers the key hash %08x", (unsigned)hash);
    }
    return 0;
}

/* One document that is valid JSON. Once a fault is known the rest is checked, but not kept. */
static int add_document(const struct pub_layout *l, const struct pub_limits *limits,
                        struct span doc, const struct place *pl, struct pub_parsed *out,
                        size_t *total)
{
    const struct pub_part *part;
    struct sc_json_error jerr = {0, NULL};
    struct pub_out *o;
    size_t before, at = 0;
    int err;

    if (doc.n > limits->document_bytes) {
        fault(out, pl, doc.p, "the document has %zu bytes, the limit is %zu", doc.n,
              limits->document_bytes);
        return 0;
    }
    if (doc.p[0] != '{') {
        fault(out, pl, doc.p, "a document must be an object");
        return 0;
    }
    if ((err = route(l, doc, pl, out, &part)) < 0 || part == NULL)
        return err;
    o = &out->outs[part - l->parts];
    before = wr_len(&o->w);
    err = sc_json_stamp(doc, &o->w, &at, &jerr);
    if (err == E_INVALID || err == E_SYNTAX) {
        fault(out, pl, doc.p + (jerr.at <= doc.n ? jerr.at : 0), "%s",
              jerr.reason == NULL ? err_text(err) : jerr.reason);
        return 0;
    }
    wr_u8(&o->w, '\n');
    if (err < 0 || (err = wr_err(&o->w)) < 0)
        return err;
    if (out->faults_total > 0) {
        o->w.b->len = before;
        return 0;
    }
    o->last_end = wr_len(&o->w);
    if (o->docs++ == 0)
        o->first_end = o->last_end;
    *total += o->last_end - before;
    if (*total > limits->output_bytes)
        return E_LIMIT;
    return docs_push(out, (struct pub_doc){(uint32_t)(part - l->parts), (uint32_t)at});
}

static int parse_lines(struct span body, const struct pub_layout *l,
                       const struct pub_limits *limits, struct pub_parsed *out)
{
    const uint8_t *p = body.p, *end = body.p + body.n;
    struct place pl = {body.p, 0};
    size_t total = 0;

    while (p < end) {
        const uint8_t *nl = memchr(p, '\n', (size_t)(end - p));
        struct span doc = trim(span_of(p, (size_t)((nl == NULL ? end : nl) - p)));
        struct sc_json_error jerr = {0, NULL};
        int err;

        pl.line_at = p;
        pl.line++;
        p = nl == NULL ? end : nl + 1;
        if (doc.n == 0)
            continue;
        out->seen++;
        if ((err = sc_json_check(doc, &jerr)) == E_NOMEM)
            return err;
        if (err < 0)
            fault(out, &pl, doc.p + (jerr.at <= doc.n ? jerr.at : doc.n), "%s",
                  jerr.reason == NULL ? err_text(err) : jerr.reason);
        else if ((err = add_document(l, limits, doc, &pl, out, &total)) < 0)
            return err;
    }
    return 0;
}

static int parse_array(struct span body, const struct pub_layout *l,
                       const struct pub_limits *limits, struct pub_parsed *out)
{
    struct place pl = {body.p, 1};
    size_t pos = 0, total = 0;

    for (;;) {
        struct sc_json_value v;
        struct sc_json_error jerr = {0, NULL};
        int err = sc_json_array_next(body, &pos, &v, &jerr);

        if (err == E_NOTFOUND)
            return 0;
        if (err == E_NOMEM)
            return err;
        if (err < 0) { /* what follows a syntax error cannot be told apart any more */
            out->seen++;
            fault(out, &pl, body.p + (jerr.at <= body.n ? jerr.at : body.n), "%s",
                  jerr.reason == NULL ? err_text(err) : jerr.reason);
            return 0;
        }
        out->seen++;
        place_advance(&pl, v.text.p);
        if ((err = add_document(l, limits, v.text, &pl, out, &total)) < 0)
            return err;
    }
}

static int parse_single(struct span body, const struct pub_layout *l,
                        const struct pub_limits *limits, struct pub_parsed *out)
{
    struct place pl = {body.p, 1};
    struct span doc = trim(body);
    struct sc_json_error jerr = {0, NULL};
    size_t total = 0;
    int err;

    if (doc.n == 0)
        return 0;
    out->seen++;
    if ((err = sc_json_check(doc, &jerr)) == E_NOMEM)
        return err;
    if (err < 0) {
        fault(out, &pl, doc.p + (jerr.at <= doc.n ? jerr.at : doc.n),
              "%s (application/json is one document or one array; "
              "several lines are application/x-ndjson)",
              jerr.reason == NULL ? err_text(err) : jerr.reason);
        return 0;
    }
    place_advance(&pl, doc.p);
    return add_document(l, limits, doc, &pl, out, &total);
}

/* Closes each journal's bytes with its ACK and takes them out of the writers. */
static int finish(struct pub_parsed *out)
{
    for (size_t i = 0; i < out->outs_n; i++) {
        struct pub_out *o = &out->outs[i];

        if (o->docs == 0)
            continue;
        o->ack_at = wr_len(&o->w) + sizeof ACK_HEAD - 1;
        wr_str(&o->w, ACK_HEAD);
        wr_bytes(&o->w, "000000000000000000000000000000000000", JC_UUID_TEXT);
        wr_str(&o->w, ACK_TAIL);
        if (wr_err(&o->w) < 0)
            return wr_err(&o->w);
        if ((o->bytes = wr_take(&o->w)) == NULL)
            return E_NOMEM;
    }
    return 0;
}

int pub_parse(struct span body, enum publish_form form, const struct pub_layout *l,
              const struct pub_limits *limits, struct pub_parsed *out)
{
    static const uint8_t bom[] = {0xEF, 0xBB, 0xBF};
    struct span text;
    int err;

    memset(out, 0, sizeof *out);
    if ((out->outs = mem_array(l->n, sizeof out->outs[0])) == NULL)
        return E_NOMEM;
    out->outs_n = l->n;
    for (size_t i = 0; i < l->n; i++)
        wr_init(&out->outs[i].w, limits->output_bytes + 256);
    if (span_has_prefix(body, span_of(bom, sizeof bom)))
        body = span_of(body.p + sizeof bom, body.n - sizeof bom);
    if (body.n == 0)
        return 0;
    text = trim(body);
    if (form == PUBLISH_AUTO)
        form = text.n > 0 && text.p[0] == '[' ? PUBLISH_JSON : PUBLISH_NDJSON;
    if (form == PUBLISH_NDJSON)
        err = parse_lines(body, l, limits, out);
    else if (text.n > 0 && text.p[0] == '[')
        err = parse_array(body, l, limits, out);
    else
        err = parse_single(body, l, limits, out);
    if (err == 0 && out->faults_total == 0)
        err = finish(out);
    return err;
}

void pub_parsed_fini(struct pub_parsed *p)
{
    for (size_t i = 0; i < p->outs_n; i++) {
        wr_fini(&p->outs[i].w);
        blob_unref(p->outs[i].bytes);
    }
    mem_free(p->outs);
    mem_free(p->docs);
    memset(p, 0, sizeof *p);
}

uint64_t pub_stamp(struct pub_parsed *p, const uint8_t producer[6], struct jc_txn_clock *clock)
{
    struct jc_uuid u = {.flags = JC_FLAG_CONTINUE};

    memcpy(u.producer, producer, sizeof u.producer);
    (void)jc_txn_clock_begin(clock);
    u.clock = jc_txn_clock_pass(clock, p->above);
    for (size_t i = 0; i < p->docs_n; i++) {
        if (i > 0)
            u.clock = jc_txn_clock_tick(clock);
        jc_uuid_format(&u, (char *)p->outs[p->docs[i].part].bytes->data + p->docs[i].at);
    }
    u.clock = jc_txn_clock_tick(clock);
    u.flags = JC_FLAG_ACK;
    for (size_t i = 0; i < p->outs_n; i++)
        if (p->outs[i].docs > 0)
            jc_uuid_format(&u, (char *)p->outs[i].bytes->data + p->outs[i].ack_at);
    return u.clock;
}
