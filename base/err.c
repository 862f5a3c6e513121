/*
 * The error table as lookups. Everything here is generated from ERR_TABLE, so a new code needs one
 * line in err.h and nothing else.
 */
#include "base/err.h"

#include <errno.h>

const char *err_text(int err)
{
    switch (err) {
    case 0:
        return "ok";
#define X(name, value, class, text)                                                                \
    case (value):                                                                                  \
        return text;
        ERR_TABLE(X)
#undef X
    default:
        return "unknown error";
    }
}

const char *err_name(int err)
{
    switch (err) {
    case 0:
        return "E_OK";
#define X(name, value, class, text)                                                                \
    case (value):                                                                                  \
        return #name;
        ERR_TABLE(X)
#undef X
    default:
        return "E_?";
    }
}

enum err_class err_class_of(int err)
{
    switch (err) {
#define X(name, value, class, text)                                                                \
    case (value):                                                                                  \
        return class;
        ERR_TABLE(X) // NOLINT(bugprone-branch-clone): neighbours in the table often share a class
#undef X
    default:
        return ERR_LOCAL;
    }
}

int err_from_errno(int errnum)
{
    switch (errnum) {
    case ENOSPC:
    case EDQUOT:
        return E_NOSPACE;
    case ENOMEM:
        return E_NOMEM;
    case ENOENT:
        return E_NOTFOUND;
    case EEXIST:
        return E_EXISTS;
    default:
        return E_IO;
    }
}
