/* Texts that others chose, on their way to a person's terminal. */
#pragma once

#include <jansson.h>

/* Replaces the control characters (C0, DEL, C1) of all texts below root by '?': they must neither
 * steer a terminal nor forge lines of a table. What memory runs out for is left out ("?"). */
void plain_texts(json_t *root);
