/* See html.h. */
#include "gateway/html.h"

void html_text(struct writer *w, const char *s)
{
    for (; *s != '\0'; s++) {
        switch (*s) {
        case '<':
            wr_str(w, "&lt;");
            break;
        case '>':
            wr_str(w, "&gt;");
            break;
        case '&':
            wr_str(w, "&amp;");
            break;
        case '"':
            wr_str(w, "&quot;");
            break;
        case '\'':
            wr_str(w, "&#39;");
            break;
        default:
            wr_u8(w, (uint8_t)*s);
        }
    }
}
