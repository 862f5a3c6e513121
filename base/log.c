/*
 * One event is one line is one write(2), so lines of several threads and processes never mix. The
 * line is built in a fixed buffer on the stack: logging never allocates, and a field that does not
 * fit is left out as a whole (truncated=true), which keeps JSON well-formed. All strings are
 * escaped: nothing that a peer sends can forge a line or drive a terminal.
 *
 * A sink that nobody reads stops no thread. A pipe or terminal is opened a second time without
 * blocking (the flag belongs to the open file, which others share), a socket is sent to without
 * waiting. What does not go at once is lost and counted: the next line that goes is followed by
 * log.lost. Only a regular file may take as long as its disk does.
 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"

#define LINE_MAX_BYTES                                                                             \
    ((size_t)4096)               /* no more than PIPE_BUF: a pipe takes all of it or nothing       \
                                  */
#define TAIL_BYTES ((size_t)32)  /* kept free for truncated=true, the brace and the newline */
#define VALUE_MAX  ((size_t)512) /* input bytes of one value; more is cut with "..." */
#define RATE_SLOTS 64            /* distinct peer events; more share the last slot */

static atomic_int min_level = LOG_INFO;
static atomic_int format = LOG_FORMAT_TEXT;
static atomic_int sink_fd = STDERR_FILENO;
static _Atomic(const struct clock *) line_clock;

/* Leaf: taken for the write and for the rate table, nothing is called that locks. */
static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;

/* Guarded by sink_lock: how to write to sink_fd without waiting. */
static struct {
    int of;  /* the sink_fd that this is about; -1: none yet */
    int own; /* our own open file of it, not blocking; -1: there is none */
    enum { SINK_FILE, SINK_SOCKET, SINK_POLLED } kind;
    char torn[LINE_MAX_BYTES]; /* the rest of a line that went in part, always sent first */
    size_t torn_n;
} sink = {.of = -1, .own = -1};
static atomic_ullong lost; /* lines since the last that went */

struct rate {
    const char *event; /* NULL: free slot. Event names are string literals. */
    int64_t milli_tokens;
    int64_t last_ms;
    uint64_t dropped;
};
static struct rate rates[RATE_SLOTS]; /* guarded by sink_lock */

struct line {
    char text[LINE_MAX_BYTES];
    size_t n;
    size_t limit;
    bool overflow;
};

static const struct clock *current_clock(void)
{
    const struct clock *c = atomic_load(&line_clock);

    return c != NULL ? c : clock_system();
}

void log_setup(enum log_level min, enum log_format fmt)
{
    atomic_store(&min_level, (int)min);
    atomic_store(&format, (int)fmt);
}

static void sink_forget(void)
{
    if (sink.own >= 0)
        close(sink.own);
    sink.own = sink.of = -1;
    sink.torn_n = 0;
}

void log_set_fd(int fd)
{
    pthread_mutex_lock(&sink_lock);
    sink_forget();
    atomic_store(&sink_fd, fd);
    pthread_mutex_unlock(&sink_lock);
}

void log_set_clock(const struct clock *clock)
{
    pthread_mutex_lock(&sink_lock);
    memset(rates, 0, sizeof rates);
    atomic_store(&line_clock, clock);
    pthread_mutex_unlock(&sink_lock);
}

bool log_enabled(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&min_level, memory_order_relaxed);
}

static void put(struct line *l, const char *s, size_t n)
{
    if (l->overflow || n > l->limit - l->n) {
        l->overflow = true;
        return;
    }
    memcpy(l->text + l->n, s, n);
    l->n += n;
}

static void put_str(struct line *l, const char *s)
{
    put(l, s, strlen(s));
}

static void put_fmt(struct line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put_fmt(struct line *l, const char *fmt, ...)
{
    char tmp[64];
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(tmp, sizeof tmp, fmt, args);
    va_end(args);
    if (n > 0)
        put(l, tmp, (size_t)n < sizeof tmp ? (size_t)n : sizeof tmp - 1);
}

/* Length of the well-formed, printable UTF-8 sequence of 2 to 4 bytes at p, else 0. The C1 controls
 * and the Unicode line separators count as not printable. */
static size_t utf8_sequence(const uint8_t *p, size_t left)
{
    size_t n;
    uint32_t cp;
    uint32_t least;

    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        n = 2;
        least = 0xa0;
        cp = p[0] & 0x1f;
    } else if ((p[0] & 0xf0) == 0xe0) {
        n = 3;
        least = 0x800;
        cp = p[0] & 0x0f;
    } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        n = 4;
        least = 0x10000;
        cp = p[0] & 0x07;
    } else {
        return 0;
    }
    if (n > left)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        cp = cp << 6 | (p[i] & 0x3f);
    }
    if (cp < least || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
        return 0;
    return cp == 0x2028 || cp == 0x2029 ? 0 : n;
}

