/* Paths and URLs of fragments, transfers by libcurl, and SHA-1 over what came. */
#include <curl/curl.h>
#include <openssl/evp.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "journal_client/gazette/direct.h"

#define CONNECT_S  5
#define SLOW_BYTES 1024 /* a transfer below this rate for SLOW_S seconds is given up */
#define SLOW_S     20

/* "%2F" and the like; returns the length, or E_SYNTAX. */
static int decode(const char *from, char *to)
{
    int n = 0;

    for (; *from != '\0'; from++) {
        uint64_t byte;
        char low[2];
        if (*from != '%') {
            to[n++] = *from;
            continue;
        }
        for (int i = 0; i < 2; i++) {
            low[i] = from[1 + i];
            if (low[i] == '\0')
                return E_SYNTAX;
            if (low[i] >= 'A' && low[i] <= 'F')
                low[i] = (char)(low[i] - 'A' + 'a');
        }
        if (num_parse_hex(span_of(low, 2), &byte) < 0 || byte == 0)
            return E_SYNTAX;
        to[n++] = (char)byte;
        from += 2;
    }
    to[n] = '\0';
    return n;
}

static int file_source(const struct gz_store *s, const char *rest, struct gz_source *out)
{
    size_t root = strlen(s->file_root);
    char *path = mem_alloc(root + strlen(rest) + 2);
    int err = 0;

    if (path == NULL)
        return E_NOMEM;
    memcpy(path, s->file_root, root);
    path[root] = '/';
    if (decode(rest, path + root + 1) < 0 || strstr(path + root, "/../") != NULL)
        err = E_INVALID;
    if (err < 0)
        mem_free(path);
    else
        out->path = path;
    return err;
}

int gz_source_of(const struct gz_store *s, const char *url, struct gz_source *out)
{
    struct span u = span_str(url);

    *out = (struct gz_source){0};
    if (span_has_prefix(u, span_str("file://")))
        return s->file_root == NULL ? E_UNSUPPORTED
                                    : file_source(s, url + sizeof "file://" - 1, out);
    if (!span_has_prefix(u, span_str("https://")) && !span_has_prefix(u, span_str("http://")))
        return E_UNSUPPORTED;
    out->url = mem_strdup(url);
    return out->url == NULL ? E_NOMEM : 0;
}

void gz_source_fini(struct gz_source *src)
{
    mem_free(src->path);
    mem_free(src->url);
}

/* --- transfers --- */

struct transfer {
    struct gz_store *s;
    gz_http_fn *out;
    void *arg;
    int err;
};

static size_t on_bytes(char *p, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;

    t->err = t->out(t->arg, span_of(p, size * n));
    return t->err < 0 ? 0 : size * n;
}

static int on_progress(void *arg, curl_off_t dl, curl_off_t dl_now, curl_off_t ul,
                       curl_off_t ul_now)
{
    const struct transfer *t = arg;

    (void)dl;
    (void)dl_now;
    (void)ul;
    (void)ul_now;
    return atomic_load_explicit(&t->s->io_stop, memory_order_relaxed) ? 1 : 0;
}

static CURL *handle_take(struct gz_store *s)
{
    CURL *h = NULL;

    pthread_mutex_lock(&s->curl_lock);
    for (size_t i = 0; i < sizeof s->curls / sizeof s->curls[0] && h == NULL; i++) {
        h = s->curls[i];
        s->curls[i] = NULL;
    }
    pthread_mutex_unlock(&s->curl_lock);
    return h != NULL ? h : curl_easy_init();
}

/* Its connections stay with it. */
static void handle_give(struct gz_store *s, CURL *h)
{
    curl_easy_reset(h);
    pthread_mutex_lock(&s->curl_lock);
    for (size_t i = 0; i < sizeof s->curls / sizeof s->curls[0] && h != NULL; i++) {
        if (s->curls[i] == NULL) {
            s->curls[i] = h;
            h = NULL;
        }
    }
    pthread_mutex_unlock(&s->curl_lock);
    if (h != NULL)
        curl_easy_cleanup(h);
}

