/* See jwt_files.h. Any thread, one at a time. */
#include "gateway/jwt_files.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/mem.h"

struct jwt_files {
    struct jwt_keys *keys;
    size_t n;
    const char *specs[JWT_KEYS_MAX];
    struct stat seen[JWT_KEYS_MAX]; /* zeroed: it was not there */
    bool pending;                   /* something changed; it is read when it stands still */
};

int jwt_files_new(struct jwt_files **out)
{
    int err = E_NOMEM;

    *out = NULL;
    struct jwt_files *f = mem_zalloc(sizeof *f);
    if (f == NULL || (err = jwt_keys_new(&f->keys)) < 0) {
        mem_free(f);
        return err;
    }
    *out = f;
    return 0;
}

void jwt_files_free(struct jwt_files *f)
{
    if (f == NULL)
        return;
    jwt_keys_free(f->keys);
    mem_free(f);
}

const struct jwt_keys *jwt_files_keys(const struct jwt_files *f)
{
    return f->keys;
}

static void look(const char *spec, struct stat *out)
{
    const char *colon = strchr(spec, ':');

    memset(out, 0, sizeof *out);
    if (colon == NULL || stat(colon + 1, out) < 0)
        memset(out, 0, sizeof *out);
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           same_time(a->st_mtim, b->st_mtim) && same_time(a->st_ctim, b->st_ctim);
}

static bool restamp(struct jwt_files *f)
{
    bool changed = false;

    for (size_t i = 0; i < f->n; i++) {
        struct stat now;

        look(f->specs[i], &now);
        changed = changed || !same_file(&now, &f->seen[i]);
        f->seen[i] = now;
    }
    return changed;
}

int jwt_files_add(struct jwt_files *f, const char *spec, char *why, size_t why_bytes)
{
    struct stat seen;
    int err;

    look(spec, &seen); /* first: a change while it is read is seen the next time */
    if ((err = jwt_keys_add(f->keys, spec, why, why_bytes)) < 0)
        return err;
    f->specs[f->n] = spec;
    f->seen[f->n++] = seen;
    return 0;
}

static int read_all(struct jwt_files *f, char *why, size_t why_bytes)
{
    struct jwt_keys *keys;
    char reason[128] = "";
    int err = jwt_keys_new(&keys);

    for (size_t i = 0; err == 0 && i < f->n; i++) {
        if ((err = jwt_keys_add(keys, f->specs[i], reason, sizeof reason)) < 0)
            (void)snprintf(why, why_bytes, "%.200s: %s", f->specs[i],
                           reason[0] != '\0' ? reason : err_text(err));
    }
    if (err == 0) {
        struct jwt_keys *old = f->keys;
        f->keys = keys;
        keys = old;
    }
    jwt_keys_free(keys);
    return err;
}

int jwt_files_follow(struct jwt_files *f, bool now, char *why, size_t why_bytes)
{
    bool changed = restamp(f);

    if (!now && !(f->pending && !changed)) {
        f->pending = f->pending || changed;
        return 0;
    }
    int err = read_all(f, why, why_bytes);
    f->pending = err == E_NOMEM; /* that may pass without a change of the file */
    return err < 0 ? err : 1;
}
