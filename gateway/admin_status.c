/*
 * GET /: one small HTML page for a person: what is served, how far it goes, who is connected. No
 * script, no resource from elsewhere; every name is escaped. Control thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "gateway/admin_int.h"
#include "gateway/html.h"
#include "gateway/metrics.h"
#include "journal_client/uuid.h"

static const char HEAD[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>Sluice</title>\n<style>\n"
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem;"
    "color:#1b2733;background:#fff}\n"
    "h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}\n"
    "table{border-collapse:collapse;width:100%}\n"
    "th,td{text-align:left;padding:.3rem .8rem .3rem 0;border-bottom:1px solid #d8dee4}\n"
    "th{font-weight:600;color:#51606f}\n"
    ".n{text-align:right;font-variant-numeric:tabular-nums}\n"
    "code{font:13px ui-monospace,monospace}p{margin:.4rem 0;color:#51606f}\n"
    "@media(prefers-color-scheme:dark){body{color:#dde4ea;background:#14191e}"
    "th,p{color:#9aa7b4}th,td{border-color:#2c363f}a{color:#7cc0ff}}\n"
    "</style></head><body>\n<h1>Sluice</h1>\n";

static void when(struct writer *w, uint64_t clock)
{
    time_t t = (time_t)(jc_clock_unix_ms(clock) / 1000);
    struct tm tm;
    char text[40];

    if (clock == 0 || gmtime_r(&t, &tm) == NULL ||
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0) {
        wr_str(w, "none");
        return;
    }
    wr_str(w, text);
}

static void topic_rows(struct writer *w, const struct gw_topic *t)
{
    for (size_t i = 0; i < t->parts_n; i++) {
        struct jc_heads h = {0};
        struct gw_refusal refusal;

        (void)gw_part_heads(t->parts[i], &h);
        wr_str(w, "<tr><td>");
        if (i == 0)
            html_text(w, t->name);
        wr_printf(w, "</td><td class=\"n\">%zu</td><td><code>", i);
        html_text(w, t->parts[i]->journal->spec.name);
        if (gw_part_refusal(t->parts[i], t->encoder->id, &refusal)) {
            wr_printf(w, "</code><br>stopped at %" PRId64 ": <code>", refusal.offset);
            html_text(w, refusal.pointer);
            wr_str(w, "</code> ");
            html_text(w, refusal.reason);
            wr_str(w, "<code>");
        }
        wr_printf(w,
                  "</code></td><td class=\"n\">%" PRId64 "</td><td class=\"n\">%" PRId64
                  "</td><td class=\"n\">%" PRId32 "</td><td>",
                  h.log_start, h.content_end, t->epoch);
        when(w, t->bound.min_clock);
        wr_str(w, "</td></tr>\n");
    }
    if (t->parts_n == 0) {
        wr_str(w, "<tr><td>");
        html_text(w, t->name);
        wr_str(w, "</td><td colspan=\"6\">no partition yet</td></tr>\n");
    }
}

static void counter_row(struct writer *w, const char *what, enum metric_id m)
{
    wr_printf(w, "<tr><td>%s</td><td class=\"n\">%" PRId64 "</td></tr>\n", what, metric_get(m));
}

static void write_topics(struct writer *w, const struct gw_view *view)
{
    wr_str(w, "<h2>Topics</h2>\n");
    if (view == NULL || view->topics_n == 0) {
        wr_str(w, "<p>No collection yet. Publish one: <code>sluice publish demo/things "
                  "&lt; things.ndjson</code></p>\n");
        return;
    }
    wr_str(w, "<table><tr><th>topic</th><th class=\"n\">partition</th><th>journal</th>"
              "<th class=\"n\">log start</th><th class=\"n\">high watermark</th>"
              "<th class=\"n\">epoch</th><th>hidden before</th></tr>\n");
    for (size_t i = 0; i < view->topics_n; i++)
        topic_rows(w, &view->topics[i]);
    wr_str(w, "</table>\n");
}

static void write_traffic(struct writer *w)
{
    wr_str(w, "<h2>Traffic since start</h2>\n<table>\n");
    counter_row(w, "Kafka connections open", M_CONNECTIONS_OPEN);
    counter_row(w, "Kafka connections accepted", M_CONNECTIONS_TOTAL);
    counter_row(w, "Kafka requests answered", M_REQUESTS);
    counter_row(w, "bytes sent to Kafka clients", M_BYTES_OUT);
    counter_row(w, "connections closed for malformed frames", M_PROTOCOL_ERRORS);
    counter_row(w, "publish requests committed", M_PUBLISH_REQUESTS);
    counter_row(w, "documents committed", M_PUBLISH_DOCUMENTS);
    counter_row(w, "publish requests refused", M_PUBLISH_REFUSED);
    counter_row(w, "store errors", M_STORE_ERRORS);
    wr_str(w, "</table>\n<p><a href=\"/metrics\">metrics</a> &middot; "
              "<a href=\"/v1/topics\">topics</a> &middot; <a href=\"/v1/groups\">groups</a> "
              "&middot; <a href=\"/v1/journals\">journals</a> &middot; "
              "<a href=\"/v1/collections\">collections</a></p>\n</body></html>\n");
}

void admin_reply_status(struct admin_http *a, struct http_rq *req, struct span groups)
{
    const struct admin_host *host = &a->host;
    const char *why = host->unready == NULL ? NULL : host->unready(host->arg);
    struct writer w;

    wr_init(&w, ADMIN_REPLY_MAX);
    wr_str(&w, HEAD);
    wr_str(&w, "<p>");
    if (a->draining)
        why = "draining";
    html_text(&w,
              why == NULL ? "Ready. Collections of JSON documents, served as Kafka topics." : why);
    wr_str(&w, "</p>\n");
    write_topics(&w, host->view(host->arg));
    wr_span(&w, groups);
    write_traffic(&w);
    if (wr_err(&w) < 0) {
        admin_reply_error(a, req, 503, "%s", err_text(wr_err(&w)));
    } else {
        admin_add_header(req, "Content-Security-Policy",
                         "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
        admin_reply(a, req, 200, "text/html; charset=utf-8", blob_span(w.b));
    }
    wr_fini(&w);
}