static void put_escaped(struct line *l, struct span s, bool json)
{
    size_t end = s.n < VALUE_MAX ? s.n : VALUE_MAX;

    for (size_t i = 0; i < end;) {
        uint8_t c = s.p[i];
        size_t n = c < 0x80 ? 0 : utf8_sequence(s.p + i, s.n - i);
        if (n > 0) {
            put(l, (const char *)s.p + i, n);
            i += n;
            continue;
        }
        i++;
        if (c == '"' || c == '\\')
            put_fmt(l, "\\%c", c);
        else if (c == '\n')
            put_str(l, "\\n");
        else if (c == '\r')
            put_str(l, "\\r");
        else if (c == '\t')
            put_str(l, "\\t");
        else if (c >= 0x20 && c < 0x7f)
            put(l, (const char *)&c, 1);
        else if (!json)
            put_fmt(l, "\\x%02x", c);
        else if (c < 0x80)
            put_fmt(l, "\\u%04x", c);
        else
            put_str(l, "\\ufffd"); /* JSON knows no raw bytes */
    }
    if (end < s.n)
        put_str(l, "...");
}

/* Text values go bare unless a reader could take them for something else. */
static bool needs_quotes(struct span s)
{
    if (s.n == 0 || s.n > VALUE_MAX)
        return true;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        if (c <= 0x20 || c >= 0x7f || c == '"' || c == '\\' || c == '=')
            return true;
    }
    return false;
}

static void put_value(struct line *l, struct span s, bool json)
{
    bool quote = json || needs_quotes(s);

    if (quote)
        put_str(l, "\"");
    put_escaped(l, s, json);
    if (quote)
        put_str(l, "\"");
}

static void put_field(struct line *l, const struct log_field *f, bool json)
{
    char tmp[128];

    if (json) {
        put_str(l, ",\"");
        put_escaped(l, span_str(f->key), true);
        put_str(l, "\":");
    } else {
        put_str(l, " ");
        put_str(l, f->key);
        put_str(l, "=");
    }
    switch (f->kind) {
    case LOG_F_STR:
        put_value(l, f->v.s == NULL ? span_str("(null)") : span_str(f->v.s), json);
        break;
    case LOG_F_SPAN:
        put_value(l, f->v.sp, json);
        break;
    case LOG_F_INT:
        put_fmt(l, "%lld", (long long)f->v.i);
        break;
    case LOG_F_UINT:
        put_fmt(l, "%llu", (unsigned long long)f->v.u);
        break;
    case LOG_F_ERR:
        put_value(l, span_str(err_text((int)f->v.i)), json);
        break;
    case LOG_F_ERRNO:
        put_value(l, span_str(strerror_r((int)f->v.i, tmp, sizeof tmp)), json);
        break;
    }
}

/* A field goes in whole or not at all. */
static void put_whole_field(struct line *l, const struct log_field *f, bool json)
{
    size_t before = l->n;

    if (l->overflow)
        return;
    put_field(l, f, json);
    if (l->overflow)
        l->n = before;
}

static void put_head(struct line *l, enum log_level level, const char *event, bool json)
{
    static const char *const names[] = {"DEBUG", "INFO", "WARN", "ERROR"};
    int64_t ms = clock_wall_ns(current_clock()) / 1000000;
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    char day[32];

    gmtime_r(&s, &tm);
    size_t n = strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
    day[n] = '\0';
    if (json) {
        put_str(l, "{\"ts\":\"");
        put_fmt(l, "%s.%03dZ", day, (int)(ms % 1000));
        put_fmt(l, "\",\"level\":\"%s\",\"event\":\"", names[level]);
        put_escaped(l, span_str(event), true);
        put_str(l, "\"");
    } else {
        put_fmt(l, "%s.%03dZ", day, (int)(ms % 1000));
        put_fmt(l, " %-5s ", names[level]);
        put_str(l, event);
    }
}

static void sink_look(int fd)
{
    struct stat st;
    char path[32];

    sink_forget();
    sink.of = fd;
    sink.kind = SINK_FILE;
    if (fstat(fd, &st) < 0)
        return;
    if (S_ISSOCK(st.st_mode)) {
        sink.kind = SINK_SOCKET;
    } else if (S_ISFIFO(st.st_mode) || (S_ISCHR(st.st_mode) && isatty(fd))) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        sink.own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (sink.own < 0) /* not ours to open: at least never when it is known to be full */
            sink.kind = SINK_POLLED;
    }
}

