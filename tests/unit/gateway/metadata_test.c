/* Metadata by version: who asks for what, and what is said of topics that are not there. */
#include "gateway/topics.h"
#include "tests/unit/gateway/harness.h"

static int setup(void **state)
{
    struct harness *h = mem_zalloc(sizeof *h);

    harness_init(h);
    fake_journal(h->fs, "j/a0", "orders");
    fake_journal(h->fs, "j/a1", "orders");
    fake_journal(h->fs, "j/b0", "acme/users");
    fake_journal(h->fs, "j/c0", "zeta");
    harness_settle(h);
    *state = h;
    return 0;
}

static int teardown(void **state)
{
    harness_fini(*state);
    mem_free(*state);
    return 0;
}

static struct kp_metadata_resp *ask(struct harness *h, struct mem_conn *mc, int16_t version,
                                    int32_t n, const struct kp_metadata_req_topics *topics)
{
    struct kp_metadata_req *body = harness_body(h, KP_API_METADATA);

    body->topics_n = n;
    if (n > 0) {
        body->topics = kp_array(&kp_metadata_req_topics_desc, &h->arena, (size_t)n);
        memcpy(body->topics, topics, (size_t)n * sizeof *topics);
    }
    return harness_call(mc, KP_API_METADATA, version, body);
}

static void null_asks_for_all_and_empty_for_none_but_in_version_0_empty_asks_for_all(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);

    assert_int_equal(ask(h, mc, 0, 0, NULL)->topics_n, 3);
    for (int16_t v = 1; v <= 13; v++) {
        struct kp_metadata_resp *resp = ask(h, mc, v, -1, NULL);
        assert_int_equal(resp->topics_n, 3);
        assert_true(span_eq_str(resp->topics[0].name, "acme/users"));
        assert_true(span_eq_str(resp->topics[1].name, "orders"));
        assert_int_equal(resp->topics[1].partitions_n, 2);
        resp = ask(h, mc, v, 0, NULL);
        assert_int_equal(resp->topics_n, 0);
        assert_int_equal(resp->brokers_n, 1);
    }
}

static void the_broker_is_the_advertised_address_in_every_version(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);

    for (int16_t v = 0; v <= 13; v++) {
        struct kp_metadata_resp *resp = ask(h, mc, v, 0, NULL);
        assert_int_equal(resp->brokers[0].node_id, 1);
        assert_true(span_eq_str(resp->brokers[0].host, "gw.test"));
        assert_int_equal(resp->brokers[0].port, 19092);
        if (v >= 1)
            assert_int_equal(resp->controller_id, 1);
        if (v >= 2)
            assert_true(span_eq_str(resp->cluster_id, "test-cluster"));
    }
}

static void partitions_carry_leader_epoch_and_replicas(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    const struct kp_metadata_req_topics one = {.name = span_str("orders")};

    for (int16_t v = 0; v <= 13; v++) {
        struct kp_metadata_resp *resp = ask(h, mc, v, 1, &one);
        assert_int_equal(resp->topics_n, 1);
        assert_int_equal(resp->topics[0].error_code, 0);
        for (int32_t i = 0; i < 2; i++) {
            const struct kp_metadata_resp_topics_partitions *p = &resp->topics[0].partitions[i];
            assert_int_equal(p->partition_index, i);
            assert_int_equal(p->leader_id, 1);
            assert_int_equal(p->leader_epoch, v >= 7 ? 1 : -1);
            assert_int_equal(p->replica_nodes_n, 1);
            assert_int_equal(p->isr_nodes[0], 1);
            assert_int_equal(p->offline_replicas_n, 0);
        }
    }
}

static void unknown_and_illegal_names_get_their_error_and_existing_names_are_served(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    static char long_name[251];
    memset(long_name, 'x', 250);
    const struct kp_metadata_req_topics asked[] = {
        {.name = span_str("nope")},       {.name = span_str("acme/orders")},
        {.name = span_str("")},           {.name = span_str("..")},
        {.name = span_str("acme/users")}, {.name = span_str(long_name)},
    };
    const int16_t expected[] = {3, 17, 17, 17, 0, 17};

    for (int16_t v = 0; v <= 13; v++) {
        struct kp_metadata_resp *resp = ask(h, mc, v, 6, asked);
        assert_int_equal(resp->topics_n, 6);
        for (int32_t i = 0; i < 6; i++) {
            assert_int_equal(resp->topics[i].error_code, expected[i]);
            assert_true(span_eq(resp->topics[i].name, asked[i].name));
        }
    }
    assert_int_equal(ask(h, mc, 12, -1, NULL)->topics_n, 3); /* nothing was created */
}

