/* The contract of jc_store_ops as tests, for any store. */
#pragma once

#include "journal_client/store.h"

/* Makes an empty store (probe: lab_probe) for each test; drop removes what is left of it after its
 * close. */
struct store_factory {
    struct jc_store *(*make)(void *arg);
    void (*drop)(void *arg);
    void *arg;
    bool atomic_txn; /* a transaction over several journals is all or nothing */
};

/* Runs the suite; returns the number of failed tests. */
int store_contract_tests(const struct store_factory *factory);
