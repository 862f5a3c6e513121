/*
 * Journals as values: names, labels, specs, listings, selectors. All are immutable once built and
 * counted, so that a snapshot can travel between threads. The rules of names and labels are those
 * of Gazette's broker.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

#define JC_LABEL_COLLECTION   "estuary.dev/collection"
#define JC_LABEL_KEY_BEGIN    "estuary.dev/key-begin" /* 8 hex digits, inclusive */
#define JC_LABEL_KEY_END      "estuary.dev/key-end"
#define JC_LABEL_TRUNCATED_AT "estuary.dev/truncated-at" /* 16 hex digits: a clock */

struct jc_label {
    const char *name;
    const char *value;
};

/* Plain values; whoever holds the struct owns nothing: strings are borrowed unless a function below
 * says it copies. */
struct jc_spec {
    const char *name;
    const struct jc_label *labels; /* sorted by (name, value), no repeats */
    size_t labels_n;
    int64_t fragment_bytes;  /* a fragment closes when it is at least this long; 0 = the store's
                                default */
    int64_t fragment_age_ms; /* ... or when its first byte is this old; 0 = never by age */
    int64_t retention_ms;    /* closed fragments older than this are removed; 0 = kept for ever */
    int64_t retention_bytes; /* closed fragments are removed from the oldest while more than this is
                                kept; 0 = no limit */
};

/* Owner: immutable, counted. One journal at one revision. */
struct jc_journal {
    struct jc_spec spec;     /* deep: belongs to this object */
    int64_t create_revision; /* changes when a journal is deleted and made anew */
    int64_t mod_revision;    /* changes with each apply */
    void *impl;              /* the store's own handle, kept alive by this object */
    /* Private to spec.c. */
    void (*impl_release)(void *impl);
    atomic_uint refs;
};

/* Owner: immutable, counted. All journals that a selector matches, by name. */
struct jc_listing {
    int64_t revision;
    size_t n;
    atomic_uint refs; /* private to spec.c */
    const struct jc_journal *items[];
};

/* For stores and for the fakes of tests. The spec is copied deeply. impl_release (may be NULL) is
 * called once, with the last reference; after a failure impl still belongs to the caller. E_NOMEM.
 */
MUST_USE int jc_journal_new(const struct jc_spec *spec, int64_t create_revision,
                            int64_t mod_revision, const struct jc_journal **out);
MUST_USE int jc_journal_new_impl(const struct jc_spec *spec, int64_t create_revision,
                                 int64_t mod_revision, void *impl, void (*impl_release)(void *impl),
                                 const struct jc_journal **out);
/* items must be sorted by name; one reference of each is taken. */
MUST_USE int jc_listing_new(int64_t revision, const struct jc_journal *const *items, size_t n,
                            const struct jc_listing **out);

const struct jc_journal *jc_journal_ref(const struct jc_journal *j);
void jc_journal_unref(const struct jc_journal *j); /* NULL is allowed */
const struct jc_listing *jc_listing_ref(const struct jc_listing *l);
void jc_listing_unref(const struct jc_listing *l); /* NULL is allowed */
/* Borrow; NULL when the listing does not hold the name. */
const struct jc_journal *jc_listing_find(const struct jc_listing *l, struct span name);

/* The value of a label that the spec holds exactly once; E_NOTFOUND when absent, E_CONFLICT when
 * there are several. */
MUST_USE int jc_spec_label(const struct jc_spec *spec, const char *name, const char **value);

/* E_INVALID with a reason in *why (static text). */
MUST_USE int jc_name_check(struct span name, const char **why);
MUST_USE int jc_spec_check(const struct jc_spec *spec, const char **why);

/* Include: every name must match, any of its values suffices, an empty value matches any. Exclude:
 * any match rejects. The meta-labels "name" (exact, or by prefix) is understood. An empty selector
 * matches all. */
struct jc_match {
    const char *name;
    const char *value;
    bool prefix; /* the value is a prefix */
    bool exclude;
};

struct jc_selector {
    const struct jc_match *matches;
    size_t n;
};

/* Deep copy, one allocation: freed with mem_free. E_NOMEM. */
MUST_USE int jc_selector_copy(const struct jc_selector *sel, struct jc_selector **out);

bool jc_selector_matches(const struct jc_selector *sel, const struct jc_spec *spec);
