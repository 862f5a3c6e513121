/*
 * A call: from the frames of its stream to messages, to the handler of its method, and back. Tokens
 * are looked at, and faults strike, before a handler sees the first message.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/writer.h"
#include "tests/gazette_stand_in/stand_in_int.h"

#define FRAME_HEAD 5

enum grpc_status {
    GRPC_OK = 0,
    GRPC_UNKNOWN = 2,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAUTHENTICATED = 16,
};

static const struct method {
    const char *path;
    void (*message)(struct si_call *c, struct span msg);
    void (*half_close)(struct si_call *c);
    void (*pull)(struct si_call *c);
} methods[STAND_IN_METHODS] = {
    [STAND_IN_LIST] = {"/protocol.Journal/List", si_list_message, NULL, si_list_pull},
    [STAND_IN_APPLY] = {"/protocol.Journal/Apply", si_apply_message, NULL, NULL},
    [STAND_IN_READ] = {"/protocol.Journal/Read", si_read_message, NULL, si_read_pull},
    [STAND_IN_APPEND] = {"/protocol.Journal/Append", si_append_message, si_append_half_close, NULL},
    [STAND_IN_FRAGMENTS] = {"/protocol.Journal/ListFragments", si_fragments_message, NULL, NULL},
};

void si_call_headers(struct si_call *c, const char *path)
{
    for (int m = 0; m < STAND_IN_METHODS; m++) {
        if (strcmp(path, methods[m].path) == 0) {
            c->method = m;
            c->si->calls[m]++;
            return;
        }
    }
}

void si_call_queue(struct si_call *c, struct si_calls *q)
{
    si_call_unqueue(c);
    c->in_queue = q;
    TAILQ_INSERT_TAIL(q, c, queue);
}

void si_call_unqueue(struct si_call *c)
{
    if (c->in_queue != NULL)
        TAILQ_REMOVE(c->in_queue, c, queue);
    c->in_queue = NULL;
}

static void keep_request(struct si_call *c)
{
    size_t n = evbuffer_get_length(c->log);
    struct blob *b = blob_new(n);

    if (b == NULL)
        return;
    b->len = n;
    (void)evbuffer_copyout(c->log, b->data, n);
    blob_unref(c->si->last[c->method]);
    c->si->last[c->method] = b;
}

void si_call_fini(struct si_call *c)
{
    si_call_unqueue(c);
    if (c->method >= 0 && c->admitted) {
        c->si->running[c->method]--;
        keep_request(c);
    }
    if (c->method == STAND_IN_LIST && c->u.list.rq != NULL)
        gz__list_request__free_unpacked(c->u.list.rq, NULL);
    if (c->method == STAND_IN_READ && c->u.read.rq != NULL)
        gz__read_request__free_unpacked(c->u.read.rq, NULL);
    if (c->method == STAND_IN_APPEND && c->u.append.rq != NULL)
        gz__append_request__free_unpacked(c->u.append.rq, NULL);
    if (c->method == STAND_IN_APPEND && c->u.append.content != NULL)
        evbuffer_free(c->u.append.content);
    if (c->in != NULL)
        evbuffer_free(c->in);
    if (c->out != NULL)
        evbuffer_free(c->out);
    if (c->log != NULL)
        evbuffer_free(c->log);
    if (c->timer != NULL)
        event_free(c->timer);
    if (c->expiry != NULL)
        event_free(c->expiry);
    si_claims_fini(&c->claims);
    mem_free(c->authorization);
    mem_free(c->content_type);
    mem_free(c);
}

/* --- answers --- */

