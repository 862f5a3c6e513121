/* See http_parse.h. */
#include "gateway/http_parse.h"

#include <string.h>
#include <strings.h>

#include "base/num.h"

/* --- head --- */

size_t http_head_end(struct span s, size_t from)
{
    size_t i = 0;

    while (i < s.n && (s.p[i] == '\r' || s.p[i] == '\n'))
        i++; /* left behind by a client that ends bodies with an empty line */
    if (from > i + 2)
        i = from - 2;
    for (; i < s.n; i++) {
        if (s.p[i] != '\n' || i + 1 >= s.n)
            continue;
        if (s.p[i + 1] == '\n')
            return i + 2;
        if (s.p[i + 1] == '\r' && i + 2 < s.n && s.p[i + 2] == '\n')
            return i + 3;
    }
    return 0;
}

static bool is_token(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];

        if (c <= 0x20 || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c) != NULL)
            return false;
    }
    return s.n > 0;
}

/* Cuts the next line off s, without its end. */
static struct span next_line(struct span *s)
{
    const uint8_t *nl = memchr(s->p, '\n', s->n);
    size_t n = nl == NULL ? s->n : (size_t)(nl - s->p);
    struct span line = span_of(s->p, n);

    s->p += n + (nl != NULL);
    s->n -= n + (nl != NULL);
    if (line.n > 0 && line.p[line.n - 1] == '\r')
        line.n--;
    return line;
}

static enum http_method method_of(struct span s)
{
    static const char *const names[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (span_eq_str(s, names[i]))
            return (enum http_method)i;
    return HTTP_OTHER;
}

static int request_line(struct span line, struct arena *a, struct http_head *out, const char **why)
{
    const uint8_t *first = memchr(line.p, ' ', line.n), *second;
    struct span method, target, version;

    *why = "malformed request line";
    if (first == NULL)
        return 400;
    method = span_of(line.p, (size_t)(first - line.p));
    target = span_of(first + 1, line.n - method.n - 1);
    if ((second = memchr(target.p, ' ', target.n)) == NULL)
        return 400;
    version = span_of(second + 1, target.n - (size_t)(second - target.p) - 1);
    target.n = (size_t)(second - target.p);
    if (!is_token(method) || target.n == 0)
        return 400;
    for (size_t i = 0; i < target.n; i++)
        if (target.p[i] <= 0x20 || target.p[i] == 0x7f)
            return 400;
    if (version.n != 8 || memcmp(version.p, "HTTP/", 5) != 0 || version.p[6] != '.' ||
        version.p[7] < '0' || version.p[7] > '9')
        return 400;
    if (version.p[5] != '1') {
        *why = "only HTTP/1.0 and HTTP/1.1 are spoken here";
        return 505;
    }
    out->method = method_of(method);
    out->minor = version.p[7] == '0' ? 0 : 1;
    *why = "out of memory";
    return (out->target = arena_strndup(a, (const char *)target.p, target.n)) == NULL ? 503 : 0;
}

static int header_line(struct span line, struct arena *a, struct http_header *out, const char **why)
{
    const uint8_t *colon = memchr(line.p, ':', line.n);
    struct span name, value;

    *why = "malformed header";
    if (colon == NULL)
        return 400;
    name = span_of(line.p, (size_t)(colon - line.p));
    value = span_of(colon + 1, line.n - name.n - 1);
    if (!is_token(name)) /* also a space before the colon, and folded lines (RFC 9112 5.1, 5.2) */
        return 400;
    while (value.n > 0 && (value.p[0] == ' ' || value.p[0] == '\t')) {
        value.p++;
        value.n--;
    }
    while (value.n > 0 && (value.p[value.n - 1] == ' ' || value.p[value.n - 1] == '\t'))
        value.n--;
    for (size_t i = 0; i < value.n; i++)
        if ((value.p[i] < 0x20 && value.p[i] != '\t') || value.p[i] == 0x7f)
            return 400;
    *why = "out of memory";
    out->name = arena_strndup(a, (const char *)name.p, name.n);
    out->value = arena_strndup(a, (const char *)value.p, value.n);
    return out->name == NULL || out->value == NULL ? 503 : 0;
}

const char *http_head_find(const struct http_head *h, const char *name)
{
    for (size_t i = 0; i < h->headers_n; i++)
        if (strcasecmp(h->headers[i].name, name) == 0)
            return h->headers[i].value;
    return NULL;
}

size_t http_head_count(const struct http_head *h, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < h->headers_n; i++)
        n += strcasecmp(h->headers[i].name, name) == 0;
    return n;
}

