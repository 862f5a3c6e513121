/*
 * The store's own check: reads every byte of a folder that nobody owns and compares it with what
 * the database says. Changes nothing. A torn tail behind a committed end is no fault: recovery cuts
 * it.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "journal_client/local/db.h"
#include "journal_client/local/dir.h"
#include "journal_client/local/frag.h"
#include "journal_client/local/index.h"
#include "journal_client/local/journal.h"
#include "journal_client/local/loss.h"
#include "journal_client/local/sha.h"
#include "journal_client/local/store_int.h"

struct check {
    struct jl_store *s;
    struct jl_journal *j;
    void (*report)(void *arg, const char *text);
    void *arg;
    int faults;
};

static void fault(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void fault(struct check *c, const char *fmt, ...)
{
    char text[1024];
    int n = c->j == NULL ? 0 : snprintf(text, sizeof text, "journal %.500s: ", c->j->name);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
    va_end(ap);
    c->faults++;
    c->report(c->arg, text);
}

static bool same_blocks(const struct jl_blocks *a, const struct jl_blocks *b)
{
    if (a->n != b->n || a->base != b->base)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        if (a->v[i].first != b->v[i].first || a->v[i].max_clock != b->v[i].max_clock ||
            a->v[i].content != b->v[i].content)
            return false;
    }
    return true;
}

static void check_index(struct check *c, const struct jl_frag *f, const struct jl_blocks *scanned)
{
    char *path = jl_path_index(c->s->dir, c->j->name, f->begin, f->end);
    struct jl_blocks kept;

    /* A missing or torn one is made anew when it is needed. */
    if (path != NULL && jl_index_load(path, f->begin, f->end, &kept) == 0) {
        if (!same_blocks(&kept, scanned))
            fault(c, "fragment %lld: its block index differs from its bytes", (long long)f->begin);
        jl_index_fini(&kept);
    }
    mem_free(path);
}

/* Returns E_NOMEM only: everything else is a fault. */
static int check_closed(struct check *c, struct jl_frag *f)
{
    struct jl_blocks b;
    struct jl_sum sum;
    struct stat st;
    char sha1[41] = "";
    int fd, err;

    if (stat(f->path, &st) < 0 || st.st_size != f->end - f->begin) {
        fault(c, "fragment %lld: its file is gone or has another size", (long long)f->begin);
        return 0;
    }
    if (jl_frag_pin(f, false, &fd) < 0) {
        fault(c, "fragment %lld: cannot be read", (long long)f->begin);
        return 0;
    }
    struct jl_sha *sha = jl_sha_new();
    err = sha == NULL ? E_NOMEM : jl_index_scan(fd, f->begin, f->end, &c->s->probe, &b, &sum, sha);
    jl_frag_unpin(f);
    if (err == 0 && (err = jl_sha_hex(sha, sha1)) < 0)
        jl_index_fini(&b);
    jl_sha_free(sha);
    if (err == E_NOMEM)
        return err;
    if (err < 0) {
        fault(c, "fragment %lld: %s", (long long)f->begin,
              err == E_CORRUPT ? "does not hold whole lines" : err_text(err));
        return 0;
    }
    if (strcmp(sha1, f->sha1) != 0)
        fault(c, "fragment %lld: SHA-1 is %s, its name says %s", (long long)f->begin, sha1,
              f->sha1);
    if (sum.content_end != f->sum.content_end || sum.max_clock != f->sum.max_clock)
        fault(c, "fragment %lld: the database knows another content end or clock",
              (long long)f->begin);
    check_index(c, f, &b);
    jl_index_fini(&b);
    return 0;
}

static void check_missing(struct check *c)
{
    char text[640];

    for (size_t i = 0; i < c->j->frags_n; i++) {
        const struct jl_frag *f = c->j->frags[i];
        if (f->state == JL_FRAG_LOST)
            fault(c, "fragment %lld: its file is missing%s", (long long)f->begin,
                  f->accepted ? " (accepted as lost)" : "");
    }
    if (jl_loss_refused(&c->j->loss)) {
        jl_loss_text(c->j, text, sizeof text);
        c->j = NULL; /* the text names it */
        fault(c, "%s", text);
    }
}

