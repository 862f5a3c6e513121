/* Listings of fragments: asked anew each time, told with what the tail's index knows of them. */
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"
#include "journal_client/uuid.h"

static void run_done(struct task *t)
{
    struct jc_op *op = gz_op_of(t);

    op->u.frags.done(op->u.frags.arg, op->err, op->u.frags.list, op->u.frags.n);
    gz_op_unref(op);
}

static void finish(struct jc_op *op, int err)
{
    op->err = err;
    gz_op_answer(op, run_done);
}

static struct jc_fragment tell(const struct gz_journal *j, const struct gz_frag *f)
{
    struct jc_fragment out = {.begin = f->begin,
                              .end = f->end,
                              .open = f->mod_time_s == 0,
                              .mod_time_ms = f->mod_time_s * 1000};

    if (j->tail_set && j->tail.run.begin <= f->begin) { /* seen as a whole */
        out.max_clock = j->tail.run.sum.max_clock;
        out.content_end =
            j->tail.run.sum.content_end < f->end ? j->tail.run.sum.content_end : f->end;
        if (out.content_end <= f->begin)
            out.content_end = 0;
    } else { /* may hold any */
        out.max_clock = j->heads.max_clock;
        out.content_end = f->end;
    }
    if (!out.open)
        memcpy(out.sha1, f->sha1, sizeof out.sha1);
    return out;
}

static void on_list(void *arg, int err, int status, struct gz_frags *list)
{
    struct jc_op *op = arg;

    op->u.frags.call = NULL;
    if (err == 0 && status == GZ_JOURNAL_NOT_FOUND)
        err = E_NOTFOUND;
    else if (err == 0 && status != GZ_OK && status != GZ_SUSPENDED)
        err = E_AGAIN;
    if (err == 0 && list->n > 0) {
        op->u.frags.list = mem_array(list->n, sizeof op->u.frags.list[0]);
        if (op->u.frags.list == NULL)
            err = E_NOMEM;
        for (size_t i = 0; i < list->n && err == 0; i++)
            op->u.frags.list[op->u.frags.n++] = tell(op->j, &list->v[i]);
    }
    finish(op, err);
}

void gz_fragments_ready(struct jc_op *op)
{
    int err = op->err;

    if (err == 0 && op->j->state == GZ_J_SUSPENDED) {
        finish(op, 0);
        return;
    }
    if (err == 0)
        err = gz_frags_ask(op->j, on_list, op, &op->u.frags.call);
    if (err < 0)
        finish(op, err);
}

static void run_start(struct task *t)
{
    gz_op_when_ready(gz_op_of(t));
}

int gz_fragments(struct jc_store *store, const struct jc_journal *j, struct executor *ex,
                 jc_fragments_fn *done, void *arg)
{
    struct jc_op *op;
    int err;

    if ((err = gz_op_new(gz_store_of(store), GZ_OP_FRAGS, j, ex, &op)) < 0)
        return err;
    op->u.frags.done = done;
    op->u.frags.arg = arg;
    err = gz_op_home(op, run_start);
    gz_op_unref(op); /* nobody holds a handle: the step's reference carries it */
    return err;
}