/* True when the comma list of any such header holds the word. */
static bool lists_word(const struct http_head *h, const char *name, const char *word)
{
    size_t word_n = strlen(word);

    for (size_t i = 0; i < h->headers_n; i++) {
        const char *p = h->headers[i].value;

        if (strcasecmp(h->headers[i].name, name) != 0)
            continue;
        while (*p != '\0') {
            size_t n;

            p += strspn(p, " \t,");
            n = strcspn(p, " \t,");
            if (n == word_n && strncasecmp(p, word, n) == 0)
                return true;
            p += n;
        }
    }
    return false;
}

/* How long the body is, and that nobody can read it in two ways. */
static int framing(struct http_head *h, const char **why)
{
    const char *length = http_head_find(h, "Content-Length");
    const char *coding = http_head_find(h, "Transfer-Encoding");
    size_t hosts = http_head_count(h, "Host");

    *why = "a request has exactly one Host header";
    if (hosts > 1 || (hosts == 0 && h->minor > 0))
        return 400;
    *why = "ambiguous message length";
    if (http_head_count(h, "Content-Length") > 1 || http_head_count(h, "Transfer-Encoding") > 1 ||
        (length != NULL && coding != NULL))
        return 400;
    if (coding != NULL) {
        *why = "this Transfer-Encoding is not supported";
        if (h->minor == 0 || strcasecmp(coding, "chunked") != 0)
            return h->minor == 0 ? 400 : 501;
        h->chunked = true;
    } else if (length != NULL) {
        *why = "malformed Content-Length";
        if (length[0] == '\0' || length[strspn(length, "0123456789")] != '\0' ||
            num_parse_u64(span_str(length), &h->length) < 0)
            return 400;
        h->has_length = true;
    } else if (h->method == HTTP_POST || h->method == HTTP_PUT || h->method == HTTP_PATCH) {
        *why = "a Content-Length or a chunked body is needed";
        return 411;
    }
    return 0;
}

int http_head_parse(struct span head, struct arena *a, struct http_head *out, const char **why)
{
    const char *expect;
    struct span line;
    int status;

    memset(out, 0, sizeof *out);
    while (head.n > 0 && (head.p[0] == '\r' || head.p[0] == '\n')) {
        head.p++;
        head.n--;
    }
    if ((status = request_line(next_line(&head), a, out, why)) != 0)
        return status;
    *why = "out of memory";
    if ((out->headers = arena_array(a, HTTP_HEADERS_MAX, sizeof out->headers[0])) == NULL)
        return 503;
    while ((line = next_line(&head)).n > 0) {
        *why = "too many headers";
        if (out->headers_n == HTTP_HEADERS_MAX)
            return 431;
        if ((status = header_line(line, a, &out->headers[out->headers_n], why)) != 0)
            return status;
        out->headers_n++;
    }
    if ((status = framing(out, why)) != 0)
        return status;
    if ((expect = http_head_find(out, "Expect")) != NULL && out->minor > 0) {
        *why = "this expectation cannot be met";
        if (strcasecmp(expect, "100-continue") != 0)
            return 417;
        out->expect_continue = true;
    }
    out->keep_alive = out->minor > 0 ? !lists_word(out, "Connection", "close")
                                     : lists_word(out, "Connection", "keep-alive");
    return 0;
}

