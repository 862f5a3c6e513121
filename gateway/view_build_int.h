/* Private to view_build*.c. Everything here belongs to the control thread. */
#pragma once

#include <sys/queue.h>

#include "gateway/topic_state.h"
#include "gateway/view_build.h"

/* One journal of the listing. Owner: view_build; stable address (its follow refers to it). */
struct vb_slot {
    struct view_build *vb;
    const struct jc_journal *journal; /* newest revision; owned reference */
    const char *label;      /* estuary.dev/collection; borrowed from journal; NULL: none */
    const char *collection; /* the label, or what the catalog's prefixes say; NULL: no topic's */
    struct gw_part *part;
    struct jc_op *follow;  /* NULL: not started, or ended */
    bool known;            /* heads arrived */
    bool gone;             /* the store said that it was deleted */
    uint32_t life;         /* of the heads that part shows */
    uint64_t bound;        /* last good estuary.dev/truncated-at */
    struct jc_marks marks; /* of the heads that arrived last */
};

/* One topic that was ever seen by this process or is remembered by the store. */
struct vb_topic {
    struct view_build *vb;
    char *task; /* "" without a catalog */
    char *name;
    struct topic_state state; /* as it is stored */
    bool damaged;             /* the stored state cannot be read: not served */
    bool writing;             /* pending is on its way to the store */
    bool failed;              /* the last write failed: the tick tries again */
    struct topic_state pending;
    uint64_t label_clock;                  /* of the labels of its journals; never falls */
    uint64_t own_clock;                    /* notBefore; falls with a raised backfill only */
    bool listed;                           /* scratch of a rebuild */
    const struct catalog_task *spec;       /* of the catalog in force; valid while listed */
    const struct catalog_binding *binding; /* both NULL without a catalog */
    bool backfill_warned;
    struct gw_frontier frontier; /* no field ever falls */
    size_t journals_n;           /* that it should show, and ... */
    size_t shown_n;              /* ... that it shows */
    bool shown;                  /* served is valid: parts and first are owned references */
    struct gw_topic served;
};

struct vb_encoder {
    STAILQ_ENTRY(vb_encoder) link;
    struct gw_encoder encoder;
    struct gw_encoder_life life; /* the list holds one */
    struct blob *signature;      /* codec and key, spelt in one way only */
};

struct vb_wait {
    STAILQ_ENTRY(vb_wait) link;
    char *collection;
    size_t parts_n;
    struct task *task;
};

struct view_build {
    struct view_build_opts opts;
    const struct catalog *catalog; /* in force: topics are its bindings; a reference; NULL: none */
    struct jc_op *watch;
    const struct jc_listing *listing;
    struct vb_slot **slots; /* by name, as the listing */
    size_t slots_n;
    bool listing_behind;      /* the newest listing was not taken: out of memory */
    struct vb_topic **topics; /* by task and name */
    size_t topics_n;
    size_t topics_cap;
    STAILQ_HEAD(, vb_encoder) encoders;
    uint32_t encoders_n;
    STAILQ_HEAD(, vb_wait) waits;
    const struct gw_view *view;
    int64_t revision;
    struct task rebuild; /* posted while dirty */
    bool dirty;
    bool loading; /* kv_scan runs */
    bool second;  /* the first of two scans is done */
    bool loaded;
    bool ready;
    bool unseen; /* a rebuild could not give its view out */
    bool stopped;
    unsigned ticks;
    size_t busy; /* key-value operations on their way, and the rebuild task */
};

/* Asks for a rebuild, soon. */
void vb_touch(struct view_build *vb);
/* view_build_memory.c */
/* Finds or makes a topic. E_NOMEM. */
MUST_USE int vb_topic_get(struct view_build *vb, const char *task, const char *name,
                          struct vb_topic **out);
/* Where the store keeps a topic's state. The caller frees it; NULL: out of memory, or too long. */
MUST_USE char *vb_state_key(const char *task, const char *name);
/* Begins to read the remembered states, unless they are there. */
MUST_USE int vb_load(struct view_build *vb);

/* view_build_labels.c */
/* The encoder that the topic's binding and the journal's labels (may be NULL) ask for; faults
 * fall back (null key, no compression) and are logged once. NULL: out of memory. */
const struct gw_encoder *vb_encoder_for(const struct vb_topic *t, const struct jc_spec *spec);
/* Forgets those that nobody holds: all lets go of the others, too. */
void vb_encoders_sweep(struct view_build *vb, bool all);
/* Takes in the journal's truncated-at label. */
void vb_slot_read_bound(struct vb_slot *s);

/* view_build_topic.c */
void vb_topic_free(struct vb_topic *t);
/* Brings a topic up to its journals (ranked); n may be 0 for a catalog's binding. *changed: what is
 * shown changed. */
MUST_USE int vb_topic_apply(struct vb_topic *t, struct vb_slot *const *slots, size_t n,
                            bool *changed);
/* It has no journal any more. */
void vb_topic_hide(struct vb_topic *t, bool *changed);
