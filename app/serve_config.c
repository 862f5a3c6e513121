/* See serve_config.h. Pure, but for the number of processors. */
#include "app/serve_config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/log.h"
#include "base/num.h"
#include "gateway/gateway.h"

int serve_parse_listen(const char *text, struct gw_listen *out, char *host)
{
    static const struct {
        const char *prefix;
        bool tls, sasl;
    } prefixes[] = {
        {"tls://", true, false},
        {"sasl-tls://", true, true},
        {"sasl://", false, true},
    };
    const char *colon, *begin = text;
    uint64_t port;
    size_t n;

    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t len = strlen(prefixes[i].prefix);

        if (strncasecmp(text, prefixes[i].prefix, len) != 0)
            continue;
        out->tls = prefixes[i].tls;
        out->sasl = prefixes[i].sasl;
        begin = text + len;
        break;
    }
    if ((colon = strrchr(begin, ':')) == NULL)
        return E_SYNTAX;
    n = (size_t)(colon - begin);
    if (n > 2 && begin[0] == '[' && begin[n - 1] == ']') {
        begin++;
        n -= 2;
    } else if (strcspn(begin, ":/[] \"\\") < n) {
        return E_SYNTAX; /* an IPv6 address needs its brackets */
    }
    if (n == 0 || n >= HOST_MAX)
        return E_SYNTAX;
    if (num_parse_u64(span_str(colon + 1), &port) < 0 || port > UINT16_MAX)
        return E_SYNTAX;
    memcpy(host, begin, n);
    host[n] = '\0';
    out->host = host;
    out->port = (uint16_t)port;
    return 0;
}

bool serve_is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
           strcasecmp(host, "localhost") == 0;
}

/* What the design has and this build has not is refused, never ignored. */
static void refuse_missing(const struct config *c, struct config_faults *faults)
{
    if (c->group_upstream[0] != '\0')
        config_fault(faults, "group-upstream", "this build cannot hand groups to Kafka yet");
}

static const char *set(const char *text)
{
    return text[0] == '\0' ? NULL : text;
}

/* What brokers would refuse, or never be found by. */
static void check_gazette(const struct jc_gazette_opts *o, struct config_faults *faults)
{
    char why[300];

    if (jc_gazette_brokers_check(o->brokers, why, sizeof why) < 0)
        config_fault(faults, "store", "%s", why);
    if (o->codec != NULL && jc_gazette_codec_check(o->codec, why, sizeof why) < 0)
        config_fault(faults, "fragment-codec", "%s", why);
    if (o->fragment_store != NULL &&
        jc_gazette_fragment_store_check(o->fragment_store, why, sizeof why) < 0)
        config_fault(faults, "fragment-store", "%s", why);
}

static void make_store(const struct config *c, struct serve_config *out,
                       struct config_faults *faults)
{
    const char *brokers;
    bool tls;

    out->store = (struct jc_local_opts){
        .dir = c->data_dir,
        .probe = gw_doc_probe,
        .io_threads = (unsigned)c->io_threads,
        .fragment_bytes = c->fragment_bytes,
        .accept_lost = c->accept_lost_fragments,
    };
    if (strcmp(c->store, "local") == 0)
        return;
    if (!jc_gazette_url(c->store, &brokers, &tls)) {
        config_fault(faults, "store", "\"%.100s\" is neither local nor gazette://HOST:PORT[,...]",
                     c->store);
        return;
    }
    out->gw.repair = NULL; /* fragments are the brokers' */
    out->gazette = (struct jc_gazette_opts){
        .brokers = brokers,
        .tls = tls,
        .ca_file = set(c->broker_ca_file),
        .cert_file = set(c->broker_cert_file),
        .key_file = set(c->broker_key_file),
        .auth_keys = set(c->broker_auth_keys),
        .journals = set(c->broker_journals),
        .token_s = c->broker_token_lifetime / 1000,
        .tail_bytes = c->broker_tail_bytes,
        .idle_ms = c->broker_idle_time,
        .start_ms = c->broker_start_time,
        .zone = set(c->broker_zone),
        .single_writer = c->broker_single_writer,
        .data_dir = c->data_dir,
        .file_root = set(c->fragment_root),
        .no_direct = c->fragments_by_broker,
        .scratch_bytes = c->scratch_bytes,
        .fragment_store = set(c->fragment_store),
        .codec = set(c->fragment_codec),
        .replication = c->replication,
        .fragment_bytes = c->fragment_bytes,
        .probe = gw_doc_probe,
        .io_threads = (unsigned)c->io_threads,
    };
    check_gazette(&out->gazette, faults);
}

