/* Where a journal ends, by its primary's word. See barrier.h. */
#include "journal_client/gazette/barrier.h"

#include "journal_client/gazette/append.h"

enum { NO_RESUME = 1 }; /* AppendRequest.Suspend */

int gz_barrier_call(struct gz_journal *j, const char *endpoint, const struct gz_call_cb *cb,
                    struct gz_call **out)
{
    Gz__AppendRequest rq;
    gz__append_request__init(&rq);
    struct gz_call *call;

    rq.journal = j->name;
    rq.suspend = NO_RESUME;
    rq.min_etcd_revision = j->mod_revision;
    struct blob *b = gz_pack(&rq.base);
    if (b == NULL)
        return E_NOMEM;
    int err = gz_pool_call(j->store->pool, endpoint, "Append", GZ_RPC_MS, cb, &call);
    if (err == 0) {
        if ((err = gz_call_send(call, blob_span(b), span_of(NULL, 0))) == 0 &&
            (err = gz_call_send(call, span_of(NULL, 0), span_of(NULL, 0))) == 0) {
            gz_call_finish(call);
            *out = call;
        } else {
            gz_call_cancel(call);
        }
    }
    blob_unref(b);
    return err;
}

void gz_barrier_take(struct gz_barrier *b, struct span msg)
{
    Gz__AppendResponse *m = gz__append_response__unpack(NULL, msg.n, msg.p);

    if (m == NULL)
        return;
    b->status = m->status;
    if (m->status == GZ_OK) {
        if (m->commit != NULL && gz_commit_sane(m->commit->begin, m->commit->end))
            b->head = m->commit->end;
        else
            b->status = -1;
    }
    gz__append_response__free_unpacked(m, NULL);
}
