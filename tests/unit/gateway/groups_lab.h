/*
 * The groups service behind one worker, for tests: requests go in as bytes, the test plays the
 * worker and the groups thread; only the store's thread is real. Time stands still unless the test
 * moves it (lab.h.now_ms, lab.h.wall_ns).
 */
#pragma once

#include "tests/unit/gateway/harness.h"

#include "gateway/groups/groups_int.h"
#include "tests/contract/temp_dir.h"

#define LAB_PARTS 2

struct groups_lab {
    struct harness h;
    struct groups *gs;
    struct groups_opts opts;
    struct mem_conn *mc;
    const struct jc_journal *journal;
    struct gw_part *part;
    struct gw_part *parts[LAB_PARTS];
    struct gw_encoder encoder;
    char dir[256];
    char path[300];
    int32_t epochs[2];    /* of topics "t" and "u"; 0: not there */
    const char *redirect; /* host; NULL: served here */
    bool strict_names;
    int64_t revision;
};

/* Everything that can happen without time passing, the store's writes included. */
static inline void lab_run(struct groups_lab *lab)
{
    for (;;) {
        size_t writes = 0;
        struct group *g;
        (void)groups_turn(lab->gs);
        while (mailbox_drain(&lab->h.w.mb) > 0)
            (void)groups_turn(lab->gs);
        for (size_t at = 0; (g = keymap_next(&lab->gs->table, &at)) != NULL;)
            writes += g->writes;
        if (writes == 0)
            return;
        assert_true(mailbox_wait(&lab->gs->mb, 10000) > 0);
    }
}

static inline void lab_view(struct groups_lab *lab)
{
    struct gw_topic topics[2] = {0};
    size_t n = 0;
    const struct gw_view *v;

    for (int i = 0; i < 2; i++) {
        if (lab->epochs[i] == 0)
            continue;
        topics[n] = (struct gw_topic){.name = i == 0 ? "t" : "u",
                                      .collection = "c",
                                      .epoch = lab->epochs[i],
                                      .encoder = &lab->encoder,
                                      .first = lab->journal,
                                      .parts = lab->parts,
                                      .parts_n = LAB_PARTS};
        topics[n].id.b[0] = (uint8_t)(i + 1);
        topics[n].id.b[1] = (uint8_t)lab->epochs[i];
        n++;
    }
    const struct gw_task task = {.name = "acme/task",
                                 .topics = topics,
                                 .topics_n = n,
                                 .strict_names = lab->strict_names,
                                 .redirect_host = lab->redirect,
                                 .redirect_port = 9,
                                 .redirect_node = 77};
    const struct gw_view_spec spec = {
        .revision = ++lab->revision, .tasks = &task, .tasks_n = 1, .anonymous = task.name};
    assert_int_equal(gw_view_build(&spec, &v), 0);
    assert_int_equal(groups_post_view(lab->gs, v), 0);
    assert_int_equal(worker_post_view(&lab->h.w, v), 0);
    gw_view_unref(v);
    lab_run(lab);
}

static inline void lab_open(struct groups_lab *lab)
{
    char why[200] = "";
    int err = groups_open(&lab->opts, &lab->gs, why, sizeof why);

    if (err < 0)
        print_error("%s\n", why);
    assert_int_equal(err, 0);
    lab->h.shared.groups = lab->gs;
    lab_view(lab);
}

static inline void groups_lab_init(struct groups_lab *lab)
{
    *lab = (struct groups_lab){.epochs = {1, 1}};
    harness_init(&lab->h);
    harness_settle(&lab->h);
    lab->journal = fake_make("j", NULL, 0, 1, 1);
    assert_int_equal(gw_part_new(lab->journal, &lab->part), 0);
    lab->parts[0] = lab->parts[1] = lab->part;
    assert_int_equal(temp_dir_make(lab->dir, sizeof lab->dir), 0);
    snprintf(lab->path, sizeof lab->path, "%s/groups.db", lab->dir);
    lab->opts = (struct groups_opts){
        .path = lab->path,
        .clock = &lab->h.clock,
        .limits = {.min_session_ms = 1000,
                   .max_session_ms = 60000,
                   .max_rebalance_ms = 60000,
                   .max_members = 50,
                   .max_bytes = 1000000},
        .retention_ms = 60000,
        .max_groups = 100,
    };
    lab_open(lab);
    lab->mc = mem_conn_new(&lab->h);
}

/* As if the process had ended and begun again. */
static inline void lab_reopen(struct groups_lab *lab)
{
    groups_stop(lab->gs);
    while (mailbox_drain(&lab->h.w.mb) > 0)
        ;
    groups_free(lab->gs);
    lab_open(lab);
}

static inline void groups_lab_fini(struct groups_lab *lab)
{
    groups_stop(lab->gs);
    harness_fini(&lab->h);
    groups_free(lab->gs);
    gw_part_unref(lab->part);
    jc_journal_unref(lab->journal);
    temp_dir_remove(lab->dir);
}

