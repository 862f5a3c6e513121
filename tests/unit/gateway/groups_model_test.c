/*
 * Random histories of a classic group: clients that do as they should, clients that do not, and a
 * gateway that restarts. What must hold whatever happens:
 *   - generations only rise, also over restarts
 *   - a member's assignment is one that the leader of its own generation made for it
 *   - whoever waits has a deadline, and is answered at most once, and at last
 *   - a client that does as it should is never thrown out but by a restart
 *   - when the others are gone, those who remain settle in one stable generation
 * SLUICE_TEST_SEED and SLUICE_TEST_ROUNDS choose other histories and more of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/num.h"
#include "tests/unit/gateway/group_lab.h"

#define CLIENTS 7
#define GOOD    3 /* the first ones do as they should */
#define STEPS   400

enum phase { OUT, JOINING, SYNCING, IN };

struct client {
    const char *name;
    const char *instance;
    enum phase phase;
    struct ask *ask;
    char member[64]; /* "" : it has no id */
    int32_t generation;
    bool leads;
    bool restarted; /* the gateway did, so its id is void */
};

struct model {
    struct group_lab lab;
    struct client clients[CLIENTS];
    uint64_t random;
    int32_t highest;
};

static uint64_t next_random(struct model *m)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return m->random;
}

static bool chance(struct model *m, unsigned percent)
{
    return next_random(m) % 100 < percent;
}

static void begin_join(struct model *m, struct client *c)
{
    m->lab.instance = c->instance;
    c->ask = ask_join(&m->lab, c->member, c->name, chance(m, 50) ? 3 : 5);
    c->phase = JOINING;
    m->lab.instance = NULL;
}

static void begin_sync(struct model *m, struct client *c)
{
    char assign[2048] = "";
    size_t at = 0;

    if (c->leads) {
        for (const struct classic_member *k = classic_first(&m->lab.g); k != NULL;
             k = classic_next(k))
            at += (size_t)snprintf(assign + at, sizeof assign - at, "%s%s=%d:%s", at > 0 ? "," : "",
                                   k->id, c->generation, k->id);
    }
    m->lab.instance = c->instance;
    c->ask = ask_sync(&m->lab, c->member, c->generation, assign);
    c->phase = SYNCING;
    m->lab.instance = NULL;
}

/* What the error of an answer means for a client; good: it must not have been thrown out. */
static void take_error(struct client *c, int16_t error, bool good)
{
    switch (error) {
    case KE_UNKNOWN_MEMBER_ID:
    case KE_FENCED_INSTANCE_ID:
        if (good)
            assert_true(c->restarted);
        c->restarted = false;
        c->member[0] = '\0';
        c->phase = OUT;
        return;
    case KE_REBALANCE_IN_PROGRESS:
    case KE_ILLEGAL_GENERATION:
        c->phase = OUT; /* with its id */
        return;
    case KE_GROUP_MAX_SIZE_REACHED:
        c->phase = OUT;
        return;
    default:
        fail_msg("error %d", error);
    }
}

static void take_join(struct client *c, bool good)
{
    struct ask *a = c->ask;

    c->ask = NULL;
    if (a->error == KE_MEMBER_ID_REQUIRED) {
        snprintf(c->member, sizeof c->member, "%s", a->new_id);
        c->restarted = false;
        c->phase = OUT;
        return;
    }
    if (a->error != KE_NONE) {
        take_error(c, a->error, good);
        return;
    }
    assert_true(a->generation >= c->generation);
    snprintf(c->member, sizeof c->member, "%s", a->member);
    c->generation = a->generation;
    c->leads = strcmp(a->leader, a->member) == 0 && a->listed > 0;
    c->restarted = false;
    c->phase = SYNCING;
}

static void take_sync(struct client *c, bool good)
{
    struct ask *a = c->ask;
    char want[128];

    c->ask = NULL;
    if (a->error != KE_NONE) {
        take_error(c, a->error, good);
        return;
    }
    c->phase = IN;
    if (c->instance != NULL && a->assignment[0] != '\0') {
        /* a static one may have taken over the place, with the assignment, of the id before */
        snprintf(want, sizeof want, "%d:", c->generation);
        assert_int_equal(strncmp(a->assignment, want, strlen(want)), 0);
        return;
    }
    snprintf(want, sizeof want, "%d:%s", c->generation, c->member);
    assert_string_equal(a->assignment, want);
}

static void collect(struct model *m)
{
    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = &m->clients[i];
        if (c->ask == NULL || !c->ask->done)
            continue;
        if (c->phase == JOINING)
            take_join(c, i < GOOD);
        else
            take_sync(c, i < GOOD);
    }
}

/* The next proper thing to do. */
static void act(struct model *m, struct client *c, bool good)
{
    if (c->ask != NULL)
        return; /* it waits */
    switch (c->phase) {
    case OUT:
        begin_join(m, c);
        return;
    case SYNCING:
        begin_sync(m, c);
        return;
    case IN: {
        m->lab.instance = c->instance;
        int16_t error = lab_heartbeat(&m->lab, c->member, c->generation);
        m->lab.instance = NULL;
        if (error != KE_NONE)
            take_error(c, error, good);
        return;
    }
    case JOINING:
        return;
    }
}

