/*
 * One line an event, to stderr: text (`2026-12-02T08:54:39.123Z INFO  store.opened dir=/x
 * journals=3`) or JSON lines. Event names are stable and dotted; fields are key=value, made by the
 * LOG_* field macros. Never payload, never secrets. Any thread. The sink lock is a leaf. Events
 * that a peer can trigger go through log_peer(), which is limited in rate per event name and
 * reports how many lines it dropped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

struct log_field {
    const char *key;
    enum { LOG_F_STR, LOG_F_SPAN, LOG_F_INT, LOG_F_UINT, LOG_F_ERR, LOG_F_ERRNO } kind;
    union {
        const char *s;
        struct span sp;
        int64_t i;
        uint64_t u;
    } v;
};

#define LF_STR(k, x)  ((struct log_field){.key = (k), .kind = LOG_F_STR, .v.s = (x)})
#define LF_SPAN(k, x) ((struct log_field){.key = (k), .kind = LOG_F_SPAN, .v.sp = (x)})
#define LF_INT(k, x)  ((struct log_field){.key = (k), .kind = LOG_F_INT, .v.i = (int64_t)(x)})
#define LF_UINT(k, x) ((struct log_field){.key = (k), .kind = LOG_F_UINT, .v.u = (uint64_t)(x)})
/* An E_* code: printed as its text. */
#define LF_ERR(x) ((struct log_field){.key = "err", .kind = LOG_F_ERR, .v.i = (int64_t)(x)})
/* An errno value: printed by strerror_r. */
#define LF_ERRNO(x) ((struct log_field){.key = "errno", .kind = LOG_F_ERRNO, .v.i = (int64_t)(x)})

/* Default: LOG_INFO and text. Call it before threads start; later calls are safe but not ordered
 * with lines already on their way. */
void log_setup(enum log_level min, enum log_format format);
/* Where lines go; borrowed, default STDERR_FILENO. For tests. */
void log_set_fd(int fd);
struct clock;
/* Time for stamps and rates; borrowed, must outlive all logging. Forgets all rates. For tests. */
void log_set_clock(const struct clock *clock);
bool log_enabled(enum log_level level);
void log_event_fields(enum log_level level, const char *event, const struct log_field *fields,
                      size_t n);
/* At most LOG_PEER_BURST lines of one event at once and LOG_PEER_PER_SECOND on average. The next
 * line that passes carries dropped=N. */
#define LOG_PEER_BURST      20
#define LOG_PEER_PER_SECOND 2
void log_peer_fields(enum log_level level, const char *event, const struct log_field *fields,
                     size_t n);

/* log_event(LOG_INFO, "store.opened", LF_STR("dir", dir), LF_INT("journals", n)); at least one
 * field. */
#define log_event(level, event, ...)                                                               \
    do {                                                                                           \
        if (log_enabled(level)) {                                                                  \
            const struct log_field log_f_[] = {__VA_ARGS__};                                       \
            log_event_fields((level), (event), log_f_, sizeof log_f_ / sizeof log_f_[0]);          \
        }                                                                                          \
    } while (0)
#define log_peer(level, event, ...)                                                                \
    do {                                                                                           \
        if (log_enabled(level)) {                                                                  \
            const struct log_field log_f_[] = {__VA_ARGS__};                                       \
            log_peer_fields((level), (event), log_f_, sizeof log_f_ / sizeof log_f_[0]);           \
        }                                                                                          \
    } while (0)
