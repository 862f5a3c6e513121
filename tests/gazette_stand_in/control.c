/*
 * The control socket, for tests that are not in C: one command a line, one answer a line.
 *
 *   fault KIND METHOD [journal=J] [skip=N] [times=N] [value=N] [after=N] [landed=1]    calm
 *   end METHOD KIND [value=N]     close [J]      down [J]     lose J OFFSET     hide J MS
 *   prune J N    prune-aged [J]   age J N SECONDS             forget J     head J
 *   content J    stats
 *
 * KIND and METHOD as fault.c spells them. Answers: "ok", "ok VALUE", "error WHY"; content: "ok N"
 * and N bytes.
 */
#include <event2/bufferevent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "tests/gazette_stand_in/stand_in_int.h"

#define WORDS_MAX 12

struct control {
    TAILQ_ENTRY(control) link;
    struct stand_in *si;
    struct bufferevent *bev;
};

TAILQ_HEAD(si_controls, control);

static void control_free(struct control *c)
{
    TAILQ_REMOVE(c->si->controls, c, link);
    bufferevent_free(c->bev);
    mem_free(c);
}

void si_controls_free(struct stand_in *si)
{
    struct control *c;

    while (si->controls != NULL && (c = TAILQ_FIRST(si->controls)) != NULL)
        control_free(c);
    mem_free(si->controls);
    si->controls = NULL;
}

static int find_kind(const char *s, enum stand_in_fault_kind *out)
{
    for (int k = 0; k < STAND_IN_FAULT_KINDS; k++) {
        *out = (enum stand_in_fault_kind)k;
        if (strcmp(s, si_fault_name(*out)) == 0)
            return 0;
    }
    return E_SYNTAX;
}

static int find_method(const char *s, enum stand_in_method *out)
{
    for (int m = 0; m <= STAND_IN_ANY; m++) {
        *out = (enum stand_in_method)m;
        if (strcmp(s, si_method_name(*out)) == 0)
            return 0;
    }
    return E_SYNTAX;
}

static int number(const char *s, int64_t *out)
{
    return num_parse_i64(span_str(s), out);
}

/* The options behind kind and method. */
static int parse_options(char *const *w, size_t n, struct stand_in_fault *f)
{
    int64_t v = 0;

    for (size_t i = 0; i < n; i++) {
        char *eq = strchr(w[i], '=');
        if (eq == NULL)
            return E_SYNTAX;
        *eq++ = '\0';
        if (strcmp(w[i], "journal") == 0) {
            f->journal = eq;
            continue;
        }
        if (number(eq, &v) < 0)
            return E_SYNTAX;
        if (strcmp(w[i], "skip") == 0)
            f->skip = (unsigned)v;
        else if (strcmp(w[i], "times") == 0)
            f->times = (int)v;
        else if (strcmp(w[i], "value") == 0)
            f->value = v;
        else if (strcmp(w[i], "after") == 0)
            f->after = v;
        else if (strcmp(w[i], "landed") == 0)
            f->landed = v != 0;
        else
            return E_SYNTAX;
    }
    return 0;
}

static int say_content(struct control *c, const char *journal)
{
    const struct si_journal *j = si_find(c->si, journal);
    struct evbuffer *out = bufferevent_get_output(c->bev);
    int64_t n = 0;

    if (j == NULL)
        return E_NOTFOUND;
    for (size_t i = 0; i < j->n; i++)
        n += j->frags[i]->end - j->frags[i]->begin;
    (void)evbuffer_add_printf(out, "ok %" PRId64 "\n", n);
    for (size_t i = 0; i < j->n; i++)
        (void)evbuffer_add(out, j->frags[i]->data, (size_t)(j->frags[i]->end - j->frags[i]->begin));
    return 1;
}

static int say_stats(struct control *c)
{
    struct evbuffer *out = bufferevent_get_output(c->bev);
    const struct stand_in *si = c->si;

    (void)evbuffer_add_printf(out, "ok {\"hits\":%" PRIu64, si->hits);
    for (int m = 0; m < STAND_IN_METHODS; m++)
        (void)evbuffer_add_printf(out, ",\"%s\":{\"calls\":%" PRIu64 ",\"running\":%" PRIu64 "}",
                                  si_method_name((enum stand_in_method)m), si->calls[m],
                                  si->running[m]);
    (void)evbuffer_add_printf(out, "}\n");
    return 1;
}

