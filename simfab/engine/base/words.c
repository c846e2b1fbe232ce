/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of commands: see words.h. */
#include "simfab/engine/base/words.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/base/text.h"

bool words_split(const char *line, struct words *w, struct text *t)
{
    memset(w, 0, sizeof *w);
    while (*line) {
        size_t n = strcspn(line, "\n");

        if (w->n == WORDS_MAX) {
            text_say(t, "too many words: at most %d", WORDS_MAX);
            return false;
        }
        if (n >= WORD_MAX) {
            text_say(t, "\"%.20s...\" is too long: at most %d characters", line, WORD_MAX - 1);
            return false;
        }
        memcpy(w->word[w->n++], line, n);
        line += n + (line[n] == '\n');
    }
    return true;
}

const char *word_value(const char *word, const char *name)
{
    size_t n = strlen(name);

    return !strncmp(word, name, n) && word[n] == '=' ? word + n + 1 : NULL;
}

/* A number without a sign in front, in decimal. */
static bool number(const char *text, double *out, const char **rest)
{
    char *end;

    if ((*text < '0' || *text > '9') && *text != '.')
        return false;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        return false;
    errno = 0;
    *out = strtod(text, &end);
    *rest = end;
    return end != text && !errno && isfinite(*out);
}

bool word_real(const char *text, double min, double max, double *out)
{
    const char *rest;
    double v;

    if (!number(text, &v, &rest) || *rest || v < min || v > max)
        return false;
    *out = v;
    return true;
}

bool word_whole(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    double v;

    /* up to 2^53 a double tells every whole number from the next */
    if (!word_real(text, (double)min, (double)max, &v) || v != floor(v) || v > 9007199254740992.0)
        return false;
    *out = (uint64_t)v;
    return true;
}

bool word_time(const char *text, uint64_t *ps)
{
    static const struct {
        const char *name;
        double ps;
    } units[] = {{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}};
    const char *rest;
    double v;

    if (!number(text, &v, &rest))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(rest, units[i].name)) {
            v *= units[i].ps;
            if (v > 86400e12)
                return false;
            *ps = (uint64_t)llround(v);
            return true;
        }
    return false;
}
