/* The contract suite over the embedded store. */
#include "tests/contract/store_contract.c"

#include "base/log.h"
#include "journal_client/local.h"
#include "tests/contract/temp_dir.h"

static char dir[256];

static struct jc_store *make(void *arg)
{
    char why[256];
    struct jc_store *s = NULL;

    (void)arg;
    assert_int_equal(temp_dir_make(dir, sizeof dir), 0);
    const struct jc_local_opts o = {.dir = dir, .probe = lab_probe};
    assert_int_equal(jc_local_open(&o, &s, why, sizeof why), 0);
    return s;
}

static void drop(void *arg)
{
    (void)arg;
    temp_dir_remove(dir);
}

int main(void)
{
    const struct store_factory local = {.make = make, .drop = drop, .atomic_txn = true};

    log_setup(LOG_ERROR, LOG_FORMAT_TEXT);
    return store_contract_tests(&local);
}