static int say_head(struct control *c, const char *journal)
{
    const struct si_journal *j = si_find(c->si, journal);

    if (j == NULL)
        return E_NOTFOUND;
    (void)evbuffer_add_printf(bufferevent_get_output(c->bev), "ok %" PRId64 "\n", j->spool_end);
    return 1;
}

/* fault, end */
static int misbehave(struct control *c, char *const *w, size_t n)
{
    struct stand_in_fault f = {0};
    bool end = strcmp(w[0], "end") == 0;
    int err;

    if (n < 3 || (err = find_kind(w[end ? 2 : 1], &f.kind)) < 0 ||
        (err = find_method(w[end ? 1 : 2], &f.method)) < 0 ||
        (err = parse_options(w + 3, n - 3, &f)) < 0)
        return E_SYNTAX;
    if (!end)
        return si_fault_add(c->si, &f);
    si_do_end_calls(c->si, f.method, f.kind, f.value);
    return 0;
}

/* 0: "ok" is to be said; 1: it was said. */
static int command(struct control *c, char *const *w, size_t n)
{
    const char *a = n > 1 ? w[1] : NULL;
    int64_t v = 0, seconds = 0;

    if (strcmp(w[0], "fault") == 0 || strcmp(w[0], "end") == 0)
        return misbehave(c, w, n);
    if (strcmp(w[0], "calm") == 0) {
        si_do_calm(c->si);
        return 0;
    }
    if (strcmp(w[0], "stats") == 0)
        return say_stats(c);
    if (strcmp(w[0], "close") == 0)
        return si_do_close(c->si, a);
    if (strcmp(w[0], "down") == 0)
        return si_do_all_down(c->si, a);
    if (strcmp(w[0], "prune-aged") == 0)
        return si_do_prune_aged(c->si, a);
    if (a == NULL)
        return E_SYNTAX;
    if (strcmp(w[0], "head") == 0)
        return say_head(c, a);
    if (strcmp(w[0], "content") == 0)
        return say_content(c, a);
    if (strcmp(w[0], "forget") == 0) {
        si_do_forget(c->si, a);
        return 0;
    }
    if (strcmp(w[0], "age") == 0)
        return n == 4 && number(w[2], &v) == 0 && v >= 0 && number(w[3], &seconds) == 0
                   ? si_do_age(c->si, a, (unsigned)v, seconds)
                   : E_SYNTAX;
    if (n != 3 || number(w[2], &v) < 0 || v < 0)
        return E_SYNTAX;
    if (strcmp(w[0], "lose") == 0)
        return si_do_lose(c->si, a, v);
    if (strcmp(w[0], "hide") == 0)
        return si_do_hide(c->si, a, v);
    if (strcmp(w[0], "prune") == 0)
        return si_do_prune(c->si, a, (unsigned)v);
    return E_SYNTAX;
}

static void on_read(struct bufferevent *bev, void *arg)
{
    struct control *c = arg;
    char *line, *words[WORDS_MAX], *save = NULL;

    while ((line = evbuffer_readln(bufferevent_get_input(bev), NULL, EVBUFFER_EOL_CRLF)) != NULL) {
        size_t n = 0;
        int err = E_SYNTAX;
        for (char *w = strtok_r(line, " ", &save); w != NULL && n < WORDS_MAX;
             w = strtok_r(NULL, " ", &save))
            words[n++] = w;
        if (n > 0)
            err = command(c, words, n);
        if (err == 0)
            (void)evbuffer_add_printf(bufferevent_get_output(bev), "ok\n");
        else if (err < 0)
            (void)evbuffer_add_printf(bufferevent_get_output(bev), "error %s\n", err_text(err));
        mem_free(line);
    }
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    (void)bev;
    if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) != 0)
        control_free(arg);
}

void si_control_accept(struct stand_in *si, evutil_socket_t fd)
{
    struct control *c = mem_zalloc(sizeof *c);

    if (si->controls == NULL && (si->controls = mem_zalloc(sizeof *si->controls)) != NULL)
        TAILQ_INIT(si->controls);
    if (c == NULL || si->controls == NULL ||
        (c->bev = bufferevent_socket_new(si->evb, fd, BEV_OPT_CLOSE_ON_FREE)) == NULL) {
        mem_free(c);
        (void)evutil_closesocket(fd);
        return;
    }
    c->si = si;
    TAILQ_INSERT_TAIL(si->controls, c, link);
    bufferevent_setcb(c->bev, on_read, NULL, on_event, c);
    (void)bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}
