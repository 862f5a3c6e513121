/* The Prometheus text form (version 0.0.4) of all counters and of the topics in a view. Any thread.
 */
#include <inttypes.h>

#include "gateway/admin_int.h"
#include "gateway/metrics.h"
#include "journal_client/gazette.h"
#include "journal_client/local.h"
#include "journal_client/uuid.h"

#define COUNTER "counter"
#define GAUGE   "gauge"

static const struct {
    const char *type;
    const char *name;
    const char *help;
} plain[METRIC_COUNT] = {
#define X(symbol, type, name, help) [symbol] = {type, name, help},
#include "gateway/metrics.def"
#undef X
};

static void head(struct writer *w, const char *name, const char *type, const char *help)
{
    wr_printf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A label's value: backslash, quote and line feed are escaped. */
static void label(struct writer *w, const char *s)
{
    for (; *s != '\0'; s++) {
        if (*s == '\\' || *s == '"')
            wr_u8(w, '\\');
        if (*s == '\n')
            wr_str(w, "\\n");
        else
            wr_u8(w, (uint8_t)*s);
    }
}

static void render_store(struct writer *w)
{
    uint64_t reads, bytes;

    jc_local_read_stats(&reads, &bytes);
    head(w, "sluice_store_read_bytes_total", COUNTER, "Bytes read from files of the local store");
    wr_printf(w, "sluice_store_read_bytes_total %" PRIu64 "\n", bytes);
    head(w, "sluice_store_reads_total", COUNTER, "Reads of files of the local store");
    wr_printf(w, "sluice_store_reads_total %" PRIu64 "\n", reads);
    jc_gazette_read_stats(&reads, &bytes);
    head(w, "sluice_gazette_read_bytes_total", COUNTER,
         "Bytes of journals read from stored fragments where they lie, and through brokers");
    wr_printf(w, "sluice_gazette_read_bytes_total{way=\"fragment\"} %" PRIu64 "\n", reads);
    wr_printf(w, "sluice_gazette_read_bytes_total{way=\"broker\"} %" PRIu64 "\n", bytes);
}

static void render_apis(struct writer *w)
{
    head(w, "sluice_api_requests_total", COUNTER, "Kafka requests by API");
    for (size_t i = 0; i < kp_apis_n; i++)
        wr_printf(w, "sluice_api_requests_total{api=\"%s\"} %" PRId64 "\n", kp_apis[i].name,
                  metric_api_request_get(kp_apis[i].key));
}

static void render_reloads(struct writer *w)
{
    head(w, "sluice_catalog_reloads_total", COUNTER, "Times the catalog was read anew");
    wr_printf(w, "sluice_catalog_reloads_total{result=\"ok\"} %" PRId64 "\n",
              metric_get(M_CATALOG_RELOADS));
    wr_printf(w, "sluice_catalog_reloads_total{result=\"failed\"} %" PRId64 "\n",
              metric_get(M_CATALOG_RELOADS_FAILED));
}

static void render_errors(struct writer *w)
{
    head(w, "sluice_kafka_errors_total", COUNTER, "Kafka error numbers sent to clients");
    for (int16_t code = -1; code < METRIC_API_KEYS; code++) {
        int64_t n = metric_kafka_error_get(code);

        if (n > 0 && code != 0)
            wr_printf(w, "sluice_kafka_errors_total{code=\"%d\"} %" PRId64 "\n", code, n);
    }
}

/* Without a catalog there is one task, without a name: no label then. */
static void topic_labels(struct writer *w, const char *name, const struct gw_topic *t)
{
    wr_printf(w, "%s{", name);
    if (t->task[0] != '\0') {
        wr_str(w, "task=\"");
        label(w, t->task);
        wr_str(w, "\",");
    }
    wr_str(w, "topic=\"");
    label(w, t->name);
    wr_str(w, "\"");
}

/* One family: a gauge per partition of every topic. */
static void render_heads(struct writer *w, const struct gw_view *view, const char *name,
                         const char *help, int64_t (*value)(const struct jc_heads *h))
{
    head(w, name, GAUGE, help);
    for (size_t i = 0; i < view->topics_n; i++) {
        const struct gw_topic *t = &view->topics[i];

        for (size_t k = 0; k < t->parts_n; k++) {
            struct jc_heads h;

            if (!gw_part_heads(t->parts[k], &h))
                continue;
            topic_labels(w, name, t);
            wr_printf(w, ",partition=\"%zu\"} %" PRId64 "\n", k, value(&h));
        }
    }
}

static int64_t high_watermark(const struct jc_heads *h)
{
    return h->content_end;
}

static int64_t log_start(const struct jc_heads *h)
{
    return h->log_start;
}

static int64_t write_head(const struct jc_heads *h)
{
    return h->write_head;
}

static uint64_t bound_of(const struct gw_topic *t)
{
    return t->bound.min_clock;
}

static uint64_t begin_of(const struct gw_topic *t)
{
    return t->frontier.begin;
}

static uint64_t complete_of(const struct gw_topic *t)
{
    return t->frontier.complete;
}

/* One family: a clock per topic as Unix milliseconds; 0: none. */
static void render_clocks(struct writer *w, const struct gw_view *view, const char *name,
                          const char *help, uint64_t (*value)(const struct gw_topic *t))
{
    head(w, name, GAUGE, help);
    for (size_t i = 0; i < view->topics_n; i++) {
        uint64_t clock = value(&view->topics[i]);

        topic_labels(w, name, &view->topics[i]);
        wr_printf(w, "} %" PRId64 "\n", clock == 0 ? 0 : jc_clock_unix_ms(clock));
    }
}

static void render_topics(struct writer *w, const struct gw_view *view)
{
    render_heads(w, view, "sluice_high_watermark",
                 "End of the last content document, a byte offset", high_watermark);
    render_heads(w, view, "sluice_log_start",
                 "End of the last content document that was removed, a byte offset", log_start);
    render_heads(w, view, "sluice_write_head", "End of the last durable byte", write_head);
    render_clocks(w, view, "sluice_truncated_at_milliseconds",
                  "Documents older than this Unix time are hidden; 0: none", bound_of);
    render_clocks(w, view, "sluice_backfill_begin_milliseconds",
                  "Unix time at which the newest backfill began; 0: none", begin_of);
    render_clocks(w, view, "sluice_backfill_complete_milliseconds",
                  "Unix time of the newest complete marker; 0: none", complete_of);
}

void metrics_render(const struct gw_view *view, struct writer *w)
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        if (i == M_CATALOG_RELOADS || i == M_CATALOG_RELOADS_FAILED)
            continue; /* one family */
        head(w, plain[i].name, plain[i].type, plain[i].help);
        wr_printf(w, "%s %" PRId64 "\n", plain[i].name, metric_get((enum metric_id)i));
    }
    render_store(w);
    render_apis(w);
    render_reloads(w);
    render_errors(w);
    if (view != NULL)
        render_topics(w, view);
}
