/*
 * One pass over a block's lines: where is the UUID, is the document visible, append it to the
 * running batch. The writer copies each document once; nothing else is copied. Knows no cache, no
 * store and no clock: pure, any thread.
 */
#include "gateway/block_build.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/num.h"
#include "gateway/block_encode.h"
#include "journal_client/uuid.h"

/* What a record adds to a batch besides its key and value: varints of at most 5 and 10 bytes. */
#define RECORD_HEAD_MAX 40
/* What two headers of signals add. */
#define SIGNAL_MAX 96

static bool finds(struct span line, const char *pointer, struct sc_json_value *out)
{
    struct sc_pointer *p;

    if (sc_pointer_new(span_str(pointer), &p) < 0)
        return false;
    int err = sc_json_find(line, p, out);
    sc_pointer_free(p);
    return err == 0;
}

/* Only of hidden documents, and there only when the word stands in it: content costs nothing. */
static void look_mark(struct span line, struct jc_doc_info *out)
{
    struct sc_json_value v;

    if (memmem(line.p, line.n, "\"backfill", sizeof "\"backfill" - 1) == NULL || out->clock == 0)
        return;
    if (finds(line, "/backfillBegin", &v) && v.kind == SC_JSON_TRUE) {
        out->mark = JC_MARK_BEGIN;
        out->truncated_at = out->clock;
        return;
    }
    /* A complete that does not say of what is none. */
    if (finds(line, "/backfillComplete", &v) && v.kind == SC_JSON_TRUE &&
        finds(line, "/truncatedAt", &v) && v.kind == SC_JSON_STRING && v.text.n == 18 &&
        jc_clock_parse_hex(span_of(v.text.p + 1, 16), &out->truncated_at) == 0)
        out->mark = JC_MARK_COMPLETE;
    else
        out->truncated_at = 0;
}

void gw_doc_look(struct span line, struct sc_uuid_hint *hint, struct jc_doc_info *out)
{
    struct span text;
    struct jc_uuid uuid;
    size_t i = 0;

    *out = (struct jc_doc_info){.kind = JC_DOC_CONTENT};
    while (i < line.n && (line.p[i] == ' ' || line.p[i] == '\t' || line.p[i] == '\r'))
        i++;
    if (i == line.n) {
        out->kind = JC_DOC_BLANK;
        return;
    }
    if (sc_uuid_find(line, hint, &text) < 0 || jc_uuid_parse(text, &uuid) < 0)
        return;
    out->clock = uuid.clock;
    out->flags = uuid.flags;
    memcpy(out->producer, uuid.producer, sizeof out->producer);
    if (!jc_flags_content(uuid.flags)) {
        out->kind = JC_DOC_HIDDEN;
        look_mark(line, out);
    }
}

/* Walks the lines of a block by rising offset. Zero-initialise, set block and from. */
struct line_iter {
    const struct jc_block *block;
    int64_t from; /* lines whose last byte lies below are skipped */
    size_t segment;
    size_t at; /* within the segment */
};

/* False at the end. *offset: of the line's newline. */
static bool line_next(struct line_iter *it, struct span *line, int64_t *offset)
{
    while (it->segment < it->block->segments_n) {
        const struct jc_segment *s = &it->block->segments[it->segment];
        const uint8_t *p = s->bytes->data + it->at;
        size_t left = s->bytes->len - it->at;
        const uint8_t *nl = left == 0 ? NULL : memchr(p, '\n', left);

        if (nl == NULL) { /* a tail without newline is no document yet */
            it->segment++;
            it->at = 0;
            continue;
        }
        *line = span_of(p, (size_t)(nl - p));
        *offset = s->offset + (int64_t)it->at + (nl - p);
        it->at += line->n + 1;
        if (*offset >= it->from)
            return true;
    }
    return false;
}

static bool clock_visible(const struct gw_bound *bound, uint64_t clock)
{
    return clock >= bound->min_clock && clock <= bound->max_clock;
}