static void topics_are_found_by_id_from_version_12_on(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    struct kp_metadata_resp *all = ask(h, mc, 12, -1, NULL);
    struct kp_metadata_req_topics asked[] = {
        {.topic_id = all->topics[1].topic_id},
        {.topic_id = {{9, 9, 9}}},
    };

    for (int16_t v = 12; v <= 13; v++) {
        struct kp_metadata_resp *resp = ask(h, mc, v, 2, asked);
        assert_int_equal(resp->topics_n, 2);
        assert_int_equal(resp->topics[0].error_code, 0);
        assert_true(span_eq_str(resp->topics[0].name, "orders"));
        assert_int_equal(resp->topics[1].error_code, KE_UNKNOWN_TOPIC_ID);
        assert_null(resp->topics[1].name.p);
        assert_memory_equal(&resp->topics[1].topic_id, &asked[1].topic_id, 16);
    }
    asked[0].name = asked[1].name = span_of("", 0);
    struct kp_metadata_resp *resp = ask(h, mc, 10, 2, asked);
    assert_int_equal(resp->topics[0].error_code, KE_INVALID_REQUEST);
    assert_int_equal(resp->topics[1].error_code, KE_INVALID_REQUEST);
}

static void a_topic_asked_for_twice_is_answered_once(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    const struct kp_metadata_req_topics asked[] = {{.name = span_str("orders")},
                                                   {.name = span_str("orders")}};

    assert_int_equal(ask(h, mc, 9, 2, asked)->topics_n, 1);
}

static void operations_are_told_only_to_who_asks(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);

    for (int16_t v = 8; v <= 13; v++) {
        struct kp_metadata_req *body = harness_body(h, KP_API_METADATA);
        body->topics_n = -1;
        struct kp_metadata_resp *resp = harness_call(mc, KP_API_METADATA, v, body);
        assert_int_equal(resp->topics[0].topic_authorized_operations, INT32_MIN);
        body->include_topic_authorized_operations = true;
        body->include_cluster_authorized_operations = v <= 10;
        resp = harness_call(mc, KP_API_METADATA, v, body);
        assert_int_equal(resp->topics[0].topic_authorized_operations, GW_TOPIC_OPERATIONS);
        assert_int_equal(resp->cluster_authorized_operations,
                         v <= 10 ? GW_CLUSTER_OPERATIONS : INT32_MIN);
    }
}

/* One topic of many partitions: an answer costs what it holds, not its square. */
static void five_thousand_partitions_are_answered_within_the_arena(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    enum { PARTS = 5000 };
    struct gw_part **parts = mem_array(PARTS, sizeof(struct gw_part *));
    static const struct gw_encoder encoder;
    const struct jc_journal *j = fake_make("big", NULL, 0, 1, 1);
    const struct gw_view *view;

    for (size_t i = 0; i < PARTS; i++)
        assert_int_equal(gw_part_new(j, &parts[i]), 0);
    const struct gw_topic topic = {.name = "big",
                                   .collection = "big",
                                   .epoch = 1,
                                   .encoder = &encoder,
                                   .parts_n = PARTS,
                                   .parts = parts};
    assert_int_equal(gw_view_new(99, &topic, 1, &view), 0);
    assert_int_equal(worker_post_view(&h->w, view), 0);
    gw_view_unref(view);
    h->config.conn_output_bytes = 16 * 1024 * 1024;
    struct kp_metadata_resp *resp = ask(h, mc, 12, -1, NULL);
    assert_int_equal(resp->topics[0].partitions_n, PARTS);
    assert_int_equal(resp->topics[0].partitions[PARTS - 1].partition_index, PARTS - 1);
    for (size_t i = 0; i < PARTS; i++)
        gw_part_unref(parts[i]);
    mem_free(parts);
    jc_journal_unref(j);
}

static void find_coordinator_has_none_and_says_for_which_key(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    struct span keys[] = {span_str("g1"), span_str("g2")};

    for (int16_t v = 0; v <= 6; v++) {
        struct kp_find_coordinator_req *body = harness_body(h, KP_API_FIND_COORDINATOR);
        if (v < 4) {
            body->key = keys[0];
        } else {
            body->coordinator_keys = keys;
            body->coordinator_keys_n = 2;
        }
        struct kp_find_coordinator_resp *resp = harness_call(mc, KP_API_FIND_COORDINATOR, v, body);
        if (v < 4) {
            assert_int_equal(resp->error_code, KE_COORDINATOR_NOT_AVAILABLE);
            assert_int_equal(resp->node_id, -1);
        } else {
            assert_int_equal(resp->coordinators_n, 2);
            assert_true(span_eq_str(resp->coordinators[1].key, "g2"));
            assert_int_equal(resp->coordinators[1].error_code, KE_COORDINATOR_NOT_AVAILABLE);
        }
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(null_asks_for_all_and_empty_for_none_but_in_version_0_empty_asks_for_all),
        T(the_broker_is_the_advertised_address_in_every_version),
        T(partitions_carry_leader_epoch_and_replicas),
        T(unknown_and_illegal_names_get_their_error_and_existing_names_are_served),
        T(topics_are_found_by_id_from_version_12_on),
        T(a_topic_asked_for_twice_is_answered_once),
        T(operations_are_told_only_to_who_asks),
        T(five_thousand_partitions_are_answered_within_the_arena),
        T(find_coordinator_has_none_and_says_for_which_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
