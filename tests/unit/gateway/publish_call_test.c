/* Publish requests from body to answer, over a store in memory with an injected clock. */
#include "publish_lab.h"

#include "journal_client/uuid.h"

static const struct publisher_opts plain = {.partitions = 1};

static struct jc_uuid uuid_in(const char *text, size_t nth)
{
    struct jc_uuid u = {0};
    const char *at = text;

    for (size_t i = 0; i <= nth; i++) {
        at = strstr(i == 0 ? at : at + 1, "\"uuid\":\"");
        assert_non_null(at);
    }
    assert_int_equal(jc_uuid_parse(span_of(at + 8, JC_UUID_TEXT), &u), 0);
    return u;
}

static void a_first_publish_creates_the_collection_and_commits_once(void **state)
{
    struct lab *lab = lab_new(&plain);
    struct lab_answer a;
    const char *text;

    (void)state;
    assert_int_equal(
        lab_publish(lab, (struct publish_req){0}, "acme/things", "{\"a\":1}\n{\"a\":2}\n", &a),
        200);
    assert_int_equal(lab->appends, 1);
    text = lab_bytes(lab, "acme/things/pivot=00");
    assert_non_null(strstr(text, "\"a\":1}\n"));
    assert_non_null(strstr(text, "\"ack\":true}}\n"));
    assert_non_null(strstr(a.json, "\"documents\":2"));
    lab_free(lab);
}

static void one_transaction_takes_one_clock_reading_and_ticks_a_document(void **state)
{
    struct publisher_opts opts = {.partitions = 4};
    struct lab *lab = lab_new(&opts);
    struct lab_answer a;
    struct span key = span_str("/id");
    struct publish_req rq = {.keys = &key, .keys_n = 1};
    uint64_t first, seen[9] = {0};
    size_t acks = 0;

    (void)state;
    assert_int_equal(jc_clock_from_unix_ns(lab->wall_ns, &first), 0);
    assert_int_equal(lab_publish(lab, rq, "acme/things",
                                 "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n{\"id\":4}\n"
                                 "{\"id\":5}\n{\"id\":6}\n{\"id\":7}\n{\"id\":8}\n",
                                 &a),
                     200);
    assert_int_equal(lab->txn_clock.reads, 1);
    for (size_t i = 0; i < lab->journals_n; i++) {
        const char *text = lab_bytes(lab, lab->journals[i].j->spec.name);

        for (size_t k = 0; text[0] != '\0'; k++) {
            struct jc_uuid u = uuid_in(text, 0);
            uint64_t nth = u.clock - first;

            assert_in_range(nth, 0, 8);
            assert_true(u.producer[0] & 1);
            if (u.flags == JC_FLAG_ACK) {
                assert_int_equal(nth, 8); /* all ACKs share the last clock */
                acks++;
            } else {
                char want[16];

                assert_int_equal(u.flags, JC_FLAG_CONTINUE);
                assert_int_equal(seen[nth]++, 0);
                /* in body order across partitions */
                snprintf(want, sizeof want, "\"id\":%d}", (int)nth + 1);
                assert_non_null(strstr(text, want));
                assert_true(strstr(text, want) < strchr(text, '\n'));
            }
            text = strchr(text, '\n') + 1;
        }
    }
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(seen[i], 1);
    assert_true(acks >= 1);
    lab_free(lab);
}

static void a_clock_that_steps_back_never_repeats_a_uuid(void **state)
{
    struct lab *lab = lab_new(&plain);
    struct lab_answer a;
    struct jc_uuid ack, next;
    const char *text;

    (void)state;
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n{}\n", &a), 200);
    ack = uuid_in(lab_bytes(lab, "acme/t/pivot=00"), 2);
    lab->wall_ns -= INT64_C(3600000000000);
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &a), 200);
    text = lab_bytes(lab, "acme/t/pivot=00");
    next = uuid_in(text, 3);
    assert_int_equal(ack.flags, JC_FLAG_ACK);
    assert_true(next.clock == ack.clock + 1);
    lab_free(lab);
}

