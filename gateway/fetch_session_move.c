/*
 * A client that reconnects may land on another worker than the one that holds its session. The id
 * names the worker that opened it; that one is asked by message, and hands the session over whole
 * or closes it. A session that moved is found by the worker that it moved to and by no other: from
 * a third one it is unknown (70), and the client opens a new one. No clients of ours move twice.
 *
 * Messages cross in both directions and may arrive at a worker that has stopped: one that asks is
 * then dropped, since its asker stops too; one that brings a session frees it.
 */
#include "base/mem.h"
#include "gateway/fetch_int.h"

/* Owner: the message itself, of whichever mailbox holds it. */
struct session_move {
    struct task task;    /* first member */
    struct worker *from; /* who asks */
    struct worker *to;   /* who opened the session */
    struct fetch *f;     /* from's; NULL: cancelled, or only to be closed */
    bool close;
    int32_t id;
    struct fetch_session *session; /* on the way back */
    char principal[];
};

/* The worker that an id names; NULL when that is us. */
static struct worker *opener(const struct fetch *f, int32_t id)
{
    const struct gw_shared *shared = f->fw->w->shared;

    if (id <= 0 || shared->workers == NULL || shared->workers_n < 2)
        return NULL;
    struct worker *w = &shared->workers[(uint32_t)id % shared->workers_n];
    return w == f->fw->w ? NULL : w;
}

/* Back at the asker. */
static void bring(struct task *t)
{
    struct session_move *m = (struct session_move *)t; /* first member */
    struct fetch_worker *fw = m->from->fetch;
    struct fetch *f = m->f;

    if (fw == NULL)
        fetch_session_destroy(m->session);
    else if (m->session != NULL)
        fetch_session_adopt(fw->sessions, m->session);
    mem_free(m);
    if (f != NULL) {
        f->move = NULL;
        fetch_enter(f);
        fetch_run_queue(fw);
    }
}

/* At the worker that opened the session. */
static void ask(struct task *t)
{
    struct session_move *m = (struct session_move *)t; /* first member */
    struct fetch_worker *fw = m->to->fetch;

    if (fw == NULL) {
        mem_free(m);
        return;
    }
    /* one that is in use stays here; the asker finds nothing and says 70, which is true for it */
    (void)fetch_session_take(fw->sessions, m->id, m->principal, &m->session);
    if (m->close) {
        fetch_session_destroy(m->session);
        mem_free(m);
        return;
    }
    m->task.run = bring;
    mailbox_post(&m->from->mb, &m->task);
}

static struct session_move *move_new(const struct fetch *f, int32_t id)
{
    struct worker *to = opener(f, id);
    const char *principal = request_principal(f->rq);
    size_t n = strlen(principal) + 1;
    struct session_move *m;

    if (to == NULL || (m = mem_zalloc(sizeof *m + n)) == NULL)
        return NULL;
    m->task.run = ask;
    m->from = f->fw->w;
    m->to = to;
    m->id = id;
    memcpy(m->principal, principal, n);
    return m;
}

bool fetch_session_ask_elsewhere(struct fetch *f, int32_t id)
{
    struct session_move *m = move_new(f, id);

    if (m == NULL)
        return false;
    m->f = f;
    f->move = m;
    mailbox_post(&m->to->mb, &m->task);
    return true;
}

void fetch_session_close_elsewhere(const struct fetch *f, int32_t id)
{
    struct session_move *m = move_new(f, id);

    if (m == NULL)
        return; /* it goes with the least recently used ones */
    m->close = true;
    mailbox_post(&m->to->mb, &m->task);
}

void fetch_session_move_forget(struct fetch *f)
{
    if (f->move != NULL)
        f->move->f = NULL; /* only bring(), on this thread, looks at it again */
    f->move = NULL;
}
