/* Key-values: reads on the committer thread, writes as transactions without journals. */
#include "base/mem.h"
#include "journal_client/local/db.h"
#include "journal_client/local/request.h"
#include "journal_client/local/roll.h"
#include "journal_client/local/store_int.h"

static void kv_free(struct jl_req *rq)
{
    for (size_t i = 0; rq->u.kv.list != NULL && i < rq->u.kv.n; i++) {
        mem_free((void *)(uintptr_t)rq->u.kv.list[i].key);
        mem_free((void *)(uintptr_t)rq->u.kv.list[i].value.p);
    }
    mem_free(rq->u.kv.list);
    mem_free(rq->u.kv.key);
    blob_unref(rq->u.kv.value);
    jl_req_free(rq);
}

static void get_done(struct task *t)
{
    struct jl_req *rq = jl_req_of(t);
    struct span value = {NULL, 0};

    if (rq->err == 0)
        value = blob_span(rq->u.kv.value);
    rq->u.kv.get(rq->arg, rq->err, value);
    kv_free(rq);
}

static void run_get(struct jl_store *s, struct jl_req *rq)
{
    int err = jl_db_query(s->db, JL_SQL_KV_GET, "bi", span_str(rq->u.kv.key), jl_now_ms(s));

    if (err == 0) {
        err = jl_db_row(s->db, JL_SQL_KV_GET);
        if (err == 0)
            err = E_NOTFOUND;
        if (err == 1) {
            rq->u.kv.value = blob_copy(jl_db_span(s->db, JL_SQL_KV_GET, 0));
            err = rq->u.kv.value == NULL ? E_NOMEM : 0;
        }
        jl_db_end(s->db, JL_SQL_KV_GET);
    }
    jl_req_answer(rq, err);
}

static int read_request(struct jl_store *s, const char *key, struct executor *ex,
                        void (*answer)(struct task *), jl_req_run *run, struct jl_req **out)
{
    int err;

    if ((err = jl_req_new(s, ex, answer, out)) < 0)
        return err;
    (*out)->run = run;
    (*out)->after = true;
    if (((*out)->u.kv.key = mem_strdup(key)) == NULL) {
        jl_req_free(*out);
        return E_NOMEM;
    }
    return 0;
}

int jl_kv_get(struct jc_store *store, const char *key, struct executor *ex, jc_kv_fn *done,
              void *arg)
{
    struct jl_store *s = jl_store_of(store);
    struct jl_req *rq;
    int err;

    if ((err = read_request(s, key, ex, get_done, run_get, &rq)) < 0)
        return err;
    rq->u.kv.get = done;
    rq->arg = arg;
    if ((err = jl_req_post(s, rq)) < 0)
        kv_free(rq);
    return err;
}

static void scan_done(struct task *t)
{
    struct jl_req *rq = jl_req_of(t);

    rq->u.kv.scan(rq->arg, rq->err, rq->err == 0 ? rq->u.kv.list : NULL,
                  rq->err == 0 ? rq->u.kv.n : 0);
    kv_free(rq);
}

/* Appends a copy of the row. */
static int scan_row(struct jl_store *s, struct jl_req *rq, struct span key, size_t *cap)
{
    struct span value = jl_db_span(s->db, JL_SQL_KV_SCAN, 1);

    if (rq->u.kv.n == *cap) {
        *cap = *cap == 0 ? 16 : *cap * 2;
        struct jc_kv *list = mem_realloc(rq->u.kv.list, *cap * sizeof *list);
        if (list == NULL)
            return E_NOMEM;
        rq->u.kv.list = list;
    }
    char *k = mem_strndup((const char *)key.p, key.n);
    char *v = mem_strndup((const char *)value.p, value.n);
    if (k == NULL || v == NULL) {
        mem_free(k);
        mem_free(v);
        return E_NOMEM;
    }
    rq->u.kv.list[rq->u.kv.n++] = (struct jc_kv){
        .key = k, .value = span_of(v, value.n), .expires_ms = jl_db_i64(s->db, JL_SQL_KV_SCAN, 2)};
    return 0;
}

static void run_scan(struct jl_store *s, struct jl_req *rq)
{
    struct span prefix = span_str(rq->u.kv.key);
    size_t cap = 0;
    int err = jl_db_query(s->db, JL_SQL_KV_SCAN, "bi", prefix, jl_now_ms(s));

    if (err == 0) {
        while ((err = jl_db_row(s->db, JL_SQL_KV_SCAN)) == 1) {
            struct span key = jl_db_span(s->db, JL_SQL_KV_SCAN, 0);
            if (!span_has_prefix(key, prefix)) { /* sorted: the run of the prefix is over */
                err = 0;
                break;
            }
            if ((err = scan_row(s, rq, key, &cap)) < 0)
                break;
        }
        jl_db_end(s->db, JL_SQL_KV_SCAN);
    }
    jl_req_answer(rq, err);
}

int jl_kv_scan(struct jc_store *store, const char *prefix, struct executor *ex, jc_kv_scan_fn *done,
               void *arg)
{
    struct jl_store *s = jl_store_of(store);
    struct jl_req *rq;
    int err;

    if ((err = read_request(s, prefix, ex, scan_done, run_scan, &rq)) < 0)
        return err;
    rq->u.kv.scan = done;
    rq->arg = arg;
    if ((err = jl_req_post(s, rq)) < 0)
        kv_free(rq);
    return err;
}

static void set_done(struct task *t)
{
    struct jl_req *rq = jl_req_of(t);

    rq->u.kv.set(rq->arg, rq->err);
    kv_free(rq);
}

int jl_kv_set(struct jc_store *store, const struct jc_kv *kv, size_t n, struct executor *ex,
              jc_done_fn *done, void *arg)
{
    struct jl_store *s = jl_store_of(store);
    struct jl_req *rq;
    int err;

    if (s->read_only)
        return E_DENIED;
    if ((err = jl_req_new(s, ex, set_done, &rq)) < 0)
        return err;
    rq->u.kv.set = done;
    rq->arg = arg;
    err = E_NOMEM;
    if ((rq->u.kv.list = mem_array(n, sizeof *kv)) == NULL)
        goto out;
    for (size_t i = 0; i < n; i++) {
        char *k = mem_strdup(kv[i].key);
        char *v = mem_strndup((const char *)kv[i].value.p, kv[i].value.n);
        rq->u.kv.list[rq->u.kv.n++] = (struct jc_kv){
            .key = k, .value = span_of(v, kv[i].value.n), .expires_ms = kv[i].expires_ms};
        if (k == NULL || v == NULL)
            goto out;
    }
    rq->u.kv.own = (struct jc_txn){.kv = rq->u.kv.list, .kv_n = n};
    rq->txn = &rq->u.kv.own;
    if ((err = jl_req_post(s, rq)) < 0)
        goto out;
    return 0;
out:
    kv_free(rq);
    return err;
}
