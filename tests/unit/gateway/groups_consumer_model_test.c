/*
 * Random histories of a KIP-848 group: clients join, speak, lose answers, stall, leave and change
 * their minds, topics grow, go and are raised, memory runs out. At every step no two clients that
 * the coordinator counts as members may read the same partition; and when the trouble ends, the
 * group settles within a bounded number of heartbeats, everything owned, evenly.
 */
#include "tests/unit/gateway/groups_consumer_lab.h"

#define STEPS  400
#define ROUNDS 250

static uint32_t rnd(uint64_t *seed, uint32_t n)
{
    *seed = *seed * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(*seed >> 33) % n;
}

static bool is_member(const struct lab *lab, const struct lab_client *cl)
{
    const struct consumer_member *m = consumer_member_find(lab->g.consumer, span_str(cl->id));
    return cl->in && m != NULL && m->epoch != CONSUMER_STATIC_LEAVES;
}

/* What two members believe, not what the coordinator's table says: that cannot hold two owners. */
static void check_exclusive(const struct lab *lab, const struct lab_client *list)
{
    for (int i = 0; i < LAB_CLIENTS; i++) {
        for (int j = 0; j < i; j++) {
            if (!is_member(lab, &list[i]) || !is_member(lab, &list[j]))
                continue;
            for (int t = 0; t < LAB_TOPICS; t++) {
                if (memcmp(&list[i].ids[t], &list[j].ids[t], sizeof list[i].ids[t]) != 0)
                    continue; /* one of them knows the topic's life before */
                for (int p = 0; p < LAB_PARTS; p++)
                    assert_false(list[i].owns[t][p] && list[j].owns[t][p]);
            }
        }
    }
}

static void choose(struct lab *lab, struct lab_client *cl, uint64_t *seed)
{
    cl->hb.has_names = true;
    cl->hb.names_n = 0;
    for (int t = 0; t < LAB_TOPICS; t++) {
        if (rnd(seed, 3) > 0)
            cl->names[cl->hb.names_n++] = span_str(lab->topics[t].name);
    }
    static const char *const patterns[] = {"", "", "", "t[0-2]", "t.*", "x"};
    cl->hb.regex = span_str(patterns[rnd(seed, 6)]);
    cl->hb.assignor = rnd(seed, 3) == 0 ? span_str("range") : span_str("uniform");
}

static void give_up(struct lab_client *cl)
{
    cl->epoch = 0;
    cl->in = false;
    memset(cl->owns, 0, sizeof cl->owns);
}

static void after(struct lab_client *cl, int16_t error)
{
    switch (error) {
    case KE_NONE:
    case KE_COORDINATOR_NOT_AVAILABLE:
    case KE_UNRELEASED_INSTANCE_ID:
        break;
    case KE_UNKNOWN_MEMBER_ID:
    case KE_FENCED_MEMBER_EPOCH:
    case KE_FENCED_INSTANCE_ID:
        give_up(cl);
        break;
    default:
        fail_msg("error %d", error);
    }
}

static void speak(struct lab *lab, struct lab_client *cl, uint64_t *seed)
{
    struct lab_client before = *cl;
    bool lost = rnd(seed, 6) == 0;
    bool short_of_memory = rnd(seed, 8) == 0;

    if (short_of_memory)
        mem_fail_after((long)rnd(seed, 25), 0);
    int16_t error = client_beat(lab, cl, rnd(seed, 3) == 0);
    mem_fail_after(-1, 0);
    if (lost) /* the answer; nothing that it says is known to the client */
        *cl = before;
    else
        after(cl, error);
}

