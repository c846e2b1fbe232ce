/* SPDX-License-Identifier: BSD-3-Clause */
/* Growing text, for answers. All zero is an empty text; text_free makes the text empty again. */
#ifndef SIMFAB_TEXT_H
#define SIMFAB_TEXT_H

#include <stddef.h>

struct text {
    char *buf; /* ends in a zero byte once anything was said */
    size_t used, cap;
};

void text_say(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Makes room for `bytes` more bytes, behind buf + used. */
char *text_room(struct text *t, size_t bytes);
void text_free(struct text *t);

#endif
