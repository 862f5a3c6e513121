/* A KIP-848 group and clients that keep to the protocol, for tests of its core: no socket, no
 * clock. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "gateway/groups/classic.h"
#include "gateway/groups/consumer_int.h"

#define LAB_TOPICS  5
#define LAB_PARTS   8
#define LAB_CLIENTS 6

struct lab_topic {
    char name[16];
    struct kp_uuid id;
    int32_t epoch;
    int32_t partitions;
};

struct lab_client {
    struct consumer_heartbeat hb; /* the next one */
    char id[40];
    char instance[8];
    int32_t epoch;
    bool in;
    /* what it believes to own: what the coordinator said, less what it has given up */
    bool owns[LAB_TOPICS][LAB_PARTS];
    struct kp_uuid ids[LAB_TOPICS]; /* the ids that this is about */
    struct span names[LAB_TOPICS];
};

struct lab {
    struct consumer_topics source; /* first: the callbacks get it */
    struct lab_topic topics[LAB_TOPICS];
    struct group g;
    struct group_limits limits;
    int64_t now;
    struct consumer_answer answer;
};

static struct consumer_topic_info lab_at(const struct consumer_topics *s, size_t i)
{
    const struct lab *lab = (const struct lab *)(const void *)s;
    return (struct consumer_topic_info){span_str(lab->topics[i].name), lab->topics[i].id,
                                        lab->topics[i].epoch, lab->topics[i].partitions};
}

static bool lab_find(const struct consumer_topics *s, struct span name,
                     struct consumer_topic_info *out)
{
    for (size_t i = 0; i < s->n; i++) {
        *out = lab_at(s, i);
        if (span_eq(out->name, name))
            return true;
    }
    return false;
}

/* Topics t0.. with `partitions` each. */
static struct lab *lab_new(int32_t partitions)
{
    static char id[] = "g", task[] = "";
    struct lab *lab = calloc(1, sizeof *lab); /* banned-ok: outlives injected failures */

    assert_non_null(lab);
    lab->source = (struct consumer_topics){LAB_TOPICS, lab_at, lab_find};
    for (int i = 0; i < LAB_TOPICS; i++) {
        snprintf(lab->topics[i].name, sizeof lab->topics[i].name, "t%d", i);
        lab->topics[i].id.b[0] = (uint8_t)(i + 1);
        lab->topics[i].partitions = partitions;
    }
    lab->limits = (struct group_limits){.max_rebalance_ms = 60000,
                                        .consumer_session_ms = 45000,
                                        .consumer_heartbeat_ms = 5000,
                                        .max_members = 100,
                                        .max_bytes = 1 << 20};
    lab->g = (struct group){.ops = &classic_ops, .limits = &lab->limits, .id = id, .task = task};
    lab->now = 1000;
    assert_int_equal(consumer_attach(&lab->g), 0);
    return lab;
}

static void lab_free(struct lab *lab)
{
    lab->g.ops->free(&lab->g);
    free(lab); /* banned-ok: see lab_new */
}

/* A client that will join with the topics of the digits in subs. */
static void client_init(struct lab *lab, struct lab_client *cl, const char *id, const char *subs)
{
    *cl = (struct lab_client){0};
    snprintf(cl->id, sizeof cl->id, "%s", id);
    cl->hb.rebalance_ms = 10000;
    cl->hb.has_names = true;
    for (; *subs != '\0'; subs++)
        cl->names[cl->hb.names_n++] = span_str(lab->topics[*subs - '0'].name);
}

static inline struct group_speaker client_speaks(const struct lab_client *cl)
{
    return (struct group_speaker){span_str(cl->id), {NULL, 0}, cl->epoch};
}

static inline size_t client_count(const struct lab_client *cl)
{
    size_t n = 0;

    for (int t = 0; t < LAB_TOPICS; t++) {
        for (int p = 0; p < LAB_PARTS; p++)
            n += cl->owns[t][p];
    }
    return n;
}

