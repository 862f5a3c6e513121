/*
 * The token that calls carry: signed here, kept, and made anew before a broker refuses it. Brokers
 * look at the wall clock, and so do we; but it may be set, so a token is also as old as the
 * monotonic clock says, and one from the future is none. One that a broker refused all the same is
 * given up. Home thread.
 */
#include "base/mem.h"
#include "journal_client/gazette/gazette_int.h"
#include "journal_client/gazette/jwt.h"

#define LEFT_S     600 /* a token that holds for less is made anew, or for half its time */
#define REFUSED_MS 1000

bool gz_token_stale(const struct gz_token *t, int64_t wall_s, int64_t mono_ms)
{
    int64_t left = t->holds_s / 2 < LEFT_S ? t->holds_s / 2 : LEFT_S, use = t->holds_s - left;

    return t->text == NULL || wall_s < t->made_s || wall_s - t->made_s >= use ||
           mono_ms - t->made_ms >= use * 1000 || (t->refused && mono_ms - t->made_ms >= REFUSED_MS);
}

const char *gz_token(void *arg)
{
    struct gz_store *s = arg;
    struct gz_token *t = &s->token;
    int64_t wall_s = clock_wall_ns(s->hub.clock) / 1000000000, mono_ms = gz_mono_ms(s);
    const struct gz_claims claims = {.cap =
                                         GZ_CAP_LIST | GZ_CAP_APPLY | GZ_CAP_READ | GZ_CAP_APPEND,
                                     .prefix = s->journals,
                                     .now_s = wall_s,
                                     .ttl_s = t->holds_s};
    char *made;

    if (!gz_token_stale(t, wall_s, mono_ms) ||
        gz_jwt_sign(span_of(s->auth_key, s->auth_key_n), &claims, &made) < 0)
        return t->text; /* the old one may still do */
    gz_token_fini(t);
    *t = (struct gz_token){
        .text = made, .holds_s = t->holds_s, .made_s = wall_s, .made_ms = mono_ms};
    return t->text;
}

void gz_token_refused(void *arg)
{
    struct gz_store *s = arg;

    s->token.refused = true;
}

void gz_token_fini(struct gz_token *t)
{
    if (t->text != NULL)
        mem_wipe(t->text, strlen(t->text));
    mem_free(t->text);
    t->text = NULL;
}
