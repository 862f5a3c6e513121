/*
 * Misbehaviour: which call a fault hits, and what it does. Faults that wait for content (`after`,
 * `landed`) are struck by the handlers of Read and Append.
 */
#include <stdio.h>

#include "base/mem.h"
#include "tests/gazette_stand_in/stand_in_int.h"

#define LOWER_MS 200

static const char *const kind_names[STAND_IN_FAULT_KINDS] = {
    [STAND_IN_STATUS] = "status",
    [STAND_IN_GRPC] = "grpc",
    [STAND_IN_SLOW] = "slow",
    [STAND_IN_TRICKLE] = "trickle",
    [STAND_IN_HANG] = "hang",
    [STAND_IN_RESET_STREAM] = "reset-stream",
    [STAND_IN_RESET_CONN] = "reset-conn",
    [STAND_IN_GOAWAY] = "goaway",
    [STAND_IN_END] = "end",
    [STAND_IN_HALF] = "half",
    [STAND_IN_BARE] = "bare",
    [STAND_IN_OVERLAP] = "overlap",
    [STAND_IN_LOWER_HEAD] = "lower-head",
    [STAND_IN_FILE_SHORT] = "file-short",
    [STAND_IN_FILE_WRONG] = "file-wrong",
    [STAND_IN_FILE_GONE] = "file-gone",
};

static const char *const method_names[] = {
    [STAND_IN_LIST] = "List",   [STAND_IN_APPLY] = "Apply",
    [STAND_IN_READ] = "Read",   [STAND_IN_APPEND] = "Append",
    [STAND_IN_STORE] = "store", [STAND_IN_FRAGMENTS] = "ListFragments",
    [STAND_IN_ANY] = "any",
};

const char *si_fault_name(enum stand_in_fault_kind k)
{
    return kind_names[k];
}

const char *si_method_name(enum stand_in_method m)
{
    return method_names[m];
}

static void fault_free(struct stand_in *si, struct si_fault *f)
{
    TAILQ_REMOVE(&si->faults, f, link);
    mem_free(f->journal);
    mem_free(f);
}

int si_fault_add(struct stand_in *si, const struct stand_in_fault *f)
{
    struct si_fault *x = mem_zalloc(sizeof *x);

    if (x == NULL)
        return E_NOMEM;
    x->f = *f;
    if (x->f.times == 0)
        x->f.times = 1;
    if (f->journal != NULL && (x->journal = mem_strdup(f->journal)) == NULL) {
        mem_free(x);
        return E_NOMEM;
    }
    x->f.journal = NULL;
    TAILQ_INSERT_TAIL(&si->faults, x, link);
    return 0;
}

void si_faults_drop(struct stand_in *si)
{
    struct si_fault *f;

    while ((f = TAILQ_FIRST(&si->faults)) != NULL)
        fault_free(si, f);
}

bool si_fault_take(struct stand_in *si, enum stand_in_method m, const char *journal,
                   struct stand_in_fault *out)
{
    struct si_fault *f, *next;

    for (f = TAILQ_FIRST(&si->faults); f != NULL; f = next) {
        next = TAILQ_NEXT(f, link);
        if (f->f.method != m && !(f->f.method == STAND_IN_ANY && m != STAND_IN_STORE))
            continue;
        if (f->journal != NULL && (journal == NULL || strcmp(f->journal, journal) != 0))
            continue;
        if (f->f.skip > 0) {
            f->f.skip--;
            continue;
        }
        *out = f->f;
        si->hits++;
        if (f->f.times > 0 && --f->f.times == 0)
            fault_free(si, f);
        return true;
    }
    return false;
}

/* --- what is done to a call --- */

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct si_call *c = arg;

    (void)fd;
    (void)what;
    c->waits = false;
    c->ready = true;
    if (c->fault.kind == STAND_IN_LOWER_HEAD)
        c->faulty = false;
    si_call_run(c);
}

void si_call_wait(struct si_call *c, int64_t ms)
{
    const struct timeval tv = {ms / 1000, (ms % 1000) * 1000};

    c->waits = true;
    if (c->timer == NULL)
        c->timer = evtimer_new(c->si->evb, on_timer, c);
    if (c->timer != NULL)
        (void)evtimer_add(c->timer, &tv);
}

