/*
 * Our half of the comparison with kafka-clients (the other half: java/KafkaGolden.java).
 *
 *   kp_golden apis             KEY MIN MAX for each API of the tables
 *   kp_golden check FILE       decodes each line of FILE and encodes it again: same bytes, or those
 *                              of the last `full` one when the mode is `unknown` (tags are
 *                              skipped); each API, version and direction must occur
 *   kp_golden emit SEED TIMES  random messages of each API and version by our encoder
 *
 * Lines are `KEY VERSION req|resp MODE HEX`, `-` for no bytes. Exit 0, or 1 with the first fault.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/num.h"
#include "tests/unit/kafka_proto/kp_random.h"

#define BUDGET ((size_t)8 << 20)

static void print_line(const struct kp_api *api, int version, bool request, const char *mode,
                       struct span s)
{
    printf("%d %d %s %s ", api->key, version, request ? "req" : "resp", mode);
    if (s.n == 0)
        printf("-");
    for (size_t i = 0; i < s.n; i++)
        printf("%02x", s.p[i]);
    printf("\n");
}

static int list_apis(void)
{
    for (size_t i = 0; i < kp_apis_n; i++)
        printf("%d %d %d\n", kp_apis[i].key, kp_apis[i].min, kp_apis[i].max);
    return 0;
}

static int emit(uint64_t seed, uint64_t times)
{
    struct arena a;
    struct kp_random r = {.state = seed * 2 + 1, .a = &a};

    arena_init(&a, BUDGET);
    for (size_t i = 0; i < kp_apis_n; i++) {
        const struct kp_api *api = &kp_apis[i];
        for (int v = api->min; v <= api->max; v++) {
            for (uint64_t k = 0; k < 2 * times; k++) {
                const struct kp_desc *d = k % 2 == 0 ? api->request : api->response;
                struct writer w;
                wr_init(&w, BUDGET);
                const void *msg = kp_random_message(&r, d, (int16_t)v);
                int err = kp_encode(d, (int16_t)v, msg, &a, &w);
                if (err < 0) {
                    printf("%s version %d: %s\n", d->name, v, err_name(err));
                    return 1;
                }
                print_line(api, v, k % 2 == 0, "random",
                           w.b == NULL ? (struct span){NULL, 0} : blob_span(w.b));
                wr_fini(&w);
                arena_reset(&a);
            }
        }
    }
    arena_fini(&a);
    return 0;
}

/* Decodes and encodes a whole frame without its length, which the encoders put in front. */
static int redo_frame(const struct kp_api *api, int16_t version, bool request, struct span in,
                      struct arena *a, void *msg, struct writer *out)
{
    struct reader r = reader_of(in);
    struct kp_request_header h;
    struct kp_encoded enc;
    bool known;
    int32_t id;
    int err;

    if (request) {
        if ((err = kp_request_header_decode(&r, &h, &known)) < 0)
            return err;
        if (!known || h.api_key != api->key || h.api_version != version)
            return E_SYNTAX;
        if ((err = kp_decode(api->request, version, &r, a, msg)) < 0)
            return err;
        return kp_request_encode(api, version, h.correlation_id, h.client_id, msg, a, out);
    }
    if ((err = kp_response_header_decode(api, version, &r, &id)) < 0 ||
        (err = kp_decode(api->response, version, &r, a, msg)) < 0 ||
        (err = kp_encode_response(api, version, id, msg, a, &enc)) < 0)
        return err;
    wr_bytes(out, enc.head->data, enc.head->len);
    blob_unref(enc.head);
    return wr_err(out);
}

static int redo(const struct kp_api *api, int16_t version, bool request, bool frame, struct span in,
                struct arena *a, struct writer *out)
{
    const struct kp_desc *d = request ? api->request : api->response;
    void *msg = arena_alloc(a, d->size);
    struct reader r = reader_of(in);
    int err;

    if (msg == NULL)
        return E_NOMEM;
    if (frame)
        return redo_frame(api, version, request, in, a, msg, out);
    if ((err = kp_decode(d, version, &r, a, msg)) < 0)
        return err;
    return kp_encode(d, version, msg, a, out);
}

