/* SPDX-License-Identifier: BSD-3-Clause */
/* Text that grows as it is written: the answers to questions. Zero is an empty one; text_free makes it so again. */
#ifndef SIMFAB_TEXT_H
#define SIMFAB_TEXT_H

#include <stddef.h>

struct text {
    char *buf; /* ends in a zero byte once anything was said */
    size_t used, cap;
};

void text_say(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Room for so many more bytes, behind buf + used. */
char *text_room(struct text *t, size_t bytes);
void text_free(struct text *t);

#endif
