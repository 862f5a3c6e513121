/*
 * SASL mechanisms: names, and the messages of those that need one message of the client. SCRAM has
 * its own module (scram.h). Pure; any thread.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/span.h"

/* In the order in which they are offered. */
enum sasl_mechanism {
    SASL_PLAIN,
    SASL_SCRAM_SHA_256,
    SASL_SCRAM_SHA_512,
    SASL_OAUTHBEARER,
    SASL_MECHANISMS
};

const char *sasl_name(enum sasl_mechanism m);
/* Exactly as spelled; false: none of ours. */
bool sasl_find(struct span name, enum sasl_mechanism *out);
/* "PLAIN,SCRAM-SHA-256" -> bits 1 << mechanism. E_SYNTAX: an unknown name, or none at all. */
MUST_USE int sasl_parse_list(const char *text, unsigned *out);

/* RFC 4616: [authzid] NUL user NUL password, exactly three parts; the password may be anything but
 * NUL and empty. Spans borrow from message. E_SYNTAX; E_DENIED: acts for somebody else. */
MUST_USE int sasl_plain(struct span message, struct span *user, struct span *password);
/* RFC 7628: "n,[a=authzid]," ^A "auth=Bearer TOKEN" ^A ... ^A. authzid: null when none is given.
 * E_SYNTAX. */
MUST_USE int sasl_bearer(struct span message, struct span *authzid, struct span *token);
