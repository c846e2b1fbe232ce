/* SPDX-License-Identifier: BSD-3-Clause */
/* Growing text (text.h). */
#include "simfab/engine/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "simfab/engine/base/util.h"

char *text_room(struct text *t, size_t bytes)
{
    if (t->cap - t->used < bytes) {
        t->cap = t->cap * 2 > t->used + bytes ? t->cap * 2 : t->used + bytes;
        t->buf = xrealloc(t->buf, t->cap);
    }
    return t->buf + t->used;
}

void text_say(struct text *t, const char *fmt, ...)
{
    size_t room = 160;
    va_list ap;
    int n;

    for (;;) {
        char *at = text_room(t, room);

        va_start(ap, fmt);
        n = vsnprintf(at, t->cap - t->used, fmt, ap);
        va_end(ap);
        if (n < 0)
            return;
        if ((size_t)n < t->cap - t->used)
            break;
        room = (size_t)n + 1;
    }
    t->used += (size_t)n;
}

void text_free(struct text *t)
{
    free(t->buf);
    *t = (struct text){0};
}