/* "ADDR:PORT=HOST:PORT": where to listen, and what clients are told. */
static int parse_kafka(const char *text, struct gw_listen *l, char *host, char *told)
{
    size_t n = strcspn(text, "=");
    struct gw_listen advertise = {.host = NULL};
    char first[2 * HOST_MAX];

    if (n >= sizeof first)
        return E_SYNTAX;
    memcpy(first, text, n);
    first[n] = '\0';
    if (serve_parse_listen(first, l, host) < 0)
        return E_SYNTAX;
    if (text[n] == '\0')
        return 0;
    if (serve_parse_listen(text + n + 1, &advertise, told) < 0 || advertise.tls || advertise.sasl ||
        advertise.port == 0)
        return E_SYNTAX;
    l->advertise_host = told;
    l->advertise_port = advertise.port;
    return 0;
}

static void make_kafka(const struct config *c, struct serve_config *out,
                       struct config_faults *faults)
{
    for (size_t i = 0; i < c->kafka_listen.n; i++) {
        const char *text = c->kafka_listen.v[i];
        struct gw_listen *l = &out->kafka[i];

        if (parse_kafka(text, l, out->kafka_hosts[i], out->kafka_told[i]) < 0) {
            config_fault(faults, "kafka-listen", "\"%.100s\" is not ADDR:PORT[=HOST:PORT]", text);
            continue;
        }
        if (l->tls && out->gw.tls.cert == NULL)
            config_fault(faults, "kafka-listen", "%.100s needs tls-cert and tls-key", text);
        if (l->sasl && c->catalog[0] == '\0')
            config_fault(faults, "kafka-listen",
                         "%.100s asks clients to log in: that needs a catalog with tokens", text);
        if (serve_is_loopback(l->host))
            continue;
        if (c->kafka_advertise[0] == '\0' && l->advertise_host == NULL)
            config_fault(faults, "kafka-listen",
                         "%.100s is not on loopback: --kafka-advertise HOST:PORT must name the "
                         "address that clients connect to",
                         text);
        if (!c->allow_anonymous && !gw_listen_asks(&out->gw, l))
            config_fault(faults, "kafka-listen",
                         "%.100s is not on loopback and asks nobody for a password: give "
                         "--allow-anonymous if that is meant",
                         text);
    }
    out->gw.kafka = out->kafka;
    out->gw.kafka_n = c->kafka_listen.n;
    if (c->kafka_listen.n == 0)
        config_fault(faults, "kafka-listen", "at least one listener is needed");
}

static void make_addresses(const struct config *c, struct serve_config *out,
                           struct config_faults *faults)
{
    struct gw_listen advertise;

    if (c->kafka_advertise[0] != '\0') {
        if (serve_parse_listen(c->kafka_advertise, &advertise, out->advertise_host) < 0 ||
            advertise.tls || advertise.sasl || advertise.port == 0)
            config_fault(faults, "kafka-advertise", "\"%.100s\" is not HOST:PORT",
                         c->kafka_advertise);
        out->gw.advertise_host = out->advertise_host;
        out->gw.advertise_port = advertise.port;
    }
    if (serve_parse_listen(c->admin_listen, &out->gw.admin, out->admin_host) < 0 ||
        out->gw.admin.sasl)
        config_fault(faults, "admin-listen", "\"%.100s\" is not ADDR:PORT", c->admin_listen);
    else if (out->gw.admin.tls && out->gw.tls.cert == NULL)
        config_fault(faults, "admin-listen", "%.100s needs tls-cert and tls-key", c->admin_listen);
    else if (!serve_is_loopback(out->gw.admin.host) && !c->allow_anonymous)
        config_fault(faults, "admin-listen",
                     "%.100s is not on loopback and asks nobody for a password: give "
                     "--allow-anonymous if that is meant",
                     c->admin_listen);
}

static void make_registry(const struct config *c, struct serve_config *out,
                          struct config_faults *faults)
{
    const char *text = c->registry_listen;
    struct gw_listen l = {.host = NULL};

    if (registry_level_parse(c->registry_compatibility, &out->gw.registry_level) < 0)
        config_fault(faults, "registry-compatibility", "\"%.100s\" is no compatibility level",
                     c->registry_compatibility);
    if (text[0] == '\0')
        return;
    if (serve_parse_listen(text, &l, out->registry_host) < 0)
        config_fault(faults, "registry-listen", "\"%.100s\" is not ADDR:PORT", text);
    else if (l.tls && out->gw.tls.cert == NULL)
        config_fault(faults, "registry-listen", "%.100s needs tls-cert and tls-key", text);
    else if (l.sasl && c->catalog[0] == '\0')
        config_fault(faults, "registry-listen",
                     "%.100s asks clients to log in: that needs a catalog with tokens", text);
    else if (!serve_is_loopback(l.host) && !c->allow_anonymous && !l.sasl)
        config_fault(faults, "registry-listen",
                     "%.100s is not on loopback and asks nobody for a password: write sasl:// "
                     "before it, or give --allow-anonymous if that is meant",
                     text);
    else
        out->gw.registry = l;
}

