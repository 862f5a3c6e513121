/*
 * A classic group without a service, for tests of its core: the test is the clients and the clock.
 *
 *   struct group_lab lab;  group_lab_init(&lab);
 *   struct ask *a = ask_join(&lab, "", "alice", 5);       JoinGroup v5 of client alice
 *   assert_int_equal(a->error, KE_MEMBER_ID_REQUIRED);    a->done: it was answered
 *   lab_tick(&lab, 200);                                  200 ms later
 */
#pragma once

#include <string.h>

#include "base/mem.h"
#include "gateway/groups/classic.h"
#include "gateway/groups/classic_int.h"

#define LAB_ASKS 4096

/* One request and what became of it. Texts are copies: the group may be gone. */
struct ask {
    struct group_wait wait; /* first member */
    struct group_lab *lab;
    bool done;
    int16_t error;
    char new_id[64];
    /* answers */
    int32_t generation;
    char member[64];
    char leader[64];
    char protocol[32];
    size_t listed; /* members in a leader's answer */
    bool skip;
    char assignment[128];
};

struct group_lab {
    struct group g;
    char name[8];
    struct group_limits limits;
    int64_t now_ms;
    int64_t next_ms; /* what the last tick said */
    unsigned ids;
    struct ask *asks[LAB_ASKS];
    size_t asks_n;
    /* of the next joins */
    const char *instance; /* NULL: dynamic */
    const char *type;
    const char *protocols[4]; /* names; the metadata is of topic "t", or `metadata` */
    const char *metadata;
    int64_t session_ms;
    int64_t rebalance_ms;
};

static inline void group_lab_init(struct group_lab *lab)
{
    *lab = (struct group_lab){
        .limits = {.min_session_ms = 1000,
                   .max_session_ms = 60000,
                   .max_rebalance_ms = 60000,
                   .initial_delay_ms = 0,
                   .max_members = 50,
                   .max_bytes = 100000},
        .now_ms = 1000,
        .type = "consumer",
        .protocols = {"range"},
        .session_ms = 10000,
        .rebalance_ms = 5000,
    };
    lab->g.limits = &lab->limits;
    lab->g.ops = &classic_ops;
    lab->g.task = lab->name;
    lab->g.id = lab->name;
    offsets_init(&lab->g.offsets);
}

static inline void group_lab_fini(struct group_lab *lab)
{
    struct group_out out;

    group_out_init(&out);
    lab->g.ops->drain(&lab->g, KE_COORDINATOR_NOT_AVAILABLE, &out);
    lab->g.ops->free(&lab->g);
    offsets_fini(&lab->g.offsets);
    for (size_t i = 0; i < lab->asks_n; i++)
        mem_free(lab->asks[i]);
}

static inline void ask_answer(struct group_wait *w, struct group *g)
{
    struct ask *a = (struct ask *)w;
    const struct classic_result *r = &w->out.classic;

    assert_false(a->done); /* at most one answer */
    a->done = true;
    a->error = w->error;
    if (w->error != KE_NONE)
        return;
    if (r->member != NULL)
        snprintf(a->member, sizeof a->member, "%s", r->member->id);
    a->generation = r->generation;
    snprintf(a->leader, sizeof a->leader, "%s", r->leader == NULL ? "" : r->leader);
    snprintf(a->protocol, sizeof a->protocol, "%s", classic_protocol_name(g));
    a->listed = r->list_members ? classic_members(g) : 0;
    a->skip = r->skip_assignment;
    if (r->member != NULL && r->member->assignment != NULL)
        snprintf(a->assignment, sizeof a->assignment, "%.*s",
                 SPAN_FMT(blob_span(r->member->assignment)));
}

/* Answers, then ticks, as the service does after each event. */
static inline void lab_settle(struct group_lab *lab, struct group_out *out)
{
    struct group_wait *w;

    for (int round = 0; round < 2; round++) {
        while ((w = STAILQ_FIRST(&out->done)) != NULL) {
            STAILQ_REMOVE_HEAD(&out->done, link);
            w->answer(w, &lab->g);
        }
        if (round == 0)
            lab->next_ms = lab->g.ops->tick(&lab->g, lab->now_ms, out);
    }
}

static inline void lab_tick(struct group_lab *lab, int64_t ms)
{
    struct group_out out;

    group_out_init(&out);
    lab->now_ms += ms;
    lab_settle(lab, &out);
}