static int check_orphans(struct check *c)
{
    struct jl_folder fo = {0};
    int err = jl_folder_list(c->s, c->j, &fo);

    for (size_t i = 0; i < fo.n && err == 0; i++) {
        const struct jl_found *f = &fo.v[i];
        if (!jl_loss_known(c->s, c->j, f))
            fault(c, "the file %016llx-%016llx-%s.raw is not in the database",
                  (unsigned long long)f->begin, (unsigned long long)f->end, f->sha1);
    }
    jl_folder_fini(&fo);
    return err;
}

/* Folders of journals that the database does not know; one fault each. */
struct strangers {
    struct check *c;
    char last[520];
};

static int on_stranger(void *arg, const char *journal, const char *file)
{
    struct strangers *x = arg;

    if (jc_listing_find(x->c->s->hub.listing, span_str(journal)) != NULL ||
        strcmp(journal, x->last) == 0)
        return 0;
    (void)snprintf(x->last, sizeof x->last, "%s", journal);
    fault(x->c, "%s/%s: the database knows no such journal", journal, file);
    return 0;
}

static int check_strangers(struct check *c)
{
    static const char *const kinds[] = {"fragments", "open"};
    int err = 0;

    c->j = NULL;
    for (size_t i = 0; i < 2 && err == 0; i++) {
        struct strangers x = {.c = c};
        char path[4352];
        if (snprintf(path, sizeof path, "%s/%s", c->s->dir, kinds[i]) >= (int)sizeof path)
            return E_LIMIT;
        err = jl_walk(path, on_stranger, &x);
    }
    return err;
}

static int check_journal(struct check *c)
{
    struct jl_journal *j = c->j;
    int64_t content = 0, at = -1;
    int err;

    check_missing(c);
    c->j = j;
    if ((err = check_orphans(c)) < 0)
        return err;
    for (size_t i = 0; i < j->frags_n; i++) {
        struct jl_frag *f = j->frags[i];
        if (at >= 0 && f->begin != at)
            fault(c, "fragments do not adjoin at %lld", (long long)at);
        at = f->end;
        if (f->sum.content_end > content)
            content = f->sum.content_end;
        if (!jl_frag_jumped(f) && (err = check_closed(c, f)) < 0)
            return err;
    }
    if (at >= 0 && at != j->open->begin)
        fault(c, "the open fragment does not adjoin at %lld", (long long)at);
    if (j->damaged)
        fault(c, "its open fragment differs from what was written");
    if (j->open->sum.content_end > content)
        content = j->open->sum.content_end;
    if (content == 0 ? j->hub.heads.content_end != j->hub.heads.log_start
                     : j->hub.heads.content_end != content)
        fault(c, "content ends at %lld, the database says %lld", (long long)content,
              (long long)j->hub.heads.content_end);
    if (j->hub.heads.log_start > j->hub.heads.content_end ||
        j->hub.heads.content_end > j->hub.heads.write_head)
        fault(c, "its heads are out of order");
    return 0;
}

int jc_local_check(const char *dir, jc_probe_fn *probe, void *probe_arg,
                   void (*report)(void *arg, const char *text), void *arg)
{
    const struct jc_local_opts o = {
        .dir = dir, .probe = probe, .probe_arg = probe_arg, .read_only = true, .accept_lost = true};
    struct check c = {.report = report, .arg = arg};
    char why[512];
    int err = jl_open_idle(&o, &jl_hooks_system, &c.s, why, sizeof why);

    if (err == E_CORRUPT) {
        fault(&c, "%s", why);
        return c.faults;
    }
    if (err < 0) {
        report(arg, why);
        return err;
    }
    if (jl_db_integrity(c.s->db, why, sizeof why) < 0)
        fault(&c, "%s", why);
    for (size_t i = 0; i < c.s->hub.listing->n && err == 0; i++) {
        c.j = jl_of(c.s->hub.listing->items[i]);
        err = check_journal(&c);
    }
    if (err == 0)
        err = check_strangers(&c);
    c.s->hub.base.ops->close(&c.s->hub.base);
    return err < 0 ? err : c.faults;
}
