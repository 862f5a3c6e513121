/* See http.h. */
#include "app/http.h"

#include <curl/curl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ANSWER_MAX ((size_t)1 << 30)

struct transfer {
    const struct http_rq *rq;
    struct http_answer *out;
    CURL *curl;
};

static size_t on_body(char *p, size_t one, size_t n, void *arg)
{
    struct transfer *t = arg;
    long status = 0;

    (void)one;
    (void)curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    if (t->rq->on_bytes != NULL && status >= 200 && status < 300)
        return t->rq->on_bytes(t->rq->arg, span_of(p, n)) ? n : 0;
    wr_bytes(&t->out->body, p, n);
    return wr_err(&t->out->body) < 0 ? 0 : n;
}

static size_t on_header(char *p, size_t one, size_t n, void *arg)
{
    static const char NAME[] = "Idempotent-Replayed:";
    struct transfer *t = arg;

    (void)one;
    if (n >= sizeof NAME - 1 && strncasecmp(p, NAME, sizeof NAME - 1) == 0)
        t->out->replayed = true;
    return n;
}

static void set_options(struct transfer *t, const char *url, struct curl_slist *headers)
{
    const struct http_rq *rq = t->rq;
    CURL *c = t->curl;
    /* nothing of this program changes the environment */
    const char *ca = getenv("SLUICE_ADMIN_CA"); /* NOLINT(concurrency-mt-unsafe) */

    (void)curl_easy_setopt(c, CURLOPT_URL, url);
    (void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(c, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    if (ca != NULL && ca[0] != '\0')
        (void)curl_easy_setopt(c, CURLOPT_CAINFO, ca);
    (void)curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, 10000L);
    if (rq->on_bytes == NULL)
        (void)curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, 300000L);
    (void)curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
    (void)curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(c, CURLOPT_HEADERDATA, t);
    if (rq->method != NULL)
        (void)curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, rq->method);
    if (rq->body != NULL) {
        (void)curl_easy_setopt(c, CURLOPT_POST, 1L);
        (void)curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)rq->body->n);
        (void)curl_easy_setopt(c, CURLOPT_POSTFIELDS,
                               rq->body->n == 0 ? "" : (const char *)rq->body->p);
    }
}

static struct curl_slist *make_headers(const struct http_rq *rq)
{
    struct curl_slist *list = curl_slist_append(NULL, "Expect:"), *more;
    char line[512];

    if (list != NULL && rq->body != NULL && rq->content_type != NULL) {
        (void)snprintf(line, sizeof line, "Content-Type: %.200s", rq->content_type);
        if ((more = curl_slist_append(list, line)) == NULL)
            curl_slist_free_all(list);
        list = more;
    }
    if (list != NULL && rq->idempotency_key != NULL) {
        (void)snprintf(line, sizeof line, "Idempotency-Key: %.300s", rq->idempotency_key);
        if ((more = curl_slist_append(list, line)) == NULL)
            curl_slist_free_all(list);
        list = more;
    }
    return list;
}

static CURL *handle(void)
{
    static CURL *kept; /* one connection for all requests of a command */

    if (kept == NULL && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        kept = curl_easy_init();
    else if (kept != NULL)
        curl_easy_reset(kept);
    return kept;
}

int http_send(const struct http_rq *rq, struct http_answer *out)
{
    struct transfer t = {.rq = rq, .out = out};
    struct curl_slist *headers = NULL;
    size_t base_n = strlen(rq->base);
    struct writer url;
    CURLcode code;
    int err = E_NOMEM;

    memset(out, 0, sizeof *out);
    wr_init(&out->body, ANSWER_MAX);
    wr_init(&url, 65536);
    while (base_n > 0 && rq->base[base_n - 1] == '/')
        base_n--;
    wr_bytes(&url, rq->base, base_n);
    wr_str(&url, rq->path);
    wr_u8(&url, 0);
    if (wr_err(&url) < 0 || (t.curl = handle()) == NULL || (headers = make_headers(rq)) == NULL)
        goto out;
    set_options(&t, (const char *)url.b->data, headers);
    code = curl_easy_perform(t.curl);
    out->reached = code != CURLE_COULDNT_CONNECT && code != CURLE_COULDNT_RESOLVE_HOST &&
                   code != CURLE_URL_MALFORMAT && code != CURLE_UNSUPPORTED_PROTOCOL;
    (void)curl_easy_getinfo(t.curl, CURLINFO_RESPONSE_CODE, &out->status);
    (void)curl_easy_setopt(t.curl, CURLOPT_HTTPHEADER, NULL);
    err = 0;
    if (code != CURLE_OK) {
        (void)snprintf(out->fault, sizeof out->fault, "%.*s: %s", (int)base_n, rq->base,
                       curl_easy_strerror(code));
        out->retry = code == CURLE_COULDNT_CONNECT || code == CURLE_GOT_NOTHING ||
                     code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR ||
                     code == CURLE_PARTIAL_FILE || code == CURLE_OPERATION_TIMEDOUT;
        out->status = 0;
        err = E_IO;
    }
out:
    curl_slist_free_all(headers);
    wr_fini(&url);
    return err;
}

bool http_in_doubt(int err, const struct http_answer *a)
{
    if (err < 0)
        return a->reached;
    return a->status >= 500 && a->status != 503 && a->status != 507;
}

void http_answer_fini(struct http_answer *a)
{
    wr_fini(&a->body);
}

static void encode(struct writer *w, const char *s, const char *keep)
{
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     strchr(keep, c) != NULL;

        if (plain)
            wr_u8(w, c);
        else
            wr_printf(w, "%%%02X", c);
    }
}

void http_path(struct writer *w, const char *name)
{
    encode(w, name, "-_.~/");
}

void http_query(struct writer *w, const char *value)
{
    encode(w, value, "-_.~");
}

const char *http_admin(const char *flag)
{
    /* nothing of this program changes the environment */
    const char *env = getenv("SLUICE_ADMIN"); /* NOLINT(concurrency-mt-unsafe) */

    if (flag != NULL)
        return flag;
    return env != NULL && env[0] != '\0' ? env : ADMIN_DEFAULT;
}

void http_error_text(const struct http_answer *a, char *out, size_t bytes)
{
    struct span body = a->body.b == NULL ? span_of("", 0) : blob_span(a->body.b);
    json_t *root = json_loadb((const char *)body.p, body.n, 0, NULL);
    const char *text = json_string_value(json_object_get(root, "error"));

    if (a->status == 0)
        (void)snprintf(out, bytes, "%s", a->fault);
    else if (text != NULL)
        (void)snprintf(out, bytes, "%s", text);
    else
        (void)snprintf(out, bytes, "the server answered with status %ld", a->status);
    json_decref(root);
}
