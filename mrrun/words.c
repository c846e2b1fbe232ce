/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/words.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *at; /* the next character */
    int line;
    char *out; /* where the next character of a word goes */
    bool open; /* a word has begun */
};

static char *separator(void)
{
    static char colon[] = ":";

    return colon;
}

static void put_char(struct reader *r, char c)
{
    *r->out++ = c;
    r->open = true;
}

/* After the opening quote. False: the text ends first. */
static bool read_quoted(struct reader *r, char quote)
{
    r->open = true; /* "" is a word */
    for (; *r->at && *r->at != quote; r->at++) {
        if (quote == '"' && r->at[0] == '\\' && r->at[1] && strchr("\"\\$`", r->at[1]))
            r->at++;
        r->line += *r->at == '\n';
        put_char(r, *r->at);
    }
    if (!*r->at)
        return false;
    r->at++;
    return true;
}

/* After the backslash. */
static void read_escaped(struct reader *r)
{
    if (r->at[0] == '\r' && r->at[1] == '\n')
        r->at++;
    if (*r->at == '\n')
        r->line++;
    else if (*r->at)
        put_char(r, *r->at);
    r->at += *r->at != '\0';
}

/* Up to the end of the word; *word is NULL if the line ends first. */
static bool read_quoted_word(struct reader *r, char **word)
{
    char *start = r->out;

    r->open = false;
    for (;;) {
        char c = *r->at;

        if (!c || c == '\n' || (isspace((unsigned char)c) && r->open))
            break;
        if (c == '#' && !r->open) {
            r->at += strcspn(r->at, "\n");
            break;
        }
        r->at++;
        if (c == '\\')
            read_escaped(r);
        else if ((c == '\'' || c == '"') && !read_quoted(r, c))
            return false;
        else if (c != '\'' && c != '"' && !isspace((unsigned char)c))
            put_char(r, c);
    }
    *word = r->open ? start : NULL;
    if (r->open)
        *r->out++ = '\0';
    return true;
}

static int refuse_line(struct words *w, const char *file, int line, const char *fault, char *why, size_t cap)
{
    snprintf(why, cap, "%s:%d: %s", file, line, fault);
    words_clear(w);
    return -1;
}

int words_read(struct words *w, const char *text, const char *file, char *why, size_t cap)
{
    size_t len = strlen(text);
    struct reader r = {.at = text, .line = 1};
    bool new_line = false;
    char *word;

    /* Each word has at least one character, and its end replaces its separator; ':' at most once a line. */
    *w = (struct words){.text = malloc(2 * len + 2), .word = calloc(2 * len + 2, sizeof(char *))};
    if (!w->text || !w->word)
        return refuse_line(w, file, 1, "out of memory", why, cap);
    r.out = w->text;
    for (;;) {
        int line = r.line;

        if (!read_quoted_word(&r, &word))
            return refuse_line(w, file, line, "a quote is not closed", why, cap);
        if (word) {
            if (new_line && w->count)
                w->word[w->count++] = separator();
            w->word[w->count++] = word;
            new_line = false;
        } else if (*r.at) {
            r.at++;
            r.line++;
            new_line = true;
        } else {
            return w->count ? 0 : refuse_line(w, file, line, "the file has no command line", why, cap);
        }
    }
}

void words_clear(struct words *w)
{
    free(w->text);
    free(w->word);
    *w = (struct words){0};
}
