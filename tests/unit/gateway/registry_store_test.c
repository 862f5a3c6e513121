/* When the versions of schemas are durable, and what happens when the store fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gateway/registry_store.h"
#include "tests/unit/gateway/fake_store.h"
#include "tests/unit/gateway/registry_lab.h"

static struct fake_store *fs;
static struct mailbox mb;
static struct registry_store *rs;
static int settled;
static int scan_fail; /* so many kv_scan fail */
static const struct jc_store_ops *real;

static void on_settled(void *arg)
{
    (void)arg;
    settled++;
}

/* The error arrives with the answer, as a store's does. */
struct failed_scan {
    struct task task;
    jc_kv_scan_fn *done;
    void *arg;
};

static void run_failed(struct task *t)
{
    struct failed_scan *f = (struct failed_scan *)t;

    f->done(f->arg, E_IO, NULL, 0);
    mem_free(f);
}

static int kv_scan(struct jc_store *s, const char *prefix, struct executor *ex, jc_kv_scan_fn *done,
                   void *arg)
{
    if (scan_fail == 0)
        return real->kv_scan(s, prefix, ex, done, arg);
    struct failed_scan *f = mem_zalloc(sizeof *f);
    scan_fail--;
    *f = (struct failed_scan){.task.run = run_failed, .done = done, .arg = arg};
    executor_post(ex, &f->task);
    return 0;
}

static int setup(void **state)
{
    static struct jc_store_ops ops;

    (void)state;
    fs = fake_store_new();
    real = fs->base.ops;
    ops = *real;
    ops.kv_scan = kv_scan;
    fs->base.ops = &ops;
    settled = scan_fail = 0;
    rs = NULL;
    return mailbox_init(&mb);
}

static void start(void)
{
    const struct registry_store_opts opts = {
        .store = &fs->base, .control = &mb, .clock = clock_system(), .settled = on_settled};

    assert_int_equal(registry_store_start(&opts, &rs), 0);
}

static void stop(void)
{
    while (registry_store_busy(rs) > 0)
        (void)mailbox_wait(&mb, -1);
    registry_store_free(rs);
    rs = NULL;
}

static int teardown(void **state)
{
    (void)state;
    mailbox_fini(&mb);
    fake_store_free(fs);
    return 0;
}

static void settle(void)
{
    while (mailbox_drain(&mb) > 0)
        ;
}

static void show(int which)
{
    struct world w;

    world_init(&w, which, true);
    registry_store_view(rs, &w.view);
    sc_avro_free(w.avro);
}

static bool is_settled(int which)
{
    const struct gw_view view = {.revision = which};

    return registry_store_settled(rs, &view);
}

static const struct registry_subject *value_of(void)
{
    return registry_history_find(registry_store_history(rs), "t/1", span_str("a/b%-value"));
}

static void a_version_is_shown_when_it_is_durable(void **state)
{
    (void)state;
    start();
    show(1);
    assert_false(is_settled(1)); /* what is kept is not known yet */
    settle();
    assert_int_equal(settled, 1);
    show(1);
    assert_false(is_settled(1));
    settle();
    assert_true(is_settled(1));
    assert_false(is_settled(2));
    assert_int_equal(fs->kv_n, 2);
    show(2);
    assert_false(is_settled(2));
    settle();
    assert_true(is_settled(2));
    assert_int_equal(fs->kv_n, 3);
    show(1); /* back again: nothing is written */
    assert_true(is_settled(1));
    stop();
    start();
    settle();
    show(3);
    settle();
    assert_int_equal(registry_subject_latest(value_of())->number, 3);
    assert_int_equal(value_of()->versions_n, 3);
    stop();
}

static void a_store_that_takes_nothing_is_asked_again(void **state)
{
    (void)state;
    start();
    settle();
    fs->kv_fail = 2;
    show(1);
    settle();
    assert_true(is_settled(1)); /* from memory */
    assert_int_equal(fs->kv_n, 0);
    registry_store_tick(rs, NULL);
    settle();
    assert_int_equal(fs->kv_n, 0);
    registry_store_tick(rs, NULL);
    settle();
    assert_int_equal(fs->kv_n, 2);
    registry_store_tick(rs, NULL);
    settle();
    assert_true(is_settled(1));
    stop();
}

static void a_history_that_cannot_be_read_is_not_written_over(void **state)
{
    (void)state;
    start();
    settle();
    show(1);
    settle();
    stop();
    scan_fail = 1;
    start();
    settle();
    show(2);
    settle();
    assert_true(is_settled(2));
    assert_int_equal(registry_subject_latest(value_of())->number, 1);
    assert_int_equal(fs->kv_n, 2);
    registry_store_tick(rs, NULL); /* reads it */
    settle();
    assert_false(is_settled(2));
    show(2);
    settle();
    assert_int_equal(registry_subject_latest(value_of())->number, 2);
    assert_int_equal(fs->kv_n, 3);
    stop();
}

/* Old versions go while a new one comes: it is written all the same, before it is shown. */
static void a_version_that_comes_while_old_ones_go_is_written(void **state)
{
    (void)state;
    start();
    settle();
    for (int i = 1; i < REGISTRY_VERSIONS_MAX; i++) {
        show(i);
        settle();
    }
    show(REGISTRY_VERSIONS_MAX);
    show(REGISTRY_VERSIONS_MAX + 1);
    show(REGISTRY_VERSIONS_MAX + 2);
    assert_false(is_settled(REGISTRY_VERSIONS_MAX + 2));
    settle();
    assert_true(is_settled(REGISTRY_VERSIONS_MAX + 2));
    stop();
    start();
    settle();
    assert_int_equal(value_of()->highest, REGISTRY_VERSIONS_MAX + 2);
    stop();
}

static void versions_that_go_from_memory_alone_leave_nothing_behind(void **state)
{
    (void)state;
    scan_fail = 1;
    start();
    settle();
    for (int i = 1; i <= REGISTRY_VERSIONS_MAX + 2; i++)
        show(i);
    assert_int_equal(value_of()->versions_n, REGISTRY_VERSIONS_MAX);
    assert_int_equal(fs->kv_n, 0);
    stop(); /* the sanitizer looks for what was forgotten */
}

static void a_damaged_version_costs_itself_only(void **state)
{
    (void)state;
    start();
    settle();
    for (int i = 1; i <= 3; i++) {
        show(i);
        settle();
    }
    stop();
    for (size_t i = 0; i < fs->kv_n; i++) {
        if (strstr(fs->kv[i].key, "value/0000000002") != NULL)
            fs->kv[i].value->data[0] = 'x';
    }
    start();
    settle();
    show(3);
    settle();
    assert_int_equal(value_of()->versions_n, 2);
    assert_int_equal(registry_subject_latest(value_of())->number, 3);
    assert_null(registry_subject_version(value_of(), 2));
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_version_is_shown_when_it_is_durable, setup, teardown),
        cmocka_unit_test_setup_teardown(a_store_that_takes_nothing_is_asked_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_history_that_cannot_be_read_is_not_written_over, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_version_that_comes_while_old_ones_go_is_written, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(versions_that_go_from_memory_alone_leave_nothing_behind,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_version_costs_itself_only, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
