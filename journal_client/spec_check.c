/*
 * Gazette's rules for names and labels, so that a journal made here can be handed to a broker.
 * Letters beyond ASCII are allowed there by Unicode class; here any well-formed code point from
 * U+00C0 on is, outside the blocks of punctuation and spaces: the rare rest is refused by the
 * broker itself.
 */
#include <string.h>

#include "journal_client/spec.h"

#define NAME_MIN           4
#define NAME_MAX           512
#define LABEL_NAME_MIN     2
#define LABEL_NAME_MAX     64
#define LABEL_VALUE_MAX    1024
#define FRAGMENT_BYTES_MAX (INT64_C(16) << 30)

/* Length of the letter's UTF-8 form at p, 0 when there is none. */
static size_t wide_letter(const uint8_t *p, size_t left)
{
    uint32_t c;
    size_t n;

    if (p[0] >= 0xc3 && p[0] <= 0xdf) {
        n = 2;
        c = p[0] & 0x1fU;
    } else if (p[0] >= 0xe0 && p[0] <= 0xef) {
        n = 3;
        c = p[0] & 0x0fU;
    } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        n = 4;
        c = p[0] & 0x07U;
    } else {
        return 0;
    }
    if (left < n)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3fU);
    }
    if ((n == 3 && c < 0x800) || (n == 4 && (c < 0x10000 || c > 0x10ffff)))
        return 0;
    bool refused = (c >= 0xd800 && c <= 0xf8ff) || (c >= 0x2000 && c <= 0x2bff) ||
                   (c >= 0x3000 && c <= 0x3004) || (c >= 0xfe00 && c <= 0xfe6f) ||
                   (c >= 0xfff0 && c <= 0xffff) || c == 0xd7 || c == 0xf7 || c == 0xfeff;
    return refused ? 0 : n;
}

static bool alphabet_ok(struct span s, const char *symbols)
{
    for (size_t i = 0; i < s.n;) {
        uint8_t c = s.p[i];
        size_t n = 1;
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     (c != 0 && c < 0x80 && strchr(symbols, c) != NULL);
        if (!plain && (n = wide_letter(s.p + i, s.n - i)) == 0)
            return false;
        i += n;
    }
    return true;
}

/* No empty segment, no "." or "..", no slash at either end. */
static bool path_clean(struct span s)
{
    size_t begin = 0;

    for (size_t i = 0; i <= s.n; i++) {
        if (i < s.n && s.p[i] != '/')
            continue;
        struct span seg = span_of(s.p + begin, i - begin);
        if (seg.n == 0 || span_eq_str(seg, ".") || span_eq_str(seg, ".."))
            return false;
        begin = i + 1;
    }
    return true;
}

static int refuse(const char **why, const char *text)
{
    if (why != NULL)
        *why = text;
    return E_INVALID;
}

int jc_name_check(struct span name, const char **why)
{
    if (name.n < NAME_MIN || name.n > NAME_MAX)
        return refuse(why, "a journal name has 4 to 512 bytes");
    if (!alphabet_ok(name, "-_+/.=%"))
        return refuse(why, "a journal name holds letters, digits and -_+/.=% only");
    if (!path_clean(name))
        return refuse(why, "a journal name is a clean relative path");
    return 0;
}

static int label_check(const struct jc_label *l, const char **why)
{
    struct span name = span_str(l->name);
    struct span value = span_str(l->value);

    if (name.n < LABEL_NAME_MIN || name.n > LABEL_NAME_MAX || !alphabet_ok(name, "-_+/."))
        return refuse(why, "a label name has 2 to 64 letters, digits and -_+/.");
    if (span_eq_str(name, "name") || span_eq_str(name, "prefix"))
        return refuse(why, "labels may not be called name or prefix");
    if (l->value == NULL || value.n > LABEL_VALUE_MAX || !alphabet_ok(value, "-_+/.=%"))
        return refuse(why, "a label value has at most 1024 letters, digits and -_+/.=%");
    return 0;
}

int jc_spec_check(const struct jc_spec *spec, const char **why)
{
    int err = jc_name_check(span_str(spec->name), why);

    if (err < 0)
        return err;
    for (size_t i = 0; i < spec->labels_n; i++) {
        const struct jc_label *l = &spec->labels[i];
        if ((err = label_check(l, why)) < 0)
            return err;
        if (i == 0)
            continue;
        int c = strcmp(l[-1].name, l->name);
        if (c > 0 || (c == 0 && strcmp(l[-1].value, l->value) >= 0))
            return refuse(why, "labels are sorted by name and value, without repeats");
        /* "" sorts first: it can only be the previous one */
        if (c == 0 && l[-1].value[0] == '\0')
            return refuse(why, "an empty label value stands alone");
    }
    if (spec->fragment_bytes < 0 || spec->fragment_bytes > FRAGMENT_BYTES_MAX)
        return refuse(why, "fragment_bytes is 0 to 16 GiB");
    if (spec->fragment_age_ms < 0 || spec->retention_ms < 0 || spec->retention_bytes < 0)
        return refuse(why, "ages and sizes are not negative");
    return 0;
}
