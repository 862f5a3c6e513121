/* The groups' tables and their file: keys, committed offsets, many writes in one transaction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/keymap.h"
#include "base/mailbox.h"
#include "base/mem.h"
#include "gateway/groups/group_store.h"
#include "gateway/groups/offsets.h"
#include "tests/contract/temp_dir.h"

static void a_table_finds_what_was_put_and_not_what_was_taken(void **arg)
{
    static char keys[500][8];
    struct keymap m = {0};
    uint64_t random = 88172645463325252;
    bool in[500] = {false};

    (void)arg;
    for (size_t i = 0; i < 500; i++)
        snprintf(keys[i], sizeof keys[i], "k%zu", i);
    for (int step = 0; step < 20000; step++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        size_t i = random % 500;
        if (in[i])
            assert_ptr_equal(keymap_take(&m, span_str(keys[i])), keys[i]);
        else
            assert_int_equal(keymap_put(&m, span_str(keys[i]), keys[i]), 0);
        in[i] = !in[i];
        size_t probe = random / 500 % 500;
        assert_ptr_equal(keymap_get(&m, span_str(keys[probe])), in[probe] ? keys[probe] : NULL);
    }
    size_t n = 0;
    for (size_t at = 0; keymap_next(&m, &at) != NULL;)
        n++;
    assert_int_equal(n, m.n);
    assert_null(keymap_take(&m, span_str("nobody")));
    keymap_fini(&m);
}

static void commits_are_kept_by_partition_and_epoch(void **arg)
{
    struct group_offsets o;

    (void)arg;
    offsets_init(&o);
    for (int32_t p = 9; p >= 0; p--) {
        assert_int_equal(offsets_put(&o, span_str("t"), p, 2, 100 + p, span_str("new"), 5), 0);
        assert_int_equal(offsets_put(&o, span_str("t"), p, 1, p, span_str(""), 4), 0);
    }
    assert_int_equal(offsets_put(&o, span_str("t"), 3, 2, 500, span_str("newer"), 6), 0);
    assert_int_equal(o.n, 20);
    const struct group_offset *at = offsets_get(&o, span_str("t"), 3, 2);
    assert_int_equal(at->offset, 500);
    assert_int_equal(at->metadata_n, 5);
    assert_int_equal(offsets_get(&o, span_str("t"), 3, 1)->offset, 3);
    assert_null(offsets_get(&o, span_str("t"), 3, 3));
    assert_null(offsets_get(&o, span_str("u"), 3, 1));
    for (int32_t p = 0; p < 10; p++) {
        assert_true(offsets_remove(&o, span_str("t"), p, 1));
        assert_false(offsets_remove(&o, span_str("t"), p, 1));
        assert_true(offsets_remove(&o, span_str("t"), p, 2));
    }
    assert_null(offsets_topic(&o, span_str("t")));
    assert_int_equal(o.n, 0);
    assert_int_equal(o.bytes, 0);
    offsets_fini(&o);
}

static void a_commit_that_finds_no_memory_changes_nothing(void **arg)
{
    (void)arg;
    for (long n = 0; n < 6; n++) {
        struct group_offsets o;
        offsets_init(&o);
        mem_fail_after(n, 1);
        int err = offsets_put(&o, span_str("t"), 0, 1, 1, span_str("m"), 1);
        mem_fail_after(-1, 0);
        assert_true(err == 0 || err == E_NOMEM);
        assert_int_equal(o.n, err == 0 ? 1 : 0);
        assert_int_equal(o.by_name.n, o.n);
        offsets_fini(&o);
    }
}

/* --- the file --- */

#define WRITES 100

struct counted {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool held; /* the first transaction waits */
    unsigned begun;
    unsigned commits;
};

static int count_step(void *arg, enum group_store_step step)
{
    struct counted *c = arg;

    pthread_mutex_lock(&c->lock);
    if (step == GROUP_STEP_BEGIN) {
        c->begun++;
        pthread_cond_broadcast(&c->changed);
        while (c->held)
            pthread_cond_wait(&c->changed, &c->lock);
    }
    c->commits += step == GROUP_STEP_COMMIT ? 1 : 0;
    pthread_mutex_unlock(&c->lock);
    return 0;
}

struct one {
    struct group_write write;
    struct group_op op;
    bool done;
};

static void one_done(struct group_write *w)
{
    struct one *o = (struct one *)w;

    assert_int_equal(w->err, 0);
    o->done = true;
}

static void run_one(struct task *t)
{
    struct group_write *w = (struct group_write *)t;
    w->done(w);
}

static int count_offset(void *arg, const struct group_op *op)
{
    size_t *n = arg;

    assert_true(span_eq_str(op->task, "task"));
    assert_true(span_eq_str(op->topic, "topic"));
    assert_int_equal(op->offset, 1000 + op->partition);
    (*n)++;
    return 0;
}

