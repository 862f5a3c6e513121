/*
 * Listings of the admin API: collections, journals, topics. Answers at once from the listing and
 * the view, except one journal's fragments, which the store is asked for. Control thread.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "gateway/admin_int.h"
#include "gateway/publish_int.h"

/* --- heads of journals, by name
 * ---------------------------------------------------------------------- */

struct head_row {
    const char *journal;
    struct gw_part *part; /* of the view */
};

static int cmp_heads(const void *va, const void *vb)
{
    const struct head_row *a = va, *b = vb;

    return strcmp(a->journal, b->journal);
}

/* Sorted rows in memory of the caller (mem_free); NULL: out of memory. */
static struct head_row *head_rows(const struct gw_view *view, size_t *n)
{
    size_t cap = 1;
    struct head_row *rows;

    *n = 0;
    for (size_t i = 0; view != NULL && i < view->topics_n; i++)
        cap += view->topics[i].parts_n;
    if ((rows = mem_array(cap, sizeof rows[0])) == NULL)
        return NULL;
    for (size_t i = 0; view != NULL && i < view->topics_n; i++)
        for (size_t k = 0; k < view->topics[i].parts_n; k++) {
            struct gw_part *part = view->topics[i].parts[k];

            rows[(*n)++] = (struct head_row){part->journal->spec.name, part};
        }
    qsort(rows, *n, sizeof rows[0], cmp_heads);
    return rows;
}

static void write_journal_heads(struct writer *w, const char *name, const struct head_row *rows,
                                size_t n)
{
    struct head_row want = {name, NULL};
    const struct head_row *row = bsearch(&want, rows, n, sizeof rows[0], cmp_heads);
    struct jc_heads h;

    if (row == NULL || !gw_part_heads(row->part, &h))
        return;
    wr_str(w, ",\"heads\":");
    admin_json_heads(w, &h);
}

/* --- collections
 * ------------------------------------------------------------------------------------- */

static void write_collection(struct writer *w, const struct pub_index_row *rows, size_t n)
{
    struct pub_layout *l = NULL;
    const char *why = NULL;

    wr_str(w, "{\"name\":");
    sc_json_quote(span_str(rows[0].collection), w);
    wr_printf(w, ",\"partitions\":%zu", n);
    if (pub_layout_of(rows, n, &l, &why) < 0) {
        wr_str(w, ",\"fault\":");
        sc_json_quote(span_str(why), w);
    } else {
        wr_str(w, ",\"key\":[");
        for (size_t i = 0; i < l->pointers_n; i++) {
            wr_str(w, i > 0 ? "," : "");
            sc_json_quote(l->pointers[i], w);
        }
        wr_str(w, "]");
    }
    wr_str(w, ",\"journals\":[");
    for (size_t i = 0; i < n; i++) {
        wr_str(w, i > 0 ? "," : "");
        sc_json_quote(span_str(rows[i].journal->spec.name), w);
    }
    wr_str(w, "]}");
    pub_layout_free(l);
}

/* The listing, or NULL after 503 was answered. */
static const struct jc_listing *need_listing(struct admin_rq *rq)
{
    const struct jc_listing *l = publisher_listing(rq->a->publisher);

    if (l == NULL)
        admin_reply_error(rq->a, rq->req, 503, "the journals were not listed yet");
    return l;
}

void admin_get_collections(struct admin_rq *rq)
{
    const struct jc_listing *l = need_listing(rq);
    struct pub_index *ix = NULL;
    const struct pub_index_row *row;
    struct writer w;
    size_t n;

    if (l == NULL)
        return;
    if (pub_index_new(l, &ix) < 0) {
        admin_reply_error(rq->a, rq->req, 503, "out of memory");
        return;
    }
    wr_init(&w, ADMIN_REPLY_MAX);
    if (rq->target.route == ADMIN_COLLECTION) {
        if ((row = pub_index_find(ix, rq->target.name, &n)) == NULL) {
            admin_reply_error(rq->a, rq->req, 404, "no such collection");
        } else {
            write_collection(&w, row, n);
            wr_str(&w, "\n");
            admin_reply_json(rq->a, rq->req, 200, &w);
        }
        mem_free(ix);
        return;
    }
    wr_str(&w, "{\"collections\":[");
    for (size_t i = 0; i < ix->n; i += n) {
        row = pub_index_find(ix, span_str(ix->rows[i].collection), &n);
        wr_str(&w, i > 0 ? ",\n" : "");
        write_collection(&w, row, n);
    }
    wr_str(&w, "]}\n");
    admin_reply_json(rq->a, rq->req, 200, &w);
    mem_free(ix);
}

/* --- journals
 * ---------------------------------------------------------------------------------------- */