static void offsets_in_the_answer_are_those_of_last_bytes(void **state)
{
    struct lab *lab = lab_new(&plain);
    struct lab_answer a;
    char want[128];
    const char *text;
    size_t first, second;

    (void)state;
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n{\"b\":2}\n", &a),
                     200);
    text = lab_bytes(lab, "acme/t/pivot=00");
    first = (size_t)(strchr(text, '\n') - text);
    second = (size_t)(strchr(text + first + 1, '\n') - text);
    snprintf(want, sizeof want,
             "\"documents\":2,\"first_offset\":%zu,\"last_offset\":%zu,\"begin\":0,\"end\":%zu",
             first, second, strlen(text));
    assert_non_null(strstr(a.json, want));
    lab_free(lab);
}

static void one_bad_line_refuses_all_and_creates_nothing(void **state)
{
    struct lab *lab = lab_new(&plain);
    struct lab_answer a;

    (void)state;
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t",
                                 "{\"a\":1}\n\n{\"a\":}\n[1]\n{\"a\":2}\n", &a),
                     400);
    assert_int_equal(lab->appends, 0);
    assert_int_equal(lab->journals_n, 0);
    assert_non_null(strstr(a.json, "\"total\":2"));
    assert_non_null(strstr(a.json, "{\"line\":3,\"at\":5,"));
    assert_non_null(strstr(a.json, "{\"line\":4,\"at\":0,"));
    lab_free(lab);
}

static void a_retry_with_its_key_is_answered_from_memory(void **state)
{
    struct lab *lab = lab_new(&plain);
    struct publish_req rq = {.idempotency_key = span_str("k-1")};
    struct lab_answer a, b;
    size_t n;

    (void)state;
    assert_int_equal(lab_publish(lab, rq, "acme/t", "{\"a\":1}\n", &a), 200);
    assert_false(a.replayed);
    n = strlen(lab_bytes(lab, "acme/t/pivot=00"));
    lab_restart(lab);
    assert_int_equal(lab_publish(lab, rq, "acme/t", "{\"a\":1}\n", &b), 200);
    assert_true(b.replayed);
    assert_string_equal(a.json, b.json);
    assert_int_equal(strlen(lab_bytes(lab, "acme/t/pivot=00")), n);
    assert_int_equal(lab->txn_clock.reads, 1);
    lab_free(lab);
}

static void a_key_with_another_body_is_refused(void **state)
{
    struct lab *lab = lab_new(&plain);
    struct publish_req rq = {.idempotency_key = span_str("k-1")};
    struct lab_answer a;

    (void)state;
    assert_int_equal(lab_publish(lab, rq, "acme/t", "{\"a\":1}\n", &a), 200);
    assert_int_equal(lab_publish(lab, rq, "acme/t", "{\"a\":2}\n", &a), 422);
    assert_false(a.replayed);
    /* the same key in another collection is another key */
    assert_int_equal(lab_publish(lab, rq, "acme/u", "{\"a\":2}\n", &a), 200);
    lab_free(lab);
}

/* Names and keys both hold slashes: every way to split one path must be a key of its own. */
static void keys_of_two_collections_never_meet(void **state)
{
    static const struct {
        const char *collection, *key;
    } splits[] = {{"a", "b/c/d"}, {"a/b", "c/d"}, {"a/b/c", "d"}, {"1/a", "b"}, {"1", "a/b"}};
    struct lab *lab = lab_new(&plain);
    struct lab_answer a;

    (void)state;
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        struct publish_req rq = {.idempotency_key = span_str(splits[i].key)};
        char journal[64];

        assert_int_equal(lab_publish(lab, rq, splits[i].collection, "{\"a\":1}\n", &a), 200);
        assert_false(a.replayed);
        snprintf(journal, sizeof journal, "%s/pivot=00", splits[i].collection);
        assert_non_null(strstr(lab_bytes(lab, journal), "\"a\":1}"));
    }
    lab_free(lab);
}

static void two_requests_at_once_with_one_key_commit_once(void **state)
{
    struct lab *lab = lab_new(&plain);
    struct publish_req rq = {.idempotency_key = span_str("k-1")};
    struct lab_answer a, b, warm;

    (void)state;
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &warm), 200);
    lab->appends = 0;
    lab_post(lab, rq, "acme/t", "{\"a\":1}\n", &a);
    lab_post(lab, rq, "acme/t", "{\"a\":1}\n", &b);
    lab_drain(lab);
    assert_true(a.done && b.done);
    assert_int_equal(a.status, 200);
    assert_int_equal(b.status, 200);
    assert_int_equal(lab->appends, 2); /* both tried; the store let one through */
    assert_string_equal(a.json, b.json);
    assert_int_equal(a.replayed + b.replayed, 1);
    lab_free(lab);
}

