/*
 * DescribeLogDirs (35): how many bytes lie in each partition. There is one directory, with a name
 * that tells nothing of this machine; offsets are bytes, so a partition's size is the distance
 * between the first byte that is kept and the write head. The disk is not this client's business:
 * its size is -1, unknown. Worker thread.
 */
#include "gateway/metrics.h"
#include "gateway/topics.h"

#define DIRECTORY "journals"

typedef struct kp_describe_log_dirs_resp_results_topics topic_answer;

static int64_t size_of(struct gw_part *p)
{
    struct jc_heads heads;

    if (!gw_part_heads(p, &heads) || heads.write_head < heads.first)
        return 0;
    return heads.write_head - heads.first;
}

static int add_part(const struct gw_topic *t, size_t i, topic_answer *out)
{
    struct kp_describe_log_dirs_resp_results_topics_partitions *p =
        &out->partitions[out->partitions_n++];

    p->partition_index = (int32_t)i;
    p->partition_size = size_of(t->parts[i]);
    return 0;
}

/* Partitions that do not exist are left out, as Kafka does. */
static int add_topic(struct request *rq, const struct gw_topic *t, const int32_t *wanted,
                     int32_t wanted_n, struct kp_describe_log_dirs_resp_results *dir)
{
    topic_answer *out = &dir->topics[dir->topics_n];
    size_t room = wanted == NULL ? t->parts_n : (size_t)wanted_n;

    out->name = span_str(t->name);
    out->partitions =
        kp_array(&kp_describe_log_dirs_resp_results_topics_partitions_desc, &rq->arena, room);
    if (out->partitions == NULL)
        return E_NOMEM;
    out->partitions_n = 0;
    for (size_t i = 0; i < room; i++) {
        if (wanted == NULL)
            add_part(t, i, out);
        else if (wanted[i] >= 0 && (size_t)wanted[i] < t->parts_n)
            add_part(t, (size_t)wanted[i], out);
    }
    if (out->partitions_n > 0)
        dir->topics_n++;
    return 0;
}

static int add_topics(struct request *rq, struct kp_describe_log_dirs_resp_results *dir)
{
    const struct kp_describe_log_dirs_req *body = rq->body;
    const struct gw_task *task = request_task(rq);
    bool all = body->topics_n < 0;
    size_t n = all ? task->topics_n : (size_t)body->topics_n;
    int err;

    dir->topics_n = 0;
    dir->topics = kp_array(&kp_describe_log_dirs_resp_results_topics_desc, &rq->arena, n);
    if (dir->topics == NULL)
        return E_NOMEM;
    for (size_t i = 0; i < n && task->redirect_host == NULL; i++) {
        const struct gw_topic *t =
            all ? &task->topics[i] : gw_task_topic(task, body->topics[i].topic);
        if (t == NULL)
            continue;
        err = add_topic(rq, t, all ? NULL : body->topics[i].partitions,
                        all ? 0 : body->topics[i].partitions_n, dir);
        if (err < 0)
            return err;
    }
    return 0;
}

int handle_describe_log_dirs(struct request *rq)
{
    struct kp_describe_log_dirs_resp *resp = request_response(rq);

    if (resp == NULL ||
        (resp->results = kp_array(&kp_describe_log_dirs_resp_results_desc, &rq->arena, 1)) == NULL)
        return E_NOMEM;
    resp->results_n = 1;
    resp->results[0].log_dir = span_str(DIRECTORY);
    int err = add_topics(rq, &resp->results[0]);
    if (err < 0)
        return err;
    request_reply(rq, resp);
    return 0;
}