/* What it owns, as "t0:0,1 t1:2". */
static inline const char *client_owns(const struct lab_client *cl)
{
    static char text[400];
    size_t at = 0;

    text[0] = '\0';
    for (int t = 0; t < LAB_TOPICS; t++) {
        bool first = true;
        for (int p = 0; p < LAB_PARTS; p++) {
            if (!cl->owns[t][p])
                continue;
            if (first)
                at += (size_t)snprintf(text + at, sizeof text - at, "%st%d:", at > 0 ? " " : "", t);
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%d", first ? "" : ",", p);
            first = false;
        }
    }
    return text;
}

/* Takes over the assignment of an answer. */
static void client_adopt(struct lab *lab, struct lab_client *cl, const struct consumer_member *m)
{
    const struct consumer *c = lab->g.consumer;

    memset(cl->owns, 0, sizeof cl->owns);
    for (size_t t = 0; t < c->topics_n; t++) {
        int index = c->topics[t]->name[1] - '0';
        for (int32_t i = 0; i < c->topics[t]->parts_n; i++) {
            if (c->topics[t]->parts[i].owner == m && !c->topics[t]->parts[i].revoking) {
                cl->owns[index][i] = true;
                cl->ids[index] = c->topics[t]->id;
            }
        }
    }
}

/* One heartbeat; full: with everything. Returns KE_*. */
static int16_t client_beat(struct lab *lab, struct lab_client *cl, bool full)
{
    static int32_t numbers[LAB_PARTS] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct consumer_owned owned[LAB_TOPICS * LAB_PARTS];
    struct consumer_heartbeat ev = cl->hb;

    ev.member_id = span_str(cl->id);
    ev.epoch = cl->epoch;
    ev.instance_id = cl->instance[0] != '\0' ? span_str(cl->instance) : (struct span){NULL, 0};
    ev.client_id = "client";
    ev.client_host = "/127.0.0.1";
    ev.new_id = cl->id;
    ev.names = cl->names;
    ev.has_owned = true;
    ev.owned = owned;
    if (!full && cl->epoch > 0) {
        ev.rebalance_ms = -1;
        ev.has_names = false;
        ev.names_n = 0;
        ev.regex = (struct span){NULL, 0};
    }
    for (int t = 0; t < LAB_TOPICS && cl->epoch > 0; t++) {
        for (int p = 0; p < LAB_PARTS; p++) {
            if (cl->owns[t][p])
                owned[ev.owned_n++] = (struct consumer_owned){cl->ids[t], &numbers[p], 1};
        }
    }
    int16_t error = consumer_on_heartbeat(&lab->g, &ev, &lab->source, lab->now, &lab->answer);
    if (error != KE_NONE)
        return error;
    cl->epoch = lab->answer.epoch;
    cl->in = lab->answer.member != NULL;
    if (lab->answer.assignment)
        client_adopt(lab, cl, lab->answer.member);
    return KE_NONE;
}

static inline int16_t client_leave(struct lab *lab, struct lab_client *cl, int32_t how)
{
    int32_t epoch = cl->epoch;

    cl->epoch = how;
    int16_t error = client_beat(lab, cl, false);
    cl->epoch = error == KE_NONE ? 0 : epoch;
    if (error == KE_NONE)
        cl->in = false;
    return error;
}

static void lab_tick(struct lab *lab, int64_t ms)
{
    struct group_out out;

    group_out_init(&out);
    lab->now += ms;
    lab->g.ops->tick(&lab->g, lab->now, &out);
}

static inline void lab_topic_changed(struct lab *lab, int topic, bool raised)
{
    struct group_out out;
    const struct group_topic_change change = {lab->topics[topic].name, 1,
                                              lab->topics[topic].partitions, raised};

    group_out_init(&out);
    if (raised)
        lab->topics[topic].epoch++;
    lab->g.ops->topics_changed(&lab->g, &change, 1, lab->now, &out);
}
