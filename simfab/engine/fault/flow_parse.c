/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of `simfab flow`, and when messages are due: see flow.h. Pure. */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/base/text.h"
#include "simfab/engine/base/words.h"
#include "simfab/engine/fault/flow.h"

uint64_t flow_due_ps(uint64_t n, uint64_t size, double rate_mbps)
{
    double due = rate_mbps > 0 ? (double)n * (double)size * 1e6 / rate_mbps : 0;

    return due < 1e19 ? (uint64_t)llround(due) : 10000000000000000000ull;
}

enum value_kind { PORT, SL, MTU, PATH, SIZE, RATE, TIME };

static const char *const wanted[] = {
    [PORT] = "a port: 1 to 254",
    [SL] = "a service level: 0 to 15",
    [MTU] = "256, 512, 1024, 2048 or 4096",
    [PATH] = "0 to 127",
    [SIZE] = "a number of bytes: 1 to 2147483648",
    [RATE] = "a rate in 10^6 bytes per second, more than 0.000001, or max",
    [TIME] = "a time such as 10ms (ps, ns, us, ms, s; at most a day)",
};

static const struct {
    const char *name;
    enum value_kind kind;
    size_t offset;
} values[] = {
    {"from_port", PORT, offsetof(struct flow_cmd, from_port)},
    {"to_port", PORT, offsetof(struct flow_cmd, to_port)},
    {"sl", SL, offsetof(struct flow_cmd, sl)},
    {"mtu", MTU, offsetof(struct flow_cmd, mtu)},
    {"path", PATH, offsetof(struct flow_cmd, path)},
    {"size", SIZE, offsetof(struct flow_cmd, size)},
    {"rate", RATE, offsetof(struct flow_cmd, rate_mbps)},
    {"at", TIME, offsetof(struct flow_cmd, when_ps)},
    {"after", TIME, offsetof(struct flow_cmd, when_ps)},
    {"for", TIME, offsetof(struct flow_cmd, for_ps)},
};

#define NUM_VALUES (sizeof values / sizeof *values)

static bool parse_mtu(const char *v, uint32_t *mtu)
{
    uint64_t n = 0;

    if (!word_whole(v, 256, 4096, &n) || (n & (n - 1)))
        return false;
    *mtu = (uint32_t)n;
    return true;
}

static bool parse_flow_number(const char *v, uint64_t min, uint64_t max, void *field, size_t bytes)
{
    uint64_t n = 0;

    if (!word_whole(v, min, max, &n))
        return false;
    if (bytes == 1)
        *(uint8_t *)field = (uint8_t)n;
    else if (bytes == 4)
        *(uint32_t *)field = (uint32_t)n;
    else
        *(uint64_t *)field = n;
    return true;
}

static bool parse_flow_value(const char *v, enum value_kind kind, void *field)
{
    switch (kind) {
    case PORT:
        return parse_flow_number(v, 1, 254, field, 4);
    case SL:
        return parse_flow_number(v, 0, 15, field, 1);
    case MTU:
        return parse_mtu(v, field);
    case PATH:
        return parse_flow_number(v, 0, 127, field, 4);
    case SIZE:
        return parse_flow_number(v, 1, FLOW_SIZE_MAX, field, 8);
    case RATE:
        if (!strcmp(v, "max")) {
            *(double *)field = 0;
            return true;
        }
        return word_real(v, 0.000001, 1e9, field);
    case TIME:
        return word_time(v, field);
    }
    return false;
}

static bool parse_flow_setting(const char *word, struct flow_cmd *c, uint32_t *seen, struct text *t)
{
    const char *v = NULL;
    size_t i;

    for (i = 0; i < NUM_VALUES && !(v = word_value(word, values[i].name)); i++)
        ;
    if (!v) {
        text_say(t, "\"%s\" is nothing that can be said of a flow; there are:", word);
        for (i = 0; i < NUM_VALUES; i++)
            text_say(t, " %s=", values[i].name);
        return false;
    }
    if (*seen & 1u << i) {
        text_say(t, "%s= is given twice", values[i].name);
        return false;
    }
    *seen |= 1u << i;
    if (!parse_flow_value(v, values[i].kind, (char *)c + values[i].offset)) {
        text_say(t, "%s: \"%s\" is not %s", values[i].name, v, wanted[values[i].kind]);
        return false;
    }
    if (!strcmp(values[i].name, "after"))
        c->relative = true;
    return true;
}

static bool parse_add(const struct words *w, struct flow_cmd *c, struct text *t)
{
    uint32_t seen = 0;

    if (w->n < 3 || !*w->word[1] || !*w->word[2]) {
        text_say(t, "from where to where? simfab flow add \"h1 mlx5_0\" \"h2 mlx5_0\"");
        return false;
    }
    strcpy(c->from, w->word[1]);
    strcpy(c->to, w->word[2]);
    c->size = 65536;
    for (unsigned i = 3; i < w->n; i++)
        if (!parse_flow_setting(w->word[i], c, &seen, t))
            return false;
    for (size_t i = 0; i + 1 < NUM_VALUES; i++)
        if (!strcmp(values[i].name, "at") && (seen >> i & 3) == 3) {
            text_say(t, "at= is a time of the fabric, after= one from now on: not both");
            return false;
        }
    return true;
}

/* Parses an engine time, which may be months; a double would lose the picosecond. */
static bool parse_instant(const char *word, uint64_t *ps)
{
    char *end;

    if (*word < '0' || *word > '9')
        return false;
    errno = 0;
    *ps = strtoull(word, &end, 10);
    return !*end && !errno;
}

bool flow_parse(const char *line, struct flow_cmd *c, struct text *t)
{
    struct words w;
    const char *verb = w.word[0];

    memset(c, 0, sizeof *c);
    if (!words_split(line, &w, t))
        return false;
    if (!strcmp(verb, "add")) {
        c->verb = FLOW_ADD;
        return parse_add(&w, c, t);
    }
    if (!strcmp(verb, "list") && w.n == 1) {
        c->verb = FLOW_LIST;
        return true;
    }
    if (!strcmp(verb, "del") && w.n == 2) {
        c->verb = FLOW_DEL;
        if (!strcmp(w.word[1], "all") || word_whole(w.word[1], 1, 1ull << 53, &c->id))
            return true;
        text_say(t, "\"%s\" is not a flow's number (simfab flow list shows them), nor all", w.word[1]);
        return false;
    }
    if (!strcmp(verb, "run") && w.n == 2) {
        c->verb = FLOW_RUN;
        if (word_time(w.word[1], &c->time_ps))
            return true;
        text_say(t, "\"%s\" is not %s", w.word[1], wanted[TIME]);
        return false;
    }
    if (!strcmp(verb, "reached") && w.n == 2) {
        c->verb = FLOW_REACHED;
        if (parse_instant(w.word[1], &c->time_ps))
            return true;
        text_say(t, "\"%s\" is not a number of picoseconds", w.word[1]);
        return false;
    }
    text_say(t, "\"%s\" is not add, del, list or run, or has too many or too few words after it", verb);
    return false;
}
