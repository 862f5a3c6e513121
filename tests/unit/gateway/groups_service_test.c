/* The groups service over its wire: commits and their epochs, what survives, what expires, tools.
 */
#include "tests/unit/gateway/groups_lab.h"

#include "kafka_proto/kp_messages.h"

static void a_commit_that_was_answered_is_there_after_a_restart(void **arg)
{
    struct groups_lab lab;

    (void)arg;
    groups_lab_init(&lab);
    struct lab_who m = lab_member(&lab, "g");
    assert_int_equal(lab_commit_at(&lab, "g", m, "t", 1, 4711, 1, "note"), 0);
    for (int round = 0; round < 2; round++) {
        struct lab_read r = lab_read_at(&lab, "g", "t", 1);
        assert_int_equal(r.error, 0);
        assert_int_equal(r.offset, 4711);
        assert_int_equal(r.epoch, 1);
        assert_string_equal(r.metadata, "note");
        assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, -1);
        assert_int_equal(lab_read_at(&lab, "other", "t", 1).offset, -1);
        lab_reopen(&lab);
    }
    /* its members are not: they join again, into a later generation */
    assert_int_equal(lab_beat(&lab, "g", m), KE_UNKNOWN_MEMBER_ID);
    assert_int_equal(lab_commit_at(&lab, "g", m, "t", 1, 5, 1, ""), KE_UNKNOWN_MEMBER_ID);
    struct lab_who again = lab_member(&lab, "g");
    assert_true(again.generation > m.generation);
    groups_lab_fini(&lab);
}

static void a_program_without_a_group_protocol_commits_while_nobody_is_in(void **arg)
{
    struct groups_lab lab;

    (void)arg;
    groups_lab_init(&lab);
    assert_int_equal(lab_commit_at(&lab, "g", NOBODY, "t", 0, 9, -1, ""), 0);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, 9);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).epoch, 1);
    (void)lab_member(&lab, "g");
    assert_int_equal(lab_commit_at(&lab, "g", NOBODY, "t", 0, 10, -1, ""), KE_UNKNOWN_MEMBER_ID);
    assert_int_equal(lab_commit_at(&lab, "nix", (struct lab_who){"m", 3}, "t", 0, 1, -1, ""),
                     KE_ILLEGAL_GENERATION);
    groups_lab_fini(&lab);
}

static void what_cannot_be_committed_is_refused_for_its_partition(void **arg)
{
    struct groups_lab lab;
    char big[OFFSET_METADATA_MAX + 2];

    (void)arg;
    groups_lab_init(&lab);
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    assert_int_equal(lab_commit_at(&lab, "g", NOBODY, "no", 0, 1, -1, ""),
                     KE_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(lab_commit_at(&lab, "g", NOBODY, "t", LAB_PARTS, 1, -1, ""),
                     KE_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(lab_commit_at(&lab, "g", NOBODY, "t", -1, 1, -1, ""),
                     KE_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(lab_commit_at(&lab, "g", NOBODY, "t", 0, 1, -1, big),
                     KE_OFFSET_METADATA_TOO_LARGE);
    assert_int_equal(lab.gs->table.n, 0); /* no trace of the group */
    big[OFFSET_METADATA_MAX] = '\0';
    assert_int_equal(lab_commit_at(&lab, "g", NOBODY, "t", 0, 1, -1, big), 0);
    groups_lab_fini(&lab);
}

/* Design section 7: commits belong to an epoch. */
static void a_raise_makes_old_commits_read_as_none_and_late_ones_harmless(void **arg)
{
    struct groups_lab lab;

    (void)arg;
    groups_lab_init(&lab);
    struct lab_who m = lab_member(&lab, "g");
    assert_int_equal(lab_commit_at(&lab, "g", m, "t", 0, 100, 1, ""), 0);
    assert_int_equal(lab_commit_at(&lab, "g", m, "u", 0, 7, -1, ""), 0);
    lab.epochs[0] = 2;
    lab_view(&lab);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, -1);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).error, 0);
    assert_int_equal(lab_read_at(&lab, "g", "u", 0).offset, 7);
    assert_int_equal(lab_read_all(&lab, "g"), 1);
    /* the member has to join again; what it commits until then cannot poison the new epoch */
    assert_int_equal(lab_beat(&lab, "g", m), KE_REBALANCE_IN_PROGRESS);
    assert_int_equal(lab_commit_at(&lab, "g", m, "t", 0, 120, -1, ""), KE_ILLEGAL_GENERATION);
    assert_int_equal(lab_commit_at(&lab, "g", m, "t", 0, 120, 0, ""), KE_ILLEGAL_GENERATION);
    assert_int_equal(lab_commit_at(&lab, "g", m, "u", 0, 8, -1, ""), 0);
    assert_int_equal(lab_commit_at(&lab, "g", m, "t", 0, 120, 1, ""), 0);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, -1);
    assert_int_equal(lab_commit_at(&lab, "g", m, "t", 0, 5, 2, ""), 0);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, 5);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).epoch, 2);
    groups_lab_fini(&lab);
}

