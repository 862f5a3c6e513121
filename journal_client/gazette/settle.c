/*
 * Where a journal really ends, as its primary says (barrier.h). A Read at the head asks whichever
 * broker has a replica, and just after a hand-off that one may know less than was told before.
 *
 * Until the answer is there, after a start or when the tail broke off, heads are told as settling
 * (O8). An answer below what was told before, twice, means that all replicas were lost: the journal
 * begins a new life (O11).
 *
 * Home thread.
 */
#include "base/log.h"
#include "journal_client/gazette/barrier.h"

#define FIRST_MS  1000 /* heads of earlier runs are told when no broker answers for so long */
#define GRACE_MS  500  /* a tail that broke off: for so long its heads are as good as just before */
#define BEHIND_MS 1000 /* between looks at a tail that does not come to the head */
#define LOWER_MS  1000 /* between the answers that tell of a loss */
#define LOWER_N   2

bool gz_tail_behind(const struct gz_journal *j)
{
    return j->state == GZ_J_TAIL && j->confirmed && j->tail_set && j->tail.pos < j->confirmed_head;
}

bool gz_settling(const struct gz_journal *j)
{
    if (j->state == GZ_J_STARTING)
        return true;
    if (j->state != GZ_J_TAIL)
        return false;
    if (j->confirmed)
        return gz_tail_behind(j);
    return j->unsure_ms < 0 || gz_mono_ms(j->store) - j->unsure_ms >= GRACE_MS;
}

static void ask(struct gz_journal *j);

/* err, message: of the call; 0 and "" when it was answered, by a status. */
static void again(struct gz_journal *j, int err, const char *message)
{
    if (j->settle_attempt == 4)
        log_peer(LOG_WARN, "gazette.head_unsure", LF_STR("journal", j->name),
                 LF_STR("status", gz_status_text(j->settle_status)), LF_STR("message", message),
                 LF_ERR(err));
    gz_arm(j->settle_timer, gz_backoff_ms(j->settle_attempt++));
    gz_journal_publish(j);
}

static void confirmed(struct gz_journal *j, int64_t head)
{
    j->confirmed = true;
    j->confirmed_head = head;
    j->settle_lower = 0;
    (void)event_del(j->settle_timer);
    if (j->settling) /* see to it that the tail comes there */
        gz_arm(j->settle_timer, BEHIND_MS);
    gz_journal_publish(j);
}

/* The tail has not come to the head for a while. Where all fragments were removed nothing will
 * bring it there: lists say so (first.c). */
static void look_behind(struct gz_journal *j)
{
    if (!gz_tail_behind(j))
        return;
    gz_first_look(j, BEHIND_MS / 2);
    gz_arm(j->settle_timer, BEHIND_MS);
}

/* The primary said it. */
static void judge(struct gz_journal *j, int64_t head)
{
    if (head >= j->settle_known) {
        confirmed(j, head);
        return;
    }
    log_event(LOG_ERROR, "gazette.head_below", LF_STR("journal", j->name), LF_INT("head", head),
              LF_INT("seen", j->settle_known));
    j->unsure_ms = -1;
    if (++j->settle_lower < LOWER_N) {
        gz_arm(j->settle_timer, LOWER_MS);
        gz_journal_publish(j);
        return;
    }
    log_event(LOG_ERROR, "gazette.bytes_lost", LF_STR("journal", j->name), LF_INT("from", head),
              LF_INT("to", j->settle_known));
    gz_journal_reborn(j);
}

/* No broker has more than what is stored: the journal's head is where its fragments end. */
static void on_frags(void *arg, int err, int status, struct gz_frags *list)
{
    struct gz_journal *j = arg;

    j->settle_frags = NULL;
    if (err < 0 || status != GZ_OK)
        again(j, err, "");
    else
        judge(j, list->n == 0 ? 0 : list->v[list->n - 1].end);
}

static void on_message(void *arg, struct span msg)
{
    struct gz_journal *j = arg;
    struct gz_barrier b = {.status = -1, .head = -1};

    gz_barrier_take(&b, msg);
    j->settle_status = b.status;
    j->settle_head = b.head;
}

static void on_end(void *arg, const struct gz_end *end)
{
    struct gz_journal *j = arg;

    j->settle_call = NULL;
    if (end->err == E_DENIED || j->settle_status == GZ_NOT_ALLOWED) {
        /* Who may not append has to take a replica's word, and never calls bytes lost. */
        confirmed(j, j->settle_known);
    } else if (end->err == 0 && j->settle_status == GZ_OK && j->settle_head >= 0) {
        judge(j, j->settle_head);
    } else if (end->err == 0 && j->settle_status == GZ_SUSPENDED && j->suspend_level != 0) {
        confirmed(j, j->suspend_offset);
    } else if (end->err == 0 && j->settle_status == GZ_INDEX_GREATER) {
        int err = gz_frags_ask(j, on_frags, j, &j->settle_frags);
        if (err < 0)
            again(j, err, "");
    } else {
        again(j, end->err, end->message);
    }
}

static void ask(struct gz_journal *j)
{
    const struct gz_call_cb cb = {.on_message = on_message, .on_end = on_end, .arg = j};
    int64_t known =
        j->next.write_head > j->kept.write_head ? j->next.write_head : j->kept.write_head;

    /* What came in while the question was on its way may lie behind the answer. */
    j->settle_known = known > j->min_head ? known : j->min_head;
    j->settle_status = -1;
    j->settle_head = -1;
    int err = gz_barrier_call(j, j->endpoint, &cb, &j->settle_call);
    if (err < 0)
        again(j, err, "");
}

void gz_settle_start(struct gz_journal *j, bool grace)
{
    if (j->settle_call != NULL || j->settle_frags != NULL)
        return; /* its answer comes from behind all that was acknowledged before now as well */
    j->confirmed = false;
    j->unsure_ms = grace ? gz_mono_ms(j->store) : -1;
    j->settle_attempt = 0;
    j->settle_lower = 0;
    j->settling = true;
    gz_arm(j->settle_timer, GRACE_MS);
    ask(j);
}

void gz_settle_first(struct gz_journal *j)
{
    if (j->kept_sound && !j->hub.ready)
        gz_arm(j->settle_timer, FIRST_MS);
}

void gz_settle_on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct gz_journal *j = arg;

    (void)fd;
    (void)what;
    gz_journal_publish(j);
    if (!j->settling || j->confirmed) {
        look_behind(j);
        return;
    }
    if (j->settle_call == NULL && j->settle_frags == NULL)
        ask(j);
    /* The grace may end while the call is on its way; a timer may also fire a moment early. */
    int64_t left = j->unsure_ms < 0 ? 0 : j->unsure_ms + GRACE_MS - gz_mono_ms(j->store);
    if (left > 0 && (j->settle_call != NULL || j->settle_frags != NULL))
        gz_arm(j->settle_timer, left);
}

void gz_settle_stop(struct gz_journal *j)
{
    if (j->settle_call != NULL)
        gz_call_cancel(j->settle_call);
    j->settle_call = NULL;
    if (j->settle_frags != NULL)
        gz_frags_cancel(j->settle_frags);
    j->settle_frags = NULL;
    j->settling = j->confirmed = false;
    if (j->settle_timer != NULL)
        (void)event_del(j->settle_timer);
}
