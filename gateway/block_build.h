/*
 * From the bytes of one journal block to Kafka record batches, and look-ups by time within a block.
 * Pure: bytes in, batches out; any thread.
 *
 * One visible document = one record: offset = journal offset of its last byte, the newline (O1);
 * timestamp = milliseconds of its UUID's clock, -1 without a UUID (O10); value = the line without
 * its newline, byte for byte (a trailing \r stays); key = the collection's key as JSON text, null
 * when the topic has no key or the document lacks a part of it or is no object. Visible (O3):
 * content within the bound. A line that is no valid document is content: it passes as it is. With
 * Avro, key and value are what schema/transcode.h makes of the document; one that does not fit its
 * schema leaves a refused range, is left out, or passes as it is (enum gw_misfit).
 */
#pragma once

#include "gateway/cache.h"
#include "gateway/signal.h"
#include "journal_client/store.h"
#include "schema/json_reader.h"
#include "schema/transcode.h"

/* A batch is finished before it would pass this size, uncompressed; only a single larger document
 * makes a larger batch. Bounds what a fetch in the middle of a batch is sent in vain (design 4). */
#define GW_BATCH_BYTES 65536

struct gw_build {
    struct gw_bound bound;
    const struct sc_key *key; /* NULL: null record keys */
    enum kp_codec codec;
    const struct sc_avro *avro; /* NULL: JSON */
    bool avro_key;
    bool avro_value;
    bool bare_key; /* a key that is not Avro: sc_key_bare, not sc_key_text */
    enum gw_misfit misfit;
    /* told of each document that does not fit; NULL: nobody asks */
    void (*on_misfit)(void *arg, int64_t offset, const struct sc_transcode_error *why);
    void *arg;
    int64_t from;        /* documents whose last byte lies below are left out; 0: none */
    const int64_t *cuts; /* rising; no batch holds records on both sides of one of these offsets */
    size_t cuts_n;
    bool signal; /* the first visible record behind a marker carries its clock as a header */
    struct gw_lead lead; /* what the first visible record of the block tells; of no use with an old
                            entry, which knows what it still has to tell */
};

/* Batches of the block's visible documents, behind those of `old`, which the result shares (old may
 * be NULL; its batches must lie below how->from). The caller owns one reference of *out. E_NOMEM.
 */
MUST_USE int gw_block_build(const struct gw_build *how, const struct jc_block *block,
                            const struct gw_blockbatches *old, struct gw_blockbatches **out);

/* What a line is to the gateway and to the store's index: one function, so that they can never
 * disagree. line excludes its newline; hint: one per stream, zero-initialised. */
void gw_doc_look(struct span line, struct sc_uuid_hint *hint, struct jc_doc_info *out);

struct gw_time_look {
    struct gw_bound bound;
    int64_t from; /* documents whose last byte is in [from, end) */
    int64_t end;
    int64_t min_ms; /* the first document with a timestamp of at least this ... */
    bool largest;   /* ... or, whatever min_ms, the first of those with the largest timestamp */
};

/* The document that ListOffsets asks for. E_NOTFOUND when the block holds none; E_CORRUPT when
 * something that could not be read may have been it. */
MUST_USE int gw_block_look_time(const struct gw_time_look *look, const struct jc_block *block,
                                int64_t *offset, int64_t *timestamp);
