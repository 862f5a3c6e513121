/*
 * The contract suite over the distributed store: against the stand-in broker, always, once with
 * content that stays with the broker and once with stored, compressed fragments; and against the
 * real broker that SLUICE_GAZETTE=HOST:PORT names, whose journals may be deleted.
 */
#include "tests/contract/store_contract.c"

#include <sys/stat.h>

#include "base/log.h"
#include "journal_client/gazette.h"
#include "tests/contract/temp_dir.h"
#include "tests/gazette_stand_in/stand_in.h"

struct setting {
    const char *brokers; /* NULL: the stand-in */
    const char *codec;   /* NULL: no store of fragments */
    struct stand_in *si;
};

static char dir[256];

static void on_all(void *arg, const struct jc_listing *l)
{
    const struct jc_listing **out = arg;

    if (*out == NULL)
        *out = jc_listing_ref(l);
}

/* A broker outlives the tests: what the last one left is deleted. */
static void delete_all(struct jc_store *s)
{
    struct lab lab;
    const struct jc_selector all = {0};
    const struct jc_listing *l = NULL;
    struct jc_op *op;

    lab_init(&lab, s);
    const struct jc_watcher w = {.ex = &lab.mb.ex, .on_snapshot = on_all, .arg = &l};
    assert_int_equal(s->ops->watch(s, &all, &w, &op), 0);
    while (l == NULL)
        assert_true(mailbox_wait(&lab.mb, LAB_WAIT_MS) > 0);
    s->ops->cancel(op);
    for (size_t i = 0; i < l->n; i++)
        assert_int_equal(lab_delete(&lab, l->items[i]->spec.name), 0);
    jc_listing_unref(l);
    mailbox_fini(&lab.mb);
}

static struct jc_store *make(void *arg)
{
    struct setting *set = arg;
    char why[256], at[64], root[300];
    struct jc_store *s = NULL;
    struct jc_gazette_opts o = {.brokers = set->brokers, .data_dir = dir, .probe = lab_probe};

    assert_int_equal(temp_dir_make(dir, sizeof dir), 0);
    (void)snprintf(root, sizeof root, "%s/fragments", dir);
    if (set->codec != NULL) {
        o.file_root = root;
        o.fragment_store = "file:///";
        o.codec = set->codec;
    }
    if (set->brokers == NULL) {
        const struct stand_in_opts so = {
            .file_root = root, .watch_delay_ms = 5, .listing_lag_ms = 20, .assign_lag_ms = 20};
        assert_int_equal(stand_in_start(&so, &set->si), 0);
        (void)snprintf(at, sizeof at, "127.0.0.1:%u", stand_in_port(set->si));
        o.brokers = at;
    }
    assert_int_equal(mkdir(root, 0700), 0);
    assert_int_equal(jc_gazette_open(&o, &s, why, sizeof why), 0);
    if (set->brokers != NULL)
        delete_all(s);
    return s;
}

static void drop(void *arg)
{
    struct setting *set = arg;

    stand_in_stop(set->si);
    set->si = NULL;
    temp_dir_remove(dir);
}

static int run(struct setting set, const char *what)
{
    const struct store_factory f = {.make = make, .drop = drop, .arg = &set, .atomic_txn = false};

    (void)printf("-- %s\n", what);
    return store_contract_tests(&f);
}

int main(void)
{
    log_setup(LOG_WARN, LOG_FORMAT_TEXT);
    const char *real = getenv("SLUICE_GAZETTE"); // NOLINT(concurrency-mt-unsafe): one thread yet
    int failed = run((struct setting){0}, "the stand-in");

    failed += run((struct setting){.codec = "gzip"}, "the stand-in, fragments stored with gzip");
    if (real == NULL)
        (void)printf("-- no real broker: SLUICE_GAZETTE names none\n");
    else
        failed += run((struct setting){.brokers = real}, "the real broker");
    return failed;
}