static void the_expiry_of_a_key_follows_the_transactions_clock(void **state)
{
    struct publisher_opts opts = {.partitions = 1, .idempotency_ms = 1000};
    struct lab *lab = lab_new(&opts);
    struct publish_req rq = {.idempotency_key = span_str("k")};
    struct lab_answer a;

    (void)state;
    assert_int_equal(lab_publish(lab, rq, "acme/t", "{}\n", &a), 200);
    assert_int_equal(lab_kv(lab, "idem/6/acme/t/k")->expires_ms, lab->wall_ns / 1000000 + 1000);
    lab_free(lab);
}

static void the_producer_id_is_made_once_and_survives(void **state)
{
    struct lab *lab = lab_new(&plain);
    struct lab_answer a;
    struct jc_uuid one, two;

    (void)state;
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &a), 200);
    one = uuid_in(lab_bytes(lab, "acme/t/pivot=00"), 0);
    lab_restart(lab);
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &a), 200);
    two = uuid_in(lab_bytes(lab, "acme/t/pivot=00"), 2);
    assert_memory_equal(one.producer, two.producer, 6);
    assert_memory_equal(one.producer, lab_kv(lab, "producer/id")->value->data, 6);
    lab_free(lab);
}

static void faster_creator(struct lab *lab)
{
    lab_add(lab, "acme/t/pivot=00", JC_LABEL_COLLECTION, "acme/t", JC_LABEL_KEY_BEGIN, "00000000",
            JC_LABEL_KEY_END, "7fffffff", NULL);
    lab_add(lab, "acme/t/pivot=80000000", JC_LABEL_COLLECTION, "acme/t", JC_LABEL_KEY_BEGIN,
            "80000000", JC_LABEL_KEY_END, "ffffffff", NULL);
}

/* A disk that was full at the first publish must not end publishing until a restart. */
static void a_producer_id_that_was_not_stored_is_made_by_the_next_publish(void **state)
{
    (void)state;
    for (int at_once = 0; at_once < 2; at_once++) {
        struct lab *lab = lab_new(&plain);
        struct lab_answer a;

        lab->kv_set_err = E_NOSPACE;
        lab->kv_set_at_once = at_once == 1;
        assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &a), 507);
        assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &a), 200);
        lab_free(lab);
    }
}

static void a_lost_race_to_create_uses_what_the_winner_made(void **state)
{
    struct lab *lab = lab_new(&plain);
    struct lab_answer a;
    size_t n;

    (void)state;
    lab->before_apply = faster_creator;
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t",
                                 "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n{\"a\":5}\n", &a),
                     200);
    n = strlen(lab_bytes(lab, "acme/t/pivot=00"));
    assert_true(n + strlen(lab_bytes(lab, "acme/t/pivot=80000000")) > 0);
    assert_int_equal(lab->journals_n, 2);
    lab_free(lab);
}

static void a_listing_that_lags_does_not_break_a_publish(void **state)
{
    struct lab *lab = lab_new(&plain);
    struct lab_answer a;

    (void)state;
    lab_drain(lab);
    lab->mute_watch = true;
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &a), 200);
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &a), 200);
    assert_int_equal(lab->journals_n, 1);
    lab_free(lab);
}

static void names_taken_by_others_are_a_conflict_not_a_hang(void **state)
{
    struct lab *lab = lab_new(&plain);
    struct lab_answer a;

    (void)state;
    lab_add(lab, "acme/t/pivot=00", JC_LABEL_COLLECTION, "other", NULL);
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &a), 409);
    assert_int_equal(lab->appends, 0);
    lab_free(lab);
}

static void a_journal_deleted_under_a_publish_is_made_again(void **state)
{
    struct lab *lab = lab_new(&plain);
    struct lab_answer a;

    (void)state;
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{\"a\":1}\n", &a), 200);
    lab->mute_watch = true;
    lab_remove(lab, "acme/t/pivot=00");
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{\"a\":2}\n", &a), 200);
    assert_null(strstr(lab_bytes(lab, "acme/t/pivot=00"), "\"a\":1"));
    assert_non_null(strstr(lab_bytes(lab, "acme/t/pivot=00"), "\"a\":2"));
    lab_free(lab);
}

