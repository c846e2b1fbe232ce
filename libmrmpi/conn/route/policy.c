/* SPDX-License-Identifier: BSD-3-Clause */
/* Scheduling policies: the table, and the reading of their texts. */
#include "libmrmpi/conn/route/policy.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOTAL_DEFAULT 1024u
#define ALPHA_DEFAULT 0.5

static bool __attribute__((format(printf, 3, 4))) refuse_text(char *what, size_t size, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, size, fmt, ap);
    va_end(ap);
    return false;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

/* A whole number from 1 to most at *text, which is moved behind it. */
static bool read_policy_number(const char **text, uint32_t most, uint32_t *out)
{
    char *end;
    unsigned long n;

    if (**text < '0' || **text > '9')
        return false;
    n = strtoul(*text, &end, 10);
    *text = end;
    *out = (uint32_t)n;
    return n >= 1 && n <= most;
}

static bool parse_window(const char *text, struct mr_policy *out, char *what, size_t size)
{
    uint32_t n, *to = &out->window_messages;
    unsigned shift = 0;

    if (!read_policy_number(&text, 1u << 20, &n))
        return refuse_text(what, size,
                           "it needs the length of the window: as window:16 for messages, window:64K for bytes");
    if (*text == 'K' || *text == 'k')
        shift = 10;
    else if (*text == 'M' || *text == 'm')
        shift = 20;
    if (shift) {
        to = &out->window_bytes;
        text++;
    }
    if (*text || (uint64_t)n << shift > 1u << 30)
        return refuse_text(what, size,
                           "a window is a number of messages, up to 1048576, or of bytes with K or M, up to 1024M");
    *to = n << shift;
    return true;
}

/* The next of a list with commas, copied to out; false: it is empty, or too long. */
static bool next_word(const char **text, char *out, size_t size)
{
    size_t len = strcspn(*text, ",");

    if (!len || len >= size)
        return false;
    memcpy(out, *text, len);
    out[len] = '\0';
    *text += len + ((*text)[len] == ',');
    return true;
}

static bool parse_binding(const char *text, struct mr_policy *out, char *what, size_t size)
{
    if (!*text || !strcmp(text, "spread"))
        return true;
    if (!strcmp(text, "near")) {
        out->by_distance = true;
        return true;
    }
    while (*text) {
        if (out->num_rails == MR_POLICY_RAILS)
            return refuse_text(what, size, "it can name %d rails", MR_POLICY_RAILS);
        if (!next_word(&text, out->rail[out->num_rails].name, MR_POLICY_RAIL))
            return refuse_text(what, size, "it takes spread, near, or names of rails with commas between them");
        out->num_rails++;
    }
    return true;
}

/* NUMBER, or RAIL=NUMBER. */
static bool parse_weight(char *word, struct mr_policy_rail *out)
{
    char *equals = strchr(word, '=');
    const char *number = equals ? equals + 1 : word;

    if (equals)
        *equals = '\0';
    if ((equals && !*word) || !read_policy_number(&number, MR_POLICY_WEIGHT, &out->weight) || *number)
        return false;
    snprintf(out->name, sizeof out->name, "%s", equals ? word : "");
    return true;
}

static bool parse_weights(const char *text, struct mr_policy *out, char *what, size_t size)
{
    while (*text) {
        char word[MR_POLICY_RAIL];
        struct mr_policy_rail *r = &out->rail[out->num_rails];

        if (out->num_rails == MR_POLICY_RAILS)
            return refuse_text(what, size, "it can weigh %d rails", MR_POLICY_RAILS);
        if (!next_word(&text, word, sizeof word) || !parse_weight(word, r) ||
            (out->num_rails && !*r->name != !*out->rail[0].name))
            return refuse_text(what, size,
                               "weights are whole numbers from 1 to %u in the order of rails, as 4,1, or for rails by "
                               "name, as mlx5_0=4,mlx5_1=1",
                               MR_POLICY_WEIGHT);
        out->num_rails++;
    }
    return true;
}

static bool parse_total(const char *text, struct mr_policy *out, char *what, size_t size)
{
    out->alpha = 1;
    out->total = TOTAL_DEFAULT;
    if (*text && (!read_policy_number(&text, MR_POLICY_TOTAL, &out->total) || *text))
        return refuse_text(what, size, "the sum of weights is a whole number from 1 to %u", MR_POLICY_TOTAL);
    return true;
}

