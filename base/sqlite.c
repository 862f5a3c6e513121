/* Result codes of SQLite. */
#include "base/sqlite.h"

#include <sqlite3.h>

int err_from_sqlite(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return 0;
    case SQLITE_FULL:
        return E_NOSPACE;
    case SQLITE_NOMEM:
        return E_NOMEM;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return E_CORRUPT;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return E_BUSY;
    case SQLITE_TOOBIG:
        return E_LIMIT;
    default:
        return E_IO;
    }
}