void admin_get_journals(struct admin_rq *rq)
{
    const struct jc_listing *l = need_listing(rq);
    const struct admin_host *host = &rq->a->host;
    struct head_row *rows;
    struct writer w;
    size_t n;

    if (l == NULL)
        return;
    if ((rows = head_rows(host->view(host->arg), &n)) == NULL) {
        admin_reply_error(rq->a, rq->req, 503, "out of memory");
        return;
    }
    wr_init(&w, ADMIN_REPLY_MAX);
    wr_str(&w, "{\"journals\":[");
    for (size_t i = 0; i < l->n; i++) {
        wr_str(&w, i > 0 ? ",\n{" : "{");
        admin_json_spec(&w, l->items[i]);
        write_journal_heads(&w, l->items[i]->spec.name, rows, n);
        wr_str(&w, "}");
    }
    wr_str(&w, "]}\n");
    admin_reply_json(rq->a, rq->req, 200, &w);
    mem_free(rows);
}

/* Owner: control thread, until the store answers. */
struct journal_http {
    struct admin_call call; /* first member */
    const struct jc_journal *journal;
};

static void on_fragments(void *arg, int err, const struct jc_fragment *list, size_t n)
{
    struct journal_http *jh = arg;
    struct admin_http *a = jh->call.a;
    struct head_row *rows;
    struct writer w;
    size_t rows_n;

    wr_init(&w, ADMIN_REPLY_MAX);
    if (jh->call.req == NULL) {
        ; /* nobody waits any more */
    } else if (err < 0) {
        admin_reply_error(a, jh->call.req, err == E_NOTFOUND ? 404 : 503, "%s", err_text(err));
    } else if ((rows = head_rows(a->host.view(a->host.arg), &rows_n)) == NULL) {
        admin_reply_error(a, jh->call.req, 503, "out of memory");
    } else {
        wr_str(&w, "{");
        admin_json_spec(&w, jh->journal);
        write_journal_heads(&w, jh->journal->spec.name, rows, rows_n);
        wr_str(&w, ",\"fragments\":");
        admin_json_fragments(&w, list, n);
        wr_str(&w, "}\n");
        admin_reply_json(a, jh->call.req, 200, &w);
        mem_free(rows);
    }
    wr_fini(&w);
    admin_call_remove(&jh->call);
    jc_journal_unref(jh->journal);
    mem_free(jh);
}

void admin_get_journal(struct admin_rq *rq)
{
    const struct jc_listing *l = need_listing(rq);
    struct jc_store *s = rq->a->host.store;
    const struct jc_journal *j;
    struct journal_http *jh;

    if (l == NULL)
        return;
    if ((j = jc_listing_find(l, rq->target.name)) == NULL) {
        admin_reply_error(rq->a, rq->req, 404, "no such journal");
        return;
    }
    if ((jh = mem_zalloc(sizeof *jh)) == NULL) {
        admin_reply_error(rq->a, rq->req, 503, "out of memory");
        return;
    }
    jh->call.end = admin_call_let_go;
    if (s->ops->fragments(s, j, &rq->a->host.control->ex, on_fragments, jh) < 0) {
        mem_free(jh);
        admin_reply_error(rq->a, rq->req, 503, "the store does not answer");
        return;
    }
    jh->journal = jc_journal_ref(j);
    admin_call_add(rq->a, &jh->call, rq->req);
}

/* --- topics
 * ------------------------------------------------------------------------------------------ */

void admin_get_topics(struct admin_rq *rq)
{
    const struct admin_host *host = &rq->a->host;
    const struct gw_view *view = host->view(host->arg);
    struct writer w;
    bool found = false;

    if (view == NULL) {
        admin_reply_error(rq->a, rq->req, 503, "the journals were not listed yet");
        return;
    }
    wr_init(&w, ADMIN_REPLY_MAX);
    if (rq->target.route == ADMIN_TOPIC) {
        /* several tasks may have a topic of this name: the first one in their order */
        for (size_t i = 0; i < view->topics_n && !found; i++) {
            found = span_eq_str(rq->target.name, view->topics[i].name);
            if (found)
                admin_json_topic(&w, &view->topics[i]);
        }
        if (!found) {
            wr_fini(&w);
            admin_reply_error(rq->a, rq->req, 404, "no such topic");
            return;
        }
    } else {
        wr_str(&w, "{\"topics\":[");
        for (size_t i = 0; i < view->topics_n; i++) {
            wr_str(&w, i > 0 ? ",\n" : "");
            admin_json_topic(&w, &view->topics[i]);
        }
        wr_str(&w, "]}");
    }
    wr_str(&w, "\n");
    admin_reply_json(rq->a, rq->req, 200, &w);
}