static inline struct ask *ask_new(struct group_lab *lab)
{
    struct ask *a = mem_zalloc(sizeof *a);

    assert_non_null(a);
    assert_true(lab->asks_n < LAB_ASKS);
    a->lab = lab;
    a->wait.answer = ask_answer;
    lab->asks[lab->asks_n++] = a;
    return a;
}

static inline struct span lab_metadata(void)
{
    /* version 0, one topic "t", no user data */
    static const char bytes[] = "\0\0\0\0\0\1\0\1t\xff\xff\xff\xff";
    return span_of(bytes, sizeof bytes - 1);
}

static inline struct ask *ask_join(struct group_lab *lab, const char *member_id, const char *client,
                                   int version)
{
    struct ask *a = ask_new(lab);
    struct classic_protocol list[4];
    struct group_out out;
    size_t n = 0;

    for (; n < 4 && lab->protocols[n] != NULL; n++)
        list[n] = (struct classic_protocol){span_str(lab->protocols[n]),
                                            lab->metadata != NULL ? span_str(lab->metadata)
                                                                  : lab_metadata()};
    snprintf(a->new_id, sizeof a->new_id, "%s-%u", client, ++lab->ids);
    const struct classic_join ev = {
        .member_id = span_str(member_id),
        .instance_id = span_str(lab->instance),
        .protocol_type = span_str(lab->type),
        .protocols = list,
        .protocols_n = n,
        .session_ms = lab->session_ms,
        .rebalance_ms = version == 0 ? -1 : lab->rebalance_ms,
        .client_id = client,
        .client_host = "/127.0.0.1",
        .new_id = a->new_id,
        .known_member_id = version >= 4,
        .skip_assignment = version >= 9,
    };
    group_out_init(&out);
    classic_on_join(&lab->g, &ev, lab->now_ms, &a->wait, &out);
    lab_settle(lab, &out);
    return a;
}

/* assign: "id=text,id=text" of a leader; "" of the others. */
static inline struct ask *ask_sync(struct group_lab *lab, const char *member_id, int32_t generation,
                                   const char *assign)
{
    struct ask *a = ask_new(lab);
    struct classic_assignment list[64];
    struct group_out out;
    size_t n = 0;

    for (const char *p = assign; *p != '\0'; n++) {
        const char *eq = strchr(p, '=');
        const char *end = strchr(p, ',');
        assert_true(eq != NULL && n < 64);
        if (end == NULL)
            end = p + strlen(p);
        list[n].member_id = span_of(p, (size_t)(eq - p));
        list[n].assignment = span_of(eq + 1, (size_t)(end - eq - 1));
        p = *end == ',' ? end + 1 : end;
    }
    const struct classic_sync ev = {
        .who = {span_str(member_id), span_str(lab->instance), generation},
        .assignments = list,
        .assignments_n = n,
    };
    group_out_init(&out);
    classic_on_sync(&lab->g, &ev, lab->now_ms, &a->wait, &out);
    lab_settle(lab, &out);
    return a;
}

static inline int16_t lab_heartbeat(struct group_lab *lab, const char *member_id,
                                    int32_t generation)
{
    const struct group_speaker who = {span_str(member_id), span_str(lab->instance), generation};
    return classic_on_heartbeat(&lab->g, &who, lab->now_ms);
}

static inline int16_t lab_leave(struct group_lab *lab, const char *member_id)
{
    const struct group_speaker who = {span_str(member_id), span_str(lab->instance), -1};
    struct group_out out;

    group_out_init(&out);
    int16_t error = classic_on_leave(&lab->g, &who, lab->now_ms, &out);
    lab_settle(lab, &out);
    return error;
}

static inline int16_t lab_commit(struct group_lab *lab, const char *member_id, int32_t generation)
{
    const struct group_speaker who = {span_str(member_id), span_str(lab->instance), generation};
    return lab->g.ops->check_commit(&lab->g, &who, lab->now_ms);
}

static inline int16_t lab_raised(struct group_lab *lab, const char *member_id, int32_t generation,
                                 const char *topic)
{
    const struct group_speaker who = {span_str(member_id), span_str(lab->instance), generation};
    return lab->g.ops->check_raised(&lab->g, &who, span_str(topic));
}

static inline void lab_raise(struct group_lab *lab, const char *topic)
{
    const struct group_topic_change change = {topic, 2, 1, true};
    struct group_out out;

    group_out_init(&out);
    lab->g.ops->topics_changed(&lab->g, &change, 1, lab->now_ms, &out);
    lab_settle(lab, &out);
}