/* Digits with at most one point: the other forms of strtod() are not accepted, nor is the locale's point. */
static bool read_fraction(const char **text, double *out)
{
    double value = 0, scale = 1;
    unsigned digits = 0;
    bool point = false;

    for (; (**text >= '0' && **text <= '9') || (**text == '.' && !point); (*text)++) {
        if (**text == '.') {
            point = true;
            continue;
        }
        digits++;
        if (point)
            value += (**text - '0') * (scale /= 10);
        else
            value = value * 10 + (**text - '0');
    }
    *out = value;
    return digits;
}

static bool parse_alpha(const char *text, struct mr_policy *out, char *what, size_t size)
{
    double alpha = ALPHA_DEFAULT;

    if (*text && (!read_fraction(&text, &alpha) || alpha <= 0 || alpha > 1 || (*text && *text != ':')))
        return refuse_text(what, size, "alpha is a number above 0, up to 1, as in eq4:0.5");
    if (!parse_total(text + (*text == ':'), out, what, size))
        return false;
    out->alpha = alpha;
    return true;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static const struct mr_policy_kind kinds[] = {
    {.name = "fair",
     .arguments = "",
     .small = true,
     .large = true,
     .turn = MR_TURN_FAIR,
     .prefers_near = true,
     .help = "the rail that has carried the fewest bytes for its weight; short messages: a near one first"},
    {.name = "soonest",
     .arguments = "",
     .small = true,
     .turn = MR_TURN_SOONEST,
     .help = "the rail that will have sent it first, by its port's rate and what it has been given lately"},
    {.name = "round-robin",
     .arguments = "",
     .small = true,
     .large = true,
     .turn = MR_TURN_ROUND,
     .help = "each rail in turn"},
    {.name = "weighted-round-robin",
     .arguments = "[:WEIGHTS]",
     .small = true,
     .large = true,
     .turn = MR_TURN_WEIGHTED,
     .parse = parse_weights,
     .help = "each rail in turn, as often as its weight says: its port's rate, or WEIGHTS"},
    {.name = "window",
     .arguments = ":N",
     .small = true,
     .large = true,
     .turn = MR_TURN_WINDOW,
     .parse = parse_window,
     .help = "the next rail after N messages, or, with K or M behind N, so many bytes"},
    {.name = "binding",
     .arguments = "[:spread|near|RAIL,...]",
     .small = true,
     .large = true,
     .turn = MR_TURN_FAIR,
     .where = MR_WHERE_BOUND,
     .parse = parse_binding,
     .help = "one rail for each process: of all, of those nearest to it, or of those named; others while it is down"},
    {.name = "near",
     .arguments = "",
     .small = true,
     .turn = MR_TURN_FAIR,
     .where = MR_WHERE_NEAR,
     .help = "as fair, among the rails nearest to the process; others only while those have no room"},
    {.name = "even",
     .arguments = "",
     .large = true,
     .stripes = true,
     .weights = MR_WEIGHTS_EVEN,
     .help = "stripes of the same length"},
    {.name = "weighted",
     .arguments = "[:WEIGHTS]",
     .large = true,
     .stripes = true,
     .parse = parse_weights,
     .help = "stripes as long as the ports' rates say, or WEIGHTS"},
    {.name = "adaptive",
     .arguments = "",
     .large = true,
     .stripes = true,
     .weights = MR_WEIGHTS_RUNS,
     .help = "stripes as long as each rail has been seen to carry"},
    {.name = "eq3",
     .arguments = "[:TOTAL]",
     .large = true,
     .stripes = true,
     .weights = MR_WEIGHTS_PAPER,
     .parse = parse_total,
     .help = "stripes after Equation 3 of Liu et al., weights of TOTAL in sum"},
    {.name = "eq4",
     .arguments = "[:ALPHA[:TOTAL]]",
     .large = true,
     .stripes = true,
     .weights = MR_WEIGHTS_PAPER,
     .parse = parse_alpha,
     .help = "the same with Equation 4: ALPHA of what the last message says, the rest from before"},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

const struct mr_policy_kind *mr_policy_kind(size_t i)
{
    return i < KINDS ? &kinds[i] : NULL;
}

const char *mr_policy_standard(enum mr_policy_class c)
{
    return c == MR_POLICY_SMALL ? "fair" : "adaptive";
}

static bool has_class(const struct mr_policy_kind *k, enum mr_policy_class c)
{
    return c == MR_POLICY_SMALL ? k->small : k->large;
}

static bool refuse_name(const char *text, enum mr_policy_class c, char *what, size_t size)
{
    size_t at = 0;

    at += (size_t)snprintf(what, size, "\"%.64s\" is not one of", text);
    for (size_t i = 0; i < KINDS && at < size; i++)
        if (has_class(&kinds[i], c))
            at += (size_t)snprintf(what + at, size - at, " %s%s", kinds[i].name, kinds[i].arguments);
    return false;
}

bool mr_policy_parse(const char *text, enum mr_policy_class c, struct mr_policy *out, char *what, size_t size)
{
    size_t len = strcspn(text, ":"), i = 0;
    struct mr_policy p = {0};
    const char *rest = text + len + (text[len] == ':');

    while (i < KINDS && (!has_class(&kinds[i], c) || strlen(kinds[i].name) != len || strncmp(kinds[i].name, text, len)))
        i++;
    if (i == KINDS)
        return refuse_name(text, c, what, size);
    p.kind = &kinds[i];
    p.of = c;
    if (text[len] && (!p.kind->parse || !*rest))
        return refuse_text(what, size, "\"%.64s\": %s takes %s", text, p.kind->name,
                           p.kind->parse ? p.kind->arguments : "no arguments");
    if (p.kind->parse && !p.kind->parse(rest, &p, what, size))
        return false;
    *out = p;
    return true;
}

/* ---- a host's rails ---------------------------------------------------------------------------------------------- */

bool mr_policy_needs_distance(const struct mr_policy *p)
{
    return p->by_distance || p->kind->where == MR_WHERE_NEAR;
}

static bool is_named(const char *name, const struct mr_policy_port *port)
{
    char full[80];

    snprintf(full, sizeof full, "%s:%u", port->device, port->port);
    return !strcmp(name, port->device) || !strcmp(name, full);
}

bool mr_policy_fits(const struct mr_policy *p, const struct mr_policy_port port[], unsigned n, char *what, size_t size)
{
    if (p->kind->where == MR_WHERE_BOUND || !p->num_rails)
        return true;
    if (!*p->rail[0].name && p->num_rails > n)
        return refuse_text(what, size, "it has %u weights, but %u rail%s used on this host (%s:%u is the first)",
                           p->num_rails, n, n == 1 ? " is" : "s are", port[0].device, port[0].port);
    for (unsigned r = 0; *p->rail[0].name && r < p->num_rails; r++) {
        unsigned i = 0;

        while (i < n && !is_named(p->rail[r].name, &port[i]))
            i++;
        if (i == n)
            return refuse_text(what, size, "%s is no rail that is used on this host (%s:%u is the first of %u)",
                               p->rail[r].name, port[0].device, port[0].port, n);
    }
    return true;
}

static uint32_t find_nearest(const struct mr_policy_port port[], unsigned n)
{
    unsigned least = ~0u;
    uint32_t set = 0;

    for (unsigned i = 0; i < n; i++)
        least = port[i].distance < least ? port[i].distance : least;
    for (unsigned i = 0; i < n; i++)
        set |= (uint32_t)(port[i].distance == least) << i;
    return set;
}

/* The k-th, counted from 0 and over again. */
static uint32_t take_one(uint32_t set, unsigned k)
{
    if (!set)
        return 0;
    for (k %= (unsigned)__builtin_popcount(set); k; k--)
        set &= set - 1;
    return set & -set;
}

/* Names are in the user's order: the k-th process takes the k-th of the present ones. A device may have two ports. */
static uint32_t take_named(const struct mr_policy *p, const struct mr_policy_port port[], unsigned n, unsigned k)
{
    uint32_t set[MR_POLICY_RAILS];
    unsigned here = 0;

    for (unsigned r = 0; r < p->num_rails; r++) {
        set[here] = 0;
        for (unsigned i = 0; i < n; i++)
            set[here] |= (uint32_t)is_named(p->rail[r].name, &port[i]) << i;
        here += set[here] != 0;
    }
    return here ? set[k % here] : 0;
}

uint32_t mr_policy_rails(const struct mr_policy *p, const struct mr_policy_port port[], unsigned n, unsigned local_rank)
{
    uint32_t all = n < 32 ? (1u << n) - 1 : ~0u;

    if (p->kind->where == MR_WHERE_NEAR)
        return find_nearest(port, n);
    if (p->kind->where != MR_WHERE_BOUND)
        return all;
    if (p->num_rails)
        return take_named(p, port, n, local_rank);
    return take_one(p->by_distance ? find_nearest(port, n) : all, local_rank);
}

uint32_t mr_policy_weight(const struct mr_policy *p, const struct mr_policy_port port[], unsigned n, unsigned i)
{
    if (!p->num_rails || p->kind->where == MR_WHERE_BOUND || i >= n)
        return 0;
    if (!*p->rail[0].name)
        return i < p->num_rails ? p->rail[i].weight : 0;
    for (unsigned r = 0; r < p->num_rails; r++)
        if (is_named(p->rail[r].name, &port[i]))
            return p->rail[r].weight;
    return 0;
}
