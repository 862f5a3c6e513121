/*
 * Random collections and documents for avro_random_test: what each value must be is drawn together
 * with its JSON text, by the rules of docs/avro.md alone; nothing of schema/ is asked. All of it
 * lives until draw_end.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/writer.h"

#define DRAW_FIELDS_MAX 6
#define DRAW_TEXT_MAX   ((size_t)1 << 20)

enum kind {
    K_LONG,
    K_DOUBLE,
    K_STRING,
    K_BOOL,
    K_DATE,
    K_TIME,
    K_UUID,
    K_DURATION,
    K_TEXT_NUMBER, /* string or integer, as text */
    K_NUMBER_TEXT, /* string or number, as double */
    K_ARRAY,
    K_MAP,
    K_RECORD,
    K_MIXED, /* string or boolean: JSON text */
    K_ANY,
    K_KINDS
};

struct type {
    enum kind kind;
    bool nullable;
    bool open;        /* K_RECORD: undeclared members are kept */
    bool has_default; /* K_LONG: 7 */
    bool required;
    char name[8]; /* as a member */
    size_t n;     /* members */
    struct type *parts[DRAW_FIELDS_MAX];
};

struct want {
    enum { W_NULL, W_LONG, W_DOUBLE, W_BYTES, W_BOOL, W_LIST, W_MAP, W_RECORD, W_JSON } kind;
    int64_t l;
    double d;
    struct span bytes; /* W_BYTES: string or fixed; W_JSON: the text */
    struct span key;   /* in a map or record */
    struct want *first, *last, *next;
};

/* A drawn value: how the document spells it, the same as valid UTF-8, and what it becomes. */
struct drawn {
    struct span json, raw;
    struct want *want;
};

void draw_seed(uint64_t seed);
uint64_t draw_below(uint64_t n);
void draw_begin(void);
void draw_end(void);

/* A record whose first member is the key: a string or an integer that is always there. */
struct type *draw_collection(void);
struct span draw_schema(const struct type *t);
/* A document of it. Undeclared members of the document itself are dropped. */
struct drawn draw_document(const struct type *t);
/* White space wherever JSON allows it. */
struct span draw_spaced(struct span json);

struct want *want_of(int kind);
void want_add(struct want *to, struct span key, const struct want *w);
__attribute__((format(printf, 1, 2))) struct span draw_text(const char *format, ...);
