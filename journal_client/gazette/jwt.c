/* JSON Web Tokens for brokers: header and claims are written by hand, since they are always of one
 * form. */
#include "journal_client/gazette/jwt.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define HEADER    "{\"alg\":\"HS256\",\"typ\":\"JWT\"}"
#define PART_MAX  (GZ_JWT_PREFIX_MAX + 256)
#define TOKEN_MAX (4 * PART_MAX / 3 + 256)

static bool is_sep(char c)
{
    return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

int gz_jwt_key(const char *list, uint8_t **out, size_t *n)
{
    *out = NULL;
    *n = 0;
    for (const char *p = list; *p != '\0';) {
        size_t len = 0;
        while (is_sep(*p))
            p++;
        while (p[len] != '\0' && !is_sep(p[len]))
            len++;
        if (len == 0)
            break;
        if (len == 4 && strncmp(p, "AA==", 4) == 0) {
            p += len;
            continue;
        }
        if (len % 4 != 0 || len > 4096)
            return E_SYNTAX;
        size_t pad = (size_t)(p[len - 1] == '=') + (size_t)(p[len - 2] == '=');
        if (memchr(p, '=', len - pad) != NULL)
            return E_SYNTAX;
        uint8_t *key = mem_alloc(len);
        if (key == NULL)
            return E_NOMEM;
        int got = EVP_DecodeBlock(key, (const unsigned char *)p, (int)len);
        if (got < 0 || (size_t)got <= pad) {
            mem_free(key);
            return E_SYNTAX;
        }
        *out = key;
        *n = (size_t)got - pad;
        return 0;
    }
    return E_NOTFOUND;
}

/* Base64url without padding; returns its length. */
static size_t encode(const uint8_t *p, size_t n, char *out)
{
    int len = EVP_EncodeBlock((unsigned char *)out, p, (int)n);

    while (len > 0 && out[len - 1] == '=')
        len--;
    for (int i = 0; i < len; i++) {
        if (out[i] == '+')
            out[i] = '-';
        else if (out[i] == '/')
            out[i] = '_';
    }
    out[len] = '\0';
    return (size_t)len;
}

/* Of what names are made of, so that nothing in it needs an escape. */
static bool prefix_ok(const char *prefix)
{
    static const char punctuation[] = "-_+/.=%";
    size_t n = strlen(prefix);

    for (size_t i = 0; i < n; i++) {
        char c = prefix[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              strchr(punctuation, c) != NULL))
            return false;
    }
    return n > 0 && n <= GZ_JWT_PREFIX_MAX;
}

/* Returns its length. */
static size_t write_claims(const struct gz_claims *c, char out[PART_MAX])
{
    int n = snprintf(out, PART_MAX,
                     "{\"cap\":%u,\"exp\":%" PRId64 ",\"iat\":%" PRId64 ",\"iss\":\"sluice\"",
                     c->cap, c->now_s + c->ttl_s, c->now_s);

    if (c->prefix != NULL)
        n += snprintf(out + n, PART_MAX - (size_t)n,
                      ",\"sel\":{\"include\":{\"labels\":[{\"name\":\"name\",\"value\":\"%s\","
                      "\"prefix\":true}]}}",
                      c->prefix);
    out[n++] = '}';
    return (size_t)n;
}

int gz_jwt_sign(struct span key, const struct gz_claims *c, char **out)
{
    char claims[PART_MAX], *token;
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned mac_n = 0;
    size_t n;

    *out = NULL;
    if (c->prefix != NULL && !prefix_ok(c->prefix))
        return E_INVALID;
    if ((token = mem_alloc(TOKEN_MAX)) == NULL)
        return E_NOMEM;
    n = encode((const uint8_t *)HEADER, sizeof HEADER - 1, token);
    token[n++] = '.';
    n += encode((const uint8_t *)claims, write_claims(c, claims), token + n);
    if (HMAC(EVP_sha256(), key.p, (int)key.n, (const unsigned char *)token, n, mac, &mac_n) ==
        NULL) {
        mem_free(token);
        return E_NOMEM;
    }
    token[n++] = '.';
    (void)encode(mac, mac_n, token + n);
    *out = token;
    return 0;
}
