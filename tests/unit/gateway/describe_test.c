/* What admin clients are told of topics, the broker and the cluster. */
#include "tests/unit/gateway/harness.h"

static int setup(void **state)
{
    struct harness *h = mem_zalloc(sizeof *h);
    const struct jc_label labels[] = {{JC_LABEL_COLLECTION, "orders"},
                                      {JC_LABEL_TRUNCATED_AT, "1f0a000000000010"}};

    harness_init(h);
    fake_journal_labels(h->fs, "j/a0", labels, 2);
    fake_journal_labels(h->fs, "j/a1", labels, 2);
    fake_journal_labels(h->fs, "j/a2", labels, 2);
    fake_journal(h->fs, "j/b0", "users");
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

static struct kp_describe_configs_resp *configs(struct harness *h, struct mem_conn *mc,
                                                int16_t version, int8_t type, const char *name,
                                                struct span *keys, int32_t keys_n)
{
    struct kp_describe_configs_req *body = harness_body(h, KP_API_DESCRIBE_CONFIGS);

    body->resources = kp_array(&kp_describe_configs_req_resources_desc, &h->arena, 1);
    body->resources_n = 1;
    body->resources[0].resource_type = type;
    body->resources[0].resource_name = span_str(name);
    body->resources[0].configuration_keys = keys;
    body->resources[0].configuration_keys_n = keys_n;
    body->include_synonyms = true;
    body->include_documentation = version >= 3;
    return harness_call(mc, KP_API_DESCRIBE_CONFIGS, version, body);
}

static const struct kp_describe_configs_resp_results_configs *
config(const struct kp_describe_configs_resp *resp, const char *name)
{
    for (int32_t i = 0; i < resp->results[0].configs_n; i++) {
        if (span_eq_str(resp->results[0].configs[i].name, name))
            return &resp->results[0].configs[i];
    }
    fail_msg("no setting %s", name);
    return NULL;
}

static void a_topic_shows_its_real_settings(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);

    for (int16_t v = 1; v <= 4; v++) {
        struct kp_describe_configs_resp *resp = configs(h, mc, v, 2, "orders", NULL, -1);
        assert_int_equal(resp->results_n, 1);
        assert_int_equal(resp->results[0].error_code, 0);
        assert_int_equal(resp->results[0].resource_type, 2);
        assert_true(span_eq_str(resp->results[0].resource_name, "orders"));
        assert_true(span_eq_str(config(resp, "cleanup.policy")->value, "delete"));
        assert_true(span_eq_str(config(resp, "retention.ms")->value, "-1"));
        assert_true(span_eq_str(config(resp, "message.timestamp.type")->value, "CreateTime"));
        assert_true(span_eq_str(config(resp, "sluice.collection")->value, "orders"));
        assert_true(span_eq_str(config(resp, "sluice.truncated-at")->value, "1f0a000000000010"));
        assert_int_equal(config(resp, "retention.ms")->synonyms_n, 1);
        assert_int_equal(config(resp, "retention.ms")->config_type, v >= 3 ? 5 : 0);
        resp = configs(h, mc, v, 2, "users", NULL, -1);
        assert_true(span_eq_str(config(resp, "sluice.truncated-at")->value, ""));
    }
}

/* 20 bytes of a request ask for 2,000 of an answer. */
static void an_answer_that_gets_too_long_says_so_for_what_is_left(void **state)
{
    enum { N = 8000 };
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    struct kp_describe_configs_req *body = harness_body(h, KP_API_DESCRIBE_CONFIGS);

    body->resources = kp_array(&kp_describe_configs_req_resources_desc, &h->arena, N);
    body->resources_n = N;
    for (int i = 0; i < N; i++) {
        body->resources[i].resource_type = 2;
        body->resources[i].resource_name = span_str("orders");
        body->resources[i].configuration_keys_n = -1;
    }
    body->include_documentation = true;
    const struct kp_describe_configs_resp *resp =
        harness_call(mc, KP_API_DESCRIBE_CONFIGS, 4, body);
    assert_int_equal(resp->results_n, N);
    assert_int_equal(resp->results[100].error_code, 0);
    int32_t served = 0;
    while (served < N && resp->results[served].error_code == 0)
        served++;
    assert_in_range(served, 2000, N - 1);
    for (int32_t i = served; i < N; i++) {
        assert_int_equal(resp->results[i].error_code, KE_INVALID_REQUEST);
        assert_int_equal(resp->results[i].configs_n, 0);
        assert_true(span_eq_str(resp->results[i].resource_name, "orders"));
    }
}

static void requested_keys_are_a_filter_and_an_empty_list_is_none(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    struct span keys[] = {span_str("retention.ms"), span_str("no.such.key")};

    struct kp_describe_configs_resp *resp = configs(h, mc, 4, 2, "orders", keys, 2);
    assert_int_equal(resp->results[0].configs_n, 1);
    resp = configs(h, mc, 4, 2, "orders", keys, 0);
    assert_true(resp->results[0].configs_n > 5);
}