static void another_key_or_partition_count_than_the_collections_is_refused(void **state)
{
    struct lab *lab = lab_new(&plain);
    struct span id = span_str("/id"), other = span_str("/x");
    struct publish_req rq = {.keys = &id, .keys_n = 1, .partitions = 2};
    struct lab_answer a;

    (void)state;
    assert_int_equal(lab_publish(lab, rq, "acme/t", "{\"id\":1}\n", &a), 200);
    assert_int_equal(lab_publish(lab, rq, "acme/t", "{\"id\":1}\n", &a), 200);
    rq.partitions = 3;
    assert_int_equal(lab_publish(lab, rq, "acme/t", "{\"id\":1}\n", &a), 409);
    rq.partitions = 0;
    rq.keys = &other;
    assert_int_equal(lab_publish(lab, rq, "acme/t", "{\"id\":1,\"x\":1}\n", &a), 409);
    lab_free(lab);
}

static void with_a_catalog_unknown_collections_are_not_made(void **state)
{
    struct publisher_opts opts = {.read_only_catalog = true};
    struct lab *lab = lab_new(&opts);
    struct lab_answer a;

    (void)state;
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &a), 404);
    assert_int_equal(lab->journals_n, 0);
    lab_free(lab);
}

static void names_against_the_rules_are_refused(void **state)
{
    static const char *const bad[] = {"", "/acme", "acme//t", "a b", "acme/../t", "acme/t/"};
    struct lab *lab = lab_new(&plain);
    struct lab_answer a;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(lab_publish(lab, (struct publish_req){0}, bad[i], "{}\n", &a), 400);
    assert_int_equal(lab->journals_n, 0);
    lab_free(lab);
}

static void limits_are_answers(void **state)
{
    struct publisher_opts opts = {
        .max_body_bytes = 100, .max_document_bytes = 40, .max_in_flight_bytes = 120};
    struct lab *lab = lab_new(&opts);
    struct lab_answer a, b;
    char body[200];

    (void)state;
    memset(body, ' ', sizeof body);
    body[101] = '\0';
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", body, &a), 413);
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t",
                                 "{\"a\":\"01234567890123456789012345678901234\"}\n", &a),
                     400);
    body[80] = '\0';
    lab_post(lab, (struct publish_req){0}, "acme/t", body, &a);
    lab_post(lab, (struct publish_req){0}, "acme/t", body, &b);
    lab_drain(lab);
    assert_true((a.status == 503 && a.retry_after > 0) || (b.status == 503 && b.retry_after > 0));
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &a), 200);
    lab_free(lab);
}

static void store_faults_have_their_own_status(void **state)
{
    struct lab *lab = lab_new(&plain);
    struct lab_answer a;

    (void)state;
    lab->kv_err = E_IO; /* of the producer id */
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &a), 500);
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &a), 200);
    lab->append_err = E_NOSPACE;
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &a), 507);
    lab->append_err = E_CLOSED;
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &a), 503);
    lab_free(lab);
}

static void out_of_memory_is_refused_at_once_or_answered(void **state)
{
    (void)state;
    for (long n = 0; n < 4; n++) { /* later steps use the lab, which has no memory to spare */
        struct lab *lab = lab_new(&plain);
        struct publish_req rq = {.collection = span_str("acme/t"),
                                 .idempotency_key = span_str("k"),
                                 .body = blob_copy(span_str("{\"a\":1}\n"))};
        struct lab_answer a;
        int err;

        memset(&a, 0, sizeof a);
        lab_drain(lab);
        mem_fail_after(n, 0);
        err = publisher_post(lab->p, &rq, lab_on_answer, &a);
        mem_fail_after(-1, 0);
        lab_drain(lab);
        assert_true(err == E_NOMEM ? !a.done : a.done);
        assert_int_equal(publisher_busy(lab->p), 0);
        lab_free(lab);
    }
}

static void an_empty_body_publishes_nothing_and_is_no_fault(void **state)
{
    struct lab *lab = lab_new(&plain);
    struct lab_answer a;

    (void)state;
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "", &a), 200);
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "\n \r\n", &a), 200);
    assert_int_equal(lab->appends, 0);
    assert_non_null(strstr(a.json, "\"documents\":0,\"partitions\":[]"));
    lab_free(lab);
}

