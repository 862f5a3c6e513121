/*
 * What an offset means: error, wait or read (rules O4, O6-O8, O11 of docs/protocol.md). Pure.
 */
#include "gateway/fetch_int.h"

void fetch_ends_of(const struct jc_heads *heads, int8_t isolation, struct fetch_ends *out)
{
    out->log_start = heads->log_start;
    out->hwm = heads->content_end;
    /* O6, first form: what is durable is stable. The one place where levels will differ. */
    out->lso = heads->content_end;
    out->end = isolation == READ_COMMITTED ? out->lso : out->hwm;
    out->write_head = heads->write_head;
    out->settling = jc_heads_settling(heads);
}

int16_t fetch_epoch_check(int32_t asked, int32_t current)
{
    if (asked < 0 || asked == current)
        return KE_NONE;
    return asked < current ? KE_FENCED_LEADER_EPOCH : KE_UNKNOWN_LEADER_EPOCH;
}

void fetch_epoch_end(int32_t asked, int32_t current, const struct fetch_ends *ends, int32_t *epoch,
                     int64_t *end_offset)
{
    if (asked < 0 || asked > current) {
        *epoch = -1;
        *end_offset = -1;
    } else if (asked == current) {
        *epoch = current;
        *end_offset = ends->hwm;
    } else {
        *epoch = asked;
        *end_offset = ends->log_start;
    }
}

void fetch_plan(const struct fetch_want *want, int32_t epoch, const struct fetch_ends *ends,
                struct fetch_plan *out)
{
    *out = (struct fetch_plan){.verdict = FETCH_ERROR, .diverging_epoch = -1, .diverging_end = -1};
    if ((out->error = fetch_epoch_check(want->current_epoch, epoch)) != KE_NONE)
        return;
    if (want->last_fetched_epoch >= 0) {
        int32_t e;
        int64_t end;

        fetch_epoch_end(want->last_fetched_epoch, epoch, ends, &e, &end);
        if (e < 0) {
            out->error = KE_OFFSET_OUT_OF_RANGE;
            return;
        }
        if (end < want->offset && ends->settling && e == epoch) {
            out->error = KE_OFFSET_NOT_AVAILABLE; /* a head that may rise truncates nobody */
            return;
        }
        if (end < want->offset) {
            out->verdict = FETCH_DIVERGED;
            out->diverging_epoch = e;
            out->diverging_end = end;
            return;
        }
    }
    bool above = want->offset > ends->hwm && want->offset > ends->write_head;
    if (want->offset < ends->log_start || above) {
        out->error = above && ends->settling ? KE_OFFSET_NOT_AVAILABLE : KE_OFFSET_OUT_OF_RANGE;
        return;
    }
    out->verdict = want->offset < ends->end ? FETCH_READ : FETCH_NOTHING;
}
