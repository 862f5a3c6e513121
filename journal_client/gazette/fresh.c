/*
 * Heads as of now, for who asks (ListOffsets). A journal that is awake has a stream that brings
 * what is written; of one that sleeps the head is asked for at once, by the short read that keeps
 * it up to date anyway, and it sleeps on. Where the journal begins is asked for when that is not
 * known from just now. Many who ask at once cost one call.
 *
 * Who asks is answered by a read that began behind the question, when what it brought was told. A
 * read that fails is repeated, and heads that settle are waited for, for ANSWER_MS; then what is
 * known must do.
 *
 * Home thread.
 */
#include "journal_client/gazette/gazette_int.h"

#define BEGIN_MS  1000 /* so old may be what is known of the first byte */
#define ANSWER_MS 2000

static struct jc_fresh_ask *ask_of(struct jc_op *op)
{
    return (struct jc_fresh_ask *)op;
}

static void answer_all(struct jc_op_list *list, int err)
{
    struct jc_op *op;

    while ((op = TAILQ_FIRST(list)) != NULL) {
        TAILQ_REMOVE(list, op, step_link);
        jc_fresh_answer(ask_of(op), err);
    }
}

static void answer_when_told(struct gz_journal *j, struct jc_op_list *list);

static void run_answer(struct task *t)
{
    struct gz_journal *j =
        (struct gz_journal *)(void *)((char *)t - offsetof(struct gz_journal, answer));

    j->answer_waits = false;
    answer_all(&j->asked, 0);
    answer_when_told(j, &j->asked_next);
    gz_fresh_next(j);
    gz_journal_unref(j);
}

/* Those of a list are answered when all that is known by now was told. */
static void answer_when_told(struct gz_journal *j, struct jc_op_list *list)
{
    if (TAILQ_EMPTY(list))
        return;
    if (j->answer_waits) { /* it may wait for less than what is known now */
        TAILQ_CONCAT(&j->asked_next, list, step_link);
        return;
    }
    TAILQ_CONCAT(&j->asked, list, step_link);
    (void)gz_journal_ref(j);
    j->answer_waits = true;
    j->answer.run = run_answer;
    gz_told_then(j->store, &j->answer);
}

void gz_fresh_next(struct gz_journal *j)
{
    if (TAILQ_EMPTY(&j->asks) || j->state != GZ_J_TAIL || j->first_call != NULL ||
        j->frags_call != NULL)
        return;
    if (!gz_stale(j)) {
        if (!gz_settling(j))
            answer_when_told(j, &j->asks);
    } else if (j->call == NULL) {
        (void)event_del(j->timer);
        gz_tail_start(j);
    } /* else a short read is under way: another one follows it */
}

void gz_fresh_begins(struct gz_journal *j)
{
    TAILQ_CONCAT(&j->asking, &j->asks, step_link);
}

void gz_fresh_came(struct gz_journal *j)
{
    answer_when_told(j, &j->asking);
}

void gz_fresh_failed(struct gz_journal *j)
{
    TAILQ_CONCAT(&j->asking, &j->asks, step_link);
    TAILQ_CONCAT(&j->asks, &j->asking, step_link);
}

void gz_fresh_tick(struct gz_journal *j)
{
    struct jc_op_list *lists[] = {&j->asks, &j->asking};
    struct jc_op *op, *next;
    int64_t late = gz_mono_ms(j->store) - ANSWER_MS;

    for (size_t i = 0; i < 2; i++) {
        for (op = TAILQ_FIRST(lists[i]); op != NULL; op = next) {
            next = TAILQ_NEXT(op, step_link);
            if (ask_of(op)->since_ms > late)
                continue;
            TAILQ_REMOVE(lists[i], op, step_link);
            jc_fresh_answer(ask_of(op), E_AGAIN);
        }
    }
}

void gz_fresh_end(struct gz_journal *j, int err)
{
    answer_all(&j->asks, err);
    answer_all(&j->asking, err);
    answer_all(&j->asked, err);
    answer_all(&j->asked_next, err);
}

void gz_fresh_ask(struct jc_fresh_ask *a)
{
    struct gz_journal *j = gz_op_journal(&a->op);

    if (j->store->stopping || j->hub.deleted) {
        jc_fresh_answer(a, j->store->stopping ? E_CLOSED : E_NOTFOUND);
        return;
    }
    if (!j->opened && !j->hub.ready) { /* its first heads are fresh ones */
        gz_journal_wake(j);
        TAILQ_INSERT_TAIL(&j->starting, &a->op, step_link);
        return;
    }
    if (j->state == GZ_J_SUSPENDED) { /* known from its spec */
        jc_fresh_answer(a, 0);
        return;
    }
    a->since_ms = gz_mono_ms(j->store);
    TAILQ_INSERT_TAIL(&j->asks, &a->op, step_link);
    gz_first_look(j, BEGIN_MS);
    gz_fresh_next(j);
}