static void a_hash_that_no_journal_covers_publishes_nothing(void **state)
{
    struct lab *lab = lab_new(&plain);
    struct lab_answer a;
    char body[4096] = "";

    (void)state;
    lab_add(lab, "acme/t/pivot=00", JC_LABEL_COLLECTION, "acme/t", JC_LABEL_KEY_BEGIN, "00000000",
            JC_LABEL_KEY_END, "00000fff", NULL);
    for (int i = 0; i < 20; i++)
        snprintf(body + strlen(body), sizeof body - strlen(body), "{\"a\":%d}\n", i);
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", body, &a), 409);
    assert_int_equal(lab->appends, 0);
    assert_non_null(strstr(a.json, "no partition covers the key hash"));
    lab_free(lab);
}

static void a_commit_whose_outcome_is_not_known_is_never_called_not_published(void **state)
{
    struct lab *lab = lab_new(&plain);
    struct lab_answer a;

    (void)state;
    assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &a), 200);
    lab->append_doubt = true;
    for (int i = 0; i < 2; i++) {
        lab->append_err = i == 0 ? E_NOSPACE : E_IO;
        assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &a), 500);
        assert_non_null(strstr(a.json, "not known"));
    }
    lab_free(lab);
}

static void a_name_that_the_store_refuses_is_the_requests_fault(void **state)
{
    (void)state;
    for (int at_once = 0; at_once < 2; at_once++) {
        struct lab *lab = lab_new(&plain);
        struct lab_answer a;

        lab->apply_err = E_INVALID;
        lab->apply_at_once = at_once == 1;
        assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &a), 400);
        assert_int_equal(a.retry_after, 0); /* a client that obeys it would loop for ever */
        assert_non_null(strstr(a.json, "no name that the lab dislikes"));
        assert_int_equal(lab->appends, 0);
        lab->apply_err = E_BUSY;
        assert_int_equal(lab_publish(lab, (struct publish_req){0}, "acme/t", "{}\n", &a), 503);
        assert_true(a.retry_after > 0);
        lab_free(lab);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_first_publish_creates_the_collection_and_commits_once),
        cmocka_unit_test(one_transaction_takes_one_clock_reading_and_ticks_a_document),
        cmocka_unit_test(a_clock_that_steps_back_never_repeats_a_uuid),
        cmocka_unit_test(offsets_in_the_answer_are_those_of_last_bytes),
        cmocka_unit_test(one_bad_line_refuses_all_and_creates_nothing),
        cmocka_unit_test(a_retry_with_its_key_is_answered_from_memory),
        cmocka_unit_test(a_key_with_another_body_is_refused),
        cmocka_unit_test(keys_of_two_collections_never_meet),
        cmocka_unit_test(two_requests_at_once_with_one_key_commit_once),
        cmocka_unit_test(the_expiry_of_a_key_follows_the_transactions_clock),
        cmocka_unit_test(the_producer_id_is_made_once_and_survives),
        cmocka_unit_test(a_producer_id_that_was_not_stored_is_made_by_the_next_publish),
        cmocka_unit_test(a_lost_race_to_create_uses_what_the_winner_made),
        cmocka_unit_test(a_listing_that_lags_does_not_break_a_publish),
        cmocka_unit_test(names_taken_by_others_are_a_conflict_not_a_hang),
        cmocka_unit_test(a_journal_deleted_under_a_publish_is_made_again),
        cmocka_unit_test(another_key_or_partition_count_than_the_collections_is_refused),
        cmocka_unit_test(with_a_catalog_unknown_collections_are_not_made),
        cmocka_unit_test(names_against_the_rules_are_refused),
        cmocka_unit_test(a_commit_whose_outcome_is_not_known_is_never_called_not_published),
        cmocka_unit_test(a_name_that_the_store_refuses_is_the_requests_fault),
        cmocka_unit_test(limits_are_answers),
        cmocka_unit_test(store_faults_have_their_own_status),
        cmocka_unit_test(out_of_memory_is_refused_at_once_or_answered),
        cmocka_unit_test(an_empty_body_publishes_nothing_and_is_no_fault),
        cmocka_unit_test(a_hash_that_no_journal_covers_publishes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