static void a_new_generation_commits_without_an_epoch_again(void **arg)
{
    struct groups_lab lab;

    (void)arg;
    groups_lab_init(&lab);
    struct lab_who m = lab_member(&lab, "g");
    lab.epochs[0] = 2;
    lab_view(&lab);
    const struct kp_join_group_resp *j = lab_join(&lab, "g", m.member);
    m = lab_sync(&lab, "g", j);
    assert_int_equal(lab_commit_at(&lab, "g", m, "t", 0, 5, -1, ""), 0);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, 5);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).epoch, 2);
    groups_lab_fini(&lab);
}

static void a_topic_that_was_gone_for_a_while_is_known_by_its_epoch(void **arg)
{
    struct groups_lab lab;

    (void)arg;
    groups_lab_init(&lab);
    struct lab_who m = lab_member(&lab, "g");
    lab.epochs[0] = 0;
    lab_view(&lab);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, -1);
    lab.epochs[0] = 1; /* the same again */
    lab_view(&lab);
    assert_int_equal(lab_beat(&lab, "g", m), 0);
    lab.epochs[0] = 0;
    lab_view(&lab);
    lab.epochs[0] = 2;
    lab_view(&lab);
    assert_int_equal(lab_beat(&lab, "g", m), KE_REBALANCE_IN_PROGRESS);
    assert_int_equal(lab_commit_at(&lab, "g", m, "t", 0, 1, -1, ""), KE_ILLEGAL_GENERATION);
    groups_lab_fini(&lab);
}

/* As Kafka 4.3.1 answers; Java's consumer ends on an error there. */
static void a_name_that_is_no_topic_reads_as_what_the_group_committed_and_else_as_none(void **arg)
{
    struct groups_lab lab;

    (void)arg;
    groups_lab_init(&lab);
    for (int known = 0; known < 2; known++) { /* with and without a group */
        struct lab_read none = lab_read_at(&lab, "g", "no", 0);
        assert_int_equal(none.error, 0);
        assert_int_equal(none.offset, -1);
        assert_int_equal(none.epoch, -1);
        assert_int_equal(lab_read_at(&lab, "g", "t", LAB_PARTS).offset, -1);
        assert_int_equal(lab_read_at(&lab, "g", "t", -1).error, 0);
        assert_int_equal(lab_commit_at(&lab, "g", NOBODY, "t", 1, 5, 1, "m"), 0);
    }
    lab.epochs[0] = 3;
    lab_view(&lab);
    assert_int_equal(lab_commit_at(&lab, "g", NOBODY, "t", 1, 7, 3, ""), 0);
    lab.epochs[0] = 0; /* whoever read "none" now would begin anew when it comes back */
    lab_view(&lab);
    assert_int_equal(lab_read_at(&lab, "g", "t", 1).offset, 7);
    assert_int_equal(lab_read_at(&lab, "g", "t", 1).epoch, 3);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, -1);
    assert_int_equal(lab_read_all(&lab, "g"), 0);
    groups_lab_fini(&lab);
}

/* As Kafka 4.3.1: what a negative offset means is between the group's programs. */
static void a_negative_offset_is_kept_as_it_is(void **arg)
{
    static const int64_t odd[] = {-1, -2, INT64_MIN};
    struct groups_lab lab;

    (void)arg;
    groups_lab_init(&lab);
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        assert_int_equal(lab_commit_at(&lab, "g", NOBODY, "t", 0, odd[i], 1, "m"), 0);
        for (int life = 0; life < 2; life++) {
            struct lab_read at = lab_read_at(&lab, "g", "t", 0);
            assert_int_equal(at.offset, odd[i]);
            assert_int_equal(at.epoch, -1);
            assert_string_equal(at.metadata, "m");
            lab_reopen(&lab);
        }
    }
    groups_lab_fini(&lab);
}

