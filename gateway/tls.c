/* See tls.h. Files are read on the control thread, at start and when they change. */
#include "gateway/tls.h"

#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"

#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL:!eNULL:!PSK"
#define GROUPS  "X25519:P-256:P-384"
#define FILES   3

struct tls_server {
    const struct gw_tls_opts *opts;
    pthread_mutex_t lock; /* guards what it lists below */
    SSL_CTX *kafka;
    SSL_CTX *http;
    int64_t expires_s;
    struct stat seen[FILES]; /* control thread */
};

const char *tls_fault(void)
{
    unsigned long e = ERR_peek_error(); /* the first one is the cause */
    const char *text =
        ERR_SYSTEM_ERROR(e) ? strerrordesc_np(ERR_GET_REASON(e)) : ERR_reason_error_string(e);

    ERR_clear_error();
    return text != NULL ? text : "connection lost";
}

/* Never asks a terminal for a passphrase. */
static int no_passphrase(char *buf, int size, int writing, void *arg)
{
    if (size > 0)
        buf[0] = '\0';
    (void)writing;
    (void)arg;
    return 0;
}

/* A client's certificate is judged by the signature chain alone: names are the rules' business. */
static bool ask_clients(SSL_CTX *ctx, const struct gw_tls_opts *opts)
{
    STACK_OF(X509_NAME) * names;

    if (opts->clients == TLS_CLIENTS_NONE)
        return true;
    if (opts->client_ca == NULL || SSL_CTX_load_verify_file(ctx, opts->client_ca) != 1 ||
        (names = SSL_load_client_CA_file(opts->client_ca)) == NULL)
        return false;
    SSL_CTX_set_client_CA_list(ctx, names);
    SSL_CTX_set_verify(
        ctx,
        SSL_VERIFY_PEER |
            (opts->clients == TLS_CLIENTS_REQUIRED ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
        NULL);
    return true;
}

static SSL_CTX *context_new(const struct gw_tls_opts *opts, char *why, size_t why_bytes)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    char groups[] = GROUPS; /* the macro below drops a const */
    const char *what = "the TLS library";

    if (ctx == NULL)
        goto out;
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE);
    (void)SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_security_level(ctx, 2);
    SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
    if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_num_tickets(ctx, 0) != 1 || SSL_CTX_set_cipher_list(ctx, CIPHERS) != 1 ||
        SSL_CTX_set1_groups_list(ctx, groups) != 1)
        goto out;
    what = opts->cert;
    if (SSL_CTX_use_certificate_chain_file(ctx, opts->cert) != 1)
        goto out;
    what = opts->key;
    if (SSL_CTX_use_PrivateKey_file(ctx, opts->key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(ctx) != 1)
        goto out;
    return ctx;
out:
    snprintf(why, why_bytes, "TLS: %s: %s", what, tls_fault());
    SSL_CTX_free(ctx);
    return NULL;
}

static int64_t expiry(SSL_CTX *ctx)
{
    const X509 *cert = SSL_CTX_get0_certificate(ctx);
    ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
    int days = 0;
    int seconds = 0;

    if (cert != NULL && epoch != NULL)
        (void)ASN1_TIME_diff(&days, &seconds, epoch, X509_get0_notAfter(cert));
    ASN1_TIME_free(epoch);
    return (int64_t)days * 86400 + seconds;
}

static void look(const struct gw_tls_opts *opts, struct stat seen[FILES])
{
    const char *paths[FILES] = {opts->cert, opts->key, opts->client_ca};

    memset(seen, 0, FILES * sizeof seen[0]);
    for (int i = 0; i < FILES; i++) {
        if (paths[i] != NULL && stat(paths[i], &seen[i]) < 0)
            memset(&seen[i], 0, sizeof seen[i]);
    }
}

int tls_server_reload(struct tls_server *ts, char *why, size_t why_bytes)
{
    SSL_CTX *http = NULL;
    SSL_CTX *kafka = NULL;
    int err = E_INVALID;

    look(ts->opts, ts->seen); /* first: a change while we read is seen next time */
    if ((kafka = context_new(ts->opts, why, why_bytes)) == NULL ||
        (http = context_new(ts->opts, why, why_bytes)) == NULL)
        goto out;
    if (!ask_clients(kafka, ts->opts)) {
        snprintf(why, why_bytes, "TLS: %s: %s",
                 ts->opts->client_ca != NULL ? ts->opts->client_ca : "certificates of clients",
                 tls_fault());
        goto out;
    }
    pthread_mutex_lock(&ts->lock);
    SSL_CTX *old[2] = {ts->kafka, ts->http};
    ts->kafka = kafka;
    ts->http = http;
    ts->expires_s = expiry(kafka);
    pthread_mutex_unlock(&ts->lock);
    kafka = old[0]; /* connections that use them hold their own reference */
    http = old[1];
    err = 0;
out:
    SSL_CTX_free(kafka);
    SSL_CTX_free(http);
    return err;
}

int tls_server_new(const struct gw_tls_opts *opts, struct tls_server **out, char *why,
                   size_t why_bytes)
{
    *out = NULL;
    struct tls_server *ts = mem_zalloc(sizeof *ts);
    if (ts == NULL)
        return E_NOMEM;
    pthread_mutex_init(&ts->lock, NULL);
    ts->opts = opts;
    int err = tls_server_reload(ts, why, why_bytes);
    if (err < 0) {
        tls_server_free(ts);
        return err;
    }
    *out = ts;
    return 0;
}

void tls_server_free(struct tls_server *ts)
{
    if (ts == NULL)
        return;
    SSL_CTX_free(ts->kafka);
    SSL_CTX_free(ts->http);
    pthread_mutex_destroy(&ts->lock);
    mem_free(ts);
}

bool tls_server_changed(struct tls_server *ts)
{
    struct stat now[FILES];

    look(ts->opts, now);
    for (int i = 0; i < FILES; i++) {
        const struct stat *a = &now[i];
        const struct stat *b = &ts->seen[i];
        if (a->st_ino != b->st_ino || a->st_dev != b->st_dev || a->st_size != b->st_size ||
            a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec)
            return true;
    }
    return false;
}

int64_t tls_server_expires_s(struct tls_server *ts)
{
    pthread_mutex_lock(&ts->lock);
    int64_t s = ts->expires_s;
    pthread_mutex_unlock(&ts->lock);
    return s;
}

const struct gw_tls_opts *tls_server_opts(const struct tls_server *ts)
{
    return ts->opts;
}

static SSL *server_side(struct tls_server *ts, bool kafka)
{
    pthread_mutex_lock(&ts->lock);
    SSL *ssl = SSL_new(kafka ? ts->kafka : ts->http);
    pthread_mutex_unlock(&ts->lock);
    if (ssl != NULL)
        SSL_set_accept_state(ssl);
    return ssl;
}

SSL *tls_server_kafka(struct tls_server *ts)
{
    return server_side(ts, true);
}

struct bufferevent *tls_server_accepted(void *ts, struct event_base *base, int fd)
{
    SSL *ssl = server_side(ts, false);

    if (ssl == NULL)
        return NULL;
    struct bufferevent *bev = bufferevent_openssl_socket_new(
        base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
    if (bev == NULL)
        SSL_free(ssl);
    else /* HTTP says itself where a message ends */
        bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
    return bev;
}

struct bufferevent *tls_server_http(struct event_base *base, void *ts)
{
    return tls_server_accepted(ts, base, -1);
}