static void step(struct lab *lab, struct lab_client *list, uint64_t *seed)
{
    struct lab_client *cl = &list[rnd(seed, LAB_CLIENTS)];
    int t = (int)rnd(seed, LAB_TOPICS);

    switch (rnd(seed, 24)) {
    case 0: /* its process died, or left */
        after(cl, client_leave(lab, cl, CONSUMER_LEAVES));
        give_up(cl);
        break;
    case 1: /* a static one restarts as another process */
        if (cl->instance[0] == '\0' || !cl->in)
            break;
        after(cl, client_leave(lab, cl, CONSUMER_STATIC_LEAVES));
        give_up(cl);
        snprintf(cl->id, sizeof cl->id, "%s-%u", cl->instance, rnd(seed, 1000000));
        break;
    case 2:
        choose(lab, cl, seed);
        if (cl->epoch > 0)
            after(cl, client_beat(lab, cl, true));
        break;
    case 3:
        if (lab->topics[t].partitions < LAB_PARTS)
            lab->topics[t].partitions++;
        lab_topic_changed(lab, t, false);
        break;
    case 4:
        lab->topics[t].partitions = (int32_t)rnd(seed, LAB_PARTS + 1);
        lab_topic_changed(lab, t, true);
        break;
    case 5:
        lab_tick(lab, rnd(seed, 12000));
        break;
    case 6: /* its poll took too long: it begins anew */
        give_up(cl);
        break;
    default:
        speak(lab, cl, seed);
        break;
    }
    lab_tick(lab, rnd(seed, 300));
}

static bool reads(const struct lab *lab, const struct lab_client *cl, size_t i)
{
    const struct consumer *c = lab->g.consumer;
    const struct consumer_member *m = consumer_member_find(c, span_str(cl->id));
    uint32_t list[LAB_TOPICS];
    size_t n = consumer_member_reads(c, m, list);
    bool found = false;

    assert_true(n <= consumer_member_reads_max(c, m));
    for (size_t k = 0; k < n; k++)
        found = found || list[k] == i;
    /* the same, asked otherwise */
    assert_int_equal(
        found, consumer_member_subscribes(c, m, span_of(c->topics[i]->name, c->topics[i]->name_n)));
    return found;
}

static void check_settled(const struct lab *lab, const struct lab_client *list)
{
    const struct consumer *c = lab->g.consumer;
    bool uniform = strcmp(consumer_assignor(c), "uniform") == 0;

    assert_string_equal(lab->g.ops->state(&lab->g), "Stable");
    for (size_t i = 0; i < c->live_n; i++) {
        int t = c->topics[i]->name[1] - '0';
        for (int32_t p = 0; p < c->topics[i]->partitions; p++) {
            const struct lab_client *owner = NULL;
            for (int k = 0; k < LAB_CLIENTS; k++) {
                if (list[k].owns[t][p]) {
                    assert_null(owner);
                    owner = &list[k];
                }
            }
            assert_non_null(owner);
            assert_true(reads(lab, owner, i));
            for (int k = 0; uniform && k < LAB_CLIENTS; k++) {
                if (reads(lab, &list[k], i))
                    assert_true(client_count(owner) < client_count(&list[k]) + 2);
            }
        }
    }
}

/* Returns how many rounds it took. */
static int calm_down(struct lab *lab, struct lab_client *list)
{
    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < LAB_CLIENTS; i++) {
            int16_t error = client_beat(lab, &list[i], false);
            after(&list[i], error);
            check_exclusive(lab, list);
        }
        bool all = lab->g.consumer->members_n == LAB_CLIENTS;
        if (all && strcmp(lab->g.ops->state(&lab->g), "Stable") == 0)
            return round;
        lab_tick(lab, 100);
    }
    fail_msg("it does not settle: %s, %zu members", lab->g.ops->state(&lab->g),
             lab->g.consumer->members_n);
    return -1;
}

static void run(uint64_t seed)
{
    struct lab *lab = lab_new(3);
    struct lab_client list[LAB_CLIENTS];

    for (int i = 0; i < LAB_CLIENTS; i++) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        client_init(lab, &list[i], id, "");
        if (i % 2 == 1)
            snprintf(list[i].instance, sizeof list[i].instance, "s%d", i);
        choose(lab, &list[i], &seed);
    }
    for (int i = 0; i < STEPS; i++) {
        step(lab, list, &seed);
        check_exclusive(lab, list);
    }
    assert_true(lab->g.generation < STEPS);
    /* The processes before are gone, at the latest after their session. */
    lab_tick(lab, 60000);
    for (int i = 0; i < LAB_CLIENTS; i++)
        give_up(&list[i]);
    calm_down(lab, list);
    for (int i = 0; i < LAB_CLIENTS; i++)
        after(&list[i], client_beat(lab, &list[i], true));
    check_settled(lab, list);
    lab_free(lab);
}

static void random_histories_keep_partitions_apart_and_settle(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++)
        run(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_histories_keep_partitions_apart_and_settle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