/* Case 31. */
static void commits_expire_by_the_time_that_a_group_has_no_members(void **arg)
{
    struct groups_lab lab;

    (void)arg;
    groups_lab_init(&lab);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, -1); /* (a) */
    struct lab_who m = lab_member(&lab, "g");
    assert_int_equal(lab_commit_at(&lab, "g", m, "t", 0, 1000, 1, ""), 0);
    for (int s = 0; s < 120; s += 5) { /* (b) alive, but silent otherwise */
        lab_pass(&lab, 5000);
        assert_int_equal(lab_beat(&lab, "g", m), 0);
    }
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, 1000);
    lab_reopen(&lab); /* (e) */
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, 1000);
    for (int s = 0; s < 55; s += 5)
        lab_pass(&lab, 5000);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, 1000);
    for (int s = 0; s < 65; s += 5)
        lab_pass(&lab, 5000);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, -1); /* (c) */
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).error, 0);
    assert_int_equal(lab.gs->table.n, 0);
    lab_reopen(&lab);
    assert_int_equal(lab.gs->table.n, 0);
    groups_lab_fini(&lab);
}

static void a_commit_of_an_old_epoch_is_kept_for_the_retention_and_no_longer(void **arg)
{
    struct groups_lab lab;

    (void)arg;
    groups_lab_init(&lab);
    struct lab_who m = lab_member(&lab, "g");
    assert_int_equal(lab_commit_at(&lab, "g", m, "u", 0, 50, 1, ""), 0);
    lab.epochs[1] = 2;
    lab_view(&lab);
    assert_int_equal(groups_find(lab.gs, "acme/task", span_str("g"))->offsets.n, 1);
    for (int s = 0; s < 90; s += 5) {
        lab_pass(&lab, 5000);
        (void)lab_beat(&lab, "g", m);
        if (s == 50)
            assert_int_equal(groups_find(lab.gs, "acme/task", span_str("g"))->offsets.n, 1);
    }
    assert_int_equal(groups_find(lab.gs, "acme/task", span_str("g"))->offsets.n, 0);
    groups_lab_fini(&lab);
}

/* --- the store fails, the process dies --- */

struct fuse {
    int left; /* steps until it dies; < 0: never */
};

static int burn(void *arg, enum group_store_step step)
{
    struct fuse *f = arg;

    (void)step;
    return f->left-- == 0 ? E_IO : 0;
}

static void a_generation_is_not_heard_of_before_it_is_durable(void **arg)
{
    struct groups_lab lab;
    struct fuse f = {0};

    (void)arg;
    groups_lab_init(&lab);
    struct lab_who m = lab_member(&lab, "g");
    assert_int_equal(m.generation, 1);
    assert_int_equal(lab_quit(&lab, "g", m), 0);
    group_store_on_step(lab.gs->store, burn, &f);
    const struct kp_join_group_resp *j = lab_join(&lab, "g", "");
    assert_int_equal(j->error_code, KE_COORDINATOR_NOT_AVAILABLE);
    lab_reopen(&lab);
    m = lab_member(&lab, "g");
    assert_true(m.generation > 1);
    groups_lab_fini(&lab);
}

/* At whatever step the process dies: what was answered is there, and nothing older. */
static void no_answered_commit_is_lost_at_any_step_of_the_store(void **arg)
{
    (void)arg;
    for (int steps = 0; steps < 24; steps++) {
        struct groups_lab lab;
        struct fuse f = {steps};
        int64_t answered[LAB_PARTS] = {-1, -1};
        int64_t tried[LAB_PARTS] = {-1, -1};

        groups_lab_init(&lab);
        group_store_on_step(lab.gs->store, burn, &f);
        for (int i = 0; i < 8; i++) {
            int p = i % LAB_PARTS;
            tried[p] = 100 + i;
            if (lab_commit_at(&lab, "g", NOBODY, "t", p, tried[p], 1, "") == 0)
                answered[p] = tried[p];
            struct lab_read r = lab_read_at(&lab, "g", "t", p);
            assert_int_equal(r.offset, answered[p]);
        }
        lab_reopen(&lab);
        for (int p = 0; p < LAB_PARTS; p++) {
            int64_t found = lab_read_at(&lab, "g", "t", p).offset;
            assert_true(found >= answered[p] && found <= tried[p]);
        }
        groups_lab_fini(&lab);
    }
}

