/*
 * kill -9 at every step of begin and complete. A child dies at a point of ours (home thread) or of
 * the store (committer); the parent opens the folder again and looks: marker and state are there
 * together or not at all, the labels follow from the state by themselves, and what was answered
 * stands.
 */
#include "tests/unit/gateway/backfill_lab.h"

#include <sys/wait.h>

static const char *const parts[] = {"c/pivot=00", "c/pivot=55555555", "c/pivot=aaaaaaaa"};

struct found {
    uint64_t begin, complete;
    size_t begins, completes;
};

static void look(void *arg, struct span line, const struct jc_doc_info *info)
{
    struct found *f = arg;

    if (memmem(line.p, line.n, "backfillBegin", 13) != NULL) {
        f->begin = info->clock;
        f->begins++;
    }
    if (memmem(line.p, line.n, "backfillComplete", 16) != NULL) {
        f->complete = info->clock;
        f->completes++;
    }
}

/* Dies; or ends with 44 without closing, which is a crash as well. Told through the pipe: the
 * answers. */
static void child(struct bl *bl, int fd, const char *point, int in)
{
    uint64_t clock;

    bl_open(bl);
    (void)bl_status(bl, "c");
    bl->die_in = in;
    bl->die_at = point;
    clock = bl_begin(bl, "c");
    if (write(fd, &clock, sizeof clock) != sizeof clock)
        _exit(43);
    (void)bl_settle(bl, "c");
    clock = bl_complete(bl, "c");
    if (write(fd, &clock, sizeof clock) != sizeof clock)
        _exit(43);
    _exit(44);
}

/* Returns how many answers came. */
static size_t one_life(struct bl *bl, const char *point, int in, uint64_t answers[2], int *code)
{
    int fds[2], status;
    size_t n = 0;

    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        child(bl, fds[1], point, in);
    }
    close(fds[1]);
    while (n < 2 && read(fds[0], &answers[n], sizeof answers[0]) == sizeof answers[0])
        n++;
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    *code = WEXITSTATUS(status);
    assert_true(*code == 42 || *code == 44);
    return n;
}

static void check(struct bl *bl, const struct backfill_state *before, const uint64_t *answers,
                  size_t answered)
{
    struct found f[3] = {{0}};
    struct backfill_status st;

    bl_open(bl);
    st = bl_settle(bl, "c"); /* nobody asked: the state alone brings the labels */
    for (size_t i = 0; i < 3; i++) {
        bl_each(bl, parts[i], look, &f[i]);
        /* a transaction is there in all partitions or in none */
        assert_memory_equal(&f[i], &f[0], sizeof f[0]);
    }
    assert_true(st.state.begin == f[0].begin);
    assert_true(st.state.complete == f[0].complete);
    assert_true(st.truncated_at == f[0].begin);
    if (answered >= 1)
        assert_true(st.state.begin == answers[0]);
    if (answered >= 2)
        assert_true(st.state.complete == answers[1] && st.state.phase == BACKFILL_COMPLETED);
    if (st.state.begin != before->begin && st.state.complete == before->complete)
        assert_int_equal(st.state.phase, BACKFILL_ACTIVE);
    if (st.state.phase == BACKFILL_COMPLETED && st.state.begin != 0)
        assert_true(st.state.completes == st.state.begin);
    /* every document of a former life is stale once a later begin is there */
    if (st.state.begin != 0) {
        struct bl_view *v = mem_zalloc(sizeof *v);

        assert_non_null(v);
        bl_see(bl, "c", v);
        assert_true(v->visible == 0 || v->lowest > st.state.begin);
        mem_free(v);
    }
    (void)bl_publish(bl, "c", "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n{\"id\":4}\n");
}

static void a_crash_at_any_step_leaves_a_whole_backfill_or_none(void **state)
{
    static const struct {
        const char *point;
        int visits; /* to die at the first, second, ... */
    } steps[] = {
        {"begin.scan", 1},    {"begin.append", 1},     {"append.written", 2},
        {"append.synced", 2}, {"append.committed", 2}, {"begin.durable", 1},
        {"label.apply", 1},   {"apply.committed", 1},  {"label.applied", 1},
        {"label.settled", 2}, {"complete.append", 1},  {"complete.durable", 1},
        {"none of them", 1},
    };
    struct backfill_state before = {0};
    struct bl *bl = bl_new();
    unsigned died = 0;

    (void)state;
    bl_open(bl);
    (void)bl_publish(bl, "c", "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n{\"id\":4}\n");
    bl_close(bl);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        for (int in = 0; in < steps[i].visits; in++) {
            uint64_t answers[2];
            int code;
            size_t n = one_life(bl, steps[i].point, in, answers, &code);

            if (code == 44 && strcmp(steps[i].point, "none of them") != 0)
                fail_msg("%s %d was not reached", steps[i].point, in);
            died += code == 42;
            check(bl, &before, answers, n);
            before = bl_status(bl, "c").state;
            bl_close(bl);
            bl->wall_ns += i % 2 == 0 ? INT64_C(1000000000) : -INT64_C(3600000000000);
            assert_int_equal(jc_local_check(bl->l.dir, gw_doc_probe, NULL, ll_report, NULL), 0);
        }
    assert_int_equal(died, 16);
    temp_dir_remove(bl->l.dir);
    mem_free(bl);
}

/* Persisted before labelled: the documents of the new generation are safe in between, too. */
static void what_was_loaded_between_a_crash_and_the_labels_is_kept(void **state)
{
    struct bl *bl = bl_new();
    struct bl_view v;
    uint64_t answers[2];
    int code;

    (void)state;
    bl_open(bl);
    (void)bl_publish(bl, "c", "{\"id\":1}\n{\"id\":2}\n");
    bl_close(bl);
    assert_int_equal(one_life(bl, "begin.durable", 0, answers, &code), 0);
    assert_int_equal(code, 42);
    bl->wall_ns -= INT64_C(300000000000); /* and the wall went back five minutes meanwhile */
    bl_open(bl);
    (void)bl_publish(bl, "c", "{\"id\":1,\"g\":2}\n{\"id\":2,\"g\":2}\n");
    (void)bl_settle(bl, "c");
    bl_see(bl, "c", &v);
    assert_int_equal(v.visible, 2);
    assert_int_equal(v.stale, 2);
    assert_true(v.lowest > v.bound);
    bl_close(bl);
    temp_dir_remove(bl->l.dir);
    mem_free(bl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crash_at_any_step_leaves_a_whole_backfill_or_none),
        cmocka_unit_test(what_was_loaded_between_a_crash_and_the_labels_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
