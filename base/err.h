/*
 * One table of error codes for the whole program. Functions return 0 or a negative E_* value.
 * Kafka error numbers never appear below gateway/: they are mapped there, in one place.
 */
#pragma once

#define MUST_USE __attribute__((warn_unused_result))

/* Who has to act: the peer that sent the input, the caller by trying again, the operator, or nobody
 * (the object is unusable and may only be destroyed). */
enum err_class {
    ERR_PEER,
    ERR_RETRY,
    ERR_LOCAL,
    ERR_FATAL,
};

/* clang-format off */
#define ERR_TABLE(X)                                                                              \
    X(E_SHORT,       -1, ERR_PEER,  "input ends inside a field")                                   \
    X(E_LIMIT,       -2, ERR_PEER,  "a configured limit was exceeded")                             \
    X(E_AGAIN,       -3, ERR_RETRY, "not available yet")                                           \
    X(E_NOMEM,       -4, ERR_LOCAL, "out of memory")                                               \
    X(E_SYNTAX,      -5, ERR_PEER,  "malformed input")                                             \
    X(E_TRAILING,    -6, ERR_PEER,  "bytes left over after the message")                           \
    X(E_VERSION,     -7, ERR_PEER,  "version not supported")                                       \
    X(E_NOTFOUND,    -8, ERR_PEER,  "no such object")                                              \
    X(E_EXISTS,      -9, ERR_PEER,  "object exists already")                                       \
    X(E_CONFLICT,   -10, ERR_RETRY, "revision is not the expected one")                            \
    X(E_RANGE,      -11, ERR_PEER,  "value or offset out of range")                                \
    X(E_IO,         -12, ERR_LOCAL, "input or output error")                                       \
    X(E_NOSPACE,    -13, ERR_LOCAL, "no space left")                                               \
    X(E_CORRUPT,    -14, ERR_LOCAL, "stored data is damaged")                                      \
    X(E_BUSY,       -15, ERR_RETRY, "in use by another process")                                   \
    X(E_CANCELED,   -16, ERR_RETRY, "canceled")                                                    \
    X(E_TIMEOUT,    -17, ERR_RETRY, "deadline passed")                                             \
    X(E_CLOSED,     -18, ERR_FATAL, "closed")                                                      \
    X(E_INVALID,    -19, ERR_PEER,  "invalid argument or name")                                    \
    X(E_UNSUPPORTED,-20, ERR_PEER,  "not supported")                                               \
    X(E_DENIED,     -21, ERR_PEER,  "not permitted")
/* clang-format on */

enum err {
#define X(name, value, class, text) name = (value),
    ERR_TABLE(X)
#undef X
};

/* The text of an E_* value ("ok" for 0, "unknown error" for a value outside the table). Static
 * storage, any thread. */
const char *err_text(int err);
/* The symbol itself, e.g. "E_SHORT"; for logs and tests. */
const char *err_name(int err);
/* The class of a negative E_* value; ERR_LOCAL for a value outside the table. */
enum err_class err_class_of(int err);
/* Maps errno to the nearest E_* (ENOSPC/EDQUOT -> E_NOSPACE, ENOMEM -> E_NOMEM, ENOENT ->
 * E_NOTFOUND, EEXIST -> E_EXISTS, else E_IO). */
int err_from_errno(int errnum);