static void what_cannot_be_described_is_an_error_and_not_left_out(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);

    assert_int_equal(configs(h, mc, 4, 2, "nope", NULL, -1)->results[0].error_code, 3);
    assert_int_equal(configs(h, mc, 4, 2, "a/b", NULL, -1)->results[0].error_code, 17);
    assert_int_equal(configs(h, mc, 4, 4, "2", NULL, -1)->results[0].error_code, 42);
    struct kp_describe_configs_resp *resp = configs(h, mc, 4, 16, "x", NULL, -1);
    assert_int_equal(resp->results[0].error_code, 42);
    assert_int_equal(resp->results[0].resource_type, 16);
    resp = configs(h, mc, 4, 4, "1", NULL, -1);
    assert_true(
        span_eq_str(config(resp, "advertised.listeners")->value, "PLAINTEXT://gw.test:19092"));
    resp = configs(h, mc, 4, 4, "", NULL, -1);
    assert_int_equal(resp->results[0].error_code, 0);
    assert_int_equal(resp->results[0].configs_n, 0);
}

static void the_cluster_has_one_broker_and_no_controllers_to_ask(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);

    for (int16_t v = 0; v <= 2; v++) {
        struct kp_describe_cluster_req *body = harness_body(h, KP_API_DESCRIBE_CLUSTER);
        struct kp_describe_cluster_resp *resp = harness_call(mc, KP_API_DESCRIBE_CLUSTER, v, body);
        assert_int_equal(resp->error_code, 0);
        assert_int_equal(resp->brokers_n, 1);
        assert_int_equal(resp->brokers[0].port, 19092);
        assert_true(span_eq_str(resp->cluster_id, "test-cluster"));
        if (v == 0)
            continue;
        body->endpoint_type = 2;
        resp = harness_call(mc, KP_API_DESCRIBE_CLUSTER, v, body);
        assert_int_equal(resp->error_code, KE_MISMATCHED_ENDPOINT_TYPE);
        body->endpoint_type = 9;
        resp = harness_call(mc, KP_API_DESCRIBE_CLUSTER, v, body);
        assert_int_equal(resp->error_code, KE_UNSUPPORTED_ENDPOINT_TYPE);
    }
}

static void topic_partitions_come_in_pages_that_join_without_gap_or_repeat(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    const char *expected[] = {"orders/0", "orders/1", "orders/2", "users/0"};

    for (int32_t limit = 1; limit <= 5; limit++) {
        struct kp_describe_topic_partitions_req_cursor cursor;
        struct kp_describe_topic_partitions_req *body =
            harness_body(h, KP_API_DESCRIBE_TOPIC_PARTITIONS);
        size_t seen = 0;
        int pages = 0;
        body->response_partition_limit = limit;
        for (;;) {
            struct kp_describe_topic_partitions_resp *resp =
                harness_call(mc, KP_API_DESCRIBE_TOPIC_PARTITIONS, 0, body);
            int32_t in_page = 0;
            for (int32_t i = 0; i < resp->topics_n; i++) {
                for (int32_t k = 0; k < resp->topics[i].partitions_n; k++, in_page++) {
                    char got[64];
                    snprintf(got, sizeof got, "%.*s/%d", SPAN_FMT(resp->topics[i].name),
                             resp->topics[i].partitions[k].partition_index);
                    assert_true(seen < 4);
                    assert_string_equal(got, expected[seen++]);
                }
            }
            assert_true(in_page <= limit);
            if (resp->next_cursor == NULL)
                break;
            assert_true(++pages < 10);
            cursor.topic_name = resp->next_cursor->topic_name;
            cursor.partition_index = resp->next_cursor->partition_index;
            body->cursor = &cursor;
        }
        assert_int_equal(seen, 4);
    }
}

static void no_list_of_replicas_is_null_since_the_java_client_cannot_take_it(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    struct kp_describe_topic_partitions_req *body =
        harness_body(h, KP_API_DESCRIBE_TOPIC_PARTITIONS);

    struct kp_describe_topic_partitions_resp *resp =
        harness_call(mc, KP_API_DESCRIBE_TOPIC_PARTITIONS, 0, body);
    const struct kp_describe_topic_partitions_resp_topics_partitions *p =
        &resp->topics[0].partitions[0];
    assert_int_equal(p->eligible_leader_replicas_n, 0);
    assert_int_equal(p->last_known_elr_n, 0);
    assert_int_equal(p->offline_replicas_n, 0);
}

static void named_topics_are_sorted_once_each_and_unknown_ones_told(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    struct kp_describe_topic_partitions_req *body =
        harness_body(h, KP_API_DESCRIBE_TOPIC_PARTITIONS);
    const char *names[] = {"users", "nope", "orders", "users"};

    body->topics = kp_array(&kp_describe_topic_partitions_req_topics_desc, &h->arena, 4);
    body->topics_n = 4;
    for (size_t i = 0; i < 4; i++)
        body->topics[i].name = span_str(names[i]);
    struct kp_describe_topic_partitions_resp *resp =
        harness_call(mc, KP_API_DESCRIBE_TOPIC_PARTITIONS, 0, body);
    assert_int_equal(resp->topics_n, 3);
    assert_true(span_eq_str(resp->topics[0].name, "nope"));
    assert_int_equal(resp->topics[0].error_code, 3);
    assert_true(span_eq_str(resp->topics[1].name, "orders"));
    assert_true(span_eq_str(resp->topics[2].name, "users"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(an_answer_that_gets_too_long_says_so_for_what_is_left),
        T(a_topic_shows_its_real_settings),
        T(requested_keys_are_a_filter_and_an_empty_list_is_none),
        T(what_cannot_be_described_is_an_error_and_not_left_out),
        T(the_cluster_has_one_broker_and_no_controllers_to_ask),
        T(topic_partitions_come_in_pages_that_join_without_gap_or_repeat),
        T(no_list_of_replicas_is_null_since_the_java_client_cannot_take_it),
        T(named_topics_are_sorted_once_each_and_unknown_ones_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
