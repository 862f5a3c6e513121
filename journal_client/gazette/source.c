/*
 * Paths and URLs of fragments, transfers by libcurl, and SHA-1 over what came. What an answer must
 * be is in object.c. Redirects are not followed: who signed a URL knows where the object lies, and
 * brokers have what cannot be had there.
 */
#include <curl/curl.h>
#include <openssl/evp.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "journal_client/gazette/direct.h"

#define CONNECT_S 5
/* A transfer below this rate for SLOW_S seconds is given up, and one of a range takes no longer
 * than that and what its bytes take at this rate: it holds a thread of the pool, and brokers have
 * them as well. */
#define SLOW_BYTES (64 << 10)
#define SLOW_S     10

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
    const struct gz_object_ask *ask;
    struct gz_object_answer answer;
    gz_http_fn *out;
    void *arg;
    bool judged;
    int err;
};

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;

    gz_object_header(&t->answer, span_of(p, size * n));
    return size * n;
}

/* Before the first byte is taken, or at the end when there was none. */
static int judge(struct transfer *t)
{
    const struct gz_object_answer *a = &t->answer;
    int err = t->judged ? 0 : gz_object_judge(a, t->ask);

    t->judged = true;
    if (err == E_IO) /* URLs are secrets */
        log_peer(LOG_WARN, "gazette.object_refused", LF_INT("status", a->status),
                 LF_INT("asked_from", t->ask->from), LF_INT("asked_to", t->ask->to),
                 LF_INT("from", a->from), LF_INT("to", a->to), LF_INT("size", a->size));
    return err;
}

static size_t on_bytes(char *p, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;

    if ((t->err = judge(t)) == 0)
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

static int err_of(CURLcode rc, struct transfer *t)
{
    if (t->err < 0)
        return t->err;
    if (rc == CURLE_OK)
        return judge(t);
    if (rc == CURLE_OUT_OF_MEMORY)
        return E_NOMEM;
    if (rc == CURLE_ABORTED_BY_CALLBACK)
        return E_CLOSED;
    if (rc == CURLE_OPERATION_TIMEDOUT)
        return E_TIMEOUT;
    int err = gz_object_judge(&t->answer, t->ask);
    return err == E_NOTFOUND || err == E_DENIED ? err : E_IO;
}

static void set_limits(CURL *h, const struct gz_object_ask *ask)
{
    (void)curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    (void)curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES);
    (void)curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, (long)SLOW_S);
    if (ask->to >= 0)
        (void)curl_easy_setopt(h, CURLOPT_TIMEOUT_MS,
                               SLOW_S * 1000L + (ask->to - ask->from) * 1000L / SLOW_BYTES);
}

static int transfer(CURL *h, struct transfer *t, const char *url)
{
    const struct gz_object_ask *ask = t->ask;
    struct curl_slist *headers;
    char range[64];

    /* No layer between may inflate what is stored compressed, nor compress what is not. */
    headers = curl_slist_append(NULL, ask->encoded ? "Accept-Encoding: gzip"
                                                   : "Accept-Encoding: identity");
    if (headers == NULL)
        return E_NOMEM;
    if (ask->to >= 0) {
        (void)snprintf(range, sizeof range, "%lld-%lld", (long long)ask->from, (long long)ask->to);
        (void)curl_easy_setopt(h, CURLOPT_RANGE, range);
    }
    set_limits(h, ask);
    (void)curl_easy_setopt(h, CURLOPT_URL, url);
    (void)curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(h, CURLOPT_FAILONERROR, 1L);
    (void)curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
    (void)curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_progress);
    (void)curl_easy_setopt(h, CURLOPT_XFERINFODATA, t);
    (void)curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(h, CURLOPT_HEADERDATA, t);
    (void)curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_bytes);
    (void)curl_easy_setopt(h, CURLOPT_WRITEDATA, t);
    CURLcode rc = curl_easy_perform(h);
    curl_slist_free_all(headers);
    return err_of(rc, t);
}

bool gz_http_paused(struct gz_store *s, const char *url)
{
    pthread_mutex_lock(&s->curl_lock);
    bool paused = gz_origin_paused(&s->origins, span_str(url), gz_mono_ms(s));
    pthread_mutex_unlock(&s->curl_lock);
    return paused;
}

int gz_http_get(struct gz_store *s, const char *url, const struct gz_object_ask *ask,
                gz_http_fn *out, void *arg)
{
    struct transfer t = {.s = s, .ask = ask, .out = out, .arg = arg};
    CURL *h;
    int err;

    pthread_mutex_lock(&s->curl_lock);
    bool may = gz_origin_begin(&s->origins, span_str(url), gz_mono_ms(s));
    pthread_mutex_unlock(&s->curl_lock);
    if (!may)
        return E_UNSUPPORTED;
    if ((h = handle_take(s)) == NULL) {
        err = E_NOMEM;
    } else {
        err = transfer(h, &t, url);
        handle_give(s, h);
    }
    pthread_mutex_lock(&s->curl_lock);
    gz_origin_ended(&s->origins, span_str(url), err, gz_mono_ms(s));
    pthread_mutex_unlock(&s->curl_lock);
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
