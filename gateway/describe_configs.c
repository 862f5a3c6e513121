/*
 * DescribeConfigs (32), versions 1 to 4: what a topic or this broker is set to, as far as it has a
 * meaning here. Values come from the topic's first journal and from the configuration; nothing is
 * made up. A resource that cannot be described gets an error, and never vanishes from the answer.
 * Worker thread.
 */
#include "base/num.h"
#include "gateway/metrics.h"
#include "gateway/topics.h"

/* A few bytes of a request, the same name over and over, ask for two thousand of an answer. */
#define ANSWER_MAX ((size_t)8 << 20)

enum { RESOURCE_TOPIC = 2, RESOURCE_BROKER = 4 };
enum { SOURCE_TOPIC = 1, SOURCE_STATIC_BROKER = 4, SOURCE_DEFAULT = 5 };
enum { TYPE_BOOLEAN = 1, TYPE_STRING = 2, TYPE_INT = 3, TYPE_LONG = 5, TYPE_LIST = 7 };

#define ENTRIES_MAX           16
#define DEFAULT_SEGMENT_BYTES INT64_C(67108864) /* of the local store */

struct entry {
    const char *name;
    const char *value;
    int8_t source;
    int8_t type;
    const char *doc;
};

struct entries {
    struct entry list[ENTRIES_MAX];
    size_t n;
    struct arena *arena;
    bool failed; /* out of memory */
};

static void add(struct entries *e, const char *name, int8_t type, int8_t source, const char *value,
                const char *doc)
{
    if (value == NULL || e->n == ENTRIES_MAX) {
        e->failed = true;
        return;
    }
    e->list[e->n++] = (struct entry){name, value, source, type, doc};
}

static void add_number(struct entries *e, const char *name, int8_t type, int8_t source, int64_t v,
                       const char *doc)
{
    add(e, name, type, source, arena_printf(e->arena, "%lld", (long long)v), doc);
}

/* A limit of the journal: 0 stands for `unset`. */
static void add_limit(struct entries *e, const char *name, int64_t v, int64_t unset,
                      const char *doc)
{
    add_number(e, name, TYPE_LONG, v == 0 ? SOURCE_DEFAULT : SOURCE_TOPIC, v == 0 ? unset : v, doc);
}

static void add_clock(struct entries *e, const char *name, uint64_t clock, const char *doc)
{
    char hex[17] = "";

    if (clock != 0)
        num_hex16(clock, hex);
    add(e, name, TYPE_STRING, SOURCE_DEFAULT, arena_strndup(e->arena, hex, strlen(hex)), doc);
}

static void topic_entries(struct entries *e, const struct gw_config *config,
                          const struct gw_topic *t)
{
    static const struct jc_spec none;
    const struct jc_spec *spec = t->first == NULL ? &none : &t->first->spec;
    size_t max_document = config->max_document_bytes != 0 ? config->max_document_bytes
                                                          : (size_t)DEFAULT_SEGMENT_BYTES;

    add(e, "cleanup.policy", TYPE_LIST, SOURCE_DEFAULT, "delete",
        "Old fragments are removed; documents are never compacted.");
    add(e, "compression.type", TYPE_STRING,
        t->encoder->codec == KP_CODEC_NONE ? SOURCE_DEFAULT : SOURCE_TOPIC,
        t->encoder->codec == KP_CODEC_NONE ? "uncompressed" : kp_codec_name(t->encoder->codec),
        "How record batches are compressed when they are sent.");
    add_number(e, "max.message.bytes", TYPE_INT, SOURCE_STATIC_BROKER,
               max_document > INT32_MAX ? INT32_MAX : (int64_t)max_document,
               "The largest document that can be published.");
    add(e, "message.timestamp.type", TYPE_STRING, SOURCE_DEFAULT, "CreateTime",
        "A record's timestamp is the clock of its document's UUID.");
    add_limit(e, "retention.bytes", spec->retention_bytes, -1,
              "Old fragments are removed while a partition is larger; -1: no limit.");
    add_limit(e, "retention.ms", spec->retention_ms, -1,
              "Fragments older than this are removed; -1: kept for ever.");
    add_limit(e, "segment.bytes", spec->fragment_bytes, DEFAULT_SEGMENT_BYTES,
              "A fragment is closed when it is at least this long.");
    add_clock(e, "sluice.backfill-begin", t->frontier.begin,
              "Where the newest backfill begins: 16 hex digits of a clock; empty: there was none.");
    add_clock(e, "sluice.backfill-complete", t->frontier.complete,
              "The newest complete marker; empty: there was none.");
    add(e, "sluice.collection", TYPE_STRING, SOURCE_DEFAULT, t->collection,
        "The collection that this topic shows.");
    add_clock(e, "sluice.truncated-at", t->bound.min_clock,
              "Documents with an older clock are hidden: 16 hex digits; empty: none are.");
}

