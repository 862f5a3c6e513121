/* See scram.h. Attributes stand in a fixed order (RFC 5802, section 5), which is all that is taken.
 */
#include "gateway/scram.h"

#include "base/mem.h"

void scram_init(struct scram *s, enum secret_hash h)
{
    *s = (struct scram){.hash = h};
    wr_init(&s->text, (size_t)3 * SCRAM_MESSAGE_MAX);
}

void scram_fini(struct scram *s)
{
    wr_fini(&s->text);
    mem_free(s->user);
    mem_free(s->gs2_bytes);
    mem_free(s->nonce);
    mem_wipe(s->proof, sizeof s->proof);
    *s = (struct scram){.hash = s->hash};
}

/* Takes "x=value" up to the next comma or the end; the comma is taken as well. */
static int attribute(struct span *rest, char name, struct span *value)
{
    if (rest->n < 2 || rest->p[0] != (uint8_t)name || rest->p[1] != '=')
        return E_SYNTAX;
    const uint8_t *begin = rest->p + 2;
    const uint8_t *end = memchr(begin, ',', rest->n - 2);
    size_t n = end == NULL ? rest->n - 2 : (size_t)(end - begin);
    *value = span_of(begin, n);
    size_t used = 2 + n + (end != NULL ? 1 : 0);
    *rest = span_of(rest->p + used, rest->n - used);
    return 0;
}

/* "=2C" is a comma and "=3D" an equals sign; no other "=" may stand there. */
static int unescape(struct span s, char **out)
{
    size_t n = 0;

    *out = NULL;
    if (s.n == 0 || s.n > SCRAM_USER_MAX || memchr(s.p, '\0', s.n) != NULL)
        return E_SYNTAX;
    char *text = mem_alloc(s.n + 1);
    if (text == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        if (c == '=') {
            if (s.n - i < 3 || (memcmp(s.p + i, "=2C", 3) != 0 && memcmp(s.p + i, "=3D", 3) != 0)) {
                mem_free(text);
                return E_SYNTAX;
            }
            c = s.p[i + 2] == 'C' ? ',' : '=';
            i += 2;
        }
        text[n++] = (char)c;
    }
    text[n] = '\0';
    *out = text;
    return 0;
}

static bool printable(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < 0x21 || s.p[i] > 0x7e || s.p[i] == ',')
            return false;
    }
    return s.n > 0;
}

/* gs2-header: how the channel is bound, and for whom the client acts. */
static int take_gs2(struct span *rest, char **authzid)
{
    struct span value = {NULL, 0};

    *authzid = NULL;
    if (rest->n < 3)
        return E_SYNTAX;
    if (rest->p[0] == 'p')
        return E_UNSUPPORTED;
    if ((rest->p[0] != 'n' && rest->p[0] != 'y') || rest->p[1] != ',')
        return E_SYNTAX;
    *rest = span_of(rest->p + 2, rest->n - 2);
    if (rest->p[0] == ',') {
        *rest = span_of(rest->p + 1, rest->n - 1);
        return 0;
    }
    int err = attribute(rest, 'a', &value);
    return err < 0 ? err : unescape(value, authzid);
}

int scram_first(struct scram *s, struct span message)
{
    struct span rest = message;
    struct span user;
    struct span nonce;
    char *authzid = NULL;
    int err;

    if (message.n > SCRAM_MESSAGE_MAX)
        return E_LIMIT;
    if ((err = take_gs2(&rest, &authzid)) < 0)
        goto out;
    s->gs2.n = message.n - rest.n;
    err = E_NOMEM;
    if ((s->gs2_bytes = mem_alloc(s->gs2.n)) == NULL)
        goto out;
    memcpy(s->gs2_bytes, message.p, s->gs2.n);
    s->gs2.p = s->gs2_bytes;
    wr_span(&s->text, rest);
    if (rest.n > 0 && rest.p[0] == 'm') {
        err = E_UNSUPPORTED;
        goto out;
    }
    if ((err = attribute(&rest, 'n', &user)) < 0 || (err = unescape(user, &s->user)) < 0 ||
        (err = attribute(&rest, 'r', &nonce)) < 0)
        goto out;
    err = E_SYNTAX;
    if (!printable(nonce))
        goto out;
    err = E_DENIED;
    if (authzid != NULL && strcmp(authzid, s->user) != 0)
        goto out;
    err = E_NOMEM;
    if ((s->nonce = mem_strndup((const char *)nonce.p, nonce.n)) == NULL)
        goto out;
    err = wr_err(&s->text);
out:
    mem_free(authzid);
    return err;
}

