/* The JSON answers of publishing. Bounded by the number of faults and partitions; pure. */
#include "gateway/publish_int.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/num.h"

void pub_answer_error(struct writer *w, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    wr_str(w, "{\"error\":");
    sc_json_quote(span_str(text), w);
    wr_str(w, "}\n");
}

void pub_answer_faults(struct writer *w, const struct pub_parsed *p)
{
    wr_printf(w,
              "{\"error\":\"%zu of %zu documents cannot be published; nothing was published\","
              "\"total\":%zu,\"errors\":[",
              p->faults_total, p->seen, p->faults_total);
    for (size_t i = 0; i < p->faults_n; i++) {
        const struct pub_fault *f = &p->faults[i];

        wr_printf(w, "%s{\"line\":%zu,\"at\":%zu,\"reason\":", i > 0 ? "," : "", f->line, f->at);
        sc_json_quote(span_str(f->reason), w);
        wr_str(w, "}");
    }
    wr_str(w, "]}\n");
}

void pub_answer_ok(struct writer *w, const struct pub_layout *l, const struct pub_parsed *p,
                   const struct jc_append_part *parts, uint64_t ack_clock)
{
    char hex[17];
    size_t k = 0;

    wr_str(w, "{\"collection\":");
    sc_json_quote(span_str(l->collection), w);
    wr_printf(w, ",\"documents\":%zu,\"partitions\":[", p->docs_n);
    for (size_t i = 0; i < p->outs_n; i++) {
        const struct pub_out *o = &p->outs[i];
        const struct jc_append_part *part;

        if (o->docs == 0)
            continue;
        part = &parts[k];
        wr_printf(w, "%s{\"partition\":%zu,\"journal\":", k > 0 ? "," : "", l->parts[i].index);
        sc_json_quote(span_str(l->parts[i].name), w);
        /* a document's Kafka offset is that of its last byte (O1) */
        wr_printf(w,
                  ",\"documents\":%zu,\"first_offset\":%" PRId64 ",\"last_offset\":%" PRId64
                  ",\"begin\":%" PRId64 ",\"end\":%" PRId64 "}",
                  o->docs, part->begin + (int64_t)o->first_end - 1,
                  part->begin + (int64_t)o->last_end - 1, part->begin,
                  part->begin + (int64_t)o->bytes->len);
        k++;
    }
    num_hex16(ack_clock, hex);
    wr_printf(w, "],\"clock\":\"%s\"}\n", p->docs_n == 0 ? "0000000000000000" : hex);
}
