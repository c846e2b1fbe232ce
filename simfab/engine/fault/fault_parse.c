/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of `simfab fault`, to a struct and back: see fault.h. */
#include <stdio.h>
#include <string.h>

#include "simfab/engine/base/text.h"
#include "simfab/engine/base/words.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fault/fault.h"

/* Widths and speeds denied to a link limited to the named width or speed. */
static const struct {
    const char *name;
    uint8_t denied;
} widths[] = {{"1", 0xfe}, {"2", 0xee}, {"4", 0xec}, {"8", 0xe8}, {"12", 0}};

static const struct {
    const char *name;
    uint8_t denied, ext_denied;
} speeds[] = {{"SDR", 0xfe, 0xff}, {"DDR", 0xfc, 0xff}, {"QDR", 0xf8, 0xff}, {"FDR10", 0xf8 & ~FABRIC_FDR10, 0xff},
              {"FDR", 0, 0xfe},    {"EDR", 0, 0xfc},    {"HDR", 0, 0xf8},    {"NDR", 0, 0}};

#define DROP_MAX 4000000000u /* the highest number of a packet to be dropped */

#define COUNT(a) (sizeof(a) / sizeof *(a))

const char *fault_width_name(uint8_t denied)
{
    for (size_t i = 0; i < COUNT(widths); i++)
        if (denied && widths[i].denied == denied)
            return widths[i].name;
    return NULL;
}

const char *fault_speed_name(uint8_t denied, uint8_t ext_denied)
{
    for (size_t i = 0; i < COUNT(speeds); i++)
        if (ext_denied && speeds[i].denied == denied && speeds[i].ext_denied == ext_denied)
            return speeds[i].name;
    return NULL;
}

static bool parse_width(const char *v, struct fault_cmd *c)
{
    for (size_t i = 0; i < COUNT(widths); i++)
        if (!strcmp(v, widths[i].name)) {
            c->width_denied = widths[i].denied;
            return true;
        }
    return false;
}

static bool parse_speed(const char *v, struct fault_cmd *c)
{
    for (size_t i = 0; i < COUNT(speeds); i++)
        if (!strcmp(v, speeds[i].name)) {
            c->speed_denied = speeds[i].denied;
            c->ext_speed_denied = speeds[i].ext_denied;
            return true;
        }
    return false;
}

/* Numbers of packets, "3,4,9", ascending, so they happen in this order. "0": no packets. */
static bool parse_drops(const char *v, uint32_t drop[FAULT_DROPS_MAX])
{
    char number[WORD_MAX];
    uint64_t n = 0;

    if (!strcmp(v, "0"))
        return true;
    for (unsigned i = 0; i < FAULT_DROPS_MAX; i++) {
        size_t len = strcspn(v, ",");

        memcpy(number, v, len);
        number[len] = 0;
        if (!word_whole(number, n + 1, DROP_MAX, &n))
            return false;
        drop[i] = (uint32_t)n;
        if (!v[len])
            return true;
        v += len + 1;
    }
    return false;
}

#define ON_LINK 1u
#define ON_NODE 2u
#define ON_HOST 4u
#define ON_ALL  7u

/* Words without a value, and their possible targets. */
static const struct {
    const char *word;
    unsigned on;
    uint32_t bit;
} plain[] = {
    {"up", ON_LINK, FAULT_UP},
    {"down", ON_LINK, FAULT_DOWN},
    {"revive", ON_NODE | ON_HOST, FAULT_UP},
    {"die", ON_NODE | ON_HOST, FAULT_DOWN},
    {"nowait", ON_ALL, FAULT_NOWAIT},
};

enum value_kind { PROBABILITY, WIDTH, SPEED, ON_OFF, FACTOR, TIME, DROPS };

