/*
 * From settings to what the gateway takes: addresses parsed, limits in their types, and everything
 * that must be refused at start. Shared by `serve` and `check`.
 */
#pragma once

#include "app/config.h"
#include "gateway/config.h"
#include "gateway/jwt_files.h"
#include "journal_client/gazette.h"
#include "journal_client/local.h"

#define HOST_MAX 256

/* Owner: main thread. gw and store borrow from here and from the settings. */
struct serve_config {
    struct gw_config gw;
    struct jc_local_opts store;
    struct jc_gazette_opts gazette; /* brokers NULL: the local store */
    struct gw_listen kafka[CONFIG_LIST_MAX];
    char kafka_hosts[CONFIG_LIST_MAX][HOST_MAX];
    char kafka_told[CONFIG_LIST_MAX][HOST_MAX];
    struct jwt_files *jwt_files; /* owned; NULL: none */
    char admin_host[HOST_MAX];
    char registry_host[HOST_MAX];
    char advertise_host[HOST_MAX];
    char groups_path[4096];
};

/* Checks and converts; all faults are collected. E_INVALID when there is one. c must outlive out.
 */
MUST_USE int serve_config_make(const struct config *c, struct serve_config *out,
                               struct config_faults *faults);
void serve_config_fini(struct serve_config *c);
/* private to serve_config.c: the settings of TLS, which listeners are judged by, and of logins */
void serve_tls_make(const struct config *c, struct serve_config *out, struct config_faults *faults);
void serve_auth_make(const struct config *c, struct serve_config *out,
                     struct config_faults *faults);
/* "HOST:PORT" or "[HOST]:PORT" with an optional security prefix (then tls and sasl are set).
 * E_SYNTAX. host: HOST_MAX bytes. */
MUST_USE int serve_parse_listen(const char *text, struct gw_listen *out, char *host);
bool serve_is_loopback(const char *host);
