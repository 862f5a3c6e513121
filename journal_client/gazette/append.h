/*
 * Inside of appends: a transaction (append.c), one part of it (append_part.c), and what answers
 * mean (append_judge.c; pure).
 *
 * Exactly once: each append says at which offset it must land. When it stays open whether one did,
 * the primary is asked for the head, and what lies at its offset is read back and compared
 * (append_doubt.c). An empty journal has no offset to say (0 means anywhere): there the register
 * does it: an append that makes the claim lands only where nobody has made one, and one that finds
 * its own claim made asks for the head anew.
 *
 * Registers: a gateway claims a journal with its first append by the register `sluice/writer`,
 * whose value is EPOCH-OWNER, both 16 hex digits; epochs rise. Each later append checks that the
 * claim stands. So nothing that an earlier writer still has on its way can land behind a newer
 * claim.
 */
#pragma once

#include "journal_client/gazette/barrier.h"

#define GZ_WRITER    "sluice/writer"
#define GZ_CLAIM_MAX 40

struct gz_claim {
    uint64_t epoch; /* 0: none */
    uint64_t owner;
};
void gz_claim_format(const struct gz_claim *c, char out[GZ_CLAIM_MAX]);
/* E_SYNTAX: it is none of ours. */
MUST_USE int gz_claim_parse(const char *text, struct gz_claim *out);
/* Above all that was seen, and normally above all there ever was: epochs follow the clock. */
uint64_t gz_claim_epoch(uint64_t seen, int64_t wall_ms);

/* What an append came back with. */
struct gz_append_seen {
    int err;    /* of the call */
    int status; /* -1: none came */
    int64_t begin, end;
    bool told; /* err is what a broker said, and not what happened on the way */
};

/* What is known about the part that was sent. */
struct gz_append_about {
    int64_t bytes;
    bool unsure;   /* an earlier attempt at this offset may have landed */
    bool claiming; /* it was sent to make the claim */
    bool mine;     /* the registers that came back name this gateway's claim */
    bool deleted;  /* the journal, by the listing */
};

enum gz_verdict {
    GZ_V_LANDED,
    GZ_V_MOVED,      /* it did not; the head is elsewhere */
    GZ_V_DOUBT,      /* it may have: look */
    GZ_V_AGAIN,      /* it did not; the same again, later */
    GZ_V_RESET,      /* the same again, once the journal's head was set */
    GZ_V_CLAIM_LOST, /* it did not: another gateway claimed the journal */
    GZ_V_FAIL,       /* it did not, and will not */
};
/* fail: the error of GZ_V_FAIL. */
enum gz_verdict gz_append_judge(const struct gz_append_seen *seen,
                                const struct gz_append_about *about, int *fail);

/* Offsets that an answer can mean: else there was none. */
static inline bool gz_commit_sane(int64_t begin, int64_t end)
{
    return begin >= 0 && end >= begin && end <= INT64_MAX / 2;
}

/* Of a part in doubt, [begin, end), when the head is known. */
enum gz_doubt {
    GZ_D_COMPARE,
    GZ_D_SEND_AGAIN, /* at the same offset, so that one of the two lands at most */
    GZ_D_GONE,       /* another append lies there */
    GZ_D_BELOW,      /* whoever said it knows less, or what lay before is lost */
};
enum gz_doubt gz_append_doubt(int64_t head, int64_t begin, int64_t end);

/* --- a transaction; home --- */
struct gz_txn;
struct gz_begun;
enum gz_head_by {
    GZ_HEAD_PRIMARY,
    GZ_HEAD_SPEC,   /* the listing's, of a suspended journal; it may be old */
    GZ_HEAD_LISTED, /* all brokers were down (status 12): what they list; to be set first */
};
typedef void gz_head_fn(struct gz_txn *t, int64_t head, enum gz_head_by by);

