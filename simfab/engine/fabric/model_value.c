/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of a model file, from text to field: see model_value.h. */
#include "simfab/engine/fabric/model_value.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/fabric/model.h"
#include "simfab/engine/fabric/netlist.h"

/* For keys with a choice of words: the words, in the order of their fields' numbers. */
static const char *const words[] = {
    [KEY_BOOL] = "false true", [KEY_QUEUES] = "lane output", /* enum switch_queues */
};

/* "one two three" as "one, two or three" */
static void list_choices(const char *choices, char *text, size_t size)
{
    size_t n = 0;

    for (const char *at = choices; *at && n + 1 < size;) {
        size_t len = strcspn(at, " ");
        const char *next = at + len + strspn(at + len, " ");
        const char *glue = !*next ? "" : strchr(next, ' ') ? ", " : " or ";
        int k = snprintf(text + n, size - n, "%.*s%s", (int)len, at, glue);

        if (k < 0)
            break;
        n += (size_t)k;
        at = next;
    }
}

void model_value_wanted(const struct model_key *k, char *text, size_t size)
{
    const char *s = "a number";

    switch (k->type) {
    case KEY_BOOL:
        s = "true or false";
        break;
    case KEY_WIDTH:
        s = "1, 2, 4, 8 or 12";
        break;
    case KEY_SPEED:
        s = "SDR, DDR, QDR, FDR10, FDR, EDR, HDR or NDR";
        break;
    case KEY_MTU:
        s = "256, 512, 1024, 2048 or 4096";
        break;
    case KEY_VLS:
        s = "1, 2, 4, 8 or 15";
        break;
    case KEY_QUEUES:
        *text = '\0';
        list_choices(words[k->type], text, size);
        return;
    case KEY_U32:
    case KEY_U64:
        if (k->scale == 1)
            s = "a whole number";
        break;
    default:
        break;
    }
    snprintf(text, size, "%s", s);
}

static bool parse_plain(const char *text, double *out)
{
    char *end;

    errno = 0;
    *out = strtod(text, &end);
    return *text && *text != ' ' && !*end && !errno && isfinite(*out);
}

/* The code 1..5 of a value in a list; 0: not in the list. */
static uint8_t code_of(double v, const unsigned list[5])
{
    for (uint8_t i = 0; i < 5; i++)
        if (v == list[i])
            return i + 1;
    return 0;
}

static void store(char *at, const struct model_key *k, double v)
{
    uint64_t u = (uint64_t)llround(v);

    if (k->type == KEY_REAL)
        memcpy(at, &v, sizeof v);
    else if (k->size == 8)
        memcpy(at, &u, 8);
    else if (k->size == 4)
        memcpy(at, &(uint32_t){(uint32_t)u}, 4);
    else
        *at = (char)u;
}

/* The number of the word among the choices, -1 if it is none of them. */
static int choice_of(const char *text, const char *choices)
{
    size_t len = strlen(text);
    int n = 0;

    for (const char *at = choices; *at; n++) {
        size_t word = strcspn(at, " ");

        if (len == word && !strncmp(text, at, len))
            return n;
        at += word + strspn(at + word, " ");
    }
    return -1;
}

static enum model_value_error set_word(char *at, const struct model_key *k, const char *text)
{
    struct link_rate rate = {0};
    int choice;

    switch (k->type) {
    case KEY_TEXT:
        if (strlen(text) >= k->size)
            return VALUE_OUT_OF_RANGE;
        strcpy(at, text);
        return VALUE_OK;
    case KEY_SPEED:
        if (!link_speed_parse(text, strlen(text), &rate))
            return VALUE_WRONG;
        at[0] = (char)rate.speed;
        at[1] = (char)rate.ext_speed;
        at[2] = (char)rate.fdr10;
        return VALUE_OK;
    default:
        choice = choice_of(text, words[k->type]);
        if (choice < 0)
            return VALUE_WRONG;
        store(at, k, choice);
        return VALUE_OK;
    }
}

static enum model_value_error set_number(char *at, const struct model_key *k, double v)
{
    static const unsigned mtus[5] = {256, 512, 1024, 2048, 4096}, vls[5] = {1, 2, 4, 8, 15};
    struct link_rate rate = {0};
    uint8_t code;

    switch (k->type) {
    case KEY_WIDTH:
        if (v < 0 || v > 12 || v != floor(v) || !link_width_parse((unsigned)v, &rate))
            return VALUE_WRONG;
        *at = (char)rate.width;
        return VALUE_OK;
    case KEY_MTU:
    case KEY_VLS:
        code = code_of(v, k->type == KEY_MTU ? mtus : vls);
        if (!code)
            return VALUE_WRONG;
        store(at, k, code);
        return VALUE_OK;
    default:
        if (v < k->min || v > k->max)
            return VALUE_OUT_OF_RANGE;
        if (k->type != KEY_REAL && k->scale == 1 && v != floor(v))
            return VALUE_WRONG;
        store(at, k, k->type == KEY_REAL ? v : v * k->scale);
        return VALUE_OK;
    }
}

enum model_value_error model_value_set(void *base, const struct model_key *k, const char *text)
{
    char *at = (char *)base + k->offset;
    double v = 0;

    if (k->type == KEY_TEXT || k->type == KEY_SPEED || k->type == KEY_BOOL || k->type == KEY_QUEUES)
        return set_word(at, k, text);
    if (!parse_plain(text, &v))
        return VALUE_WRONG;
    return set_number(at, k, v);
}
