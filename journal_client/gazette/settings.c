/*
 * Settings as an operator writes them, and what is wrong with them before any broker is asked.
 * Pure.
 */
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "journal_client/gazette/gazette_int.h"

static void say(char *why, size_t why_bytes, const char *before, const char *text,
                const char *after)
{
    if (why != NULL && why_bytes > 0)
        (void)snprintf(why, why_bytes, "%s\"%.200s\"%s", before, text, after);
}

bool jc_gazette_url(const char *url, const char **brokers, bool *tls)
{
    static const char plain[] = "gazette://", secure[] = "gazettes://";

    *tls = strncmp(url, secure, sizeof secure - 1) == 0;
    if (!*tls && strncmp(url, plain, sizeof plain - 1) != 0)
        return false;
    *brokers = url + (*tls ? sizeof secure : sizeof plain) - 1;
    return true;
}

/* --- brokers --- */

/* What a host may be made of; an address of IPv6 stands in brackets. */
static bool host_ok(struct span host, bool bracketed)
{
    for (size_t i = 0; i < host.n; i++) {
        uint8_t c = host.p[i];
        if (c <= ' ' || c == 0x7f || strchr("/@?#[]\\", c) != NULL || (c == ':' && !bracketed))
            return false;
    }
    return host.n > 0 && host.n < GZ_HOST_MAX;
}

int gz_endpoint_parse(struct span s, struct gz_endpoint *out)
{
    const uint8_t *colon = s.n == 0 ? NULL : memrchr(s.p, ':', s.n);
    struct span host;
    uint64_t port;

    if (colon == NULL)
        return E_SYNTAX;
    host = span_of(s.p, (size_t)(colon - s.p));
    bool bracketed = host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';
    if (bracketed)
        host = span_of(host.p + 1, host.n - 2);
    if (!host_ok(host, bracketed) ||
        num_parse_u64(span_of(colon + 1, s.n - (size_t)(colon + 1 - s.p)), &port) < 0 ||
        port == 0 || port > UINT16_MAX)
        return E_SYNTAX;
    memcpy(out->host, host.p, host.n);
    out->host[host.n] = '\0';
    out->port = (uint16_t)port;
    return 0;
}

int gz_endpoints_parse(const char *list, struct gz_endpoint out[GZ_ENDPOINTS_MAX], size_t *n,
                       char *why, size_t why_bytes)
{
    struct span rest = span_str(list);

    *n = 0;
    while (rest.n > 0) {
        const uint8_t *comma = memchr(rest.p, ',', rest.n);
        size_t len = comma == NULL ? rest.n : (size_t)(comma - rest.p);
        if (*n == GZ_ENDPOINTS_MAX) {
            say(why, why_bytes, "more than 16 brokers are given: ", list, "");
            return E_LIMIT;
        }
        if (gz_endpoint_parse(span_of(rest.p, len), &out[*n]) < 0) {
            say(why, why_bytes, "a broker is HOST:PORT or [ADDRESS]:PORT, not ", list, "");
            return E_SYNTAX;
        }
        (*n)++;
        rest = comma == NULL ? span_of(NULL, 0) : span_of(comma + 1, rest.n - len - 1);
    }
    if (*n == 0) {
        say(why, why_bytes, "no broker is given: ", list, "");
        return E_SYNTAX;
    }
    return 0;
}

int jc_gazette_brokers_check(const char *brokers, char *why, size_t why_bytes)
{
    struct gz_endpoint all[GZ_ENDPOINTS_MAX];
    size_t n;

    return gz_endpoints_parse(brokers, all, &n, why, why_bytes);
}

/* --- stores of fragments --- */

int gz_codec_parse(const char *name, Gz__Codec *out)
{
    static const struct {
        const char *name;
        Gz__Codec codec;
    } all[] = {{"none", GZ__CODEC__CODEC_NONE},
               {"gzip", GZ__CODEC__CODEC_GZIP},
               {"zstd", GZ__CODEC__CODEC_ZSTANDARD},
               {"snappy", GZ__CODEC__CODEC_SNAPPY}};

    *out = GZ__CODEC__CODEC_NONE;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i].name, name) == 0) {
            *out = all[i].codec;
            return 0;
        }
    }
    return E_SYNTAX;
}

int jc_gazette_codec_check(const char *name, char *why, size_t why_bytes)
{
    Gz__Codec codec;
    int err = gz_codec_parse(name, &codec);

    if (err < 0)
        say(why, why_bytes, "", name, " is neither none, gzip, zstd nor snappy");
    return err;
}

/* As brokers do, so that it is not found with the first journal. */
int jc_gazette_fragment_store_check(const char *url, char *why, size_t why_bytes)
{
    static const char *const schemes[] = {"file", "s3", "gs", "azure", "azure-ad"};
    const char *colon = strstr(url, "://");
    size_t at = 0, n = sizeof schemes / sizeof schemes[0];

    while (colon != NULL && at < n &&
           (strlen(schemes[at]) != (size_t)(colon - url) ||
            memcmp(schemes[at], url, (size_t)(colon - url)) != 0))
        at++;
    if (colon == NULL || at == n) {
        say(why, why_bytes, "", url,
            " is no URL of file:///, s3://, gs://, azure:// or azure-ad://");
        return E_SYNTAX;
    }
    const char *host = colon + 3, *path = host + strcspn(host, "/?#");
    size_t path_n = strcspn(path, "?#");
    if ((path == host) != (at == 0)) {
        say(why, why_bytes, "", url,
            at == 0 ? " names a host: stores of files begin with file:///" : " names no bucket");
        return E_SYNTAX;
    }
    if (path_n == 0 || path[path_n - 1] != '/') {
        say(why, why_bytes, "", url, " does not end with /");
        return E_SYNTAX;
    }
    return 0;
}
