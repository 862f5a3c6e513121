/* Publishing into the real local store in a temporary folder, with a job pool of two threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/jobpool.h"
#include "base/log.h"
#include "gateway/gateway.h"
#include "gateway/publish.h"
#include "journal_client/local.h"

struct rig {
    char dir[64];
    int64_t wall_ns;
    struct clock clock;
    struct jc_store *store;
    struct mailbox mb;
    struct jobpool *jobs;
    struct publisher *p;
};

struct answer {
    bool done;
    int status;
    bool replayed;
    char json[4096];
};

static int64_t wall(void *arg)
{
    return ((struct rig *)arg)->wall_ns;
}

static int64_t mono(void *arg)
{
    (void)arg;
    return clock_mono_ms(clock_system());
}

static void rig_open(struct rig *r)
{
    struct jc_local_opts lo = {.dir = r->dir, .clock = &r->clock, .probe = gw_doc_probe};
    struct publisher_opts po = {.partitions = 3, .home = &r->mb};
    char why[256] = "";

    r->clock = (struct clock){wall, mono, r};
    assert_int_equal(mailbox_init(&r->mb), 0);
    assert_int_equal(jobpool_new(2, "test", &r->jobs), 0);
    assert_int_equal(jc_local_open(&lo, &r->store, why, sizeof why), 0);
    po.store = r->store;
    po.jobs = jobpool_executor(r->jobs);
    assert_int_equal(publisher_new(&po, &r->p), 0);
}

static void rig_close(struct rig *r)
{
    publisher_free(r->p);
    jobpool_free(r->jobs);
    r->store->ops->close(r->store);
    mailbox_fini(&r->mb);
}

static void rig_new(struct rig *r)
{
    memset(r, 0, sizeof *r);
    (void)snprintf(r->dir, sizeof r->dir, "/tmp/sluice-publish-test-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    r->wall_ns = INT64_C(1700000000000000000);
    rig_open(r);
}

static void rig_free(struct rig *r)
{
    char cmd[128];

    rig_close(r);
    (void)snprintf(cmd, sizeof cmd, "rm -rf '%s'", r->dir);
    assert_int_equal(system(cmd), 0);
}

static void on_answer(void *arg, const struct publish_answer *a)
{
    struct answer *out = arg;

    out->done = true;
    out->status = a->status;
    out->replayed = a->replayed;
    (void)snprintf(out->json, sizeof out->json, "%.*s", SPAN_FMT(a->json));
}

static void post(struct rig *r, const char *key, const char *body, struct answer *out)
{
    struct span id = span_str("/id");
    struct publish_req rq = {.collection = span_str("acme/t"),
                             .body = blob_copy(span_str(body)),
                             .keys = &id,
                             .keys_n = 1,
                             .idempotency_key = span_str(key)};

    memset(out, 0, sizeof *out);
    assert_int_equal(publisher_post(r->p, &rq, on_answer, out), 0);
}

static void wait_for(struct rig *r, const struct answer *a)
{
    while (!a->done)
        (void)mailbox_wait(&r->mb, -1);
}

static int publish(struct rig *r, const char *key, const char *body, struct answer *out)
{
    post(r, key, body, out);
    wait_for(r, out);
    return out->status;
}

static void an_idempotency_key_survives_a_restart(void **state)
{
    struct answer a, b, c;
    struct rig r;

    (void)state;
    rig_new(&r);
    assert_int_equal(publish(&r, "k", "{\"id\":1}\n{\"id\":2}\n", &a), 200);
    rig_close(&r);
    rig_open(&r);
    assert_int_equal(publish(&r, "k", "{\"id\":1}\n{\"id\":2}\n", &b), 200);
    assert_true(b.replayed);
    assert_string_equal(a.json, b.json);
    assert_int_equal(publish(&r, "k", "{\"id\":1}\n", &c), 422);
    rig_free(&r);
}

static void many_requests_at_once_with_one_key_commit_once(void **state)
{
    static struct answer a[32];
    struct answer next;
    struct rig r;
    size_t replayed = 0;

    (void)state;
    rig_new(&r);
    for (size_t i = 0; i < 32; i++)
        post(&r, "k", "{\"id\":1}\n", &a[i]);
    for (size_t i = 0; i < 32; i++) {
        wait_for(&r, &a[i]);
        assert_int_equal(a[i].status, 200);
        assert_string_equal(a[i].json, a[0].json);
        replayed += a[i].replayed;
    }
    assert_int_equal(replayed, 31);
    /* one document and its ACK, then the next one */
    assert_int_equal(publish(&r, "k2", "{\"id\":1}\n", &next), 200);
    assert_non_null(strstr(a[0].json, "\"begin\":0,\"end\":134"));
    assert_non_null(strstr(next.json, "\"begin\":134,\"end\":268"));
    rig_free(&r);
}

static void first_publishes_at_once_make_one_collection(void **state)
{
    static struct answer a[16];
    struct rig r;

    (void)state;
    rig_new(&r);
    for (size_t i = 0; i < 16; i++)
        post(&r, NULL, "{\"id\":1}\n", &a[i]);
    for (size_t i = 0; i < 16; i++) {
        wait_for(&r, &a[i]);
        assert_int_equal(a[i].status, 200);
    }
    while (publisher_listing(r.p) == NULL || publisher_listing(r.p)->n < 3)
        (void)mailbox_wait(&r.mb, -1);
    assert_int_equal(publisher_listing(r.p)->n, 3);
    rig_free(&r);
}

static void clocks_go_on_over_a_restart_and_a_step_back(void **state)
{
    struct answer a, b;
    struct rig r;

    (void)state;
    rig_new(&r);
    assert_int_equal(publish(&r, NULL, "{\"id\":1}\n", &a), 200);
    rig_close(&r);
    r.wall_ns -= INT64_C(3600) * 1000000000;
    rig_open(&r);
    assert_int_equal(publish(&r, NULL, "{\"id\":1}\n", &b), 200);
    assert_true(strcmp(strstr(a.json, "\"clock\":"), strstr(b.json, "\"clock\":")) < 0);
    rig_free(&r);
}

static void no_fault(void *arg, const char *text)
{
    (void)arg;
    fail_msg("%s", text);
}

static void the_folder_passes_its_check_afterwards(void **state)
{
    struct answer a;
    struct rig r;

    (void)state;
    rig_new(&r);
    for (int i = 0; i < 20; i++)
        assert_int_equal(publish(&r, NULL, "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n", &a), 200);
    rig_close(&r);
    assert_int_equal(jc_local_check(r.dir, gw_doc_probe, NULL, no_fault, NULL), 0);
    rig_open(&r);
    rig_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idempotency_key_survives_a_restart),
        cmocka_unit_test(many_requests_at_once_with_one_key_commit_once),
        cmocka_unit_test(first_publishes_at_once_make_one_collection),
        cmocka_unit_test(clocks_go_on_over_a_restart_and_a_step_back),
        cmocka_unit_test(the_folder_passes_its_check_afterwards),
    };

    log_setup(LOG_WARN, LOG_FORMAT_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