static const struct {
    const char *name;
    unsigned on;
    uint32_t bit;
    enum value_kind kind;
    size_t offset; /* of the field; not for WIDTH, SPEED, ON_OFF and DROPS */
} values[] = {
    {"loss", ON_LINK, FAULT_LOSS, PROBABILITY, offsetof(struct fault_cmd, loss)},
    {"loss_out", ON_LINK, FAULT_LOSS_OUT, PROBABILITY, offsetof(struct fault_cmd, loss_out)},
    {"corrupt", ON_LINK, FAULT_CORRUPT, PROBABILITY, offsetof(struct fault_cmd, corrupt)},
    {"overrun", ON_LINK, FAULT_OVERRUN, PROBABILITY, offsetof(struct fault_cmd, overrun)},
    {"drop", ON_LINK, FAULT_DROP, DROPS, 0},
    {"fc", ON_LINK, FAULT_FC, ON_OFF, 0},
    {"width", ON_LINK, FAULT_WIDTH, WIDTH, 0},
    {"speed", ON_LINK, FAULT_SPEED, SPEED, 0},
    {"slow", ON_HOST, FAULT_SLOW, FACTOR, offsetof(struct fault_cmd, slow)},
    {"at", ON_ALL, FAULT_AT, TIME, offsetof(struct fault_cmd, when_ps)},
    {"after", ON_ALL, FAULT_AFTER, TIME, offsetof(struct fault_cmd, when_ps)},
    {"for", ON_ALL, FAULT_FOR, TIME, offsetof(struct fault_cmd, for_ps)},
};

static const char *const wanted[] = {
    [PROBABILITY] = "a probability from 0 to 1",
    [WIDTH] = "1, 2, 4, 8 or 12",
    [SPEED] = "SDR, DDR, QDR, FDR10, FDR, EDR, HDR or NDR",
    [ON_OFF] = "on or off",
    [FACTOR] = "a number from 1 to 1000",
    [TIME] = "a time such as 10ms (ps, ns, us, ms, s; at most a day)",
    [DROPS] = "numbers of packets such as 1,4,5: from 1, ascending, at most 8",
};

static const char *const targets[] = {"link", "node", "host"};
static const char *const settings_of[] = {
    "up, down, loss=, loss_out=, corrupt=, overrun=, drop=, fc=, width=, speed=", "die, revive", "die, revive, slow="};

static bool parse_fault_value(const char *v, enum value_kind kind, size_t offset, struct fault_cmd *c)
{
    void *field = (char *)c + offset;

    switch (kind) {
    case PROBABILITY:
        return word_real(v, 0, 1, field);
    case WIDTH:
        return parse_width(v, c);
    case SPEED:
        return parse_speed(v, c);
    case ON_OFF:
        c->fc_off = !strcmp(v, "off");
        return c->fc_off || !strcmp(v, "on");
    case FACTOR:
        return word_real(v, 1, 1000, field);
    case TIME:
        return word_time(v, field);
    case DROPS:
        return parse_drops(v, c->drop);
    }
    return false;
}

static bool refuse_word(const struct fault_cmd *c, const char *word, struct text *t)
{
    text_say(t, "\"%s\" is nothing that can be said of a %s; there are: %s, at=, after=, for=, nowait", word,
             targets[c->target], settings_of[c->target]);
    return false;
}

static bool parse_fault_setting(const char *word, struct fault_cmd *c, struct text *t)
{
    unsigned on = 1u << c->target;
    const char *v;

    for (size_t i = 0; i < COUNT(plain); i++)
        if (!strcmp(word, plain[i].word) && (plain[i].on & on)) {
            c->has |= plain[i].bit;
            return true;
        }
    for (size_t i = 0; i < COUNT(values); i++) {
        if (!(v = word_value(word, values[i].name)) || !(values[i].on & on))
            continue;
        if (c->has & values[i].bit) {
            text_say(t, "%s= is given twice", values[i].name);
            return false;
        }
        c->has |= values[i].bit;
        if (parse_fault_value(v, values[i].kind, values[i].offset, c))
            return true;
        text_say(t, "%s: \"%s\" is not %s", values[i].name, v, wanted[values[i].kind]);
        return false;
    }
    return refuse_word(c, word, t);
}

/* Checks for contradicting or missing settings. */
static bool makes_sense(const struct fault_cmd *c, struct text *t)
{
    const uint32_t effect = ~(uint32_t)(FAULT_AT | FAULT_AFTER | FAULT_FOR | FAULT_NOWAIT);

    if (!(c->has & effect)) {
        text_say(t, "what shall happen to the %s? Say one or more of: %s", targets[c->target], settings_of[c->target]);
        return false;
    }
    if ((c->has & FAULT_UP) && (c->has & FAULT_DOWN)) {
        text_say(t, "both up and down: use for=TIME to have it come back");
        return false;
    }
    if ((c->has & FAULT_UP) && (c->has & FAULT_FOR)) {
        text_say(t, "for= says how long a fault lasts: it does not go with %s",
                 c->target == FAULT_LINK ? "up" : "revive");
        return false;
    }
    if ((c->has & FAULT_AT) && (c->has & FAULT_AFTER)) {
        text_say(t, "at= is a time of the fabric, after= one from now on: not both");
        return false;
    }
    return true;
}

