/* Private to avro_model.c and avro_same.c. */
#pragma once

#include "base/arena.h"
#include "schema/avro_model.h"

struct sc_avro_model {
    struct arena arena; /* all of it */
    const struct sc_avro_type *root;
    uint32_t types_n;
};