/* --- chunks --- */

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static enum http_chunk_step size_ends(struct http_chunks *c)
{
    c->line_n = 0;
    c->digits = 0;
    c->cr = false;
    c->state = c->left == 0 ? CHUNK_TRAILER : CHUNK_DATA;
    return HTTP_CHUNK_SIZE;
}

/* One byte of the line with a chunk's size. Extensions are ignored, as they must be. */
static enum http_chunk_step size_byte(struct http_chunks *c, uint8_t b)
{
    int digit = hex_digit(b);

    if (++c->line_n > HTTP_LINE_MAX)
        return HTTP_CHUNK_FAULT;
    if (c->cr)
        return b == '\n' ? size_ends(c) : HTTP_CHUNK_FAULT;
    if (b == '\r') {
        c->cr = true;
        return c->digits > 0 ? HTTP_CHUNK_MORE : HTTP_CHUNK_FAULT;
    }
    if (c->state == CHUNK_EXT)
        return b == '\n' || b == 0 ? HTTP_CHUNK_FAULT : HTTP_CHUNK_MORE;
    if (digit >= 0) {
        if (++c->digits > 15)
            return HTTP_CHUNK_FAULT;
        c->left = (c->digits == 1 ? 0 : c->left * 16) + (uint64_t)digit;
        return HTTP_CHUNK_MORE;
    }
    if (c->digits == 0 || (b != ';' && b != ' ' && b != '\t'))
        return HTTP_CHUNK_FAULT;
    c->state = CHUNK_EXT;
    return HTTP_CHUNK_MORE;
}

/* One byte of the trailers: they are read over, up to the empty line. */
static enum http_chunk_step trailer_byte(struct http_chunks *c, uint8_t b)
{
    if (++c->trailer_n > HTTP_TRAILER_MAX || (c->cr && b != '\n'))
        return HTTP_CHUNK_FAULT;
    if (b == '\r') {
        c->cr = true;
        return HTTP_CHUNK_MORE;
    }
    if (b == '\n') {
        if (!c->cr)
            return HTTP_CHUNK_FAULT;
        c->cr = false;
        if (c->line_n == 0) {
            c->state = CHUNK_DONE;
            return HTTP_CHUNK_DONE;
        }
        c->line_n = 0;
        return HTTP_CHUNK_MORE;
    }
    c->line_n++;
    return HTTP_CHUNK_MORE;
}

static enum http_chunk_step data_end_byte(struct http_chunks *c, uint8_t b)
{
    if (b != (c->cr ? '\n' : '\r'))
        return HTTP_CHUNK_FAULT;
    if (c->cr)
        c->state = CHUNK_SIZE;
    c->cr = !c->cr;
    return HTTP_CHUNK_MORE;
}

enum http_chunk_step http_chunk_next(struct http_chunks *c, struct span s, size_t *used,
                                     struct span *data)
{
    for (*used = 0; *used < s.n;) {
        enum http_chunk_step step = HTTP_CHUNK_FAULT;

        if (c->state == CHUNK_DATA) {
            size_t n = s.n - *used;

            if (n > c->left)
                n = (size_t)c->left;
            *data = span_of(s.p + *used, n);
            *used += n;
            c->left -= n;
            if (c->left == 0)
                c->state = CHUNK_DATA_END;
            return HTTP_CHUNK_DATA;
        }
        uint8_t b = s.p[(*used)++];
        switch (c->state) {
        case CHUNK_SIZE:
        case CHUNK_EXT:
            step = size_byte(c, b);
            break;
        case CHUNK_DATA_END:
            step = data_end_byte(c, b);
            break;
        case CHUNK_TRAILER:
            step = trailer_byte(c, b);
            break;
        case CHUNK_DATA:
        case CHUNK_DONE:
            break;
        }
        if (step != HTTP_CHUNK_MORE)
            return step;
    }
    return HTTP_CHUNK_MORE;
}
