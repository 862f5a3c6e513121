/* See sasl.h. What is not exactly as the RFC has it is refused. */
#include "gateway/sasl.h"

#include <strings.h>

static const char *const names[SASL_MECHANISMS] = {
    [SASL_PLAIN] = "PLAIN",
    [SASL_SCRAM_SHA_256] = "SCRAM-SHA-256",
    [SASL_SCRAM_SHA_512] = "SCRAM-SHA-512",
    [SASL_OAUTHBEARER] = "OAUTHBEARER",
};

const char *sasl_name(enum sasl_mechanism m)
{
    return names[m];
}

bool sasl_find(struct span name, enum sasl_mechanism *out)
{
    for (int i = 0; i < SASL_MECHANISMS; i++) {
        if (span_eq_str(name, names[i])) {
            *out = (enum sasl_mechanism)i;
            return true;
        }
    }
    return false;
}

int sasl_parse_list(const char *text, unsigned *out)
{
    *out = 0;
    for (;;) {
        size_t n = strcspn(text, ",");
        enum sasl_mechanism m;
        if (!sasl_find(span_of(text, n), &m))
            return E_SYNTAX;
        *out |= 1U << m;
        if (text[n] == '\0')
            return 0;
        text += n + 1;
    }
}

/* Cuts off what stands before the first byte c, and c. */
static int cut(struct span *rest, uint8_t c, struct span *part)
{
    const uint8_t *end = rest->n == 0 ? NULL : memchr(rest->p, c, rest->n);

    if (end == NULL)
        return E_SYNTAX;
    *part = span_of(rest->p, (size_t)(end - rest->p));
    *rest = span_of(end + 1, rest->n - part->n - 1);
    return 0;
}

int sasl_plain(struct span message, struct span *user, struct span *password)
{
    struct span authzid;

    *user = *password = (struct span){NULL, 0};
    if (cut(&message, 0, &authzid) < 0 || cut(&message, 0, user) < 0)
        return E_SYNTAX;
    if (user->n == 0 || message.n == 0 || memchr(message.p, 0, message.n) != NULL)
        return E_SYNTAX;
    *password = message;
    return authzid.n == 0 || span_eq(authzid, *user) ? 0 : E_DENIED;
}

static int cut_bearer(struct span rest, struct span *token)
{
    static const char scheme[] = "auth=Bearer ";
    struct span pair;

    *token = (struct span){NULL, 0};
    do {
        if (cut(&rest, 1, &pair) < 0)
            return E_SYNTAX;
        if (pair.n < sizeof scheme - 1 ||
            strncasecmp((const char *)pair.p, scheme, sizeof scheme - 1) != 0)
            continue;
        if (token->p != NULL)
            return E_SYNTAX; /* which one? */
        *token = span_of(pair.p + sizeof scheme - 1, pair.n - (sizeof scheme - 1));
    } while (pair.n > 0);
    /* The empty pair ends the message. */
    return rest.n == 0 && token->n > 0 ? 0 : E_SYNTAX;
}

int sasl_bearer(struct span message, struct span *authzid, struct span *token)
{
    struct span flag;
    struct span who;
    struct span nothing;

    *authzid = *token = (struct span){NULL, 0};
    if (cut(&message, ',', &flag) < 0 || cut(&message, ',', &who) < 0 ||
        cut(&message, 1, &nothing) < 0)
        return E_SYNTAX;
    if (flag.n != 1 || (flag.p[0] != 'n' && flag.p[0] != 'y') || nothing.n != 0)
        return E_SYNTAX;
    if (who.n > 0) {
        if (who.n < 3 || memcmp(who.p, "a=", 2) != 0)
            return E_SYNTAX;
        *authzid = span_of(who.p + 2, who.n - 2);
    }
    return cut_bearer(message, token);
}
