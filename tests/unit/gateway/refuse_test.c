/* Requests that would write: each item of the answer names what it refuses. */
#include "tests/unit/gateway/harness.h"

static int setup(void **state)
{
    struct harness *h = mem_zalloc(sizeof *h);

    harness_init(h);
    fake_journal(h->fs, "j/a0", "orders");
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

static struct kp_produce_req *produce(struct harness *h, int16_t acks)
{
    struct kp_produce_req *body = harness_body(h, KP_API_PRODUCE);

    body->acks = acks;
    body->topic_data = kp_array(&kp_produce_req_topic_data_desc, &h->arena, 1);
    body->topic_data_n = 1;
    body->topic_data[0].name = span_str("orders");
    body->topic_data[0].partition_data =
        kp_array(&kp_produce_req_topic_data_partition_data_desc, &h->arena, 2);
    body->topic_data[0].partition_data_n = 2;
    body->topic_data[0].partition_data[1].index = 7;
    return body;
}

static void produce_is_refused_per_partition_with_names_and_indexes(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);

    for (int16_t v = 3; v <= 9; v++) {
        struct kp_produce_resp *resp = harness_call(mc, KP_API_PRODUCE, v, produce(h, 1));
        assert_int_equal(resp->responses_n, 1);
        assert_true(span_eq_str(resp->responses[0].name, "orders"));
        assert_int_equal(resp->responses[0].partition_responses_n, 2);
        assert_int_equal(resp->responses[0].partition_responses[1].index, 7);
        assert_int_equal(resp->responses[0].partition_responses[1].error_code,
                         KE_TOPIC_AUTHORIZATION_FAILED);
        assert_int_equal(resp->responses[0].partition_responses[1].base_offset, -1);
    }
}

static void produce_without_acks_gets_no_answer_and_the_connection_goes_on(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    struct span none;

    harness_send(mc, KP_API_PRODUCE, 7, 1, produce(h, 0));
    assert_false(harness_take(mc, &none));
    assert_int_equal(mc->conn.queue_n, 0);
    struct kp_produce_resp *resp = harness_call(mc, KP_API_PRODUCE, 7, produce(h, -1));
    assert_int_equal(resp->responses_n, 1);
}

static void create_topics_says_exists_or_not_permitted(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);

    for (int16_t v = 2; v <= 7; v++) {
        struct kp_create_topics_req *body = harness_body(h, KP_API_CREATE_TOPICS);
        body->topics = kp_array(&kp_create_topics_req_topics_desc, &h->arena, 2);
        body->topics_n = 2;
        body->topics[0].name = span_str("orders");
        body->topics[1].name = span_str("fresh");
        struct kp_create_topics_resp *resp = harness_call(mc, KP_API_CREATE_TOPICS, v, body);
        assert_int_equal(resp->topics_n, 2);
        assert_int_equal(resp->topics[0].error_code, KE_TOPIC_ALREADY_EXISTS);
        assert_true(span_eq_str(resp->topics[1].name, "fresh"));
        assert_int_equal(resp->topics[1].error_code, KE_TOPIC_AUTHORIZATION_FAILED);
    }
}

static void delete_topics_is_refused_by_name_and_by_id(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);
    struct span names[] = {span_str("orders")};

    for (int16_t v = 1; v <= 6; v++) {
        struct kp_delete_topics_req *body = harness_body(h, KP_API_DELETE_TOPICS);
        if (v < 6) {
            body->topic_names = names;
            body->topic_names_n = 1;
        } else {
            body->topics = kp_array(&kp_delete_topics_req_topics_desc, &h->arena, 2);
            body->topics_n = 2;
            body->topics[0].topic_id = h->w.view->topics[0].id;
            body->topics[1].topic_id.b[3] = 1;
        }
        struct kp_delete_topics_resp *resp = harness_call(mc, KP_API_DELETE_TOPICS, v, body);
        assert_int_equal(resp->responses[0].error_code, KE_TOPIC_AUTHORIZATION_FAILED);
        assert_true(span_eq_str(resp->responses[0].name, "orders"));
        if (v == 6)
            assert_int_equal(resp->responses[1].error_code, KE_UNKNOWN_TOPIC_ID);
    }
}

