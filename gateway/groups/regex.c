/*
 * See regex.h. PCRE2 knows more than RE2, so the pattern is first read by a small checker that
 * refuses what RE2 does not have: then a pattern means the same here and at a real broker. Pure.
 */
#include "gateway/groups/regex.h"

#include <stdio.h>

#include "base/mem.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* A topic name has at most 249 bytes; an honest pattern needs some hundred steps for it (2 us). */
#define FEW_STEPS   1000
#define MATCH_STEPS 20000
#define MATCH_DEPTH 1000
#define MATCH_KIB   512
#define NESTING     64

struct group_regex {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *limits;
};

/* --- the language --- */

struct scan {
    struct span s;
    size_t at;
    const char *fault; /* static; NULL: none so far */
};

static int peek(const struct scan *sc)
{
    return sc->at < sc->s.n ? sc->s.p[sc->at] : -1;
}

static bool one_of(int c, const char *set)
{
    return c > 0 && strchr(set, c) != NULL;
}

static bool is_alnum(int c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Behind a backslash. Letters that RE2 knows; any punctuation stands for itself. */
static void scan_escape(struct scan *sc, bool in_class)
{
    int c = peek(sc);

    sc->at++;
    if (c < 0)
        sc->fault = "trailing backslash";
    else if (c >= '1' && c <= '9')
        sc->fault = "back references are not supported";
    else if (is_alnum(c) && !one_of(c, in_class ? "0aftnrvxpPdDsSwW" : "0aftnrvxpPdDsSwWAbBzQE"))
        sc->fault = "unknown escape";
    if (c != 'Q' || in_class)
        return;
    while (sc->at + 1 < sc->s.n && memcmp(sc->s.p + sc->at, "\\E", 2) != 0)
        sc->at++;
    sc->at = sc->at + 1 < sc->s.n ? sc->at + 2 : sc->s.n;
}

/* Behind "[" in a class, at ":": a class by name, if it is closed. */
static void scan_posix_class(struct scan *sc)
{
    for (size_t i = sc->at + 1; i + 1 < sc->s.n; i++) {
        if (memcmp(sc->s.p + i, ":]", 2) == 0) {
            sc->at = i + 2;
            return;
        }
    }
}

static void scan_class(struct scan *sc)
{
    bool first = true;

    if (peek(sc) == '^')
        sc->at++;
    for (; sc->fault == NULL; first = false) {
        int c = peek(sc);
        if (c < 0)
            return; /* PCRE2 says what is missing */
        sc->at++;
        if (c == ']' && !first)
            return;
        if (c == '\\')
            scan_escape(sc, true);
        else if (c == '[' && peek(sc) == ':')
            scan_posix_class(sc);
    }
}

/* Behind "(": plain, (?:, (?P<name>, (?<name>, (?flags), (?flags: are all there is. */
static void scan_group(struct scan *sc)
{
    if (peek(sc) == '*') {
        sc->fault = "verbs are not supported";
        return;
    }
    if (peek(sc) != '?')
        return;
    sc->at++;
    if (peek(sc) == 'P')
        sc->at++;
    if (peek(sc) == '<') {
        sc->at++;
        if (one_of(peek(sc), "=!"))
            sc->fault = "look-around is not supported";
        return;
    }
    while (one_of(peek(sc), "imsU-"))
        sc->at++;
    if (!one_of(peek(sc), ":)"))
        sc->fault = "this kind of group is not supported";
}

/* Reads one quantifier, if there is one: "*", "+", "?" or "{n,m}", lazy or not. */
static void scan_quantifier(struct scan *sc)
{
    int c = peek(sc);

    if (c == '{') {
        size_t i = sc->at + 1;
        while (i < sc->s.n && ((sc->s.p[i] >= '0' && sc->s.p[i] <= '9') || sc->s.p[i] == ','))
            i++;
        if (i == sc->at + 1 || i >= sc->s.n || sc->s.p[i] != '}' || sc->s.p[sc->at + 1] == ',')
            return; /* a brace of its own */
        sc->at = i + 1;
    } else if (one_of(c, "*+?")) {
        sc->at++;
    } else {
        return;
    }
    if (peek(sc) == '?')
        sc->at++;
    if (one_of(peek(sc), "*+?"))
        sc->fault = "nested quantifier";
}

static void scan_pattern(struct scan *sc)
{
    while (sc->fault == NULL && sc->at < sc->s.n) {
        switch (sc->s.p[sc->at++]) {
        case '\\':
            scan_escape(sc, false);
            break;
        case '[':
            scan_class(sc);
            break;
        case '(':
            scan_group(sc);
            continue; /* no quantifier may follow; PCRE2 says so */
        default:
            break;
        }
        if (sc->fault == NULL)
            scan_quantifier(sc);
    }
}

/* --- the engine --- */

static int compile(struct span pattern, struct group_regex *re, char *why, size_t why_bytes)
{
    pcre2_compile_context *ctx;
    int error;
    PCRE2_SIZE at;
    PCRE2_UCHAR text[128];

    if ((ctx = pcre2_compile_context_create(NULL)) == NULL)
        return E_NOMEM;
    pcre2_set_parens_nest_limit(ctx, NESTING);
    re->code = pcre2_compile(pattern.p, pattern.n,
                             PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_UTF | PCRE2_DOLLAR_ENDONLY |
                                 PCRE2_NEVER_BACKSLASH_C,
                             &error, &at, ctx);
    pcre2_compile_context_free(ctx);
    if (re->code != NULL)
        return 0;
    if (error == PCRE2_ERROR_NOMEMORY || error == PCRE2_ERROR_HEAP_FAILED)
        return E_NOMEM;
    if (pcre2_get_error_message(error, text, sizeof text) < 0)
        text[0] = '\0';
    snprintf(why, why_bytes, "%s at byte %zu", (const char *)text, (size_t)at);
    return E_SYNTAX;
}

int group_regex_new(struct span pattern, struct group_regex **out, char *why, size_t why_bytes)
{
    struct scan sc = {.s = pattern};
    struct group_regex *re;
    int err;

    *out = NULL;
    if (pattern.n > GROUP_REGEX_MAX) {
        snprintf(why, why_bytes, "longer than %zu bytes", GROUP_REGEX_MAX);
        return E_LIMIT;
    }
    scan_pattern(&sc);
    if (sc.fault != NULL) {
        snprintf(why, why_bytes, "%s at byte %zu", sc.fault, sc.at);
        return E_SYNTAX;
    }
    if ((re = mem_zalloc(sizeof *re)) == NULL)
        return E_NOMEM;
    if ((err = compile(pattern, re, why, why_bytes)) < 0)
        goto out;
    err = E_NOMEM;
    if ((re->data = pcre2_match_data_create(1, NULL)) == NULL)
        goto out;
    if ((re->limits = pcre2_match_context_create(NULL)) == NULL)
        goto out;
    pcre2_set_depth_limit(re->limits, MATCH_DEPTH);
    pcre2_set_heap_limit(re->limits, MATCH_KIB);
    *out = re;
    return 0;
out:
    group_regex_free(re);
    return err;
}

static int match(const struct group_regex *re, struct span name, uint32_t steps)
{
    pcre2_set_match_limit(re->limits, steps);
    return pcre2_match(re->code, name.p, name.n, 0, 0, re->data, re->limits);
}

int group_regex_match(const struct group_regex *re, struct span name, unsigned *costly)
{
    int n = match(re, name, FEW_STEPS);

    if (n == PCRE2_ERROR_MATCHLIMIT && *costly > 0) {
        --*costly;
        n = match(re, name, MATCH_STEPS);
    }
    switch (n) {
    case PCRE2_ERROR_MATCHLIMIT:
    case PCRE2_ERROR_DEPTHLIMIT:
    case PCRE2_ERROR_HEAPLIMIT:
        return E_LIMIT;
    case PCRE2_ERROR_NOMEMORY:
        return E_NOMEM;
    default:
        return n >= 0; /* 0: more groups than there is room for, which is a match too */
    }
}

void group_regex_free(struct group_regex *re)
{
    if (re == NULL)
        return;
    pcre2_match_context_free(re->limits);
    pcre2_match_data_free(re->data);
    pcre2_code_free(re->code);
    mem_free(re);
}
