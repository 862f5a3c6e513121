/* A connection over a plain TCP socket, on the worker's event base. */
#pragma once

#include <sys/socket.h>

#include "gateway/conn.h"

/* On w's thread. Takes the socket (non-blocking), which came in by that listener, in any case: on
 * failure it is closed. */
MUST_USE int stream_open(struct worker *w, int fd, const struct gw_listen *listen,
                         const struct sockaddr *peer);