/* Owner: one gw_block_build. */
struct builder {
    size_t cut; /* the first of how->cuts that is not behind the last record */
    const struct gw_build *how;
    const struct jc_block *block;
    struct kp_batch_writer writer;
    struct block_encoder encode;
    struct gw_lead pending;
    struct kp_batch *done;
    size_t n;
    size_t cap;
    struct jc_range *refused;
    size_t refused_n;
    size_t refused_cap;
    bool refusing; /* no record came since the last refused document */
};

static int flush_batch(struct builder *b)
{
    if (kp_batch_writer_bytes(&b->writer) == 0)
        return 0;
    if (b->n == b->cap) {
        size_t cap = b->cap == 0 ? 8 : b->cap * 2;
        struct kp_batch *grown = mem_realloc(b->done, cap * sizeof *grown);
        if (grown == NULL)
            return E_NOMEM;
        b->done = grown;
        b->cap = cap;
    }
    int err = kp_batch_writer_finish(&b->writer, b->how->codec, &b->done[b->n]);
    if (err == 0)
        b->n++;
    return err;
}

/* From here on nothing is to be read until the schema, or the position, is another one. Refused
 * documents in a row are one range. */
static int refuse(struct builder *b, int64_t offset)
{
    int err;

    if (b->refusing) {
        b->refused[b->refused_n - 1].end = offset + 1;
        return 0;
    }
    if ((err = flush_batch(b)) < 0)
        return err;
    if (b->refused_n == b->refused_cap) {
        size_t cap = b->refused_cap == 0 ? 8 : b->refused_cap * 2;
        struct jc_range *grown = mem_realloc(b->refused, cap * sizeof *grown);
        if (grown == NULL)
            return E_NOMEM;
        b->refused = grown;
        b->refused_cap = cap;
    }
    b->refused[b->refused_n++] = (struct jc_range){offset, offset + 1};
    b->refusing = true;
    return 0;
}

/* The signals that wait for a record, as its headers. */
static size_t signal_headers(struct gw_lead *lead, struct kp_header headers[2], char text[2][17])
{
    const struct {
        const char *name;
        uint64_t clock;
    } all[] = {{GW_HEADER_BEGIN, lead->begin}, {GW_HEADER_COMPLETE, lead->complete}};
    size_t n = 0;

    for (size_t i = 0; i < 2; i++) {
        if (all[i].clock == 0)
            continue;
        num_hex16(all[i].clock, text[n]);
        headers[n] = (struct kp_header){span_str(all[i].name), span_of(text[n], 16)};
        n++;
    }
    *lead = (struct gw_lead){0, 0};
    return n;
}

/* A client that reads on behind a batch must come by every damage: none lies within one. */
static bool damage_between(const struct jc_block *block, int64_t last, int64_t offset)
{
    for (size_t i = 0; i < block->damaged_n; i++) {
        if (block->damaged[i].begin > last && block->damaged[i].begin <= offset)
            return true;
    }
    return false;
}