static void the_other_admin_requests_are_refused_item_by_item(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);

    for (int16_t v = 0; v <= 3; v++) {
        struct kp_create_partitions_req *body = harness_body(h, KP_API_CREATE_PARTITIONS);
        body->topics = kp_array(&kp_create_partitions_req_topics_desc, &h->arena, 1);
        body->topics_n = 1;
        body->topics[0].name = span_str("orders");
        struct kp_create_partitions_resp *resp =
            harness_call(mc, KP_API_CREATE_PARTITIONS, v, body);
        assert_true(span_eq_str(resp->results[0].name, "orders"));
        assert_int_equal(resp->results[0].error_code, KE_TOPIC_AUTHORIZATION_FAILED);
    }
    for (int16_t v = 0; v <= 2; v++) {
        struct kp_delete_records_req *body = harness_body(h, KP_API_DELETE_RECORDS);
        body->topics = kp_array(&kp_delete_records_req_topics_desc, &h->arena, 1);
        body->topics_n = 1;
        body->topics[0].name = span_str("orders");
        body->topics[0].partitions =
            kp_array(&kp_delete_records_req_topics_partitions_desc, &h->arena, 1);
        body->topics[0].partitions_n = 1;
        body->topics[0].partitions[0].partition_index = 3;
        struct kp_delete_records_resp *resp = harness_call(mc, KP_API_DELETE_RECORDS, v, body);
        assert_int_equal(resp->topics[0].partitions[0].partition_index, 3);
        assert_int_equal(resp->topics[0].partitions[0].error_code, KE_TOPIC_AUTHORIZATION_FAILED);
        assert_int_equal(resp->topics[0].partitions[0].low_watermark, -1);
    }
    for (int16_t v = 0; v <= 2; v++) {
        struct kp_alter_configs_req *body = harness_body(h, KP_API_ALTER_CONFIGS);
        body->resources = kp_array(&kp_alter_configs_req_resources_desc, &h->arena, 2);
        body->resources_n = 2;
        body->resources[0].resource_type = 2;
        body->resources[0].resource_name = span_str("orders");
        body->resources[1].resource_type = 4;
        body->resources[1].resource_name = span_str("1");
        struct kp_alter_configs_resp *resp = harness_call(mc, KP_API_ALTER_CONFIGS, v, body);
        assert_int_equal(resp->responses[0].error_code, KE_TOPIC_AUTHORIZATION_FAILED);
        assert_int_equal(resp->responses[1].error_code, KE_CLUSTER_AUTHORIZATION_FAILED);
        assert_int_equal(resp->responses[1].resource_type, 4);
    }
    for (int16_t v = 0; v <= 1; v++) {
        struct kp_incremental_alter_configs_req *body =
            harness_body(h, KP_API_INCREMENTAL_ALTER_CONFIGS);
        body->resources = kp_array(&kp_incremental_alter_configs_req_resources_desc, &h->arena, 1);
        body->resources_n = 1;
        body->resources[0].resource_type = 2;
        body->resources[0].resource_name = span_str("orders");
        struct kp_incremental_alter_configs_resp *resp =
            harness_call(mc, KP_API_INCREMENTAL_ALTER_CONFIGS, v, body);
        assert_int_equal(resp->responses[0].error_code, KE_TOPIC_AUTHORIZATION_FAILED);
        assert_true(span_eq_str(resp->responses[0].resource_name, "orders"));
    }
}

static void producers_and_access_lists_get_a_code_for_the_whole(void **state)
{
    struct harness *h = *state;
    struct mem_conn *mc = mem_conn_new(h);

    for (int16_t v = 0; v <= 5; v++) {
        struct kp_init_producer_id_req *body = harness_body(h, KP_API_INIT_PRODUCER_ID);
        body->transactional_id = (struct span){NULL, 0};
        struct kp_init_producer_id_resp *resp = harness_call(mc, KP_API_INIT_PRODUCER_ID, v, body);
        assert_int_equal(resp->error_code, KE_CLUSTER_AUTHORIZATION_FAILED);
        body->transactional_id = span_str("t");
        resp = harness_call(mc, KP_API_INIT_PRODUCER_ID, v, body);
        assert_int_equal(resp->error_code, KE_TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    }
    for (int16_t v = 1; v <= 3; v++) {
        struct kp_describe_acls_req *body = harness_body(h, KP_API_DESCRIBE_ACLS);
        struct kp_describe_acls_resp *resp = harness_call(mc, KP_API_DESCRIBE_ACLS, v, body);
        assert_int_equal(resp->error_code, KE_SECURITY_DISABLED);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(produce_is_refused_per_partition_with_names_and_indexes),
        T(produce_without_acks_gets_no_answer_and_the_connection_goes_on),
        T(create_topics_says_exists_or_not_permitted),
        T(delete_topics_is_refused_by_name_and_by_id),
        T(the_other_admin_requests_are_refused_item_by_item),
        T(producers_and_access_lists_get_a_code_for_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
