/*
 * Settings of TLS and logins: what `serve` and `check` share (serve_config.h). Reads the key files
 * that the settings name. Main thread.
 */
#include "app/serve_config.h"

#include <stdio.h>
#include <string.h>

void serve_tls_make(const struct config *c, struct serve_config *out, struct config_faults *faults)
{
    static const char *const words[] = {"none", "optional", "required"};
    struct gw_tls_opts *t = &out->gw.tls;
    size_t who = 0;

    t->cert = c->tls_cert[0] != '\0' ? c->tls_cert : NULL;
    t->key = c->tls_key[0] != '\0' ? c->tls_key : NULL;
    t->client_ca = c->tls_client_ca[0] != '\0' ? c->tls_client_ca : NULL;
    t->handshake_ms = c->tls_handshake_timeout;
    if ((t->cert == NULL) != (t->key == NULL))
        config_fault(faults, t->cert == NULL ? "tls-cert" : "tls-key",
                     "tls-cert and tls-key go together");
    while (who < 3 && strcmp(c->tls_clients, words[who]) != 0)
        who++;
    if (who == 3)
        config_fault(faults, "tls-clients", "\"%.60s\" is not none, optional or required",
                     c->tls_clients);
    t->clients = who < 3 ? (enum tls_clients)who : TLS_CLIENTS_NONE;
    if (t->clients != TLS_CLIENTS_NONE && t->client_ca == NULL)
        config_fault(faults, "tls-clients", "\"%s\" needs tls-client-ca: who has signed them?",
                     c->tls_clients);
    for (size_t i = 0; i < c->tls_principal.n; i++) {
        if (tls_rule_parse(c->tls_principal.v[i], &t->rules[t->rules_n]) == 0)
            t->rules_n++;
        else
            config_fault(faults, "tls-principal",
                         "\"%.100s\" is not cn, dns, uri or email, with a pattern of one '*'",
                         c->tls_principal.v[i]);
    }
}

static void make_keys(const struct config *c, struct serve_config *out,
                      struct config_faults *faults)
{
    struct gw_auth_opts *a = &out->gw.auth;
    char why[128];

    a->audience = c->oauth_audience[0] != '\0' ? c->oauth_audience : NULL;
    a->issuer = c->oauth_issuer[0] != '\0' ? c->oauth_issuer : NULL;
    a->leeway_ms = c->oauth_leeway;
    if (c->oauth_key.n == 0)
        return;
    if (a->audience == NULL)
        config_fault(faults, "oauth-audience",
                     "is needed with oauth-key: a token for another service is no login here");
    if (jwt_files_new(&out->jwt_files) < 0) {
        config_fault(faults, "oauth-key", "out of memory");
        return;
    }
    a->keys = out->jwt_files;
    for (size_t i = 0; i < c->oauth_key.n; i++) {
        why[0] = '\0';
        int err = jwt_files_add(out->jwt_files, c->oauth_key.v[i], why, sizeof why);
        if (err < 0)
            config_fault(faults, "oauth-key", "%.200s: %s", c->oauth_key.v[i],
                         why[0] != '\0' ? why : err_text(err));
    }
}

void serve_auth_make(const struct config *c, struct serve_config *out, struct config_faults *faults)
{
    struct gw_auth_opts *a = &out->gw.auth;

    if (sasl_parse_list(c->sasl_mechanisms, &a->mechanisms) < 0)
        config_fault(faults, "sasl-mechanisms",
                     "\"%.100s\" is no list of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER",
                     c->sasl_mechanisms);
    make_keys(c, out, faults);
    a->session_ms = c->session_lifetime;
    a->login_ms = c->login_timeout;
    a->login_bytes = (size_t)c->max_login_bytes;
    a->failure_ms = c->login_failure_delay;
    a->failures = (unsigned)c->login_failures;
    out->gw.task_fetch_rate = (size_t)c->task_fetch_rate;
    a->address_conns = (unsigned)c->max_connections_per_address;
}

void serve_config_fini(struct serve_config *c)
{
    jwt_files_free(c->jwt_files);
    c->jwt_files = NULL;
}
