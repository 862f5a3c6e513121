/*
 * Stream reads of the embedded store (journal_client/stream.c): finding the place of a chunk, and
 * reading it on the I/O pool.
 */
#include "base/mem.h"
#include "journal_client/local/block.h"
#include "journal_client/local/frag.h"
#include "journal_client/local/journal.h"
#include "journal_client/local/loss.h"

/* Under the lock. The first stored fragment that holds pos or lies behind it. */
static struct jl_frag *find(struct jl_journal *j, int64_t pos)
{
    size_t at = jl_first_behind(j, pos);

    while (at < j->frags_n && jl_frag_jumped(j->frags[at]))
        at++;
    return jl_frag_at(j, at);
}

/* Reads n bytes at pos. E_NOTFOUND: the file went between look and open. */
static int fill(struct jl_journal *j, struct jl_frag *f, int64_t pos, size_t n, struct blob **out)
{
    struct blob *b = blob_new(n);
    int fd, err;

    *out = NULL;
    if (b == NULL)
        return E_NOMEM;
    if ((err = jl_frag_pin_live(j, f, &fd)) == 0) {
        err = jl_pread_full(fd, b->data, n, pos - f->begin);
        jl_frag_unpin(f);
    }
    if (err < 0) {
        blob_unref(b);
        return err;
    }
    b->len = n;
    *out = b;
    return 0;
}

void jl_read_fetch(struct jc_read *r, int64_t stop)
{
    struct jl_journal *j = jl_op_journal(&r->op);
    int64_t pos = r->pos;
    struct blob *b = NULL;
    int err;

    pthread_mutex_lock(&r->op.hub->lock);
    struct jl_frag *f = jl_frag_ref(find(j, pos));
    int64_t end = f->end < stop ? f->end : stop;
    if (f->begin > pos) /* a hole */
        pos = f->begin;
    pthread_mutex_unlock(&r->op.hub->lock);
    if (pos >= stop) {
        jl_frag_unref(f);
        jc_read_got(r, 0, 0, NULL, stop);
        return;
    }
    size_t n = end - pos < (int64_t)r->chunk ? (size_t)(end - pos) : r->chunk;
    err = fill(j, f, pos, n, &b);
    if (err == E_NOTFOUND)
        err = jl_frag_vanished(j, f);
    jl_frag_unref(f);
    jc_read_got(r, err, pos, b, stop);
}
