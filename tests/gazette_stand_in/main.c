/*
 * sluice_gazette_stand_in: the stand-in broker as a program, for tests that are not in C. It runs
 * until SIGTERM or SIGINT. --port-file gets {"port":N,"control":N} once it listens.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/num.h"
#include "tests/gazette_stand_in/stand_in.h"

enum flag { PORT = 1, PORT_FILE, CONTROL, ROOT, KEYS, LISTING, GONE, WATCH, ASSIGN, UNASSIGN };

static const struct option options[] = {
    {"port", required_argument, NULL, PORT},
    {"port-file", required_argument, NULL, PORT_FILE},
    {"control-port", required_argument, NULL, CONTROL},
    {"file-root", required_argument, NULL, ROOT},
    {"auth-key", required_argument, NULL, KEYS},
    {"listing-lag", required_argument, NULL, LISTING},
    {"gone-lag", required_argument, NULL, GONE},
    {"watch-delay", required_argument, NULL, WATCH},
    {"assign-lag", required_argument, NULL, ASSIGN},
    {"unassign-lag", required_argument, NULL, UNASSIGN},
    {0},
};

static int usage(void)
{
    (void)fprintf(
        stderr,
        "usage: sluice_gazette_stand_in [--port N] [--control-port N] [--port-file FILE]\n"
        "  [--file-root DIR] [--auth-key BASE64[,BASE64]] [--listing-lag MS] [--watch-delay MS]\n"
        "  [--gone-lag MS] [--assign-lag MS] [--unassign-lag MS]\n");
    return 2;
}

static int write_ports(const char *path, const struct stand_in *si)
{
    char temp[4096];
    FILE *f;

    (void)snprintf(temp, sizeof temp, "%s.tmp", path);
    if ((f = fopen(temp, "we")) == NULL)
        return E_IO;
    (void)fprintf(f, "{\"port\":%u,\"control\":%u}\n", stand_in_port(si),
                  stand_in_control_port(si));
    return fclose(f) == 0 && rename(temp, path) == 0 ? 0 : E_IO;
}

static int parse(int argc, char **argv, struct stand_in_opts *o, const char **port_file)
{
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        int64_t v = 0;
        bool number = c != PORT_FILE && c != ROOT && c != KEYS;
        if (c == '?' || (number && num_parse_i64(span_str(optarg), &v) < 0))
            return E_SYNTAX;
        if (c == PORT)
            o->port = (uint16_t)v;
        else if (c == CONTROL)
            o->control_port = (uint16_t)v;
        else if (c == PORT_FILE)
            *port_file = optarg;
        else if (c == ROOT)
            o->file_root = optarg;
        else if (c == KEYS)
            o->auth_keys = optarg;
        else if (c == LISTING)
            o->listing_lag_ms = v;
        else if (c == GONE)
            o->gone_lag_ms = v;
        else if (c == WATCH)
            o->watch_delay_ms = v;
        else if (c == ASSIGN)
            o->assign_lag_ms = v;
        else
            o->unassign_lag_ms = v;
    }
    return optind == argc ? 0 : E_SYNTAX;
}

int main(int argc, char **argv)
{
    struct stand_in_opts o = {.watch_delay_ms = 30};
    const char *port_file = NULL;
    struct stand_in *si;
    sigset_t stop;
    int signal_number = 0, err;

    if (parse(argc, argv, &o, &port_file) < 0)
        return usage();
    (void)sigemptyset(&stop);
    (void)sigaddset(&stop, SIGTERM);
    (void)sigaddset(&stop, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &stop, NULL); /* before the thread starts: it inherits */
    (void)signal(SIGPIPE, SIG_IGN);
    if ((err = stand_in_start(&o, &si)) < 0 ||
        (port_file != NULL && (err = write_ports(port_file, si)) < 0)) {
        (void)fprintf(stderr, "sluice_gazette_stand_in: %s\n", err_text(err));
        return EXIT_FAILURE;
    }
    (void)printf("port %u control %u\n", stand_in_port(si), stand_in_control_port(si));
    (void)fflush(stdout);
    while (sigwait(&stop, &signal_number) != 0) {
    }
    stand_in_stop(si);
    return EXIT_SUCCESS;
}