struct gz_txn {
    TAILQ_ENTRY(gz_txn) link; /* queued, then running */
    struct task task;         /* toward home, then back */
    struct gz_store *s;
    struct jc_txn *txn;
    struct executor *ex;
    jc_txn_fn *done;
    void *arg;
    int err;
    /* the whole */
    size_t at; /* the part under way; parts_n: all are written */
    bool prepared;
    /* the part */
    bool doubt;           /* it may have landed: find out first */
    bool unsure;          /* as gz_append_about */
    bool claiming;        /* the running call makes the claim */
    bool reset;           /* its head must be set first */
    bool resets;          /* the running call does */
    struct gz_claim seen; /* the claim that an answer named */
    unsigned attempt;
    bool denied;    /* so was the part, once: the token may have been at fault */
    unsigned moves; /* times that the part was to go elsewhere */
    int64_t since_ms;
    int64_t below_ms; /* since when the primary tells a head below the part; 0: it does not */
    struct event *timer;
    struct gz_call *call;
    int status;
    char said[256]; /* what came with the error of the last call */
    int64_t commit_begin, commit_end, head;
    struct gz_barrier barrier; /* a head that is asked for */
    struct gz_journal *head_of;
    gz_head_fn *on_head;
    size_t sent;
    bool begun;            /* the first message is sent */
    bool closed;           /* so is the last */
    struct gz_range range; /* reading back */
    size_t compared;
    bool same, ended;
    /* transactions with unless_kv (append_begun.c) */
    char *begun_key;
    struct gz_begun
        *earlier;         /* what earlier attempts under the key left; NULL: nothing, or unread */
    bool asked_begun;     /* it was read */
    bool looking, looked; /* at what became of it */
    bool recorded;        /* this attempt, as it is prepared, is */
    size_t look;          /* which part of earlier; its own is `at` meanwhile */
    size_t look_from;     /* t->at before */
    struct evp_md_ctx_st *sha;
    bool unread;   /* there may be a record, but it could not be read */
    bool replaced; /* a part has another place than it was prepared for */
    size_t wrote;  /* parts that this attempt wrote */
};

static inline struct jc_append_part *gz_part_of(const struct gz_txn *t)
{
    return &t->txn->parts[t->at];
}

/* append.c */
void gz_txn_step(struct gz_txn *t);
void gz_txn_finish(struct gz_txn *t, int err);
/* The end of one that was under way when the store stopped. */
void gz_txn_answer(struct gz_txn *t, int err);
static inline struct gz_journal *gz_part_journal(const struct gz_txn *t)
{
    return gz_of(gz_part_of(t)->journal);
}

/* append_part.c: sends the part under way; sets its head first. append_doubt.c: finds out whether
 * it landed. All end in gz_txn_step or gz_txn_finish. */
void gz_part_send(struct gz_txn *t);
void gz_part_reset(struct gz_txn *t);
void gz_part_settle(struct gz_txn *t);

/* append_head.c: where a journal ends. done is called unless the question ends in gz_part_again or
 * gz_txn_finish; later, or at once only by an answer that is there. gz_head_listed asks what
 * brokers list, whoever answers. */
void gz_head_ask(struct gz_txn *t, struct gz_journal *j, gz_head_fn *done);
void gz_head_listed(struct gz_txn *t, struct gz_journal *j, gz_head_fn *done);
/* The head that came lies before the place where a part had to lie: is it so that what lay there is
 * lost? By the primary's word alone (as in settle.c), and not by one word: a replica that knows
 * less, or a spec that is old, would let a part that landed be stored twice. */
bool gz_head_below(struct gz_txn *t, enum gz_head_by by);

/* append_begun.c: a key of unless_kv is published once, whatever became of earlier attempts. What
 * is about to be sent is recorded before it is; whoever comes under the key again looks first at
 * what lies where it was to land. gz_begun_ready: true when the transaction can go on; else it will
 * be stepped again, or is finished. */
bool gz_begun_ready(struct gz_txn *t);
/* Part i landed with an earlier attempt: its offsets are set, it is not sent. */
bool gz_begun_kept(const struct gz_txn *t, size_t i);
/* The plan changed: what was begun is looked at again, and what is sent then is recorded anew. */
void gz_begun_moved(struct gz_txn *t);
/* The attempt is to be recorded before it is sent. */
bool gz_begun_record(struct gz_txn *t);
/* The key that takes the record away, to be set with the transaction's own; 0 or 1 of them. */
size_t gz_begun_end(struct gz_txn *t, struct jc_kv *out);
/* Each part that an earlier attempt may yet land is placed where that one put it, so that one of
 * the two can land at most. Else its journal's head is not known any more. */
bool gz_begun_fits(struct gz_txn *t);
/* Something of an earlier attempt is there, or may turn up. */
bool gz_begun_left(const struct gz_txn *t);
void gz_begun_free(struct gz_txn *t);

/* What became of the part, for append_doubt.c. gz_part_again: nothing as yet; err 0: no error. */
void gz_part_landed(struct gz_txn *t, int64_t begin);
void gz_part_moved(struct gz_txn *t);
void gz_part_again(struct gz_txn *t, int err);
/* Keeps what came with a call's end for the log. */
void gz_part_hear(struct gz_txn *t, const struct gz_end *end);
