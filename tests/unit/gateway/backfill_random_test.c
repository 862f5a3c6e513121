/*
 * Random histories against a model of three numbers: after each step a reader sees no document
 * below the bound that the labels imply, and once the labels are there it sees exactly what was
 * published since the last begin. Publishes, begins (answered, failed, superseded), completes,
 * partitions that come and go, restarts with labels missing, walls that step back, faults of the
 * store, and other hands on the labels.
 */
#include "tests/unit/gateway/backfill_lab.h"

struct model {
    uint32_t x;
    struct bl *bl;
    size_t current; /* documents published since the last begin, or since a label from outside */
    size_t all;     /* documents published at all, minus those whose journal was deleted */
    uint64_t begin; /* of the last begin */
    bool active;
    unsigned extra;  /* journals made by hand */
    unsigned begins; /* answered */
};

static uint32_t rnd(struct model *m, uint32_t n)
{
    m->x ^= m->x << 13;
    m->x ^= m->x >> 17;
    m->x ^= m->x << 5;
    return m->x % n;
}

static void publish(struct model *m)
{
    char body[2048] = "";
    size_t n = 1 + rnd(m, 6), at = 0;

    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(body + at, sizeof body - at, "{\"id\":%zu,\"r\":%u}\n", m->all + i,
                               rnd(m, 1000));
    (void)bl_publish(m->bl, "c", body);
    m->all += n;
    m->current += n;
}

static void begin(struct model *m)
{
    struct bl_answer a;
    bool superseding = m->active;
    uint64_t before = m->begin;

    if (rnd(m, 6) == 0)
        m->bl->append_err = E_IO;
    else if (rnd(m, 6) == 0)
        atomic_store(&m->bl->l.commit_in, 0);
    a = bl_ask(m->bl, (struct backfill_req){.verb = BACKFILL_BEGIN}, "c");
    atomic_store(&m->bl->l.commit_in, -1);
    m->bl->append_err = 0;
    if (a.a.status != 200) {
        assert_true(a.a.status == 500 || a.a.status == 507);
        return;
    }
    assert_true(a.a.clock > m->begin);
    assert_true(a.a.superseded == (superseding ? before : 0));
    m->begin = a.a.clock;
    m->active = true;
    m->current = 0;
    m->begins++;
}

static void complete(struct model *m)
{
    struct bl_answer a = bl_ask(m->bl, (struct backfill_req){.verb = BACKFILL_COMPLETE}, "c");

    assert_int_equal(a.a.status, 200);
    assert_int_equal(a.a.ignored, !m->active);
    assert_true(a.a.ignored || a.a.clock > m->begin);
    m->active = false;
}

/* Another hand sets the label of one journal: back, or to a clock that passed, or a bit ahead. */
static void touch_label(struct model *m)
{
    uint64_t last = jl_store_of(m->bl->l.lab.s)->txn_clock.last;
    struct bl_names names;
    char hex[17];
    uint64_t to;

    bl_names(m->bl, "c", &names);
    switch (rnd(m, 3)) {
    case 0:
        to = m->begin > 100 ? m->begin - 1 - rnd(m, 100) : 1;
        break;
    case 1:
        to = m->begin;
        break;
    default:
        to = last + 1 + rnd(m, 1000000);
        m->current = 0;
    }
    num_hex16(to, hex);
    assert_int_equal(bl_put(m->bl, names.names[rnd(m, (uint32_t)names.n)], -1, JC_LABEL_COLLECTION,
                            "c", JC_LABEL_TRUNCATED_AT, hex, NULL),
                     0);
    lab_settle(&m->bl->l.lab, 3); /* the publisher's listing knows it */
}

static void add_partition(struct model *m)
{
    char name[64];

    if (m->extra >= 20)
        return;
    (void)snprintf(name, sizeof name, "c/extra-%u", m->extra++);
    assert_int_equal(bl_put(m->bl, name, 0, JC_LABEL_COLLECTION, "c", NULL), 0);
}

static void step_wall(struct model *m)
{
    static const int64_t steps[] = {100, 1000000, -1000000000, INT64_C(60000000000),
                                    -INT64_C(300000000000)};

    m->bl->wall_ns += steps[rnd(m, 5)];
}

static void fault_labels(struct model *m)
{
    static const int errs[] = {E_IO, E_NOMEM};

    m->bl->apply_err = errs[rnd(m, 2)];
    m->bl->apply_errs = rnd(m, 4);
    backfills_tick(m->bl->bf);
}

/* At every moment. */
static void check_moment(struct model *m, struct bl_view *v)
{
    bl_see(m->bl, "c", v);
    assert_true(v->visible == 0 || v->lowest >= v->bound);
    assert_int_equal(v->visible + v->stale, m->all);
    /* nothing of the current generation is lost, settled or not */
    assert_true(v->visible >= m->current);
}

static void check_settled(struct model *m, struct bl_view *v)
{
    struct backfill_status st;

    backfills_tick(m->bl->bf);
    lab_settle(&m->bl->l.lab, 2);
    m->bl->apply_errs = 0;
    backfills_tick(m->bl->bf);
    st = bl_settle(m->bl, "c");
    assert_true(st.state.begin == m->begin);
    assert_int_equal(st.state.phase == BACKFILL_ACTIVE, m->active);
    bl_see(m->bl, "c", v);
    assert_true(v->bound >= m->begin);
    assert_int_equal(v->visible, m->current);
}

static void history(struct bl *bl, uint32_t seed, unsigned steps, struct bl_view *v)
{
    struct model m = {.x = seed * 2654435761u + 1, .bl = bl};

    publish(&m);
    for (unsigned i = 0; i < steps; i++) {
        switch (rnd(&m, 16)) {
        case 0:
        case 1:
        case 2:
            begin(&m);
            break;
        case 3:
        case 4:
            complete(&m);
            break;
        case 5:
            if (m.begin != 0)
                touch_label(&m);
            break;
        case 6:
            add_partition(&m);
            break;
        case 7:
            bl_reopen(bl);
            break;
        case 8:
        case 9:
            step_wall(&m);
            break;
        case 10:
            fault_labels(&m);
            break;
        default:
            publish(&m);
        }
        if (rnd(&m, 3) == 0)
            check_moment(&m, v);
        if (rnd(&m, 5) == 0)
            check_settled(&m, v);
    }
    check_settled(&m, v);
    assert_true(m.begins > steps / 20);
}

static void a_reader_sees_the_current_generation_and_nothing_else(void **state)
{
    struct bl_view *v = mem_zalloc(sizeof *v);

    (void)state;
    assert_non_null(v);
    for (uint32_t seed = 1; seed <= 4; seed++) {
        struct bl *bl = bl_new();

        bl_open(bl);
        print_message("seed %u\n", seed);
        history(bl, seed, 120, v);
        bl_close(bl);
        assert_int_equal(jc_local_check(bl->l.dir, gw_doc_probe, NULL, ll_report, NULL), 0);
        temp_dir_remove(bl->l.dir);
        mem_free(bl);
    }
    mem_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_sees_the_current_generation_and_nothing_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
