/*
 * Media types of the registry: what an answer is called (Accept), and which bodies are read
 * (Content-Type). RFC 9110, 12.5.1 and 8.3. Pure.
 */
#pragma once

#include <stdbool.h>

#define REGISTRY_JSON "application/vnd.schemaregistry.v1+json"

/* accept: the header's value; NULL or "": anything. Static text; NULL: none of ours will do (406).
 * Of equal ones the first of v1+json, +json, application/json. */
const char *registry_accepts(const char *accept);
/* content_type: NULL: whatever it is. application/octet-stream is read too. */
bool registry_reads(const char *content_type);