static void a_store_that_fails_is_a_retriable_error_and_never_no_commit(void **arg)
{
    struct groups_lab lab;
    struct fuse f = {0};

    (void)arg;
    groups_lab_init(&lab);
    assert_int_equal(lab_commit_at(&lab, "g", NOBODY, "t", 0, 1, 1, ""), 0);
    group_store_on_step(lab.gs->store, burn, &f);
    assert_int_equal(lab_commit_at(&lab, "g", NOBODY, "t", 0, 2, 1, ""),
                     KE_COORDINATOR_NOT_AVAILABLE);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, 1); /* case 31 (d) */
    groups_lab_fini(&lab);
}

static void a_file_of_a_newer_program_is_refused(void **arg)
{
    struct groups_lab lab;
    struct groups *gs = NULL;
    char why[200] = "";

    (void)arg;
    groups_lab_init(&lab);
    groups_stop(lab.gs);
    groups_free(lab.gs);
    /* user_version lies at byte 60 of a SQLite file; the log was checkpointed at the close */
    FILE *file = fopen(lab.path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 60, SEEK_SET), 0);
    assert_int_equal(fwrite("\0\0\1\0", 1, 4, file), 4);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(groups_open(&lab.opts, &gs, why, sizeof why), E_VERSION);
    assert_non_null(strstr(why, "format 256"));
    assert_int_equal(remove(lab.path), 0);
    lab_open(&lab);
    groups_lab_fini(&lab);
}

/* --- tools --- */

static void groups_are_deleted_only_when_nobody_is_in(void **arg)
{
    struct groups_lab lab;

    (void)arg;
    groups_lab_init(&lab);
    assert_int_equal(lab_delete(&lab, "g"), KE_GROUP_ID_NOT_FOUND);
    struct lab_who m = lab_member(&lab, "g");
    assert_int_equal(lab_commit_at(&lab, "g", m, "t", 0, 3, 1, ""), 0);
    assert_int_equal(lab_delete(&lab, "g"), KE_NON_EMPTY_GROUP);
    assert_int_equal(lab_delete_offset(&lab, "g", "t", 0), KE_GROUP_SUBSCRIBED_TO_TOPIC);
    assert_int_equal(lab_delete_offset(&lab, "g", "no", 0), KE_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(lab_quit(&lab, "g", m), 0);
    assert_int_equal(lab_delete_offset(&lab, "g", "t", 1), 0);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, 3);
    assert_int_equal(lab_delete_offset(&lab, "g", "t", 0), 0);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, -1);
    assert_int_equal(lab_commit_at(&lab, "g", NOBODY, "t", 0, 4, 1, ""), 0);
    assert_int_equal(lab_delete(&lab, "g"), 0);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).offset, -1);
    assert_int_equal(lab_delete(&lab, "g"), KE_GROUP_ID_NOT_FOUND);
    assert_int_equal(lab_delete_offset(&lab, "g", "t", 0), KE_GROUP_ID_NOT_FOUND);
    lab_reopen(&lab);
    assert_int_equal(lab.gs->table.n, 0);
    groups_lab_fini(&lab);
}

/* Case 29. */
static void all_offsets_are_asked_for_by_null_and_none_by_an_empty_list(void **arg)
{
    struct groups_lab lab;

    (void)arg;
    groups_lab_init(&lab);
    assert_int_equal(lab_commit_at(&lab, "g", NOBODY, "t", 0, 1, 1, ""), 0);
    assert_int_equal(lab_commit_at(&lab, "g", NOBODY, "u", 1, 2, 1, ""), 0);
    for (int16_t v = 1; v <= 9; v++) {
        struct kp_offset_fetch_req *req = harness_body(&lab.h, KP_API_OFFSET_FETCH);
        struct kp_offset_fetch_req_groups *g =
            kp_array(&kp_offset_fetch_req_groups_desc, &lab.h.arena, 2);
        for (int null = 0; null <= 1; null++) {
            if (null == 1 && v < 2)
                continue;
            req->group_id = v < 8 ? span_str("g") : req->group_id;
            req->topics_n = v < 8 && null == 1 ? -1 : 0;
            if (v >= 8) {
                req->groups = g;
                req->groups_n = 2;
                g[0].group_id = span_str("g");
                g[1].group_id = span_str("nobody");
                g[0].topics_n = g[1].topics_n = null == 1 ? -1 : 0;
            }
            const struct kp_offset_fetch_resp *resp = lab_call(&lab, KP_API_OFFSET_FETCH, v, req);
            int32_t n = v < 8 ? resp->topics_n : resp->groups[0].topics_n;
            assert_int_equal(n, null == 1 ? 2 : 0);
            if (v >= 8) {
                assert_int_equal(resp->groups_n, 2);
                assert_int_equal(resp->groups[1].error_code, 0);
                assert_int_equal(resp->groups[1].topics_n, 0);
            }
        }
    }
    groups_lab_fini(&lab);
}