static inline void *lab_call(struct groups_lab *lab, int16_t key, int16_t version, const void *body)
{
    static int32_t correlation = 100000;

    harness_send(lab->mc, key, version, ++correlation, body);
    lab_run(lab);
    return harness_decode(lab->mc, key, version, correlation);
}

/* --- the calls that tests make --- */

struct lab_who {
    const char *member;
    int32_t generation;
};
#define NOBODY ((struct lab_who){"", -1})

static inline int16_t lab_commit_at(struct groups_lab *lab, const char *group, struct lab_who who,
                                    const char *topic, int32_t partition, int64_t offset,
                                    int32_t epoch, const char *metadata)
{
    struct kp_offset_commit_req *req = harness_body(&lab->h, KP_API_OFFSET_COMMIT);
    struct kp_offset_commit_req_topics *t =
        kp_array(&kp_offset_commit_req_topics_desc, &lab->h.arena, 1);

    req->group_id = span_str(group);
    req->member_id = span_str(who.member);
    req->generation_id_or_member_epoch = who.generation;
    req->topics = t;
    req->topics_n = 1;
    t->name = span_str(topic);
    t->partitions_n = 1;
    t->partitions = kp_array(&kp_offset_commit_req_topics_partitions_desc, &lab->h.arena, 1);
    t->partitions->partition_index = partition;
    t->partitions->committed_offset = offset;
    t->partitions->committed_leader_epoch = epoch;
    t->partitions->committed_metadata = span_str(metadata);
    const struct kp_offset_commit_resp *resp = lab_call(lab, KP_API_OFFSET_COMMIT, 8, req);
    assert_int_equal(resp->topics_n, 1);
    assert_int_equal(resp->topics->partitions_n, 1);
    return resp->topics->partitions->error_code;
}

struct lab_read {
    int64_t offset;
    int32_t epoch;
    int16_t error;
    char metadata[64];
};

static inline struct lab_read lab_read_at(struct groups_lab *lab, const char *group,
                                          const char *topic, int32_t partition)
{
    struct kp_offset_fetch_req *req = harness_body(&lab->h, KP_API_OFFSET_FETCH);
    struct kp_offset_fetch_req_groups *g =
        kp_array(&kp_offset_fetch_req_groups_desc, &lab->h.arena, 1);
    struct kp_offset_fetch_req_groups_topics *t =
        kp_array(&kp_offset_fetch_req_groups_topics_desc, &lab->h.arena, 1);
    struct lab_read out = {0};

    req->groups = g;
    req->groups_n = 1;
    g->group_id = span_str(group);
    g->topics = t;
    g->topics_n = 1;
    t->name = span_str(topic);
    t->partition_indexes = &partition;
    t->partition_indexes_n = 1;
    const struct kp_offset_fetch_resp *resp = lab_call(lab, KP_API_OFFSET_FETCH, 8, req);
    assert_int_equal(resp->groups_n, 1);
    out.error = resp->groups->error_code;
    if (out.error != 0)
        return out;
    const struct kp_offset_fetch_resp_groups_topics_partitions *p =
        resp->groups->topics->partitions;
    out.offset = p->committed_offset;
    out.epoch = p->committed_leader_epoch;
    out.error = p->error_code;
    snprintf(out.metadata, sizeof out.metadata, "%.*s", SPAN_FMT(p->metadata));
    return out;
}

/* Number of partitions that "all offsets of the group" answers. */
static inline size_t lab_read_all(struct groups_lab *lab, const char *group)
{
    struct kp_offset_fetch_req *req = harness_body(&lab->h, KP_API_OFFSET_FETCH);
    size_t n = 0;

    req->group_id = span_str(group);
    req->topics = NULL;
    req->topics_n = -1;
    const struct kp_offset_fetch_resp *resp = lab_call(lab, KP_API_OFFSET_FETCH, 7, req);
    assert_int_equal(resp->error_code, 0);
    for (int32_t i = 0; i < resp->topics_n; i++)
        n += (size_t)resp->topics[i].partitions_n;
    return n;
}

static inline struct kp_join_group_req *lab_join_body(struct groups_lab *lab, const char *group,
                                                      const char *member)
{
    struct kp_join_group_req *req = harness_body(&lab->h, KP_API_JOIN_GROUP);
    static const char metadata[] = "\0\0\0\0\0\1\0\1t\xff\xff\xff\xff";

    req->group_id = span_str(group);
    req->member_id = span_str(member);
    req->session_timeout_ms = 10000;
    req->rebalance_timeout_ms = 5000;
    req->protocol_type = span_str("consumer");
    req->protocols = kp_array(&kp_join_group_req_protocols_desc, &lab->h.arena, 1);
    req->protocols_n = 1;
    req->protocols->name = span_str("range");
    req->protocols->metadata = span_of(metadata, sizeof metadata - 1);
    return req;
}

