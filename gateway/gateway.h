/*
 * The server as a whole: listeners, workers, view, admin HTTP. Used by app/ and by tests.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "gateway/config.h"
#include "journal_client/store.h"

struct gateway;

struct gw_ports {
    uint16_t kafka; /* of the first Kafka listener */
    uint16_t admin;
    uint16_t registry; /* 0: there is none */
};

/* Binds all listeners and starts the workers. config and store are borrowed until gateway_free;
 * clock NULL = the system's. why: one line for the operator when it fails (E_INVALID refused
 * configuration, E_BUSY address in use, ...). */
MUST_USE int gateway_new(const struct gw_config *config, struct jc_store *store,
                         const struct clock *clock, struct gateway **out, char *why,
                         size_t why_bytes);
void gateway_ports(const struct gateway *gw, struct gw_ports *out);
/* The bound port of config->kafka[i]; 0 when there is none. Before gateway_run. */
uint16_t gateway_kafka_port(const struct gateway *gw, size_t i);
/* Runs the control loop on the calling thread until gateway_stop; then drains: stops accepting,
 * answers long polls, finishes running requests within config->drain_ms. Returns 0 after a clean
 * drain. */
MUST_USE int gateway_run(struct gateway *gw);
/* Any thread, and safe in a signal handler. A second call cuts the drain short. */
void gateway_stop(struct gateway *gw);
/* Any thread, and safe in a signal handler. Reads anew what may change while the server runs: the
 * catalog. */
void gateway_reload(struct gateway *gw);
/* Joins all threads and frees everything. The store is not closed. */
void gateway_free(struct gateway *gw);

/* The probe that stores need: kind and clock of a line of JSON, by /_meta/uuid. Pure; arg unused.
 */
void gw_doc_probe(void *arg, struct span line, struct jc_doc_info *out);
