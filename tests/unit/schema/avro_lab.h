/*
 * What the tests of Avro collections share: one compiled collection, what documents become in it as
 * avro-c reads it (which knows nothing of how it was made), and the errors of those that do not
 * fit.
 */
#pragma once

#include "schema/transcode.h"

extern struct sc_avro *lab_av; /* of the last compilation */
extern struct sc_scratch *lab_scratch;
extern struct sc_selection lab_sel; /* reset before each test */
extern struct sc_schema_error lab_fault;

int lab_try_compile(const char *schema, const char *key, enum sc_deletions deletions, bool strict);
void lab_compile(const char *schema, const char *key, enum sc_deletions deletions);
struct sc_avro_record lab_encode(struct span doc);
void lab_value_is(const char *doc, const char *want);
void lab_key_is(const char *doc, const char *want);
void lab_misfits(const char *doc, int code, const char *pointer);
void lab_schema_has(const char *part);
bool lab_noted(const char *field);
int lab_setup(void **state);
int lab_teardown(void **state);

#define OBJECT(props, more) "{\"type\":\"object\",\"properties\":{" props "}" more "}"
#define ID                  "\"id\":{\"type\":\"string\"}"
#define NEEDS_ID            ",\"required\":[\"id\"]"

#define T(f) cmocka_unit_test_setup_teardown(f, lab_setup, lab_teardown)