/* Posts a JoinGroup; the answer comes when it comes. */
static inline void lab_join_send(struct groups_lab *lab, const char *group, const char *member,
                                 int16_t version, int32_t correlation)
{
    struct kp_join_group_req *req = lab_join_body(lab, group, member);

    harness_send(lab->mc, KP_API_JOIN_GROUP, version, correlation, req);
    lab_run(lab);
}

static inline const struct kp_join_group_resp *lab_join(struct groups_lab *lab, const char *group,
                                                        const char *member)
{
    lab_join_send(lab, group, member, 3, 7);
    return harness_decode(lab->mc, KP_API_JOIN_GROUP, 3, 7);
}

/* The joined member fetches its assignment. Its id lives in the harness's arena. */
static inline struct lab_who lab_sync(struct groups_lab *lab, const char *group,
                                      const struct kp_join_group_resp *joined)
{
    struct kp_sync_group_req *req = harness_body(&lab->h, KP_API_SYNC_GROUP);

    assert_int_equal(joined->error_code, 0);
    req->group_id = span_str(group);
    req->generation_id = joined->generation_id;
    req->member_id = joined->member_id;
    const struct kp_sync_group_resp *synced = lab_call(lab, KP_API_SYNC_GROUP, 3, req);
    assert_int_equal(synced->error_code, 0);
    return (struct lab_who){
        arena_strndup(&lab->h.arena, (const char *)joined->member_id.p, joined->member_id.n),
        joined->generation_id};
}

/* Alone in the group, and stable. */
static inline struct lab_who lab_member(struct groups_lab *lab, const char *group)
{
    return lab_sync(lab, group, lab_join(lab, group, ""));
}

static inline int16_t lab_beat(struct groups_lab *lab, const char *group, struct lab_who who)
{
    struct kp_heartbeat_req *req = harness_body(&lab->h, KP_API_HEARTBEAT);

    req->group_id = span_str(group);
    req->generation_id = who.generation;
    req->member_id = span_str(who.member);
    return ((const struct kp_heartbeat_resp *)lab_call(lab, KP_API_HEARTBEAT, 3, req))->error_code;
}

static inline int16_t lab_quit(struct groups_lab *lab, const char *group, struct lab_who who)
{
    struct kp_leave_group_req *req = harness_body(&lab->h, KP_API_LEAVE_GROUP);

    req->group_id = span_str(group);
    req->member_id = span_str(who.member);
    return ((const struct kp_leave_group_resp *)lab_call(lab, KP_API_LEAVE_GROUP, 1, req))
        ->error_code;
}

/* Those that end in _send leave the answer, and what follows from it, to a later lab_run. */
static inline void lab_delete_send(struct groups_lab *lab, const char *group, int32_t correlation)
{
    struct kp_delete_groups_req *req = harness_body(&lab->h, KP_API_DELETE_GROUPS);
    struct span name = span_str(group);

    req->groups_names = &name;
    req->groups_names_n = 1;
    harness_send(lab->mc, KP_API_DELETE_GROUPS, 1, correlation, req);
}

static inline int16_t lab_delete(struct groups_lab *lab, const char *group)
{
    lab_delete_send(lab, group, 8);
    lab_run(lab);
    const struct kp_delete_groups_resp *resp = harness_decode(lab->mc, KP_API_DELETE_GROUPS, 1, 8);
    assert_int_equal(resp->results_n, 1);
    return resp->results->error_code;
}

static inline void lab_delete_offset_send(struct groups_lab *lab, const char *group,
                                          const char *topic, int32_t partition, int32_t correlation)
{
    struct kp_offset_delete_req *req = harness_body(&lab->h, KP_API_OFFSET_DELETE);

    req->group_id = span_str(group);
    req->topics = kp_array(&kp_offset_delete_req_topics_desc, &lab->h.arena, 1);
    req->topics_n = 1;
    req->topics->name = span_str(topic);
    req->topics->partitions =
        kp_array(&kp_offset_delete_req_topics_partitions_desc, &lab->h.arena, 1);
    req->topics->partitions_n = 1;
    req->topics->partitions->partition_index = partition;
    harness_send(lab->mc, KP_API_OFFSET_DELETE, 0, correlation, req);
}

/* The top-level error, or the partition's. */
static inline int16_t lab_delete_offset(struct groups_lab *lab, const char *group,
                                        const char *topic, int32_t partition)
{
    lab_delete_offset_send(lab, group, topic, partition, 8);
    lab_run(lab);
    const struct kp_offset_delete_resp *resp = harness_decode(lab->mc, KP_API_OFFSET_DELETE, 0, 8);
    return resp->error_code != 0 ? resp->error_code : resp->topics->partitions->error_code;
}

static inline void lab_pass(struct groups_lab *lab, int64_t ms)
{
    lab->h.now_ms += ms;
    lab->h.wall_ns += ms * 1000000;
    lab_run(lab);
}
