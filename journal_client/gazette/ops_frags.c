/* Listings of fragments: asked anew each time, told with what the tail's index knows of them. */
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"
#include "journal_client/uuid.h"

struct frags_op {
    struct jc_op op; /* first */
    jc_fragments_fn *done;
    void *arg;
    struct jc_fragment *list;
    size_t n;
    struct gz_frags_call *call;
};

static void run_done(struct task *t)
{
    struct jc_op *op = jc_op_of(t);
    const struct frags_op *fo = (const struct frags_op *)op;

    fo->done(fo->arg, op->err, fo->list, fo->n);
    jc_op_unref(op);
}

static void finish(struct frags_op *fo, int err)
{
    fo->op.err = err;
    jc_op_answer(&fo->op, run_done);
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
        out.max_clock = j->hub.heads.max_clock;
        out.content_end = f->end;
    }
    if (!out.open)
        memcpy(out.sha1, f->sha1, sizeof out.sha1);
    return out;
}

static void on_list(void *arg, int err, int status, struct gz_frags *list)
{
    struct frags_op *fo = arg;

    fo->call = NULL;
    if (err == 0 && status == GZ_JOURNAL_NOT_FOUND)
        err = E_NOTFOUND;
    else if (err == 0 && status != GZ_OK && status != GZ_SUSPENDED)
        err = E_AGAIN;
    if (err == 0 && list->n > 0) {
        fo->list = mem_array(list->n, sizeof fo->list[0]);
        if (fo->list == NULL)
            err = E_NOMEM;
        for (size_t i = 0; i < list->n && err == 0; i++)
            fo->list[fo->n++] = tell(gz_op_journal(&fo->op), &list->v[i]);
    }
    finish(fo, err);
}

static void ready(struct jc_op *op)
{
    struct frags_op *fo = (struct frags_op *)op;
    struct gz_journal *j = gz_op_journal(op);
    int err = op->err;

    if (err == 0 && j->state == GZ_J_SUSPENDED) {
        finish(fo, 0);
        return;
    }
    if (err == 0)
        err = gz_frags_ask(j, on_list, fo, &fo->call);
    if (err < 0)
        finish(fo, err);
}

static void fini(struct jc_op *op)
{
    mem_free(((struct frags_op *)op)->list);
}

int gz_fragments(struct jc_store *store, const struct jc_journal *j, struct executor *ex,
                 jc_fragments_fn *done, void *arg)
{
    struct jc_op *op;
    int err;

    if ((err = jc_op_new(jc_hub_of(store), sizeof(struct frags_op), j, ex, fini, &op)) < 0)
        return err;
    ((struct frags_op *)op)->done = done;
    ((struct frags_op *)op)->arg = arg;
    if ((err = gz_op_start(op, ready, &op)) == 0)
        jc_op_unref(op); /* nobody holds a handle: the step's reference carries it */
    return err;
}
