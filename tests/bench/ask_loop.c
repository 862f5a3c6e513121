/*
 * Many connections that each send one request over and over and wait for its answer: consumers that
 * idle in long poll, without a consumer's own cost. Knows nothing of Kafka but the length prefix.
 *
 *   ask_loop PORT FRAME_FILE CONNECTIONS SECONDS     prints answers, bytes, answers per second
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct asker {
    int fd;
    uint32_t head_n;
    uint8_t head[4];
    uint32_t left; /* of the body */
};

static uint8_t frame[65536], scratch[1 << 16];
static size_t frame_n;
static unsigned long answers, bytes;

static double now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void ask(struct asker *a)
{
    a->head_n = 0;
    a->left = 0;
    if (write(a->fd, frame, frame_n) != (ssize_t)frame_n)
        die("write");
}

/* True when a whole answer was read. */
static int take(struct asker *a)
{
    for (;;) {
        ssize_t n;

        if (a->head_n < 4) {
            n = read(a->fd, a->head + a->head_n, 4 - a->head_n);
            if (n > 0 && (a->head_n += (uint32_t)n) == 4)
                a->left = (uint32_t)a->head[0] << 24 | (uint32_t)a->head[1] << 16 |
                          (uint32_t)a->head[2] << 8 | a->head[3];
        } else {
            n = read(a->fd, scratch, a->left < sizeof scratch ? a->left : sizeof scratch);
            if (n > 0) {
                bytes += (unsigned long)n;
                if ((a->left -= (uint32_t)n) == 0)
                    return 1;
            }
        }
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            fprintf(stderr, "a connection was closed\n");
            exit(1);
        }
        if (n < 0)
            return 0;
    }
}

static int dial(uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        die("connect");
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) < 0)
        die("setsockopt");
    return fd;
}

int main(int argc, char **argv)
{
    struct epoll_event ev[256];
    struct rlimit lim;
    FILE *f;

    if (argc != 5 || (f = fopen(argv[2], "rb")) == NULL)
        die("usage: ask_loop PORT FRAME_FILE CONNECTIONS SECONDS");
    frame_n = fread(frame, 1, sizeof frame, f);
    (void)fclose(f);
    if (getrlimit(RLIMIT_NOFILE, &lim) == 0) {
        lim.rlim_cur = lim.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &lim);
    }
    /* banned-ok: a client of its own, built by the bench without our libraries */
    size_t n = strtoul(argv[3], NULL, 10);
    double seconds = strtod(argv[4], NULL);
    /* banned-ok: see above */
    struct asker *all = calloc(n, sizeof *all);
    int ep = epoll_create1(0);

    if (all == NULL || ep < 0)
        die("start");
    for (size_t i = 0; i < n; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &all[i]};

        /* banned-ok: see above */
        all[i].fd = dial((uint16_t)strtoul(argv[1], NULL, 10));
        ask(&all[i]); /* as they come: real consumers are not in step */
        struct timespec pause = {.tv_nsec = 200000};
        (void)nanosleep(&pause, NULL);
        if (epoll_ctl(ep, EPOLL_CTL_ADD, all[i].fd, &e) < 0)
            die("epoll");
    }
    for (size_t i = 0; i < n; i++) {
        int flags = 1;

        if (ioctl(all[i].fd, 0x5421 /* FIONBIO */, &flags) < 0)
            die("ioctl");
    }
    printf("ready\n");
    (void)fflush(stdout);
    for (double end = now() + seconds; now() < end;) {
        int k = epoll_wait(ep, ev, 256, 100);

        for (int i = 0; i < k; i++) {
            struct asker *a = ev[i].data.ptr;

            if (take(a)) {
                answers++;
                ask(a);
            }
        }
    }
    printf("%lu answers, %lu bytes, %.0f answers/s\n", answers, bytes, (double)answers / seconds);
    return 0;
}
