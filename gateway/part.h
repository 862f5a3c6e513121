/*
 * One journal as a Kafka partition: what all workers share about it. Counted; lives as long as a
 * view or a request needs it. Heads are kept as the maximum of all that was ever seen, so that no
 * two answers of this process contradict each other (O5).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "journal_client/store.h"

/* A document that stops a topic's readers, since it does not fit the topic's schema. */
struct gw_refusal {
    int64_t offset;
    char pointer[256];  /* in the document; a longer one is cut */
    const char *reason; /* static text */
};

struct gw_part {
    atomic_uint refs;
    const struct jc_journal
        *journal;         /* any revision of one create revision: names the same bytes */
    bool empty;           /* stands for a journal that does not exist yet: no bytes, ever; the
                             journal is a nameless one that no store knows */
    uint64_t id;          /* unique in this process, never reused: the cache's key */
    pthread_mutex_t lock; /* leaf */
    atomic_bool lost;
    bool known;                /* lock: heads arrived at least once */
    struct jc_heads heads;     /* lock */
    uint32_t refused_by;       /* lock: id of the encoder that met it ... */
    struct gw_refusal refusal; /* lock: ... the one at the lowest offset; reason NULL: none */
};

/* The caller owns one reference; takes its own reference of the journal. */
MUST_USE int gw_part_new(const struct jc_journal *j, struct gw_part **out);
/* The one partition of a topic without journals. */
MUST_USE int gw_part_new_empty(struct gw_part **out);
struct gw_part *gw_part_ref(struct gw_part *p);
void gw_part_unref(struct gw_part *p);
/* Any thread. Merges newer heads in (each field only forward). Heads of another life of the journal
 * than the first ones change nothing: this partition is lost then, and the view gets another. */
void gw_part_update(struct gw_part *p, const struct jc_heads *heads);
/* Any thread. Content up to there was read, among it these markers, and that before log_start is
 * gone. Heads are told with the markers below them, and blocks read one after the other: so no head
 * is ever known here without them, on which the headers of later blocks depend (signal.h). */
void gw_part_raise(struct gw_part *p, int64_t content_end, const struct jc_marks *marks,
                   int64_t log_start);
/* Any thread. Its bytes are gone, others lie at their offsets: nothing of it may be served. */
static inline bool gw_part_lost(struct gw_part *p)
{
    return atomic_load_explicit(&p->lost, memory_order_relaxed);
}
/* Any thread. reason: static text. */
void gw_part_refuse(struct gw_part *p, uint32_t encoder_id, int64_t offset, const char *pointer,
                    const char *reason);
/* Any thread. False: that encoder met none that is still there. */
bool gw_part_refusal(struct gw_part *p, uint32_t encoder_id, struct gw_refusal *out);
/* Any thread. False while no heads are known (a view never shows such a part). */
bool gw_part_heads(struct gw_part *p, struct jc_heads *out);
