/* See serve_catalog.h. */
#include "app/serve_catalog.h"

#include <stdio.h>

#include "base/mem.h"

static void say_faults(const char *path, const struct catalog_faults *f,
                       void (*say)(void *arg, bool warning, const char *text), void *arg)
{
    char text[800];

    for (size_t i = 0; i < f->n; i++) {
        catalog_fault_text(&f->list[i], text, sizeof text);
        say(arg, f->list[i].warning, text);
    }
    if (f->n < f->faults + f->warnings) {
        (void)snprintf(text, sizeof text, "%.300s: and %zu more", path,
                       f->faults + f->warnings - f->n);
        say(arg, false, text);
    }
}

int serve_catalog(const struct config *c, const struct gw_config *gw,
                  void (*say)(void *arg, bool warning, const char *text), void *arg,
                  struct catalog_files *files, const struct catalog **out, size_t *faults)
{
    *out = NULL;
    if (faults != NULL)
        *faults = 0;
    if (c->catalog[0] == '\0')
        return 0;
    struct catalog_faults *f = mem_zalloc(sizeof *f);
    if (f == NULL)
        return E_NOMEM;
    int err = catalog_read(c->catalog, f, files, out);
    if (err == 0 && (err = catalog_admit(*out, gw, f)) < 0) {
        catalog_unref(*out);
        *out = NULL;
    }
    say_faults(c->catalog, f, say, arg);
    if (faults != NULL)
        *faults = f->faults;
    mem_free(f);
    return err;
}