void gz_http_end(struct gz_store *s)
{
    for (size_t i = 0; i < sizeof s->curls / sizeof s->curls[0]; i++) {
        if (s->curls[i] != NULL)
            curl_easy_cleanup(s->curls[i]);
        s->curls[i] = NULL;
    }
}

static int err_of(CURL *h, CURLcode rc, const struct transfer *t)
{
    long status = 0;

    if (t->err < 0)
        return t->err;
    if (rc == CURLE_OK)
        return 0;
    if (rc == CURLE_OUT_OF_MEMORY)
        return E_NOMEM;
    if (rc == CURLE_ABORTED_BY_CALLBACK)
        return E_CLOSED;
    (void)curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &status);
    if (status == 404)
        return E_NOTFOUND;
    return status == 401 || status == 403 ? E_DENIED : E_IO;
}

int gz_http_get(struct gz_store *s, const char *url, Gz__Codec codec, int64_t from, int64_t to,
                gz_http_fn *out, void *arg)
{
    struct transfer t = {.s = s, .out = out, .arg = arg};
    struct curl_slist *headers;
    char range[64];
    CURL *h = handle_take(s);
    int err = E_NOMEM;

    if (h == NULL)
        return E_NOMEM;
    /* No layer between may inflate what is stored compressed, nor compress what is not. */
    headers = curl_slist_append(NULL, codec == GZ__CODEC__CODEC_GZIP ? "Accept-Encoding: gzip"
                                                                     : "Accept-Encoding: identity");
    if (headers == NULL)
        goto out;
    if (to >= 0) {
        (void)snprintf(range, sizeof range, "%lld-%lld", (long long)from, (long long)to);
        (void)curl_easy_setopt(h, CURLOPT_RANGE, range);
    }
    (void)curl_easy_setopt(h, CURLOPT_URL, url);
    (void)curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(h, CURLOPT_FAILONERROR, 1L);
    (void)curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    (void)curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES);
    (void)curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, (long)SLOW_S);
    (void)curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
    (void)curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_progress);
    (void)curl_easy_setopt(h, CURLOPT_XFERINFODATA, &t);
    (void)curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_bytes);
    (void)curl_easy_setopt(h, CURLOPT_WRITEDATA, &t);
    CURLcode rc = curl_easy_perform(h);
    err = err_of(h, rc, &t);
out:
    curl_slist_free_all(headers);
    handle_give(s, h);
    return err;
}

/* --- SHA-1 --- */

struct gz_sha {
    EVP_MD_CTX *ctx;
};

int gz_sha_new(struct gz_sha **out)
{
    struct gz_sha *h = mem_zalloc(sizeof *h);

    *out = NULL;
    if (h == NULL)
        return E_NOMEM;
    if ((h->ctx = EVP_MD_CTX_new()) == NULL || EVP_DigestInit_ex(h->ctx, EVP_sha1(), NULL) != 1) {
        gz_sha_free(h);
        return E_NOMEM;
    }
    *out = h;
    return 0;
}

int gz_sha_add(struct gz_sha *h, struct span bytes)
{
    return EVP_DigestUpdate(h->ctx, bytes.p, bytes.n) == 1 ? 0 : E_NOMEM;
}

int gz_sha_hex(struct gz_sha *h, char out[41])
{
    unsigned char md[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    if (EVP_DigestFinal_ex(h->ctx, md, &n) != 1 || n != 20)
        return E_NOMEM;
    for (unsigned i = 0; i < n; i++)
        (void)snprintf(out + (size_t)2 * i, 3, "%02x", md[i]);
    return 0;
}

void gz_sha_free(struct gz_sha *h)
{
    if (h == NULL)
        return;
    EVP_MD_CTX_free(h->ctx);
    mem_free(h);
}