static int add_document(struct builder *b, struct span doc, int64_t offset, uint64_t clock,
                        size_t bytes_left)
{
    struct kp_record rec = {.offset = offset, .timestamp = jc_clock_unix_ms(clock)};
    size_t have = kp_batch_writer_bytes(&b->writer);
    struct kp_header headers[2 + BLOCK_HEADERS_MAX];
    struct block_record made;
    char text[2][17];
    int err = block_encode(&b->encode, doc, offset, &made);

    if (err == E_INVALID)
        return b->how->misfit == GW_MISFIT_STOP ? refuse(b, offset) : 0;
    if (err < 0)
        return err;
    b->refusing = false;
    rec.key = made.key;
    rec.value = made.value;
    rec.headers = headers;
    if (gw_lead_any(&b->pending))
        rec.headers_n = signal_headers(&b->pending, headers, text);
    size_t need = rec.value.n + rec.key.n + RECORD_HEAD_MAX + rec.headers_n * SIGNAL_MAX;
    for (size_t i = 0; i < made.headers_n; i++) {
        headers[rec.headers_n++] = made.headers[i];
        need += made.headers[i].key.n + made.headers[i].value.n + 10;
    }
    while (b->cut < b->how->cuts_n && b->how->cuts[b->cut] <= b->writer.last_offset)
        b->cut++;
    bool crosses = have > 0 && b->cut < b->how->cuts_n && offset >= b->how->cuts[b->cut];
    crosses = crosses || (have > 0 && damage_between(b->block, b->writer.last_offset, offset));
    if (have > 0 && (crosses || have + need > GW_BATCH_BYTES ||
                     !kp_batch_writer_fits(&b->writer, offset, rec.timestamp))) {
        if ((err = flush_batch(b)) < 0)
            return err;
        have = 0;
    }
    if (have == 0) {
        /* the batch grows to GW_BATCH_BYTES at most, or holds this one document */
        size_t room = bytes_left + bytes_left / 4 + need;
        if (room > GW_BATCH_BYTES)
            room = need > GW_BATCH_BYTES ? need : GW_BATCH_BYTES;
        kp_batch_writer_reserve(&b->writer, room + KP_BATCH_HEAD);
    }
    return kp_batch_writer_add(&b->writer, &rec);
}

struct gw_blockbatches *gw_blockbatches_ref(struct gw_blockbatches *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void gw_blockbatches_unref(struct gw_blockbatches *b)
{
    if (b == NULL || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < b->n; i++)
        kp_batch_fini(&b->batches[i]);
    mem_free(b->damaged);
    mem_free(b->refused);
    mem_free(b);
}

static int64_t first_behind(const struct jc_range *ranges, size_t n, int64_t offset)
{
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].end > offset)
            return ranges[i].begin;
    }
    return INT64_MAX;
}

int64_t gw_blockbatches_damage(const struct gw_blockbatches *b, int64_t offset)
{
    return first_behind(b->damaged, b->damaged_n, offset);
}

int64_t gw_blockbatches_refused(const struct gw_blockbatches *b, int64_t offset)
{
    return first_behind(b->refused, b->refused_n, offset);
}

/* The old refused ranges, then the new ones. */
static int join_refused(const struct builder *b, const struct gw_blockbatches *old,
                        struct gw_blockbatches *e)
{
    size_t old_n = old == NULL ? 0 : old->refused_n;
    size_t n = old_n + b->refused_n;

    e->refused = NULL;
    e->refused_n = n;
    if (n == 0)
        return 0;
    if ((e->refused = mem_array(n, sizeof *e->refused)) == NULL)
        return E_NOMEM;
    if (old_n > 0)
        memcpy(e->refused, old->refused, old_n * sizeof *e->refused);
    if (b->refused_n > 0)
        memcpy(e->refused + old_n, b->refused, b->refused_n * sizeof *e->refused);
    return 0;
}

