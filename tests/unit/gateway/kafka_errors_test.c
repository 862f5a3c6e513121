/* The mapping of our errors to Kafka's numbers, the counters of those numbers, and the probe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "gateway/gateway.h"
#include "gateway/kafka_errors.h"
#include "gateway/metrics.h"
#include "gateway/topics.h"
#include "journal_client/uuid.h"

static void every_error_has_a_number_and_success_is_none(void **state)
{
    (void)state;
    assert_int_equal(kafka_error_of(0), KE_NONE);
#define X(name, value, class, text) assert_int_not_equal(kafka_error_of(name), KE_NONE);
    ERR_TABLE(X)
#undef X
    assert_int_equal(kafka_error_of(E_RANGE), KE_OFFSET_OUT_OF_RANGE);
    assert_int_equal(kafka_error_of(E_NOTFOUND), KE_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(kafka_error_of(-1000), KE_UNKNOWN_SERVER_ERROR);
}

static void numbers_outside_of_the_table_count_as_unknown(void **state)
{
    (void)state;
    int64_t before = metric_kafka_error_get(-1);

    metric_kafka_error(-2);
    metric_kafka_error(128);
    metric_kafka_error(INT16_MAX);
    assert_int_equal(metric_kafka_error_get(-1), before + 3);
    metric_kafka_error(127);
    assert_int_equal(metric_kafka_error_get(127), 1);
    metric_api_request(-1);
    metric_api_request(INT16_MAX);
    metric_api_request(18);
    assert_int_equal(metric_api_request_get(18), 1);
    assert_int_equal(metric_api_request_get(-1), 0);
}

static void topic_names_follow_kafkas_rule(void **state)
{
    (void)state;
    char name[251];

    memset(name, 'a', sizeof name);
    assert_true(topic_name_legal(span_of(name, 249)));
    assert_false(topic_name_legal(span_of(name, 250)));
    assert_true(topic_name_legal(span_str("A-z_0.9")));
    assert_true(topic_name_legal(span_str("...")));
    assert_false(topic_name_legal(span_str(".")));
    assert_false(topic_name_legal(span_str("..")));
    assert_false(topic_name_legal(span_str("")));
    assert_false(topic_name_legal(span_str("a/b")));
    assert_false(topic_name_legal(span_str("\xc3\xbc")));
    assert_false(topic_name_legal(span_of("a\0b", 3)));
}

static enum jc_doc_kind kind(const char *line)
{
    struct jc_doc_info info;

    gw_doc_probe(NULL, span_str(line), &info);
    return info.kind;
}

static void lines_are_blank_hidden_or_content(void **state)
{
    (void)state;
    char line[128];
    const struct {
        uint16_t flags;
        enum jc_doc_kind kind;
    } by_flags[] = {
        {JC_FLAG_OUTSIDE, JC_DOC_CONTENT},    {JC_FLAG_CONTINUE, JC_DOC_CONTENT},
        {JC_FLAG_ACK, JC_DOC_HIDDEN},         {JC_FLAG_CONTROL, JC_DOC_HIDDEN},
        {JC_FLAG_ACK | 8, JC_DOC_HIDDEN},     {JC_FLAG_CONTINUE | 8, JC_DOC_CONTENT},
        {JC_FLAG_CONTROL | 1, JC_DOC_HIDDEN},
    };

    assert_int_equal(kind(""), JC_DOC_BLANK);
    assert_int_equal(kind(" \t\r"), JC_DOC_BLANK);
    assert_int_equal(kind("{}"), JC_DOC_CONTENT);
    assert_int_equal(kind("not json"), JC_DOC_CONTENT);
    assert_int_equal(kind("{\"_meta\":{\"uuid\":\"zzz\"}}"), JC_DOC_CONTENT);
    for (size_t i = 0; i < sizeof by_flags / sizeof by_flags[0]; i++) {
        const struct jc_uuid u = {.clock = UINT64_C(0x1eac6a39f2952f3a),
                                  .flags = by_flags[i].flags};
        struct jc_doc_info info;
        char text[JC_UUID_TEXT];
        jc_uuid_format(&u, text);
        int n = snprintf(line, sizeof line, "{\"_meta\":{\"uuid\":\"%.*s\"}}", JC_UUID_TEXT, text);
        gw_doc_probe(NULL, span_of(line, (size_t)n), &info);
        assert_int_equal(info.kind, by_flags[i].kind);
        assert_true(info.clock == u.clock);
        assert_int_equal(info.flags, u.flags);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_a_number_and_success_is_none),
        cmocka_unit_test(numbers_outside_of_the_table_count_as_unknown),
        cmocka_unit_test(topic_names_follow_kafkas_rule),
        cmocka_unit_test(lines_are_blank_hidden_or_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