static void broker_entries(struct entries *e, const struct request *rq)
{
    const struct gw_config *config = rq->w->shared->config;
    const char *host;
    uint16_t port;

    request_advertised(rq, &host, &port);
    add(e, "advertised.listeners", TYPE_STRING, SOURCE_STATIC_BROKER,
        arena_printf(e->arena,
                     strchr(host, ':') != NULL ? "PLAINTEXT://[%s]:%u" : "PLAINTEXT://%s:%u", host,
                     port),
        "The address that clients are told.");
    add(e, "auto.create.topics.enable", TYPE_BOOLEAN, SOURCE_DEFAULT, "false",
        "Asking for a topic never creates it.");
    add_number(e, "connections.max.idle.ms", TYPE_LONG, SOURCE_STATIC_BROKER, config->idle_ms,
               "A connection without traffic is closed after this time.");
    add(e, "delete.topic.enable", TYPE_BOOLEAN, SOURCE_DEFAULT, "false",
        "Kafka clients cannot delete topics.");
    add_number(e, "fetch.max.bytes", TYPE_INT, SOURCE_STATIC_BROKER,
               config->conn_output_bytes > INT32_MAX ? INT32_MAX
                                                     : (int64_t)config->conn_output_bytes,
               "The most that one fetch answers, the first batch aside.");
    add_number(e, "max.connections", TYPE_INT, SOURCE_STATIC_BROKER, config->max_connections,
               "More connections are closed when they are accepted.");
    add_number(e, "node.id", TYPE_INT, SOURCE_STATIC_BROKER, GW_NODE_ID,
               "The number of the one broker.");
    add_number(e, "num.network.threads", TYPE_INT, SOURCE_STATIC_BROKER, config->workers,
               "Worker threads.");
    add_number(e, "socket.request.max.bytes", TYPE_INT, SOURCE_STATIC_BROKER,
               config->max_request_bytes > INT32_MAX ? INT32_MAX
                                                     : (int64_t)config->max_request_bytes,
               "A longer request closes its connection.");
}

static bool wanted(const struct kp_describe_configs_req_resources *r, const char *name)
{
    if (r->configuration_keys_n <= 0) /* null and empty: all */
        return true;
    for (int32_t i = 0; i < r->configuration_keys_n; i++) {
        if (span_eq_str(r->configuration_keys[i], name))
            return true;
    }
    return false;
}

static int put_entries(struct request *rq, const struct kp_describe_configs_req_resources *r,
                       const struct entries *e, struct kp_describe_configs_resp_results *out,
                       size_t *left)
{
    const struct kp_describe_configs_req *body = rq->body;

    if (e->failed)
        return E_NOMEM;
    out->configs = kp_array(&kp_describe_configs_resp_results_configs_desc, &rq->arena, e->n);
    if (out->configs == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < e->n; i++) {
        const struct entry *in = &e->list[i];
        if (!wanted(r, in->name))
            continue;
        struct kp_describe_configs_resp_results_configs *c = &out->configs[out->configs_n++];
        c->name = span_str(in->name);
        c->value = span_str(in->value);
        c->read_only = true;
        c->config_source = in->source;
        c->config_type = in->type;
        if (body->include_documentation)
            c->documentation = span_str(in->doc);
        size_t bytes =
            16 + c->documentation.n + (body->include_synonyms ? 2 : 1) * (c->name.n + c->value.n);
        *left -= bytes < *left ? bytes : *left;
        if (!body->include_synonyms)
            continue;
        c->synonyms =
            kp_array(&kp_describe_configs_resp_results_configs_synonyms_desc, &rq->arena, 1);
        if (c->synonyms == NULL)
            return E_NOMEM;
        c->synonyms_n = 1;
        c->synonyms[0].name = c->name;
        c->synonyms[0].value = c->value;
        c->synonyms[0].source = in->source;
    }
    return 0;
}

static void refuse(struct kp_describe_configs_resp_results *out, int16_t error, const char *text)
{
    out->error_code = error;
    out->error_message = span_str(text);
    metric_kafka_error(error);
}

/* left: bytes that the answer may still grow by. */
static int describe(struct request *rq, const struct kp_describe_configs_req_resources *r,
                    struct kp_describe_configs_resp_results *out, size_t *left)
{
    struct entries e = {.arena = &rq->arena};

    out->resource_type = r->resource_type;
    out->resource_name = r->resource_name;
    out->error_message = (struct span){NULL, 0};
    if (*left == 0) {
        refuse(out, KE_INVALID_REQUEST, "too many resources: ask for fewer at a time");
        return 0;
    }
    if (r->resource_type == RESOURCE_TOPIC) {
        const struct gw_topic *t = gw_task_topic(request_task(rq), r->resource_name);
        if (t == NULL) {
            refuse(out, topic_name_error(r->resource_name), "there is no such topic");
            return 0;
        }
        topic_entries(&e, rq->w->shared->config, t);
    } else if (r->resource_type == RESOURCE_BROKER) {
        /* "" asks for what all brokers share dynamically: nothing here. */
        if (span_eq_str(r->resource_name, "1")) {
            broker_entries(&e, rq);
        } else if (r->resource_name.n != 0) {
            refuse(out, KE_INVALID_REQUEST, "there is only broker 1");
            return 0;
        }
    } else {
        refuse(out, KE_INVALID_REQUEST, "only topics and brokers have settings here");
        return 0;
    }
    return put_entries(rq, r, &e, out, left);
}

int handle_describe_configs(struct request *rq)
{
    const struct kp_describe_configs_req *body = rq->body;
    struct kp_describe_configs_resp *resp = request_response(rq);
    size_t n = (size_t)body->resources_n, left = ANSWER_MAX;

    if (resp == NULL ||
        (resp->results = kp_array(&kp_describe_configs_resp_results_desc, &rq->arena, n)) == NULL)
        return E_NOMEM;
    resp->results_n = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        int err = describe(rq, &body->resources[i], &resp->results[i], &left);
        if (err < 0)
            return err;
    }
    request_reply(rq, resp);
    return 0;
}
