/* The Prometheus text and the JSON pieces of the admin API. Pure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/admin_int.h"
#include "gateway/metrics.h"

static char text[1 << 20];

static void render(const struct gw_view *view)
{
    struct writer w;

    wr_init(&w, sizeof text - 1);
    metrics_render(view, &w);
    assert_int_equal(wr_err(&w), 0);
    memcpy(text, w.b->data, w.b->len);
    text[w.b->len] = '\0';
    wr_fini(&w);
}

static const struct gw_view *view_of(const char *name)
{
    static const struct gw_encoder encoder = {.id = 1};
    struct jc_spec spec = {.name = "acme/t/pivot=00"};
    struct gw_topic topic = {.name = name,
                             .collection = name,
                             .encoder = &encoder,
                             .bound = {0, UINT64_MAX},
                             .epoch = 3};
    struct jc_heads heads = {
        .first = 1, .log_start = 1, .content_end = 90, .write_head = 100, .max_clock = 5};
    const struct jc_journal *j;
    const struct gw_view *view;
    struct gw_part *part;

    assert_int_equal(jc_journal_new(&spec, 1, 1, &j), 0);
    assert_int_equal(gw_part_new(j, &part), 0);
    gw_part_update(part, &heads);
    topic.parts = &part;
    topic.parts_n = 1;
    topic.first = j;
    assert_int_equal(gw_view_new(1, &topic, 1, &view), 0);
    gw_part_unref(part);
    jc_journal_unref(j);
    return view;
}

static void every_counter_has_help_type_and_value(void **state)
{
    (void)state;
    metric_add(M_PUBLISH_DOCUMENTS, 7);
    render(NULL);
    assert_non_null(strstr(text, "# HELP sluice_publish_documents_total Documents committed\n"
                                 "# TYPE sluice_publish_documents_total counter\n"
                                 "sluice_publish_documents_total 7\n"));
    assert_non_null(strstr(text, "# TYPE sluice_connections_open gauge\n"));
    assert_non_null(strstr(text, "sluice_api_requests_total{api=\"Fetch\"} 0\n"));
    assert_int_equal(text[strlen(text) - 1], '\n');
}

static void errors_are_labelled_by_number_and_none_is_left_out(void **state)
{
    (void)state;
    metric_kafka_error(3);
    metric_kafka_error(3);
    metric_kafka_error(-1);
    metric_kafka_error(0);
    render(NULL);
    assert_non_null(strstr(text, "sluice_kafka_errors_total{code=\"3\"} 2\n"));
    assert_non_null(strstr(text, "sluice_kafka_errors_total{code=\"-1\"} 1\n"));
    assert_null(strstr(text, "{code=\"0\"}"));
}

static void topics_are_labelled_and_their_names_escaped(void **state)
{
    const struct gw_view *view = view_of("a\"b\\c\nd");

    (void)state;
    render(view);
    assert_non_null(
        strstr(text, "sluice_high_watermark{topic=\"a\\\"b\\\\c\\nd\",partition=\"0\"} 90\n"));
    assert_non_null(
        strstr(text, "sluice_log_start{topic=\"a\\\"b\\\\c\\nd\",partition=\"0\"} 1\n"));
    gw_view_unref(view);
}

static void a_topic_in_json_has_kafkas_id_form(void **state)
{
    const struct gw_view *view = view_of("acme/t");
    struct kp_uuid id = {{0xfb, 0xff, 0xbf, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
    char out[23];
    struct writer w;

    (void)state;
    admin_id_text(&id, out);
    assert_string_equal(out, "-_-_AAAAAAAAAAAAAAAAAQ");
    wr_init(&w, 4096);
    admin_json_topic(&w, &view->topics[0]);
    wr_u8(&w, 0);
    assert_int_equal(wr_err(&w), 0);
    assert_string_equal((const char *)w.b->data,
                        "{\"name\":\"acme/t\",\"task\":\"\",\"collection\":\"acme/t\",\"id\":"
                        "\"AAAAAAAAAAAAAAAAAAAAAA\",\"epoch\":3,\"truncated_at\":"
                        "\"0000000000000000\",\"backfill_begin\":\"0000000000000000\","
                        "\"backfill_complete\":\"0000000000000000\",\"backfill_completed\":"
                        "\"0000000000000000\",\"partitions\":[{\"partition\":0,\"journal\":"
                        "\"acme/t/pivot=00\",\"log_start\":1,\"high_watermark\":90,"
                        "\"write_head\":100}]}");
    wr_fini(&w);
    gw_view_unref(view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_counter_has_help_type_and_value),
        cmocka_unit_test(errors_are_labelled_by_number_and_none_is_left_out),
        cmocka_unit_test(topics_are_labelled_and_their_names_escaped),
        cmocka_unit_test(a_topic_in_json_has_kafkas_id_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
