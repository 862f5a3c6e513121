/* Listings of fragments: asked anew each time, told with what the tail's index knows of them. */
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"
#include "journal_client/uuid.h"

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
    struct jc_frags_ask *a = arg;

    if (err == 0 && status == GZ_JOURNAL_NOT_FOUND)
        err = E_NOTFOUND;
    else if (err == 0 && status != GZ_OK && status != GZ_SUSPENDED)
        err = E_AGAIN;
    if (err == 0 && status == GZ_OK && gz_first_take(gz_op_journal(&a->op), list))
        gz_journal_publish(gz_op_journal(&a->op));
    if (err == 0 && list->n > 0) {
        a->list = mem_array(list->n, sizeof a->list[0]);
        if (a->list == NULL)
            err = E_NOMEM;
        for (size_t i = 0; i < list->n && err == 0; i++)
            a->list[a->n++] = tell(gz_op_journal(&a->op), &list->v[i]);
    }
    jc_frags_answer(a, err);
}

void gz_fragments(struct jc_frags_ask *a)
{
    struct gz_journal *j = gz_op_journal(&a->op);
    struct gz_frags_call *call; /* ends by itself */
    int err;

    if (j->state == GZ_J_SUSPENDED) {
        jc_frags_answer(a, 0);
        return;
    }
    if ((err = gz_frags_ask(j, on_list, a, &call)) < 0)
        jc_frags_answer(a, err);
}
