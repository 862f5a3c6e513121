/*
 * What result codes of SQLite mean among our errors. Needs SQLite's header only: who calls links
 * the library.
 */
#pragma once

#include "base/err.h"

/* 0 for OK, ROW and DONE; extended codes are taken for what they extend. */
int err_from_sqlite(int rc);
