/* SPDX-License-Identifier: BSD-3-Clause */
/* The parser of PMI_process_mapping. Blocks are read again when ranks are left over, so nothing is allocated. */
#include "libmrmpi/launch/mapping.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

struct block {
    uint32_t first, nodes, ranks;
};

static const char *skip_spaces(const char *p)
{
    while (isspace((unsigned char)*p))
        p++;
    return p;
}

/* Takes a character, with blanks around it. */
static bool take_char(const char **p, char c)
{
    const char *at = skip_spaces(*p);

    if (*at != c)
        return false;
    *p = skip_spaces(at + 1);
    return true;
}

static bool take_digits(const char **p, uint32_t *out)
{
    uint64_t n = 0;

    if (!isdigit((unsigned char)**p))
        return false;
    for (; isdigit((unsigned char)**p); (*p)++) {
        n = n * 10 + (**p - '0');
        if (n > INT_MAX)
            return false;
    }
    *out = (uint32_t)n;
    return true;
}

/* A block that places no rank would let the reader run for ever. */
static bool take_map_block(const char **p, struct block *b)
{
    return take_char(p, '(') && take_digits(p, &b->first) && take_char(p, ',') && take_digits(p, &b->nodes) &&
           take_char(p, ',') && take_digits(p, &b->ranks) && take_char(p, ')') && b->nodes && b->ranks;
}

/* Where the first block begins, NULL if the text is not well formed from its beginning to its end. */
static const char *find_blocks(const char *text)
{
    static const char word[] = "vector";
    const char *p = text;
    struct block b;

    if (!take_char(&p, '(') || strncmp(p, word, sizeof(word) - 1))
        return NULL;
    p += sizeof(word) - 1;
    if (!take_char(&p, ','))
        return NULL;
    const char *blocks = p;
    do
        if (!take_map_block(&p, &b))
            return NULL;
    while (take_char(&p, ','));
    return take_char(&p, ')') && !*p ? blocks : NULL;
}

static int place_block(const struct block *b, int next, int size, uint32_t *node_of)
{
    for (uint32_t n = 0; n < b->nodes && next < size; n++)
        for (uint32_t i = 0; i < b->ranks && next < size; i++)
            node_of[next++] = b->first + n;
    return next;
}

int mr_mapping_parse(const char *text, int size, uint32_t *node_of)
{
    const char *blocks = find_blocks(text);
    struct block b;

    if (!blocks)
        return -EPROTO;
    for (int next = 0; next < size;) {
        const char *p = blocks;
        do {
            take_map_block(&p, &b);
            next = place_block(&b, next, size, node_of);
        } while (next < size && take_char(&p, ','));
    }
    return 0;
}