void si_call_send(struct si_call *c, const ProtobufCMessage *m)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    struct evbuffer_iovec v;

    if (c->dead || c->out_end)
        return;
    if (evbuffer_reserve_space(c->out, (ev_ssize_t)(FRAME_HEAD + n), &v, 1) != 1) {
        si_call_reset(c, 0);
        return;
    }
    uint8_t *p = v.iov_base;
    p[0] = 0;
    be_store32(p + 1, (uint32_t)n);
    (void)protobuf_c_message_pack(m, p + FRAME_HEAD);
    bool half = c->faulty && c->fault.kind == STAND_IN_HALF && !c->fault_done &&
                c->content >= c->fault.after;
    v.iov_len = half ? FRAME_HEAD + n / 2 : FRAME_HEAD + n;
    (void)evbuffer_commit_space(c->out, &v, 1);
    if (half) {
        c->fault_done = true;
        c->cut = true;
        si_call_end(c, GRPC_OK, "%s", "");
    }
}

void si_call_end(struct si_call *c, int grpc_status, const char *fmt, ...)
{
    va_list ap;

    if (c->dead || c->out_end)
        return;
    c->grpc_status = grpc_status;
    va_start(ap, fmt);
    (void)vsnprintf(c->message, sizeof c->message, fmt, ap);
    va_end(ap);
    c->out_end = true;
    si_call_unqueue(c);
}

static void on_expiry(evutil_socket_t fd, short what, void *arg)
{
    struct si_call *c = arg;

    (void)fd;
    (void)what;
    si_call_end(c, GRPC_OK, "%s", "");
    si_call_flush(c);
}

/* True: the call may go on. */
static bool admit(struct si_call *c)
{
    char why[256];

    if (c->method < 0) {
        si_call_end(c, GRPC_UNIMPLEMENTED, "unknown method");
        return false;
    }
    if (!si_auth(c->si, c->authorization, (enum stand_in_method)c->method, &c->claims, why,
                 sizeof why)) {
        si_call_end(c, GRPC_UNAUTHENTICATED, "%s", why);
        return false;
    }
    if (c->claims.exp_s > 0) {
        int64_t left = c->claims.exp_s - si_now_s();
        const struct timeval tv = {left > 0 ? left : 0, 1000};
        if ((c->expiry = evtimer_new(c->si->evb, on_expiry, c)) != NULL)
            (void)evtimer_add(c->expiry, &tv);
    }
    return true;
}

/* The journal that the first message names, for faults. */
static char *journal_in(const struct si_call *c, struct span msg)
{
    char *name = NULL;

    if (c->method == STAND_IN_READ) {
        Gz__ReadRequest *m = gz__read_request__unpack(NULL, msg.n, msg.p);
        if (m != NULL)
            name = mem_strdup(m->journal);
        if (m != NULL)
            gz__read_request__free_unpacked(m, NULL);
    } else if (c->method == STAND_IN_APPEND) {
        Gz__AppendRequest *m = gz__append_request__unpack(NULL, msg.n, msg.p);
        if (m != NULL)
            name = mem_strdup(m->journal);
        if (m != NULL)
            gz__append_request__free_unpacked(m, NULL);
    } else if (c->method == STAND_IN_FRAGMENTS) {
        Gz__FragmentsRequest *m = gz__fragments_request__unpack(NULL, msg.n, msg.p);
        if (m != NULL)
            name = mem_strdup(m->journal);
        if (m != NULL)
            gz__fragments_request__free_unpacked(m, NULL);
    }
    return name;
}

/* The next whole message, at the front of the input. False: not there yet, or the call is over. */
static bool next_message(struct si_call *c, struct span *out)
{
    uint8_t head[FRAME_HEAD];
    size_t have = evbuffer_get_length(c->in), n;

    if (have < FRAME_HEAD)
        return false;
    (void)evbuffer_copyout(c->in, head, FRAME_HEAD);
    n = be_load32(head + 1);
    if (n > SI_MESSAGE_MAX) {
        si_call_end(c, GRPC_RESOURCE_EXHAUSTED,
                    "grpc: received message larger than max (%zu vs. %u)", n, SI_MESSAGE_MAX);
        return false;
    }
    if (head[0] != 0) {
        si_call_end(c, GRPC_UNIMPLEMENTED, "compressed messages are not supported");
        return false;
    }
    if (have < FRAME_HEAD + n)
        return false;
    /* pullup-ok: input, one message */
    uint8_t *p = evbuffer_pullup(c->in, (ev_ssize_t)(FRAME_HEAD + n));
    if (p == NULL) {
        si_call_end(c, GRPC_INTERNAL, "out of memory");
        return false;
    }
    *out = span_of(p + FRAME_HEAD, n);
    return true;
}

