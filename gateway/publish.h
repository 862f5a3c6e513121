/*
 * Publishing: documents in, one transaction out. Runs on the control thread; parsing, stamping and
 * committing go through the job pool and the store's committer.
 */
#pragma once

#include "base/blob.h"
#include "base/executor.h"
#include "gateway/config.h"
#include "journal_client/store.h"

struct publisher;
