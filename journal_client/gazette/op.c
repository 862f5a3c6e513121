/* Operations that need a journal's heads wait at home until it is ready, or gone. */
#include "journal_client/gazette/gazette_int.h"

void gz_begin(struct jc_op *op)
{
    struct gz_journal *j = gz_op_journal(op);

    if (j->store->stopping || j->hub.deleted) {
        op->err = j->store->stopping ? E_CLOSED : E_NOTFOUND;
    } else {
        gz_journal_wake(j);
        bool wait = !j->opened || gz_stale(j);
        if (wait)
            TAILQ_INSERT_TAIL(&j->starting, op, step_link);
        if (wait)
            return;
    }
    op->ready(op);
}

void gz_ops_ready(struct jc_op_list *list, int err)
{
    struct jc_op_list ops = TAILQ_HEAD_INITIALIZER(ops);
    struct jc_op *op;

    TAILQ_CONCAT(&ops, list, step_link);
    while ((op = TAILQ_FIRST(&ops)) != NULL) {
        TAILQ_REMOVE(&ops, op, step_link);
        if (err < 0)
            op->err = err;
        if (jc_op_canceled(op))
            jc_op_unref(op);
        else
            op->ready(op);
    }
}

/* --- followers --- */

static void run_wake(struct task *t)
{
    struct jc_news *n = (struct jc_news *)(void *)((char *)t - offsetof(struct jc_news, wake));
    struct gz_journal *j = gz_op_journal(&n->op);

    if (!j->store->stopping && (!n->follower.lazy || j->state == GZ_J_IDLE))
        gz_journal_wake(j);
    jc_op_unref(&n->op);
}

void gz_followed(struct jc_news *n)
{
    jc_op_ref(&n->op);
    n->wake.run = run_wake;
    executor_post(n->op.hub->steps, &n->wake);
}