static void make_groups(const struct config *c, struct serve_config *out,
                        struct config_faults *faults)
{
    int n = snprintf(out->groups_path, sizeof out->groups_path, "%s/groups.db", c->data_dir);

    if (n < 0 || (size_t)n >= sizeof out->groups_path)
        config_fault(faults, "data-dir", "the name is too long");
    if (c->group_min_session_timeout > c->group_max_session_timeout)
        config_fault(faults, "group-min-session-timeout", "it is above group-max-session-timeout");
    out->gw.groups_path = out->groups_path;
    out->gw.group_min_session_ms = c->group_min_session_timeout;
    out->gw.group_max_session_ms = c->group_max_session_timeout;
    out->gw.group_initial_delay_ms = c->group_initial_rebalance_delay;
    out->gw.group_consumer_session_ms = c->group_consumer_session_timeout;
    out->gw.group_consumer_heartbeat_ms = c->group_consumer_heartbeat;
    out->gw.group_retention_ms = c->group_offsets_retention;
    out->gw.max_group_members = (unsigned)c->max_group_members;
    out->gw.max_groups = (unsigned)c->max_groups;
}

static void check_words(const struct config *c, struct config_faults *faults)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    bool known = false;

    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        known = known || strcmp(c->log_level, levels[i]) == 0;
    if (!known)
        config_fault(faults, "log-level", "\"%.100s\" is not debug, info, warn or error",
                     c->log_level);
    if (strcmp(c->log_format, "text") != 0 && strcmp(c->log_format, "json") != 0)
        config_fault(faults, "log-format", "\"%.100s\" is neither text nor json", c->log_format);
    if (c->data_dir[0] == '\0')
        config_fault(faults, "data-dir", "a folder is needed");
}

static const struct gw_repair local_repair = {
    .flush = jc_local_flush,
    .remove_fragments = jc_local_remove_fragments,
    .punch = jc_local_punch,
};

int serve_config_make(const struct config *c, struct serve_config *out,
                      struct config_faults *faults)
{
    size_t before = faults->n;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    memset(out, 0, sizeof *out);
    refuse_missing(c, faults);
    serve_tls_make(c, out, faults);
    make_kafka(c, out, faults);
    make_addresses(c, out, faults);
    make_registry(c, out, faults);
    serve_auth_make(c, out, faults);
    check_words(c, faults);
    out->gw.workers = c->workers > 0   ? (unsigned)c->workers
                      : processors > 0 ? (unsigned)processors
                                       : 1;
    out->gw.load_threads = (unsigned)c->load_threads;
    out->gw.cache_bytes = (size_t)c->cache_bytes;
    out->gw.partitions = (unsigned)c->partitions;
    out->gw.max_connections = (unsigned)c->max_connections;
    out->gw.max_request_bytes = (size_t)c->max_request_bytes;
    out->gw.max_ingest_bytes = (size_t)c->max_ingest_bytes;
    out->gw.max_document_bytes = (size_t)c->max_document_bytes;
    out->gw.max_admin_connections = (unsigned)c->max_admin_connections;
    out->gw.admin_hosts = c->admin_hosts[0] == '\0' ? NULL : c->admin_hosts;
    out->gw.ingest_in_flight_bytes = (size_t)c->ingest_in_flight_bytes;
    out->gw.idempotency_ms = c->idempotency_window;
    out->gw.conn_output_bytes = (size_t)c->conn_output_bytes;
    out->gw.idle_ms = c->idle_timeout;
    out->gw.stall_ms = c->stall_timeout;
    out->gw.drain_ms = c->drain_timeout;
    out->gw.max_fetch_sessions = (unsigned)c->max_fetch_sessions;
    make_groups(c, out, faults);
    out->gw.anonymous_task = c->anonymous_task[0] != '\0' ? c->anonymous_task : NULL;
    out->gw.allow_anonymous = c->allow_anonymous;
    out->gw.journal_admin = c->journal_admin;
    out->gw.repair = &local_repair;
    out->gw.read_only_catalog = c->catalog[0] != '\0';
    out->gw.cluster_id = c->cluster_id[0] != '\0' ? c->cluster_id : NULL;
    make_store(c, out, faults);
    return faults->n > before ? E_INVALID : 0;
}