static const struct kp_describe_groups_resp_groups *describe(struct groups_lab *lab,
                                                             const char *group, int16_t version)
{
    struct kp_describe_groups_req *req = harness_body(&lab->h, KP_API_DESCRIBE_GROUPS);
    struct span name = span_str(group);

    req->groups = &name;
    req->groups_n = 1;
    const struct kp_describe_groups_resp *resp =
        lab_call(lab, KP_API_DESCRIBE_GROUPS, version, req);
    assert_int_equal(resp->groups_n, 1);
    return resp->groups;
}

static void groups_are_described_and_listed(void **arg)
{
    struct groups_lab lab;

    (void)arg;
    groups_lab_init(&lab);
    struct lab_who m = lab_member(&lab, "g1");
    assert_int_equal(lab_commit_at(&lab, "g2", NOBODY, "t", 0, 1, 1, ""), 0);
    const struct kp_describe_groups_resp_groups *d = describe(&lab, "g1", 5);
    assert_true(span_eq_str(d->group_state, "Stable"));
    assert_true(span_eq_str(d->protocol_type, "consumer"));
    assert_true(span_eq_str(d->protocol_data, "range"));
    assert_int_equal(d->members_n, 1);
    assert_true(span_eq_str(d->members->member_id, m.member));
    assert_true(span_eq_str(d->members->client_id, "test"));
    assert_true(span_eq_str(d->members->client_host, "/test"));
    assert_true(span_eq_str(describe(&lab, "g2", 5)->group_state, "Empty"));
    assert_true(span_eq_str(describe(&lab, "g3", 5)->group_state, "Dead"));
    assert_int_equal(describe(&lab, "g3", 5)->error_code, 0);
    assert_int_equal(describe(&lab, "g3", 6)->error_code, KE_GROUP_ID_NOT_FOUND);
    static const struct {
        const char *state;
        const char *type;
        int n;
    } rows[] = {{NULL, NULL, 2},      {"stable", NULL, 1},   {"Empty", NULL, 1},
                {NULL, "classic", 2}, {NULL, "consumer", 0}, {"Dead", NULL, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kp_list_groups_req *req = harness_body(&lab.h, KP_API_LIST_GROUPS);
        struct span state = span_str(rows[i].state);
        struct span type = span_str(rows[i].type);
        req->states_filter = &state;
        req->states_filter_n = rows[i].state != NULL ? 1 : 0;
        req->types_filter = &type;
        req->types_filter_n = rows[i].type != NULL ? 1 : 0;
        const struct kp_list_groups_resp *resp = lab_call(&lab, KP_API_LIST_GROUPS, 5, req);
        assert_int_equal(resp->error_code, 0);
        assert_int_equal(resp->groups_n, rows[i].n);
    }
    groups_lab_fini(&lab);
}

static void a_strict_name_is_subscribed_to_in_any_form(void **arg)
{
    static const char *const forms[] = {"t", ".74"};
    struct groups_lab lab;

    (void)arg;
    groups_lab_init(&lab);
    lab.strict_names = true;
    lab_view(&lab);
    for (size_t i = 0; i < 2; i++) {
        struct kp_consumer_group_heartbeat_req *hb =
            harness_body(&lab.h, KP_API_CONSUMER_GROUP_HEARTBEAT);
        struct span name = span_str(forms[i]);
        hb->group_id = name;
        hb->member_id = span_str("m");
        hb->rebalance_timeout_ms = 1000;
        hb->subscribed_topic_names = &name;
        hb->subscribed_topic_names_n = 1;
        hb->topic_partitions_n = 0;
        const struct kp_consumer_group_heartbeat_resp *in =
            lab_call(&lab, KP_API_CONSUMER_GROUP_HEARTBEAT, 1, hb);
        assert_int_equal(in->error_code, 0);
        assert_non_null(in->assignment);
        assert_int_equal(in->assignment->topic_partitions_n, 1);
        assert_int_equal(in->assignment->topic_partitions[0].partitions_n, LAB_PARTS);
    }
    groups_lab_fini(&lab);
}

/* REV's find: what lay behind a pattern in memory was sent along. */
static void a_pattern_is_described_as_it_was_sent(void **arg)
{
    struct groups_lab lab;
    char text[64];

    (void)arg;
    groups_lab_init(&lab);
    for (size_t n = 1; n < sizeof text; n++) { /* some fill their block of memory */
        struct kp_consumer_group_heartbeat_req *hb =
            harness_body(&lab.h, KP_API_CONSUMER_GROUP_HEARTBEAT);
        memset(text, 'a', n);
        hb->group_id = span_str("g");
        hb->member_id = span_str("m");
        hb->rebalance_timeout_ms = 1000;
        hb->subscribed_topic_regex = span_of(text, n);
        hb->topic_partitions_n = 0;
        const struct kp_consumer_group_heartbeat_resp *in =
            lab_call(&lab, KP_API_CONSUMER_GROUP_HEARTBEAT, 1, hb);
        assert_int_equal(in->error_code, 0);
        struct kp_consumer_group_describe_req *req =
            harness_body(&lab.h, KP_API_CONSUMER_GROUP_DESCRIBE);
        struct span name = span_str("g");
        req->group_ids = &name;
        req->group_ids_n = 1;
        const struct kp_consumer_group_describe_resp *resp =
            lab_call(&lab, KP_API_CONSUMER_GROUP_DESCRIBE, 0, req);
        assert_int_equal(resp->groups[0].members_n, 1);
        assert_true(span_eq(resp->groups[0].members[0].subscribed_topic_regex, span_of(text, n)));
    }
    groups_lab_fini(&lab);
}

static void a_task_that_is_served_elsewhere_is_sent_there(void **arg)
{
    struct groups_lab lab;

    (void)arg;
    groups_lab_init(&lab);
    assert_int_equal(lab_commit_at(&lab, "g", NOBODY, "t", 0, 1, 1, ""), 0);
    lab.redirect = "elsewhere";
    lab_view(&lab);
    assert_int_equal(lab_join(&lab, "g", "")->error_code, KE_NOT_COORDINATOR);
    assert_int_equal(lab_beat(&lab, "g", NOBODY), KE_NOT_COORDINATOR);
    assert_int_equal(lab_commit_at(&lab, "g", NOBODY, "t", 0, 2, 1, ""), KE_NOT_COORDINATOR);
    assert_int_equal(lab_read_at(&lab, "g", "t", 0).error, KE_NOT_COORDINATOR);
    assert_int_equal(lab_delete(&lab, "g"), KE_NOT_COORDINATOR);
    struct kp_find_coordinator_req *req = harness_body(&lab.h, KP_API_FIND_COORDINATOR);
    req->key = span_str("g");
    const struct kp_find_coordinator_resp *resp =
        harness_call(lab.mc, KP_API_FIND_COORDINATOR, 2, req);
    assert_int_equal(resp->error_code, 0);
    assert_int_equal(resp->node_id, 77);
    assert_int_equal(resp->port, 9);
    assert_true(span_eq_str(resp->host, "elsewhere"));
    groups_lab_fini(&lab);
}

static void ids_that_cannot_be_are_refused(void **arg)
{
    struct groups_lab lab;

    (void)arg;
    groups_lab_init(&lab);
    assert_int_equal(lab_join(&lab, "", "")->error_code, KE_INVALID_GROUP_ID);
    assert_int_equal(lab_join(&lab, "g", "ghost")->error_code, KE_UNKNOWN_MEMBER_ID);
    assert_int_equal(lab.gs->table.n, 0);
    groups_lab_fini(&lab);
}

static void a_client_that_goes_away_while_it_waits_is_let_go_of(void **arg)
{
    struct groups_lab lab;

    (void)arg;
    groups_lab_init(&lab);
    struct lab_who m = lab_member(&lab, "g");
    lab_join_send(&lab, "g", "", 3, 9);
    conn_close(&lab.mc->conn, 0, "test");
    harness_turns(&lab.h);
    lab.mc = mem_conn_new(&lab.h);
    const struct kp_join_group_resp *j = lab_join(&lab, "g", m.member);
    assert_int_equal(j->error_code, 0);
    assert_int_equal(j->members_n, 2); /* a ghost, until its session ends */
    m = lab_sync(&lab, "g", j);
    lab_pass(&lab, 9000);
    assert_int_equal(lab_beat(&lab, "g", m), 0);
    lab_pass(&lab, 2000);
    assert_int_equal(lab_beat(&lab, "g", m), KE_REBALANCE_IN_PROGRESS);
    groups_lab_fini(&lab);
}

static void a_stop_answers_those_who_wait(void **arg)
{
    struct groups_lab lab;

    (void)arg;
    groups_lab_init(&lab);
    (void)lab_member(&lab, "g");
    lab_join_send(&lab, "g", "", 3, 9);
    groups_drain(lab.gs);
    lab_run(&lab);
    const struct kp_join_group_resp *j = harness_decode(lab.mc, KP_API_JOIN_GROUP, 3, 9);
    assert_int_equal(j->error_code, KE_COORDINATOR_NOT_AVAILABLE);
    assert_int_equal(lab_join(&lab, "h", "")->error_code, KE_COORDINATOR_NOT_AVAILABLE);
    groups_lab_fini(&lab);
}

static void a_task_has_a_bounded_number_of_groups(void **arg)
{
    struct groups_lab lab;

    (void)arg;
    groups_lab_init(&lab);
    lab.gs->opts.max_groups = 1;
    assert_int_equal(lab_commit_at(&lab, "g", NOBODY, "t", 0, 1, 1, ""), 0);
    assert_int_equal(lab_commit_at(&lab, "h", NOBODY, "t", 0, 1, 1, ""),
                     KE_COORDINATOR_NOT_AVAILABLE);
    assert_int_equal(lab_delete(&lab, "g"), 0);
    assert_int_equal(lab_commit_at(&lab, "h", NOBODY, "t", 0, 1, 1, ""), 0);
    groups_lab_fini(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_that_was_answered_is_there_after_a_restart),
        cmocka_unit_test(a_program_without_a_group_protocol_commits_while_nobody_is_in),
        cmocka_unit_test(what_cannot_be_committed_is_refused_for_its_partition),
        cmocka_unit_test(a_raise_makes_old_commits_read_as_none_and_late_ones_harmless),
        cmocka_unit_test(a_new_generation_commits_without_an_epoch_again),
        cmocka_unit_test(a_topic_that_was_gone_for_a_while_is_known_by_its_epoch),
        cmocka_unit_test(
            a_name_that_is_no_topic_reads_as_what_the_group_committed_and_else_as_none),
        cmocka_unit_test(a_negative_offset_is_kept_as_it_is),
        cmocka_unit_test(commits_expire_by_the_time_that_a_group_has_no_members),
        cmocka_unit_test(a_commit_of_an_old_epoch_is_kept_for_the_retention_and_no_longer),
        cmocka_unit_test(a_generation_is_not_heard_of_before_it_is_durable),
        cmocka_unit_test(no_answered_commit_is_lost_at_any_step_of_the_store),
        cmocka_unit_test(a_store_that_fails_is_a_retriable_error_and_never_no_commit),
        cmocka_unit_test(a_file_of_a_newer_program_is_refused),
        cmocka_unit_test(groups_are_deleted_only_when_nobody_is_in),
        cmocka_unit_test(all_offsets_are_asked_for_by_null_and_none_by_an_empty_list),
        cmocka_unit_test(groups_are_described_and_listed),
        cmocka_unit_test(a_strict_name_is_subscribed_to_in_any_form),
        cmocka_unit_test(a_pattern_is_described_as_it_was_sent),
        cmocka_unit_test(a_task_that_is_served_elsewhere_is_sent_there),
        cmocka_unit_test(ids_that_cannot_be_are_refused),
        cmocka_unit_test(a_client_that_goes_away_while_it_waits_is_let_go_of),
        cmocka_unit_test(a_stop_answers_those_who_wait),
        cmocka_unit_test(a_task_has_a_bounded_number_of_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
