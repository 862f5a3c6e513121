/*
 * Schema texts of compiled nodes: compact JSON, members always in the same order, every named type
 * under a full name that no other has (the place where it stands). Pure.
 */
#include "schema/avro_int.h"

/* A name that Avro keeps for itself, perhaps with _ at its end already. */
static bool is_reserved(struct span name)
{
    static const char *const words[] = {"null",   "boolean", "int",    "long",   "float",
                                        "double", "bytes",   "string", "record", "enum",
                                        "array",  "map",     "fixed",  "union",  "error"};

    while (name.n > 0 && name.p[name.n - 1] == '_')
        name.n--;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (span_eq_str(name, words[i]))
            return true;
    }
    return false;
}

/* name and namespace of a full name. One that Avro keeps for itself gets a _ at its end; so does
 * that one with its _, else string and string_ side by side would define the same name twice. */
static void write_name(struct writer *w, struct span full)
{
    size_t dot = full.n;
    struct span last;

    while (dot > 0 && full.p[dot - 1] != '.')
        dot--;
    last = span_of(full.p + dot, full.n - dot);
    wr_str(w, "\"name\":\"");
    wr_span(w, last);
    if (is_reserved(last))
        wr_u8(w, '_');
    wr_u8(w, '"');
    if (dot > 0) {
        wr_str(w, ",\"namespace\":\"");
        wr_bytes(w, full.p, dot - 1);
        wr_u8(w, '"');
    }
}

static void write_node(struct writer *w, const struct pg_node *node);

static void write_simple(struct writer *w, const struct pg_node *node)
{
    static const char *const texts[] = {
        [PG_NULL] = "\"null\"",
        [PG_BOOL] = "\"boolean\"",
        [PG_LONG] = "\"long\"",
        [PG_DOUBLE] = "\"double\"",
        [PG_STRING] = "\"string\"",
        [PG_TEXT_NUMBER] = "\"string\"",
        [PG_NUMBER_TEXT] = "\"double\"",
        [PG_DATE] = "{\"type\":\"int\",\"logicalType\":\"date\"}",
        [PG_TIME] = "{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}",
        [PG_UUID] = "{\"type\":\"string\",\"logicalType\":\"uuid\"}",
        [PG_PUBLISHED] = "{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}",
        [PG_DELETED] = "\"long\"",
    };

    wr_str(w, texts[node->op]);
}

static void write_type(struct writer *w, const struct pg_node *node)
{
    switch (node->op) {
    case PG_ARRAY:
        wr_str(w, "{\"type\":\"array\",\"items\":");
        write_node(w, node->elem);
        wr_u8(w, '}');
        break;
    case PG_MAP:
        wr_str(w, "{\"type\":\"map\",\"values\":");
        write_node(w, node->elem);
        wr_u8(w, '}');
        break;
    case PG_RECORD:
        av_write_record(w, node->name, node->record->fields, node->record->names.n,
                        node->record->extra);
        break;
    case PG_RAW:
        wr_str(w, "{\"type\":\"record\",\"name\":\"RawJSON\",\"namespace\":\"");
        wr_span(w, node->name);
        wr_str(w, "\",\"fields\":[{\"name\":\"json\",\"type\":\"string\",\"order\":\"ignore\"}]}");
        break;
    case PG_DURATION:
        wr_str(w, "{\"type\":\"fixed\",\"name\":\"duration\",\"namespace\":\"");
        wr_span(w, node->name);
        wr_str(w, "\",\"size\":12,\"logicalType\":\"duration\"}");
        break;
    case PG_NULL:
    case PG_BOOL:
    case PG_LONG:
    case PG_DOUBLE:
    case PG_STRING:
    case PG_TEXT_NUMBER:
    case PG_NUMBER_TEXT:
    case PG_DATE:
    case PG_TIME:
    case PG_UUID:
    case PG_PUBLISHED:
    case PG_DELETED:
    default:
        write_simple(w, node);
        break;
    }
}

static void write_node(struct writer *w, const struct pg_node *node)
{
    if (!node->nullable) {
        write_type(w, node);
        return;
    }
    wr_str(w, node->null_branch == 0 ? "[\"null\"," : "[");
    write_type(w, node);
    wr_str(w, node->null_branch == 0 ? "]" : ",\"null\"]");
}

void av_write_record(struct writer *w, struct span full_name, const struct pg_field *fields,
                     size_t n, const struct pg_node *extra)
{
    wr_str(w, "{\"type\":\"record\",");
    write_name(w, full_name);
    wr_str(w, ",\"fields\":[");
    for (size_t i = 0; i < n; i++) {
        const struct pg_node *node = fields[i].node;

        wr_str(w, i > 0 ? ",{\"name\":\"" : "{\"name\":\"");
        wr_span(w, fields[i].avro_name);
        wr_str(w, "\",\"type\":");
        write_node(w, node);
        if (node->def.p != NULL || node->default_null) {
            wr_str(w, ",\"default\":");
            wr_span(w, node->def.p != NULL ? node->def : span_str("null"));
        }
        wr_u8(w, '}');
    }
    if (extra != NULL) {
        wr_str(w, n > 0 ? ",{\"name\":\"_flow_extra\",\"type\":{\"type\":\"map\",\"values\":"
                        : "{\"name\":\"_flow_extra\",\"type\":{\"type\":\"map\",\"values\":");
        write_node(w, extra);
        wr_str(w, "}}");
    }
    wr_str(w, "]}");
}