/* A broker that took a journal over and has not listed its store lets ListFragments and Append wait
 * until it has; Reads are answered from what it knows. True: the call waits. */
static bool awaits_listing(struct si_call *c, struct span msg)
{
    const struct si_journal *j;
    int64_t left = 0;

    c->unlisted = false;
    if (c->method != STAND_IN_FRAGMENTS && (c->method != STAND_IN_APPEND || c->u.append.rq != NULL))
        return false;
    char *name = journal_in(c, msg);
    if (name != NULL && (j = si_find(c->si, name)) != NULL)
        left = j->hidden_until_ms - si_now_ms();
    mem_free(name);
    if (left <= 0)
        return false;
    c->unlisted = true;
    si_call_wait(c, left);
    return true;
}

void si_call_listed(struct si_call *c, void *unused)
{
    (void)unused;
    if (!c->unlisted || c->dead)
        return;
    (void)evtimer_del(c->timer);
    c->waits = false;
    si_call_run(c);
}

void si_call_run(struct si_call *c)
{
    struct span msg;

    while (!c->dead && !c->out_end && !c->waits && next_message(c, &msg)) {
        if (!c->begun) {
            c->begun = true;
            if (!admit(c))
                break;
            c->admitted = true;
            c->si->running[c->method]++;
            char *journal = journal_in(c, msg);
            c->faulty = si_fault_take(c->si, (enum stand_in_method)c->method, journal, &c->fault);
            mem_free(journal);
            if (c->faulty && si_fault_begin(c))
                continue; /* a call that only begins late is run again, with its message */
        }
        if (awaits_listing(c, msg))
            continue;
        methods[c->method].message(c, msg);
        if (c->dead)
            return;
        (void)evbuffer_add(c->log, msg.p - FRAME_HEAD, msg.n + FRAME_HEAD);
        (void)evbuffer_drain(c->in, FRAME_HEAD + msg.n);
    }
    if (c->in_end && !c->dead && !c->out_end && !c->waits && evbuffer_get_length(c->in) == 0 &&
        c->method >= 0 && methods[c->method].half_close != NULL)
        methods[c->method].half_close(c);
    si_call_flush(c);
}

void si_call_data(struct si_call *c)
{
    if (c->begun && (c->fault_done || c->waits))
        return;
    si_call_run(c);
}

void si_call_pull(struct si_call *c)
{
    if (c->begun && !c->waits && !c->dead && !c->out_end && c->method >= 0 &&
        methods[c->method].pull != NULL)
        methods[c->method].pull(c);
}

int si_resolve(struct si_call *c, const char *name, bool primary, struct si_journal **out)
{
    struct si_journal *j = si_find(c->si, name);
    Gz__JournalSpec *spec = NULL;
    int status = SI_OK;

    *out = NULL;
    if (j == NULL || (spec = si_spec(j)) == NULL)
        return SI_JOURNAL_NOT_FOUND;
    if (!si_matches(c->claims.sel, spec->labels, spec->name))
        status = SI_JOURNAL_NOT_FOUND;
    else if (spec->suspend != NULL && spec->suspend->level == 2)
        status = SI_SUSPENDED;
    else if (!j->assigned)
        status = primary ? SI_NO_PRIMARY : SI_INSUFFICIENT_BROKERS;
    gz__journal_spec__free_unpacked(spec, NULL);
    if (status != SI_JOURNAL_NOT_FOUND)
        *out = j;
    return status;
}