static int no_group(void *arg, const struct group_op *op)
{
    (void)arg;
    (void)op;
    fail();
    return 0;
}

static void writes_that_wait_go_into_one_transaction(void **arg)
{
    static struct one list[WRITES];
    struct counted c = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, true, 0, 0};
    struct group_store *s;
    struct mailbox mb;
    char dir[256], path[300], why[200] = "";

    (void)arg;
    assert_int_equal(temp_dir_make(dir, sizeof dir), 0);
    snprintf(path, sizeof path, "%s/groups.db", dir);
    assert_int_equal(mailbox_init(&mb), 0);
    assert_int_equal(group_store_open(path, &s, why, sizeof why), 0);
    group_store_on_step(s, count_step, &c);
    for (int i = 0; i < WRITES; i++) {
        list[i].op = (struct group_op){.kind = GROUP_OP_PUT_OFFSET,
                                       .task = span_str("task"),
                                       .group = span_str("group"),
                                       .topic = span_str("topic"),
                                       .partition = i,
                                       .epoch = 1,
                                       .offset = 1000 + i};
        list[i].write = (struct group_write){
            .task.run = run_one, .ex = &mb.ex, .done = one_done, .ops_n = 1, .ops = &list[i].op};
        group_store_post(s, &list[i].write);
        if (i == 0) { /* the first one is on its way before the others come */
            pthread_mutex_lock(&c.lock);
            while (c.begun == 0)
                pthread_cond_wait(&c.changed, &c.lock);
            pthread_mutex_unlock(&c.lock);
        }
    }
    pthread_mutex_lock(&c.lock);
    c.held = false;
    pthread_cond_broadcast(&c.changed);
    pthread_mutex_unlock(&c.lock);
    for (size_t n = 0; n < WRITES;)
        n += mailbox_wait(&mb, 10000);
    assert_int_equal(c.commits, 2);
    group_store_close(s);
    size_t found = 0;
    const struct group_visitor v = {no_group, count_offset, &found};
    assert_int_equal(group_store_open(path, &s, why, sizeof why), 0);
    assert_int_equal(group_store_load(s, &v), 0);
    assert_int_equal(found, WRITES);
    group_store_close(s);
    mailbox_fini(&mb);
    temp_dir_remove(dir);
}

static void one_fails(struct group_write *w)
{
    struct one *o = (struct one *)w;

    assert_int_equal(w->err, E_IO);
    o->done = true;
}

static void a_commit_into_a_file_that_was_deleted_is_not_called_done(void **arg)
{
    struct one one = {.op = {.kind = GROUP_OP_PUT_OFFSET,
                             .task = span_str("task"),
                             .group = span_str("group"),
                             .topic = span_str("topic"),
                             .epoch = 1,
                             .offset = 1000}};
    struct group_store *s;
    struct mailbox mb;
    char dir[256], path[300], why[200] = "";

    (void)arg;
    assert_int_equal(temp_dir_make(dir, sizeof dir), 0);
    snprintf(path, sizeof path, "%s/groups.db", dir);
    assert_int_equal(mailbox_init(&mb), 0);
    assert_int_equal(group_store_open(path, &s, why, sizeof why), 0);
    assert_int_equal(unlink(path), 0);
    one.write = (struct group_write){
        .task.run = run_one, .ex = &mb.ex, .done = one_fails, .ops_n = 1, .ops = &one.op};
    group_store_post(s, &one.write);
    assert_int_equal(mailbox_wait(&mb, 10000), 1);
    assert_true(one.done);
    group_store_close(s);
    mailbox_fini(&mb);
    temp_dir_remove(dir);
}

static void what_is_no_database_is_refused_with_a_reason(void **arg)
{
    struct group_store *s;
    char dir[256], path[300], why[300] = "";

    (void)arg;
    assert_int_equal(temp_dir_make(dir, sizeof dir), 0);
    snprintf(path, sizeof path, "%s/groups.db", dir);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (int i = 0; i < 200; i++)
        assert_true(fputs("no database at all\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(group_store_open(path, &s, why, sizeof why), E_CORRUPT);
    assert_null(s);
    assert_true(why[0] != '\0');
    temp_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_finds_what_was_put_and_not_what_was_taken),
        cmocka_unit_test(commits_are_kept_by_partition_and_epoch),
        cmocka_unit_test(a_commit_that_finds_no_memory_changes_nothing),
        cmocka_unit_test(a_commit_into_a_file_that_was_deleted_is_not_called_done),
        cmocka_unit_test(writes_that_wait_go_into_one_transaction),
        cmocka_unit_test(what_is_no_database_is_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