/* Sends what goes at once; returns how much. */
static size_t sink_put(int fd, const char *p, size_t n)
{
    size_t done = 0;

    while (done < n) {
        struct pollfd room = {.fd = fd, .events = POLLOUT};
        ssize_t k;

        if (sink.kind == SINK_POLLED && poll(&room, 1, 0) != 1)
            break;
        if (sink.kind == SINK_SOCKET)
            k = send(fd, p + done, n - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        else
            k = write(sink.own >= 0 ? sink.own : fd, p + done, n - done);
        if (k >= 0)
            done += (size_t)k;
        else if (errno != EINTR)
            break; /* a full or closed sink must not stop the program */
    }
    return done;
}

/* False: the line is lost. */
static bool write_line(const struct line *l)
{
    bool gone = false;
    size_t n;

    pthread_mutex_lock(&sink_lock);
    int fd = atomic_load(&sink_fd);
    if (fd != sink.of)
        sink_look(fd);
    if (sink.torn_n > 0) {
        n = sink_put(fd, sink.torn, sink.torn_n);
        sink.torn_n -= n;
        memmove(sink.torn, sink.torn + n, sink.torn_n);
    }
    if (sink.torn_n == 0) {
        n = sink_put(fd, l->text, l->n);
        gone = n > 0;
        if (gone) {
            sink.torn_n = l->n - n;
            memcpy(sink.torn, l->text + n, sink.torn_n);
        }
    }
    pthread_mutex_unlock(&sink_lock);
    return gone;
}

/* Builds one line and sends it. */
static bool put_event(enum log_level level, const char *event, const struct log_field *fields,
                      size_t n, uint64_t dropped)
{
    bool json = atomic_load(&format) == LOG_FORMAT_JSON;
    struct line l;

    l.n = 0;
    l.limit = LINE_MAX_BYTES - TAIL_BYTES;
    l.overflow = false;
    put_head(&l, level, event, json);
    if (dropped > 0)
        put_whole_field(&l, &LF_UINT("dropped", dropped), json);
    for (size_t i = 0; i < n; i++)
        put_whole_field(&l, &fields[i], json);

    bool truncated = l.overflow;
    l.overflow = false;
    l.limit = LINE_MAX_BYTES;
    if (truncated)
        put_str(&l, json ? ",\"truncated\":true" : " truncated=true");
    put_str(&l, json ? "}\n" : "\n");
    return write_line(&l);
}

static void emit(enum log_level level, const char *event, const struct log_field *fields, size_t n,
                 uint64_t dropped)
{
    int saved_errno = errno;

    if (!put_event(level, event, fields, n, dropped)) {
        atomic_fetch_add(&lost, 1);
    } else if (atomic_load(&lost) > 0) {
        unsigned long long lines = atomic_exchange(&lost, 0);

        if (lines > 0 && !put_event(LOG_WARN, "log.lost", &LF_UINT("lines", lines), 1, 0))
            atomic_fetch_add(&lost, lines);
    }
    errno = saved_errno;
}

void log_event_fields(enum log_level level, const char *event, const struct log_field *fields,
                      size_t n)
{
    if (log_enabled(level))
        emit(level, event, fields, n, 0);
}

/* The slot of an event, by open addressing; when the table is full, a shared one. */
static struct rate *find_rate(const char *event, int64_t now_ms)
{
    size_t start = (size_t)(hash_bytes(span_str(event), 0) % (RATE_SLOTS - 1));

    for (size_t i = 0; i < RATE_SLOTS; i++) {
        struct rate *r = &rates[(start + i) % (RATE_SLOTS - 1)];
        if (i == RATE_SLOTS - 1)
            r = &rates[RATE_SLOTS - 1];
        if (r->event != NULL && (strcmp(r->event, event) == 0 || i == RATE_SLOTS - 1))
            return r;
        if (r->event == NULL) {
            *r = (struct rate){event, (int64_t)LOG_PEER_BURST * 1000, now_ms, 0};
            return r;
        }
    }
    return &rates[RATE_SLOTS - 1];
}

/* Takes a token: true if the line may go out, with the number of lines lost before it. */
static bool pass_rate(const char *event, uint64_t *dropped)
{
    int64_t now_ms = clock_mono_ms(current_clock());
    bool pass;

    pthread_mutex_lock(&sink_lock);
    struct rate *r = find_rate(event, now_ms);
    int64_t elapsed = now_ms - r->last_ms;
    if (elapsed > 0) {
        /* A long rest fills the bucket; the cut keeps the product from overflowing. */
        if (elapsed > 3600000)
            elapsed = 3600000;
        r->milli_tokens += elapsed * LOG_PEER_PER_SECOND;
        if (r->milli_tokens > (int64_t)LOG_PEER_BURST * 1000)
            r->milli_tokens = (int64_t)LOG_PEER_BURST * 1000;
        r->last_ms = now_ms;
    }
    pass = r->milli_tokens >= 1000;
    if (pass) {
        r->milli_tokens -= 1000;
        *dropped = r->dropped;
        r->dropped = 0;
    } else {
        r->dropped++;
    }
    pthread_mutex_unlock(&sink_lock);
    return pass;
}

void log_peer_fields(enum log_level level, const char *event, const struct log_field *fields,
                     size_t n)
{
    uint64_t dropped = 0;

    if (log_enabled(level) && pass_rate(event, &dropped))
        emit(level, event, fields, n, dropped);
}
