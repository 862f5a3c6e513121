/*
 * The work of json_bench.c done by simdjson. The DOM parser is its only full check. On demand takes
 * the first key of a name and looks at nothing behind it, so its uuid is not proven against
 * duplicates.
 */
#include <simdjson.h>

#include "tests/bench/json_bench.h"

size_t simdjson_check_and_split(const struct bench_block *b)
{
    static simdjson::dom::parser parser;
    simdjson::dom::document_stream stream;
    size_t docs = 0;

    if (parser.parse_many(b->data, b->len, b->len).get(stream))
        return 0;
    for (auto doc : stream)
        docs += doc.error() == simdjson::SUCCESS;
    return docs;
}

static size_t each(const struct bench_block *b, const char *outer, const char *inner)
{
    static simdjson::ondemand::parser parser;
    size_t docs = 0;

    for (size_t i = 0; i < b->docs; i++) {
        size_t len = b->at[i + 1] - b->at[i];
        simdjson::ondemand::document doc;
        std::string_view value;

        if (parser.iterate(simdjson::padded_string_view(b->data + b->at[i], len, len + 64))
                .get(doc))
            continue;
        if (inner != nullptr ? !doc[outer][inner].get_string().get(value)
                             : !doc[outer].get_string().get(value))
            docs++;
    }
    return docs;
}

size_t simdjson_uuids(const struct bench_block *b)
{
    return each(b, "_meta", "uuid");
}

size_t simdjson_last_key(const struct bench_block *b)
{
    return each(b, "status", nullptr);
}