static bool parse_fault_port(const char *word, struct fault_cmd *c, bool *is_port)
{
    uint64_t port = 0;

    *is_port = (*word >= '0' && *word <= '9') || !strcmp(word, "all");
    if (!*is_port || !strcmp(word, "all"))
        return true;
    if (!word_whole(word, 1, FABRIC_PORTS_MAX, &port))
        return false;
    c->port = (uint32_t)port;
    return true;
}

static bool parse_set(const struct words *w, struct fault_cmd *c, struct text *t)
{
    unsigned i = 2;
    bool is_port = false;

    for (c->target = FAULT_LINK; c->target <= FAULT_HOST; c->target++)
        if (!strcmp(w->word[0], targets[c->target]))
            break;
    if (c->target > FAULT_HOST) {
        text_say(t, "\"%s\" is not link, node, host, sm, list or clear", w->word[0]);
        return false;
    }
    if (w->n < 2 || !*w->word[1]) {
        text_say(t, "which %s? Say its name, or all", targets[c->target]);
        return false;
    }
    strcpy(c->name, strcmp(w->word[1], "all") ? w->word[1] : "*");
    if (c->target == FAULT_LINK && w->n > 2) {
        if (!parse_fault_port(w->word[2], c, &is_port)) {
            text_say(t, "\"%s\" is not a port: 1 to %d, or all", w->word[2], FABRIC_PORTS_MAX);
            return false;
        }
        i += is_port;
    }
    for (; i < w->n; i++)
        if (!parse_fault_setting(w->word[i], c, t))
            return false;
    return makes_sense(c, t);
}

bool fault_parse(const char *line, struct fault_cmd *c, struct text *t)
{
    struct words w;

    memset(c, 0, sizeof *c);
    if (!words_split(line, &w, t))
        return false;
    if (w.n == 1 && !strcmp(w.word[0], "list")) {
        c->verb = FAULT_LIST;
        return true;
    }
    if (w.n == 1 && !strcmp(w.word[0], "clear")) {
        c->verb = FAULT_CLEAR;
        return true;
    }
    if (w.n == 2 && !strcmp(w.word[0], "alive")) {
        c->verb = FAULT_ALIVE;
        strcpy(c->name, w.word[1]);
        return true;
    }
    c->verb = FAULT_SET;
    return parse_set(&w, c, t);
}

void fault_print(const struct fault_cmd *c, struct text *t)
{
    bool link = c->target == FAULT_LINK;

    text_say(t, "%s \"%s\"", targets[c->target], c->name);
    if (link && c->port)
        text_say(t, " %u", c->port);
    if (c->has & (FAULT_UP | FAULT_DOWN))
        text_say(t, " %s", c->has & FAULT_UP ? link ? "up" : "revive" : link ? "down" : "die");
    if (c->has & FAULT_LOSS)
        text_say(t, " loss=%g", c->loss);
    if (c->has & FAULT_LOSS_OUT)
        text_say(t, " loss_out=%g", c->loss_out);
    if (c->has & FAULT_CORRUPT)
        text_say(t, " corrupt=%g", c->corrupt);
    if (c->has & FAULT_OVERRUN)
        text_say(t, " overrun=%g", c->overrun);
    for (unsigned i = 0; i < FAULT_DROPS_MAX && c->has & FAULT_DROP && (!i || c->drop[i]); i++)
        text_say(t, "%s%u", i ? "," : " drop=", c->drop[i]);
    if (c->has & FAULT_FC)
        text_say(t, " fc=%s", c->fc_off ? "off" : "on");
    if (c->has & FAULT_WIDTH)
        text_say(t, " width=%s", c->width_denied ? fault_width_name(c->width_denied) : "12");
    if (c->has & FAULT_SPEED)
        text_say(t, " speed=%s", c->ext_speed_denied ? fault_speed_name(c->speed_denied, c->ext_speed_denied) : "NDR");
    if (c->has & FAULT_SLOW)
        text_say(t, " slow=%g", c->slow);
    if (c->has & FAULT_FOR)
        text_say(t, " for=%.12gms", (double)c->for_ps / 1e9);
}