static void misbehave(struct model *m, struct client *c)
{
    switch (next_random(m) % 5) {
    case 0: /* dies, with or without a memory of its id */
        c->ask = NULL;
        c->phase = OUT;
        if (c->instance != NULL || chance(m, 60))
            c->member[0] = '\0';
        break;
    case 1:
        if (c->member[0] != '\0' && c->ask == NULL) {
            m->lab.instance = c->instance;
            (void)lab_leave(&m->lab, c->member);
            m->lab.instance = NULL;
            c->member[0] = '\0';
            c->phase = OUT;
        }
        break;
    case 2: /* asks again while it waits, on a new connection */
        if (c->phase == JOINING && c->member[0] != '\0')
            begin_join(m, c);
        break;
    case 3: /* commits, whatever its state */
        m->lab.instance = c->instance;
        (void)lab_commit(&m->lab, c->member, c->generation - (chance(m, 30) ? 1 : 0));
        m->lab.instance = NULL;
        break;
    default:
        break; /* is silent */
    }
}

/* A gateway that begins again knows the generation, and nothing else. */
static void restart(struct model *m)
{
    struct group_out out;

    group_out_init(&out);
    m->lab.g.ops->drain(&m->lab.g, KE_REBALANCE_IN_PROGRESS, &out);
    lab_settle(&m->lab, &out);
    m->lab.g.ops->free(&m->lab.g);
    for (int i = 0; i < CLIENTS; i++)
        m->clients[i].restarted = m->clients[i].member[0] != '\0' || m->clients[i].ask != NULL;
    lab_tick(&m->lab, 0);
    collect(m);
}

static void check(struct model *m)
{
    assert_true(m->lab.g.generation >= m->highest);
    m->highest = m->lab.g.generation;
    for (int i = 0; i < CLIENTS; i++) {
        const struct client *c = &m->clients[i];
        if (c->ask != NULL && !c->ask->done)
            assert_true(m->lab.next_ms != GROUP_NEVER);
    }
}

/* Time passes; those who do as they should are heard of often enough. */
static void pass(struct model *m, int64_t ms)
{
    while (ms > 0) {
        int64_t part = ms < 300 ? ms : 300;
        lab_tick(&m->lab, part);
        collect(m);
        for (int i = 0; i < GOOD; i++)
            act(m, &m->clients[i], true);
        collect(m);
        check(m);
        ms -= part;
    }
}

static void settle_down(struct model *m)
{
    for (int i = GOOD; i < CLIENTS; i++) {
        m->clients[i].ask = NULL;
        m->clients[i].phase = OUT;
    }
    pass(m, 30000);
    assert_string_equal(m->lab.g.ops->state(&m->lab.g), "Stable");
    assert_int_equal(classic_members(&m->lab.g), GOOD);
    for (int i = 0; i < GOOD; i++) {
        assert_int_equal(m->clients[i].phase, IN);
        assert_int_equal(m->clients[i].generation, m->lab.g.generation);
    }
}

static void run_history(uint64_t seed)
{
    static const char *const names[CLIENTS] = {"g0", "g1", "g2", "b3", "b4", "s5", "s6"};
    struct model m = {.random = seed};

    group_lab_init(&m.lab);
    m.lab.limits.initial_delay_ms = seed % 3 == 0 ? 200 : 0;
    m.lab.limits.max_members = 6;
    for (int i = 0; i < CLIENTS; i++) {
        m.clients[i].name = names[i];
        m.clients[i].instance = names[i][0] == 's' ? names[i] : NULL;
    }
    for (int i = 0; i < STEPS; i++) {
        struct client *c = &m.clients[next_random(&m) % CLIENTS];
        bool good = c - m.clients < GOOD;
        if (!good && chance(&m, 25))
            misbehave(&m, c);
        else
            act(&m, c, good);
        collect(&m);
        check(&m);
        if (chance(&m, 3))
            lab_raise(&m.lab, chance(&m, 50) ? "t" : "u");
        if (chance(&m, 1))
            restart(&m);
        pass(&m, (int64_t)(next_random(&m) % 900));
        if (m.lab.asks_n > LAB_ASKS - 200)
            break;
    }
    settle_down(&m);
    for (size_t i = 0; i < m.lab.asks_n; i++)
        assert_true(m.lab.asks[i]->done);
    group_lab_fini(&m.lab);
}

static uint64_t setting(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    uint64_t value;

    return text != NULL && num_parse_u64(span_str(text), &value) == 0 ? value : fallback;
}

static void whatever_happens_generations_rise_and_members_are_not_lost(void **state)
{
    uint64_t seed = setting("SLUICE_TEST_SEED", 1);
    uint64_t rounds = setting("SLUICE_TEST_ROUNDS", 60);

    (void)state;
    for (uint64_t i = 0; i < rounds; i++) {
        print_message("seed %llu\n", (unsigned long long)(seed + i));
        run_history((seed + i) * UINT64_C(0x9e3779b97f4a7c15) | 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_happens_generations_rise_and_members_are_not_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
