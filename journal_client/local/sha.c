/* SHA-1 of a fragment as it grows. Only a name and a check against damage: no security rests on it.
 */
#include <openssl/evp.h>

#include "base/mem.h"
#include "journal_client/local/sha.h"

struct jl_sha {
    EVP_MD_CTX *ctx;
};

struct jl_sha *jl_sha_new(void)
{
    struct jl_sha *h = mem_zalloc(sizeof *h);

    if (h == NULL)
        return NULL;
    h->ctx = EVP_MD_CTX_new();
    if (h->ctx == NULL || jl_sha_reset(h) < 0) {
        jl_sha_free(h);
        return NULL;
    }
    return h;
}

void jl_sha_free(struct jl_sha *h)
{
    if (h == NULL)
        return;
    EVP_MD_CTX_free(h->ctx);
    mem_free(h);
}

int jl_sha_reset(struct jl_sha *h)
{
    return EVP_DigestInit_ex(h->ctx, EVP_sha1(), NULL) == 1 ? 0 : E_NOMEM;
}

int jl_sha_add(struct jl_sha *h, struct span bytes)
{
    return EVP_DigestUpdate(h->ctx, bytes.p, bytes.n) == 1 ? 0 : E_NOMEM;
}

int jl_sha_peek(const struct jl_sha *h, char out[41])
{
    struct jl_sha copy = {EVP_MD_CTX_new()};
    int err = E_NOMEM;

    if (copy.ctx != NULL && EVP_MD_CTX_copy_ex(copy.ctx, h->ctx) == 1)
        err = jl_sha_hex(&copy, out);
    EVP_MD_CTX_free(copy.ctx);
    return err;
}

int jl_sha_hex(struct jl_sha *h, char out[41])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t raw[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    if (EVP_DigestFinal_ex(h->ctx, raw, &n) != 1 || n != 20)
        return E_NOMEM;
    for (size_t i = 0; i < 20; i++) {
        out[2 * i] = digits[raw[i] >> 4];
        out[2 * i + 1] = digits[raw[i] & 15];
    }
    out[40] = '\0';
    return 0;
}
