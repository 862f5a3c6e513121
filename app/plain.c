/* Makes texts harmless for a terminal: plain.h. */
#include "app/plain.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

#define DEL      0x7f
#define C1_LEAD  0xc2 /* U+0080 to U+009F are C2 80 to C2 9F */
#define C1_BELOW 0xa0

static void plain_text(json_t *s)
{
    size_t n = json_string_length(s), to = 0;
    const unsigned char *p = (const unsigned char *)json_string_value(s);
    char *out = mem_alloc(n + 1);

    for (size_t i = 0; out != NULL && i < n; i++) {
        bool c1 = p[i] == C1_LEAD && i + 1 < n && p[i + 1] < C1_BELOW;
        i += c1;
        out[to++] = c1 || p[i] < ' ' || p[i] == DEL ? '?' : (char)p[i];
    }
    if (out == NULL || json_string_setn_nocheck(s, out, to) < 0)
        (void)json_string_set_nocheck(s, "?");
    mem_free(out);
}

void plain_texts(json_t *root)
{
    const char *key;
    json_t *v;
    size_t i;

    if (json_is_string(root)) {
        plain_text(root);
    } else if (json_is_array(root)) {
        json_array_foreach(root, i, v)
        {
            plain_texts(v);
        }
    } else {
        json_object_foreach(root, key, v)
        {
            plain_texts(v);
        }
    }
}
