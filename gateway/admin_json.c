/* JSON pieces of the admin API. Pure. */
#include <inttypes.h>

#include "base/num.h"
#include "gateway/admin_int.h"
#include "schema/json_reader.h"

void admin_json_heads(struct writer *w, const struct jc_heads *h)
{
    char hex[17];

    num_hex16(h->max_clock, hex);
    wr_printf(w,
              "{\"first\":%" PRId64 ",\"log_start\":%" PRId64 ",\"high_watermark\":%" PRId64
              ",\"write_head\":%" PRId64 ",\"max_clock\":\"%s\"}",
              h->first, h->log_start, h->content_end, h->write_head, hex);
}

void admin_json_spec(struct writer *w, const struct jc_journal *j)
{
    wr_str(w, "\"name\":");
    sc_json_quote(span_str(j->spec.name), w);
    wr_printf(w,
              ",\"create_revision\":%" PRId64 ",\"mod_revision\":%" PRId64
              ",\"fragment_bytes\":%" PRId64 ",\"fragment_age_ms\":%" PRId64
              ",\"retention_ms\":%" PRId64 ",\"retention_bytes\":%" PRId64 ",\"labels\":[",
              j->create_revision, j->mod_revision, j->spec.fragment_bytes, j->spec.fragment_age_ms,
              j->spec.retention_ms, j->spec.retention_bytes);
    for (size_t i = 0; i < j->spec.labels_n; i++) {
        wr_str(w, i > 0 ? ",{\"name\":" : "{\"name\":");
        sc_json_quote(span_str(j->spec.labels[i].name), w);
        wr_str(w, ",\"value\":");
        sc_json_quote(span_str(j->spec.labels[i].value), w);
        wr_str(w, "}");
    }
    wr_str(w, "]");
}

void admin_json_fragments(struct writer *w, const struct jc_fragment *list, size_t n)
{
    wr_str(w, "[");
    for (size_t i = 0; i < n; i++)
        wr_printf(w,
                  "%s{\"begin\":%" PRId64 ",\"end\":%" PRId64
                  ",\"open\":%s,\"sha1\":\"%s\",\"mod_time_ms\":%" PRId64 "}",
                  i > 0 ? "," : "", list[i].begin, list[i].end, list[i].open ? "true" : "false",
                  list[i].open ? "" : list[i].sha1, list[i].mod_time_ms);
    wr_str(w, "]");
}

void admin_id_text(const struct kp_uuid *id, char out[23])
{
    static const char abc[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t k = 0;

    for (size_t i = 0; i < 16; i += 3) {
        uint32_t v = (uint32_t)id->b[i] << 16;

        v |= i + 1 < 16 ? (uint32_t)id->b[i + 1] << 8 : 0;
        v |= i + 2 < 16 ? id->b[i + 2] : 0;
        for (int s = 18; s >= 0 && k < 22; s -= 6)
            out[k++] = abc[(v >> s) & 63];
    }
    out[22] = '\0';
}

void admin_json_topic(struct writer *w, const struct gw_topic *t)
{
    char id[23], bound[17], begin[17], complete[17], completed[17];

    admin_id_text(&t->id, id);
    num_hex16(t->bound.min_clock, bound);
    num_hex16(t->frontier.begin, begin);
    num_hex16(t->frontier.complete, complete);
    num_hex16(t->frontier.completed, completed);
    wr_str(w, "{\"name\":");
    sc_json_quote(span_str(t->name), w);
    wr_str(w, ",\"task\":");
    sc_json_quote(span_str(t->task), w);
    wr_str(w, ",\"collection\":");
    sc_json_quote(span_str(t->collection), w);
    wr_printf(w,
              ",\"id\":\"%s\",\"epoch\":%" PRId32 ",\"truncated_at\":\"%s\",\"backfill_begin\":"
              "\"%s\",\"backfill_complete\":\"%s\",\"backfill_completed\":\"%s\",",
              id, t->epoch, bound, begin, complete, completed);
    if (t->bound.max_clock != UINT64_MAX) {
        num_hex16(t->bound.max_clock, bound);
        wr_printf(w, "\"not_after\":\"%s\",", bound);
    }
    wr_str(w, "\"partitions\":[");
    for (size_t i = 0; i < t->parts_n; i++) {
        struct jc_heads h = {0};
        struct gw_refusal refusal;

        (void)gw_part_heads(t->parts[i], &h);
        wr_printf(w, "%s{\"partition\":%zu,\"journal\":", i > 0 ? "," : "", i);
        sc_json_quote(span_str(t->parts[i]->journal->spec.name), w);
        wr_printf(
            w, ",\"log_start\":%" PRId64 ",\"high_watermark\":%" PRId64 ",\"write_head\":%" PRId64,
            h.log_start, h.content_end, h.write_head);
        if (gw_part_refusal(t->parts[i], t->encoder->id, &refusal)) {
            wr_printf(w, ",\"stopped\":{\"offset\":%" PRId64 ",\"pointer\":", refusal.offset);
            sc_json_quote(span_str(refusal.pointer), w);
            wr_str(w, ",\"reason\":");
            sc_json_quote(span_str(refusal.reason), w);
            wr_str(w, "}");
        }
        wr_str(w, "}");
    }
    wr_str(w, "]}");
}
