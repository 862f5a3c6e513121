/*
 * The contract suite over a Gazette broker: SLUICE_GAZETTE=HOST:PORT names one whose journals may
 * be deleted. Without it nothing is tested here.
 */
#include "tests/contract/store_contract.c"

#include "base/log.h"
#include "journal_client/gazette.h"
#include "tests/contract/temp_dir.h"

#define NOT_RUN 77 /* what ctest counts as skipped */

static char dir[256];
static const char *brokers;

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
    char why[256];
    struct jc_store *s = NULL;

    (void)arg;
    assert_int_equal(temp_dir_make(dir, sizeof dir), 0);
    const struct jc_gazette_opts o = {.brokers = brokers, .data_dir = dir, .probe = lab_probe};
    assert_int_equal(jc_gazette_open(&o, &s, why, sizeof why), 0);
    delete_all(s);
    return s;
}

static void drop(void *arg)
{
    (void)arg;
    temp_dir_remove(dir);
}

int main(void)
{
    const struct store_factory gazette = {.make = make, .drop = drop, .atomic_txn = false};

    log_setup(LOG_WARN, LOG_FORMAT_TEXT);
    brokers = getenv("SLUICE_GAZETTE"); // NOLINT(concurrency-mt-unsafe): before threads start
    if (brokers == NULL) {
        (void)printf("skipped: SLUICE_GAZETTE names no broker\n");
        return NOT_RUN;
    }
    return store_contract_tests(&gazette);
}
