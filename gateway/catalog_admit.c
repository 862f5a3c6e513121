/*
 * A catalog and the listeners that are to serve it. A connection that was not asked for a password
 * reads one task, which must be beyond doubt. Pure.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gateway/catalog.h"
#include "gateway/config.h"

const struct catalog_task *catalog_anonymous(const struct catalog *c, const char *named)
{
    if (named == NULL || named[0] == '\0')
        return c->tasks_n == 1 ? &c->tasks[0] : NULL;
    for (size_t i = 0; i < c->tasks_n; i++) {
        if (strcmp(c->tasks[i].name, named) == 0)
            return &c->tasks[i];
    }
    return NULL;
}

__attribute__((format(printf, 4, 5))) static int fault(struct catalog_faults *f, const char *file,
                                                       size_t line, const char *fmt, ...)
{
    va_list ap;

    f->faults++;
    if (f->n < CATALOG_FAULTS_MAX) {
        struct catalog_fault *one = &f->list[f->n++];

        *one = (struct catalog_fault){.line = line};
        (void)snprintf(one->file, sizeof one->file, "%s", file);
        va_start(ap, fmt);
        (void)vsnprintf(one->text, sizeof one->text, fmt, ap);
        va_end(ap);
    }
    return E_INVALID;
}

int catalog_admit(const struct catalog *c, const struct gw_config *config,
                  struct catalog_faults *faults)
{
    const struct catalog_task *task = catalog_anonymous(c, config->anonymous_task);
    bool named = config->anonymous_task != NULL && config->anonymous_task[0] != '\0';
    bool open = false;

    for (size_t i = 0; i < config->kafka_n; i++)
        open = open || !gw_listen_asks(config, &config->kafka[i]);
    if (named && task == NULL)
        return fault(faults, c->path, 0,
                     "there is no task \"%.100s\", which --anonymous-task names",
                     config->anonymous_task);
    if (!open)
        return 0;
    if (task == NULL)
        return fault(faults, c->path, 0,
                     "there are %zu tasks, and a Kafka listener that asks nobody who he is: "
                     "--anonymous-task must name the one that it serves",
                     c->tasks_n);
    if (task->tokens_n > 0 && !config->allow_anonymous)
        return fault(faults, task->file, task->line,
                     "the task has a token, but a Kafka listener asks no client for it: give "
                     "--allow-anonymous if everybody may read its topics");
    return 0;
}
