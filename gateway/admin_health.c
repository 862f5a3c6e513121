/* /healthz, /readyz. Control thread; never waits. */
#include "gateway/admin_int.h"

void admin_get_healthz(struct admin_rq *rq)
{
    admin_reply(rq->a, rq->req, 200, ADMIN_JSON, span_str("{\"status\":\"ok\"}\n"));
}

/* Ready: clients would be served now. */
void admin_get_readyz(struct admin_rq *rq)
{
    const struct admin_host *host = &rq->a->host;
    const char *why = NULL;

    if (rq->a->draining)
        why = "draining";
    else if (host->unready != NULL)
        why = host->unready(host->arg);
    if (why == NULL && host->view(host->arg) == NULL)
        why = "the journals were not listed yet";
    if (why == NULL)
        admin_reply(rq->a, rq->req, 200, ADMIN_JSON, span_str("{\"status\":\"ready\"}\n"));
    else
        admin_reply_error(rq->a, rq->req, 503, "not ready: %s", why);
}