size_t gw_blockbatches_find(const struct gw_blockbatches *b, int64_t offset)
{
    size_t low = 0, high = b->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (b->batches[mid].last_offset >= offset)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/* Old batches by reference, then the new ones, which move in. */
static int assemble(struct builder *b, const struct jc_block *block,
                    const struct gw_blockbatches *old, int64_t content_end,
                    const struct jc_marks *marks, struct gw_blockbatches **out)
{
    size_t old_n = old == NULL ? 0 : old->n;
    size_t n = old_n + b->n;
    struct gw_blockbatches *e = mem_alloc(sizeof *e + n * sizeof e->batches[0]);
    struct jc_range *damaged = NULL;

    ASSERT(old == NULL || old->damaged_n == 0);
    if (block->damaged_n > 0)
        damaged = mem_array(block->damaged_n, sizeof *damaged);
    if (e == NULL || (damaged == NULL && block->damaged_n > 0) || join_refused(b, old, e) < 0) {
        mem_free(damaged);
        mem_free(e);
        return E_NOMEM;
    }
    if (damaged != NULL)
        memcpy(damaged, block->damaged, block->damaged_n * sizeof *damaged);
    e->damaged = damaged;
    e->damaged_n = block->damaged_n;
    atomic_init(&e->refs, 1);
    e->read_to = block->read_to;
    e->sealed = block->sealed;
    e->content_end = content_end;
    e->marks = *marks;
    e->log_start = block->log_start;
    e->pending = b->pending;
    e->n = n;
    e->bytes = sizeof *e + n * sizeof e->batches[0] + e->refused_n * sizeof *e->refused;
    for (size_t i = 0; i < n; i++) {
        if (i < old_n) {
            e->batches[i] = old->batches[i];
            (void)blob_ref(e->batches[i].bytes);
        } else {
            e->batches[i] = b->done[i - old_n];
        }
        e->bytes += sizeof(struct blob) + e->batches[i].bytes->cap;
    }
    b->n = 0; /* moved */
    *out = e;
    return 0;
}

int gw_block_build(const struct gw_build *how, const struct jc_block *block,
                   const struct gw_blockbatches *old, struct gw_blockbatches **out)
{
    struct builder b = {
        .how = how, .block = block, .pending = old == NULL ? how->lead : old->pending};
    struct line_iter it = {.block = block, .from = how->from};
    struct sc_uuid_hint hint = {0};
    int64_t content_end = old == NULL ? 0 : old->content_end;
    struct jc_marks marks = old == NULL ? (struct jc_marks){0} : old->marks;
    struct span line;
    int64_t offset;
    int err = block_encoder_init(&b.encode, how);

    *out = NULL;
    kp_batch_writer_init(&b.writer);
    ASSERT(old == NULL || old->n == 0 || old->batches[old->n - 1].last_offset < how->from);
    while (err == 0 && line_next(&it, &line, &offset)) {
        struct jc_doc_info info;

        gw_doc_look(line, &hint, &info);
        jc_marks_take(&marks, &info, offset + 1);
        if (how->signal)
            gw_lead_take(&b.pending, &info);
        if (info.kind != JC_DOC_CONTENT)
            continue;
        content_end = offset + 1;
        if (!clock_visible(&how->bound, info.clock))
            continue;
        size_t left =
            it.segment < block->segments_n ? block->segments[it.segment].bytes->len - it.at : 0;
        err = add_document(&b, line, offset, info.clock, left);
    }
    if (err == 0)
        err = flush_batch(&b);
    if (err == 0)
        err = assemble(&b, block, old, content_end, &marks, out);
    for (size_t i = 0; i < b.n; i++)
        kp_batch_fini(&b.done[i]);
    mem_free(b.done);
    mem_free(b.refused);
    kp_batch_writer_fini(&b.writer);
    block_encoder_fini(&b.encode);
    return err;
}

/* What cannot be read may have been the document that is looked for. */
static bool damage_within(const struct jc_block *block, int64_t from, int64_t end)
{
    for (size_t i = 0; i < block->damaged_n; i++) {
        if (block->damaged[i].end > from && block->damaged[i].begin < end)
            return true;
    }
    return false;
}

int gw_block_look_time(const struct gw_time_look *look, const struct jc_block *block,
                       int64_t *offset, int64_t *timestamp)
{
    struct line_iter it = {.block = block, .from = look->from};
    struct sc_uuid_hint hint = {0};
    bool found = false;
    struct span line;
    int64_t at;

    while (line_next(&it, &line, &at) && at < look->end) {
        struct jc_doc_info info;

        gw_doc_look(line, &hint, &info);
        if (info.kind != JC_DOC_CONTENT || !clock_visible(&look->bound, info.clock))
            continue;
        int64_t ms = jc_clock_unix_ms(info.clock);
        if (look->largest ? (found && ms <= *timestamp) : ms < look->min_ms)
            continue;
        *offset = at;
        *timestamp = ms;
        found = true;
        if (!look->largest)
            break;
    }
    if (damage_within(block, look->from, found && !look->largest ? *offset : look->end))
        return E_CORRUPT;
    return found ? 0 : E_NOTFOUND;
}
