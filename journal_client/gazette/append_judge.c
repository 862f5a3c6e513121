/* What the answers to appends mean, and claims as text. Pure. See append.h. */
#include <stdio.h>

#include "base/num.h"
#include "journal_client/gazette/append.h"

void gz_claim_format(const struct gz_claim *c, char out[GZ_CLAIM_MAX])
{
    (void)snprintf(out, GZ_CLAIM_MAX, "%016llx-%016llx", (unsigned long long)c->epoch,
                   (unsigned long long)c->owner);
}

int gz_claim_parse(const char *text, struct gz_claim *out)
{
    struct gz_claim c;

    *out = (struct gz_claim){0};
    if (strlen(text) != 33 || text[16] != '-' || num_parse_hex(span_of(text, 16), &c.epoch) < 0 ||
        num_parse_hex(span_of(text + 17, 16), &c.owner) < 0)
        return E_SYNTAX;
    *out = c;
    return 0;
}

uint64_t gz_claim_epoch(uint64_t seen, int64_t wall_ms)
{
    uint64_t now = wall_ms > 0 ? (uint64_t)wall_ms : 1;

    return seen >= now ? seen + 1 : now;
}

static enum gz_verdict of_status(const struct gz_append_seen *seen,
                                 const struct gz_append_about *about, int *fail)
{
    switch (seen->status) {
    case GZ_OK:
        /* Of another length: none of ours, whatever it was. */
        return gz_commit_sane(seen->begin, seen->end) && seen->end - seen->begin == about->bytes
                   ? GZ_V_LANDED
                   : GZ_V_DOUBT;
    case GZ_WRONG_OFFSET:
        /* The earlier attempt may be what moved the head. */
        return about->unsure ? GZ_V_DOUBT : GZ_V_MOVED;
    case GZ_REGISTER_MISMATCH:
        /* It was refused; what an earlier attempt did is another question. */
        if (about->unsure)
            return GZ_V_DOUBT;
        /* A claim of ours that was made unseen: by an append that landed, so the head moved, too.
         */
        return about->mine || about->claiming ? GZ_V_MOVED : GZ_V_CLAIM_LOST;
    case GZ_INDEX_GREATER:
        return GZ_V_RESET;
    case GZ_NOT_ALLOWED:
        *fail = E_DENIED;
        return GZ_V_FAIL;
    case GZ_JOURNAL_NOT_FOUND: /* or not there yet */
        *fail = E_NOTFOUND;
        return about->deleted ? GZ_V_FAIL : GZ_V_AGAIN;
    default:
        return GZ_V_AGAIN;
    }
}

enum gz_verdict gz_append_judge(const struct gz_append_seen *seen,
                                const struct gz_append_about *about, int *fail)
{
    *fail = 0;
    /* Only what a broker says itself, and says before it takes content in, means that nothing
     * landed. "Exhausted" (8) is said by proxies too, whatever the broker did. What happens on the
     * way (a connection, a deadline, our own memory) leaves it open, and so does what a broker
     * calls malformed: it may have given up in the middle. */
    if (seen->err == E_DENIED || seen->err == E_CLOSED ||
        (seen->told && seen->err == E_UNSUPPORTED)) {
        *fail = seen->err;
        return GZ_V_FAIL;
    }
    if (seen->err < 0)
        return GZ_V_DOUBT;
    return seen->status < 0 ? GZ_V_DOUBT : of_status(seen, about, fail);
}

enum gz_doubt gz_append_doubt(int64_t head, int64_t begin, int64_t end)
{
    if (head >= end)
        return GZ_D_COMPARE;
    if (head < begin)
        return GZ_D_BELOW;
    /* Appends are whole: an end within it is that of somebody else's. */
    return head == begin ? GZ_D_SEND_AGAIN : GZ_D_GONE;
}
