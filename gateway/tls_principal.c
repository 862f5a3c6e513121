/*
 * From a client's certificate to a task, by rules. A field with a NUL byte, or one that is there
 * twice where it must be single, names nobody. Pure.
 */
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <strings.h>

#include "gateway/tls.h"

static const char *const fields[] = {
    [TLS_CN] = "cn", [TLS_DNS] = "dns", [TLS_URI] = "uri", [TLS_EMAIL] = "email"};

int tls_rule_parse(const char *text, struct tls_rule *out)
{
    size_t n = strcspn(text, ":");
    size_t i = 0;

    while (i < sizeof fields / sizeof fields[0] &&
           (strlen(fields[i]) != n || strncasecmp(fields[i], text, n) != 0))
        i++;
    if (i == sizeof fields / sizeof fields[0])
        return E_SYNTAX;
    out->field = (enum tls_field)i;
    out->pattern = text[n] == ':' ? text + n + 1 : "*";
    const char *star = strchr(out->pattern, '*');
    return star != NULL && strchr(star + 1, '*') == NULL ? 0 : E_SYNTAX;
}

int tls_rule_apply(const struct tls_rule *rule, struct span value, struct writer *w)
{
    const char *star = strchr(rule->pattern, '*');
    struct span before = span_of(rule->pattern, (size_t)(star - rule->pattern));
    struct span after = span_str(star + 1);

    if (value.n <= before.n + after.n || memchr(value.p, '\0', value.n) != NULL ||
        !span_has_prefix(value, before) ||
        !span_eq(span_of(value.p + value.n - after.n, after.n), after))
        return E_NOTFOUND;
    wr_bytes(w, value.p + before.n, value.n - before.n - after.n);
    return wr_err(w);
}

/* The subject's common name: exactly one. */
static int apply_cn(const X509 *cert, const struct tls_rule *rule, struct writer *w)
{
    const X509_NAME *name = X509_get_subject_name(cert);
    int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
    unsigned char *text = NULL;

    if (at < 0 || X509_NAME_get_index_by_NID(name, NID_commonName, at) >= 0)
        return E_NOTFOUND;
    int n = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    if (n < 0)
        return E_NOTFOUND;
    int err = tls_rule_apply(rule, span_of(text, (size_t)n), w);
    OPENSSL_free(text);
    return err;
}

/* Of alternative names of one kind the first that fits. */
static int apply_san(const X509 *cert, const struct tls_rule *rule, struct writer *w)
{
    const int kind = rule->field == TLS_DNS   ? GEN_DNS
                     : rule->field == TLS_URI ? GEN_URI
                                              : GEN_EMAIL;
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    int err = E_NOTFOUND;

    for (int i = 0; err == E_NOTFOUND && i < sk_GENERAL_NAME_num(names); i++) {
        int type;
        const ASN1_STRING *s = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type);
        if (type == kind)
            err = tls_rule_apply(
                rule, span_of(ASN1_STRING_get0_data(s), (size_t)ASN1_STRING_length(s)), w);
    }
    GENERAL_NAMES_free(names);
    return err;
}

int tls_principal(const SSL *ssl, const struct gw_tls_opts *opts, struct writer *w, int64_t *left_s)
{
    const X509 *cert = SSL_get0_peer_certificate(ssl);
    int days = 0;
    int seconds = 0;

    *left_s = 0;
    if (cert == NULL || SSL_get_verify_result(ssl) != X509_V_OK)
        return E_NOTFOUND;
    if (ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)) == 1)
        *left_s = (int64_t)days * 86400 + seconds;
    for (size_t i = 0; i < opts->rules_n; i++) {
        const struct tls_rule *rule = &opts->rules[i];
        int err = rule->field == TLS_CN ? apply_cn(cert, rule, w) : apply_san(cert, rule, w);
        if (err != E_NOTFOUND)
            return err;
    }
    return E_DENIED;
}