/* Decodes hex in place. -1: not hex. */
static long unhex(char *s)
{
    long n = 0;

    if (strcmp(s, "-") == 0)
        return 0;
    for (; s[2 * n] != '\0'; n++) {
        uint64_t v;
        if (num_parse_hex(span_of(s + 2 * n, 2), &v) < 0)
            return -1;
        s[n] = (char)(uint8_t)v;
    }
    return n;
}

/* want: what the line before was, for mode `unknown`; replaced by this line's bytes. */
static int check_line(char *line, struct writer *want, struct arena *a)
{
    char *rest = line, *word[5];
    int64_t key, version;

    for (int i = 0; i < 5; i++)
        if ((word[i] = strsep(&rest, " \n")) == NULL)
            return E_SYNTAX;
    if (num_parse_i64(span_str(word[0]), &key) < 0 ||
        num_parse_i64(span_str(word[1]), &version) < 0)
        return E_SYNTAX;
    const struct kp_api *api = kp_api_find((int16_t)key);
    bool request = strcmp(word[2], "req") == 0, frame = strcmp(word[3], "frame") == 0;
    long n = unhex(word[4]);
    if (api == NULL || n < 0)
        return E_SYNTAX;

    /* a copy of the exact size, for AddressSanitizer */
    uint8_t *in = mem_alloc(n == 0 ? 1 : (size_t)n);
    struct writer got;
    if (in == NULL)
        return E_NOMEM;
    memcpy(in, word[4], (size_t)n);
    wr_init(&got, BUDGET);
    int err = redo(api, (int16_t)version, request, frame, span_of(in, (size_t)n), a, &got);
    if (strcmp(word[3], "full") == 0) { /* `null` and `empty` stand between it and `unknown` */
        wr_fini(want);
        wr_init(want, BUDGET);
        wr_bytes(want, in, (size_t)n);
    }
    if (err == 0) {
        struct span have = got.b == NULL ? span_of(in, 0) : blob_span(got.b);
        struct span must = span_of(in, (size_t)n);
        if (strcmp(word[3], "unknown") == 0)
            must = want->b == NULL ? span_of(in, 0) : blob_span(want->b);
        if (frame && have.n >= 4)
            have = span_of(have.p + 4, have.n - 4);
        err = span_eq(have, must) ? 0 : E_CORRUPT;
    }
    wr_fini(&got);
    mem_free(in);
    if (err < 0)
        printf("%s version %s %s %s: %s\n", api->name, word[1], word[2], word[3],
               err == E_CORRUPT ? "encodes to other bytes" : err_name(err));
    return err;
}

static int check(const char *path)
{
    FILE *f = fopen(path, "r");
    struct writer want;
    struct arena a;
    char *line = NULL;
    size_t cap = 0, lines = 0, full = 0, faults = 0;

    if (f == NULL) {
        perror(path);
        return 1;
    }
    wr_init(&want, BUDGET);
    arena_init(&a, BUDGET);
    while (getline(&line, &cap, f) > 0) {
        if (line[0] == '#')
            continue;
        lines++;
        full += strstr(line, " full ") != NULL;
        if (check_line(line, &want, &a) < 0)
            faults++;
        arena_reset(&a);
    }
    mem_free(line);
    arena_fini(&a);
    wr_fini(&want);
    (void)fclose(f);
    for (size_t i = 0; i < kp_apis_n; i++)
        full -= 2 * (size_t)(kp_apis[i].max - kp_apis[i].min + 1);
    printf("%zu messages, %zu differ%s\n", lines, faults,
           full == 0 ? "" : ", and not one of each API, version and direction");
    return full != 0 || faults > 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    uint64_t seed, times;

    if (argc == 2 && strcmp(argv[1], "apis") == 0)
        return list_apis();
    if (argc == 3 && strcmp(argv[1], "check") == 0)
        return check(argv[2]);
    if (argc == 4 && strcmp(argv[1], "emit") == 0 && num_parse_u64(span_str(argv[2]), &seed) == 0 &&
        num_parse_u64(span_str(argv[3]), &times) == 0)
        return emit(seed, times);
    (void)fprintf(stderr, "usage: kp_golden apis | check FILE | emit SEED TIMES\n");
    return 2;
}
