/* HTML of the status page, pure. */
#pragma once

#include "base/writer.h"

/* Text, with what means something in HTML escaped. */
void html_text(struct writer *w, const char *s);
