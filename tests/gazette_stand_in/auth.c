/* Bearer tokens, as a broker verifies them: JWT by HMAC with SHA-256 or SHA-384, exp required. */
#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

#include "base/mem.h"
#include "tests/gazette_stand_in/stand_in_int.h"

#define LEEWAY_S  5
#define TOKEN_MAX 8192

static const uint64_t need[STAND_IN_METHODS] = {
    [STAND_IN_LIST] = 1 << 1,   [STAND_IN_APPLY] = 1 << 2,     [STAND_IN_READ] = 1 << 3,
    [STAND_IN_APPEND] = 1 << 4, [STAND_IN_FRAGMENTS] = 1 << 3,
};
static const char *const need_name[STAND_IN_METHODS] = {"LIST", "APPLY", "READ", "APPEND", "READ"};

/* base64 with either alphabet, with or without padding. */
static struct blob *decode(const char *s, size_t n)
{
    char buf[TOKEN_MAX];
    struct blob *b;

    while (n > 0 && s[n - 1] == '=')
        n--;
    if (n + 4 > sizeof buf || (b = blob_new(n + 4)) == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        buf[i] = (char)(s[i] == '-' ? '+' : s[i] == '_' ? '/' : s[i]);
    size_t padded = (n + 3) / 4 * 4;
    memset(buf + n, '=', padded - n);
    int len = EVP_DecodeBlock(b->data, (const unsigned char *)buf, (int)padded);
    if (len < 0 || n % 4 == 1) {
        blob_unref(b);
        return NULL;
    }
    b->len = (size_t)len - (padded - n);
    return b;
}

int si_auth_keys(struct stand_in *si, const char *text)
{
    while (text != NULL && *text != '\0') {
        size_t n = strcspn(text, ", ");
        if (n == 4 && strncmp(text, "AA==", 4) == 0) {
            si->token_optional = true;
        } else if (n > 0) {
            if (si->keys_n == SI_KEYS || (si->keys[si->keys_n] = decode(text, n)) == NULL)
                return E_SYNTAX;
            si->keys_n++;
        }
        text += n;
        text += strspn(text, ", ");
    }
    return 0;
}

static bool signed_by(const struct blob *key, const EVP_MD *md, const char *text, size_t n,
                      const struct blob *sig)
{
    uint8_t mac[EVP_MAX_MD_SIZE];
    unsigned mac_n = 0;

    return HMAC(md, key->data, (int)key->len, (const unsigned char *)text, n, mac, &mac_n) !=
               NULL &&
           sig->len == mac_n && memcmp(sig->data, mac, mac_n) == 0;
}

static json_t *part(const char *s, size_t n)
{
    struct blob *b = decode(s, n);
    json_t *v = b == NULL ? NULL : json_loadb((const char *)b->data, b->len, 0, NULL);

    blob_unref(b);
    return v;
}

static Gz__LabelSet *labels_of(const json_t *set)
{
    const json_t *list = json_object_get(set, "labels"), *l;
    Gz__Label *rows = mem_array(json_array_size(list) + 1, sizeof *rows);
    Gz__Label **v = mem_array(json_array_size(list) + 1, sizeof *v);
    Gz__LabelSet out, *copy = NULL;
    uint8_t *bytes = NULL;
    size_t i;

    gz__label_set__init(&out);
    json_array_foreach(list, i, l)
    {
        const char *name = json_string_value(json_object_get(l, "name"));
        const char *value = json_string_value(json_object_get(l, "value"));
        if (rows == NULL || v == NULL || name == NULL)
            break;
        gz__label__init(&rows[i]);
        rows[i].name = (char *)(uintptr_t)name;
        if (value != NULL)
            rows[i].value = (char *)(uintptr_t)value;
        rows[i].prefix = json_is_true(json_object_get(l, "prefix"));
        v[i] = &rows[i];
        out.n_labels = i + 1;
    }
    out.labels = v;
    size_t n = gz__label_set__get_packed_size(&out);
    if ((bytes = mem_alloc(n + 1)) != NULL) {
        (void)gz__label_set__pack(&out, bytes);
        copy = gz__label_set__unpack(NULL, n, bytes);
    }
    mem_free(bytes);
    mem_free(rows);
    mem_free(v);
    return copy;
}

static Gz__LabelSelector *selector_of(const json_t *sel)
{
    Gz__LabelSelector *s;

    if (!json_is_object(sel) || (s = gz__label_selector__unpack(NULL, 0, NULL)) == NULL)
        return NULL;
    s->include = labels_of(json_object_get(sel, "include"));
    s->exclude = labels_of(json_object_get(sel, "exclude"));
    return s;
}

static bool refuse(char *why, size_t n, const char *text)
{
    (void)snprintf(why, n, "%s", text);
    return false;
}

static bool verify(struct stand_in *si, const char *token, struct si_claims *out, char *why,
                   size_t n)
{
    const char *dot1 = strchr(token, '.'), *dot2 = dot1 == NULL ? NULL : strchr(dot1 + 1, '.');
    json_t *head = NULL, *claims = NULL;
    struct blob *sig = NULL;
    const EVP_MD *md = NULL;
    bool ok = false;

    if (dot2 == NULL)
        return refuse(why, n, "verifying Authorization: token is malformed");
    head = part(token, (size_t)(dot1 - token));
    claims = part(dot1 + 1, (size_t)(dot2 - dot1 - 1));
    sig = decode(dot2 + 1, strlen(dot2 + 1));
    const char *alg = json_string_value(json_object_get(head, "alg"));
    if (alg != NULL && strcmp(alg, "HS256") == 0)
        md = EVP_sha256();
    else if (alg != NULL && strcmp(alg, "HS384") == 0)
        md = EVP_sha384();
    for (size_t i = 0; i < si->keys_n && md != NULL && sig != NULL && !ok; i++)
        ok = signed_by(si->keys[i], md, token, (size_t)(dot2 - token), sig);
    json_t *exp = json_object_get(claims, "exp"), *iat = json_object_get(claims, "iat");
    if (!ok) {
        (void)refuse(why, n, "verifying Authorization: token signature is invalid");
    } else if (!json_is_number(exp)) {
        ok = refuse(why, n, "verifying Authorization: token has invalid claims: exp is required");
    } else if (json_number_value(exp) + LEEWAY_S < (double)si_now_s()) {
        ok = refuse(why, n, "verifying Authorization: token has invalid claims: token is expired");
    } else if (json_is_number(iat) && json_number_value(iat) - LEEWAY_S > (double)si_now_s()) {
        ok = refuse(why, n, "verifying Authorization: token used before issued");
    } else {
        out->cap = (uint64_t)json_number_value(json_object_get(claims, "cap"));
        out->exp_s = (int64_t)json_number_value(exp);
        out->sel = selector_of(json_object_get(claims, "sel"));
    }
    json_decref(head);
    json_decref(claims);
    blob_unref(sig);
    return ok;
}

bool si_auth(struct stand_in *si, const char *authorization, enum stand_in_method m,
             struct si_claims *out, char *why, size_t n)
{
    static const char bearer[] = "Bearer ";

    *out = (struct si_claims){.cap = need[m]};
    if (si->keys_n == 0 && !si->token_optional)
        return true;
    if (authorization == NULL)
        return si->token_optional || refuse(why, n, "missing or empty Authorization token");
    if (strncmp(authorization, bearer, sizeof bearer - 1) != 0)
        return refuse(why, n, "invalid or unsupported Authorization header (expected 'Bearer')");
    if (!verify(si, authorization + sizeof bearer - 1, out, why, n))
        return false;
    if ((out->cap & need[m]) != 0)
        return true;
    (void)snprintf(why, n, "authorization is missing required %s capability", need_name[m]);
    return false;
}

void si_claims_fini(struct si_claims *c)
{
    if (c->sel != NULL)
        gz__label_selector__free_unpacked(c->sel, NULL);
    c->sel = NULL;
}