int scram_challenge(struct scram *s, const char *random, struct span salt, uint32_t iterations,
                    struct span *out)
{
    size_t mine = strlen(s->nonce);
    size_t n = mine + strlen(random);

    *out = (struct span){NULL, 0};
    char *both = mem_alloc(n + 1);
    if (both == NULL)
        return E_NOMEM;
    memcpy(both, s->nonce, mine);
    memcpy(both + mine, random, n - mine + 1);
    mem_free(s->nonce);
    s->nonce = both;
    wr_u8(&s->text, ',');
    size_t at = wr_len(&s->text);
    wr_str(&s->text, "r=");
    wr_str(&s->text, s->nonce);
    wr_str(&s->text, ",s=");
    secret_write_base64(&s->text, salt);
    wr_printf(&s->text, ",i=%u", iterations);
    if (wr_err(&s->text) < 0)
        return wr_err(&s->text);
    *out = span_of(s->text.b->data + at, wr_len(&s->text) - at);
    return 0;
}

/* Where ",p=" begins: the proof stands last, and is base64. */
static int split_proof(struct span message, struct span *without, struct span *proof)
{
    size_t at = message.n;

    while (at > 0 && message.p[at - 1] != ',')
        at--;
    if (at == 0 || message.n - at < 2 || memcmp(message.p + at, "p=", 2) != 0)
        return E_SYNTAX;
    *without = span_of(message.p, at - 1);
    *proof = span_of(message.p + at + 2, message.n - at - 2);
    return 0;
}

int scram_final(struct scram *s, struct span message)
{
    uint8_t bound[SCRAM_USER_MAX * 3 + 16];
    struct span without;
    struct span proof;
    struct span value;
    size_t n;
    int err;

    if (message.n > SCRAM_MESSAGE_MAX)
        return E_LIMIT;
    if ((err = split_proof(message, &without, &proof)) < 0)
        return err;
    struct span rest = without;
    if ((err = attribute(&rest, 'c', &value)) < 0 ||
        (err = secret_base64(value, bound, sizeof bound, &n)) < 0)
        return err;
    if (!span_eq(span_of(bound, n), s->gs2))
        return E_DENIED;
    if ((err = attribute(&rest, 'r', &value)) < 0)
        return err;
    /* librdkafka before 2.2 sends the client's nonce twice, and Kafka takes it: what must be there
     * is the whole nonce, at the end. */
    struct span nonce = span_str(s->nonce);
    if (value.n < nonce.n || !span_eq(span_of(value.p + value.n - nonce.n, nonce.n), nonce))
        return E_DENIED;
    if ((err = secret_base64(proof, s->proof, sizeof s->proof, &n)) < 0)
        return err;
    if (n != secret_hash_bytes(s->hash))
        return E_SYNTAX;
    wr_u8(&s->text, ',');
    wr_span(&s->text, without);
    return wr_err(&s->text);
}

int scram_proof(const struct scram *s, const struct secret_keys *keys, struct writer *w)
{
    size_t n = secret_hash_bytes(s->hash);
    struct span text = span_of(s->text.b->data, s->text.b->len);
    uint8_t signature[SECRET_HASH_MAX];
    uint8_t client[SECRET_HASH_MAX];
    uint8_t stored[SECRET_HASH_MAX];
    int err;

    if ((err = secret_hmac(s->hash, span_of(keys->stored, n), text, signature)) < 0)
        goto out;
    for (size_t i = 0; i < n; i++)
        client[i] = s->proof[i] ^ signature[i];
    if ((err = secret_digest(s->hash, span_of(client, n), stored)) < 0)
        goto out;
    err = E_DENIED;
    if (!secret_equal(stored, keys->stored, n))
        goto out;
    if ((err = secret_hmac(s->hash, span_of(keys->server, n), text, signature)) < 0)
        goto out;
    wr_str(w, "v=");
    secret_write_base64(w, span_of(signature, n));
    err = wr_err(w);
out:
    mem_wipe(signature, sizeof signature);
    mem_wipe(client, sizeof client);
    mem_wipe(stored, sizeof stored);
    return err;
}
