/*
 * Taking over journals that another store of ours wrote (jc_gazette_adopt): what it knew of their
 * heads becomes the floor of this one, and the broker's head is set behind the stored bytes. A
 * broker that finds fragments in a store which it did not write itself refuses all appends until
 * somebody says where the journal goes on: an empty append at just that offset.
 *
 * Home thread; used by a command, before anything else asks for the journal.
 */
#include "base/log.h"
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"

struct adopt {
    struct task task; /* toward home, then back */
    struct gz_store *s;
    struct gz_journal *j; /* counted */
    struct jc_heads heads;
    struct executor *ex;
    jc_done_fn *done;
    void *arg;
    int err;
    int64_t since_ms, said_head;
    unsigned attempt;
    int status;
    struct event *timer;
    struct gz_call *call;
};

static void ask_head(struct adopt *a);

static struct adopt *adopt_of(struct task *t)
{
    return (struct adopt *)(void *)((char *)t - offsetof(struct adopt, task));
}

static void run_done(struct task *t)
{
    struct adopt *a = adopt_of(t);
    struct gz_store *s = a->s;

    a->done(a->arg, a->err);
    gz_journal_unref(a->j);
    mem_free(a);
    gz_store_unref(s);
}

static void finish(struct adopt *a, int err)
{
    if (a->timer != NULL)
        event_free(a->timer);
    a->timer = NULL;
    a->err = err;
    a->task.run = run_done;
    executor_post(a->ex, &a->task);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    ask_head(arg);
}

/* A journal that was just made has no broker yet, or its broker has not listed the store. */
static void again(struct adopt *a, int err)
{
    if (gz_mono_ms(a->s) - a->since_ms > GZ_GIVE_UP_MS) {
        log_event(LOG_WARN, "gazette.adopt", LF_STR("journal", a->j->name),
                  LF_STR("status", gz_status_text(a->status)), LF_INT("head", a->said_head),
                  LF_INT("expected", a->heads.write_head), LF_ERR(err));
        finish(a, a->said_head != a->heads.write_head ? E_CONFLICT : E_AGAIN);
        return;
    }
    if (a->timer == NULL && (a->timer = evtimer_new(a->s->evb, on_timer, a)) == NULL) {
        finish(a, E_NOMEM);
        return;
    }
    gz_arm(a->timer, gz_backoff_ms(a->attempt++));
}

/* --- the head is set --- */

static void on_append_message(void *arg, struct span msg)
{
    struct adopt *a = arg;
    Gz__AppendResponse *m = gz__append_response__unpack(NULL, msg.n, msg.p);

    if (m != NULL)
        a->status = m->status;
    if (m != NULL)
        gz__append_response__free_unpacked(m, NULL);
}

static void keep_floor(struct adopt *a)
{
    gz_heads_adopt(a->j, &a->heads);
    finish(a, 0);
}

static void on_append_end(void *arg, const struct gz_end *end)
{
    struct adopt *a = arg;

    a->call = NULL;
    if (end->err == E_DENIED)
        finish(a, end->err);
    else if (end->err < 0 || a->status != GZ_OK)
        again(a, end->err);
    else
        keep_floor(a);
}

static void set_head(struct adopt *a)
{
    const struct gz_call_cb cb = {
        .on_message = on_append_message, .on_end = on_append_end, .arg = a};
    Gz__AppendRequest rq;
    gz__append_request__init(&rq);
    struct blob *b;
    int err = E_NOMEM;

    rq.journal = a->j->name;
    rq.offset = a->heads.write_head;
    a->status = -1;
    if ((b = gz_pack(&rq.base)) != NULL &&
        (err = gz_pool_call(a->s->pool, a->j->endpoint, "Append", GZ_RPC_MS, &cb, &a->call)) == 0) {
        if ((err = gz_call_send(a->call, blob_span(b), span_of(NULL, 0))) == 0 &&
            (err = gz_call_send(a->call, span_of(NULL, 0), span_of(NULL, 0))) == 0) {
            gz_call_finish(a->call);
        } else {
            gz_call_cancel(a->call);
            a->call = NULL;
        }
    }
    blob_unref(b);
    if (err < 0)
        again(a, err);
}

/* --- the head is asked for --- */

static void on_head_message(void *arg, struct span msg)
{
    struct adopt *a = arg;
    struct gz_read_msg m;

    if (gz_read_parse(msg, &m) < 0)
        return;
    a->status = m.status;
    a->said_head = m.write_head;
}

static void on_head_end(void *arg, const struct gz_end *end)
{
    struct adopt *a = arg;

    a->call = NULL;
    if (end->err == E_DENIED)
        finish(a, end->err);
    else if (end->err < 0 || a->status != GZ_NOT_YET_AVAILABLE)
        again(a, end->err);
    else if (a->said_head > a->heads.write_head)
        finish(a, E_CONFLICT); /* somebody wrote more */
    else if (a->said_head < a->heads.write_head)
        again(a, E_AGAIN); /* its store is not listed yet, or lacks the last fragment */
    else if (a->heads.write_head == 0)
        keep_floor(a);
    else
        set_head(a);
}

static void ask_head(struct adopt *a)
{
    const struct gz_call_cb cb = {.on_message = on_head_message, .on_end = on_head_end, .arg = a};
    Gz__ReadRequest rq;
    gz__read_request__init(&rq);
    int err;

    if (a->s->stopping || a->j->hub.deleted) {
        finish(a, a->j->hub.deleted ? E_NOTFOUND : E_CLOSED);
        return;
    }
    rq.journal = a->j->name;
    rq.offset = -1;
    rq.min_etcd_revision = a->j->mod_revision;
    a->status = -1;
    if ((err = gz_rpc(a->s, a->j->endpoint, "Read", &rq.base, GZ_RPC_MS, &cb, &a->call)) < 0)
        again(a, err);
}

static void run_home(struct task *t)
{
    struct adopt *a = adopt_of(t);

    a->since_ms = gz_mono_ms(a->s);
    if (a->j->state != GZ_J_IDLE)
        finish(a, E_BUSY);
    else
        ask_head(a);
}

int jc_gazette_adopt(struct jc_store *store, const struct jc_journal *j,
                     const struct jc_heads *heads, struct executor *ex, jc_done_fn *done, void *arg)
{
    struct gz_store *s = gz_store_of(store);
    struct adopt *a = mem_zalloc(sizeof *a);
    int err;

    if (a == NULL)
        return E_NOMEM;
    a->s = gz_store_ref(s);
    a->j = gz_journal_ref(gz_of(j));
    a->heads = *heads;
    a->ex = ex;
    a->done = done;
    a->arg = arg;
    a->task.run = run_home;
    pthread_mutex_lock(&s->hub.lock);
    err = s->hub.closing ? E_CLOSED : 0;
    if (err == 0)
        mailbox_post(&s->mb, &a->task);
    pthread_mutex_unlock(&s->hub.lock);
    if (err < 0) {
        gz_journal_unref(a->j);
        gz_store_unref(s);
        mem_free(a);
    }
    return err;
}