/* An answer of nothing but a status, as a broker gives it that has no such journal at hand. */
static void say_status(struct si_call *c)
{
    struct si_header h;
    int32_t status = (int32_t)c->fault.value;

    si_header_init(c->si, NULL, &h);
    if (c->method == STAND_IN_LIST) {
        Gz__ListResponse m;
        gz__list_response__init(&m);
        m.status = status;
        m.header = &h.h;
        si_call_send(c, &m.base);
    } else if (c->method == STAND_IN_APPLY) {
        Gz__ApplyResponse m;
        gz__apply_response__init(&m);
        m.status = status;
        m.header = &h.h;
        si_call_send(c, &m.base);
    } else if (c->method == STAND_IN_READ) {
        Gz__ReadResponse m;
        gz__read_response__init(&m);
        m.status = status;
        m.header = &h.h;
        si_call_send(c, &m.base);
    } else if (c->method == STAND_IN_APPEND) {
        Gz__AppendResponse m;
        gz__append_response__init(&m);
        m.status = status;
        m.header = &h.h;
        si_call_send(c, &m.base);
    } else {
        Gz__FragmentsResponse m;
        gz__fragments_response__init(&m);
        m.status = status;
        m.header = &h.h;
        si_call_send(c, &m.base);
    }
    si_call_end(c, 0, "%s", "");
}

void si_fault_do(struct si_call *c)
{
    c->fault_done = true;
    switch (c->fault.kind) {
    case STAND_IN_STATUS:
        say_status(c);
        break;
    case STAND_IN_GRPC:
        si_call_end(c, (int)c->fault.value, "the stand-in was told to fail");
        break;
    case STAND_IN_RESET_STREAM:
        si_call_reset(c, (uint32_t)c->fault.value);
        break;
    case STAND_IN_RESET_CONN:
        c->dead = true;
        si_conn_reset(c->conn);
        break;
    case STAND_IN_GOAWAY:
        si_conn_goaway(c->conn);
        if (c->fault.value != 0) {
            c->dead = true;
            si_conn_reset(c->conn);
        }
        break;
    case STAND_IN_END:
        si_call_end(c, 0, "%s", "");
        break;
    case STAND_IN_HANG:
        c->waits = true;
        break;
    case STAND_IN_SLOW:
        si_call_wait(c, c->fault.value);
        break;
    case STAND_IN_TRICKLE:
        c->fault_done = false;
        si_call_wait(c, c->fault.value);
        break;
    case STAND_IN_LOWER_HEAD:
        si_call_wait(c, LOWER_MS);
        break;
    case STAND_IN_HALF:
    case STAND_IN_BARE:
    case STAND_IN_OVERLAP:
    case STAND_IN_FILE_SHORT:
    case STAND_IN_FILE_WRONG:
    case STAND_IN_FILE_GONE:
    case STAND_IN_FAULT_KINDS:
        break;
    }
}

bool si_fault_begin(struct si_call *c)
{
    if (c->fault.after > 0 || c->fault.landed)
        return false;
    switch (c->fault.kind) {
    case STAND_IN_TRICKLE:
    case STAND_IN_HALF:
    case STAND_IN_BARE:
    case STAND_IN_OVERLAP:
    case STAND_IN_LOWER_HEAD:
    case STAND_IN_FILE_SHORT:
    case STAND_IN_FILE_WRONG:
    case STAND_IN_FILE_GONE:
    case STAND_IN_FAULT_KINDS:
        return false; /* later, or not of calls */
    case STAND_IN_STATUS:
    case STAND_IN_GRPC:
    case STAND_IN_SLOW:
    case STAND_IN_HANG:
    case STAND_IN_RESET_STREAM:
    case STAND_IN_RESET_CONN:
    case STAND_IN_GOAWAY:
    case STAND_IN_END:
        break;
    }
    si_fault_do(c);
    if (c->fault.kind == STAND_IN_SLOW)
        c->fault_done = c->faulty = false;
    if (c->fault.kind == STAND_IN_GOAWAY)
        c->fault_done = false;
    return c->dead || c->out_end || c->waits;
}
