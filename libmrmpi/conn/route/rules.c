/* SPDX-License-Identifier: BSD-3-Clause */
#include "libmrmpi/conn/route/rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define ALL_USES   ((1u << MR_RULE_USES) - 1)
#define NUMBER_MAX (1ull << 40)

static const char *const use_names[MR_RULE_USES] = {"control", "eager", "piece", "rdma"};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

struct reader {
    const char *at, *end;
    const char *text;
    struct mr_rules_error *err;
    bool failed;
};

static void set_error(struct reader *r, const char *at, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void set_error(struct reader *r, const char *at, const char *format, ...)
{
    va_list args;

    if (r->failed)
        return;
    r->failed = true;
    r->err->line = r->err->column = 1;
    for (const char *c = r->text; c < at; c++) {
        r->err->column++;
        if (*c == '\n') {
            r->err->line++;
            r->err->column = 1;
        }
    }
    va_start(args, format);
    vsnprintf(r->err->what, sizeof r->err->what, format, args);
    va_end(args);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks_and_comment(struct reader *r)
{
    while (r->at < r->end && is_blank(*r->at))
        r->at++;
    if (r->at < r->end && *r->at == '#')
        while (r->at < r->end && *r->at != '\n')
            r->at++;
}

static bool at_end_of_rule(const struct reader *r)
{
    return r->at == r->end || *r->at == ';' || *r->at == '\n';
}

/* Letters, digits and the other characters of class names. */
static size_t word_length(const struct reader *r)
{
    const char *c = r->at;

    while (c < r->end && ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
                          *c == '-' || *c == '_' || *c == '.'))
        c++;
    return (size_t)(c - r->at);
}

static bool take_word(struct reader *r, const char *word)
{
    size_t len = word_length(r);

    if (strlen(word) != len || strncasecmp(r->at, word, len))
        return false;
    r->at += len;
    return true;
}

static bool take_token(struct reader *r, const char *token)
{
    size_t len = strlen(token);

    if ((size_t)(r->end - r->at) < len || memcmp(r->at, token, len))
        return false;
    r->at += len;
    return true;
}

static uint64_t read_rule_number(struct reader *r, uint64_t max)
{
    const char *begin = r->at;
    uint64_t n = 0;
    unsigned shift = 0;

    while (r->at < r->end && *r->at >= '0' && *r->at <= '9' && n < NUMBER_MAX)
        n = 10 * n + (uint64_t)(*r->at++ - '0');
    if (r->at == begin)
        set_error(r, begin, "a number is missing");
    else if (r->at < r->end && (shift = *r->at == 'K' || *r->at == 'k'   ? 10
                                        : *r->at == 'M' || *r->at == 'm' ? 20
                                        : *r->at == 'G' || *r->at == 'g' ? 30
                                                                         : 0))
        r->at++;
    if (r->failed)
        return 0;
    if (word_length(r))
        set_error(r, begin, "not a number: digits, and K, M or G behind them");
    else if (n > max >> shift)
        set_error(r, begin, "the number is more than %llu", (unsigned long long)max);
    return r->failed ? 0 : n << shift;
}

static void read_rule_size(struct reader *r, struct mr_rule *rule)
{
    const char *begin = r->at;
    bool most = false, least = false, open = false;
    uint64_t n;

    if (take_token(r, "<="))
        most = true;
    else if (take_token(r, ">="))
        least = true;
    else if (take_token(r, "<"))
        most = open = true;
    else if (take_token(r, ">"))
        least = open = true;
    else
        set_error(r, begin, "after size comes one of <= < >= >");
    n = r->failed ? 0 : read_rule_number(r, NUMBER_MAX);
    if (r->failed)
        return;
    if (most && open && !n)
        set_error(r, begin, "no message is shorter than 0 bytes");
    else if ((most && rule->size_max != UINT64_MAX) || (least && rule->size_min))
        set_error(r, begin, "the size is bounded twice on the same side");
    else if (most)
        rule->size_max = n - open;
    else
        rule->size_min = n + open;
    if (!r->failed && rule->size_min > rule->size_max)
        set_error(r, begin, "no size is within both bounds");
}

static void read_least(struct reader *r, const char *name, uint32_t *out)
{
    const char *begin = r->at;

    if (!take_token(r, ">="))
        set_error(r, begin, "after %s comes >=", name);
    else if (*out)
        set_error(r, begin, "%s is bounded twice", name);
    else
        *out = (uint32_t)read_rule_number(r, UINT32_MAX);
}

static void read_class(struct reader *r, struct mr_rule *rule)
{
    const char *begin = r->at;
    size_t len;

    if (!take_token(r, "=")) {
        set_error(r, begin, "after class comes =");
        return;
    }
    len = word_length(r);
    if (!len || len >= sizeof rule->class_name)
        set_error(r, r->at, "a class has a name of 1 to %zu letters, digits, - _ .", sizeof rule->class_name - 1);
    else if (*rule->class_name)
        set_error(r, begin, "the class is given twice");
    if (r->failed)
        return;
    memcpy(rule->class_name, r->at, len);
    rule->class_name[len] = '\0';
    r->at += len;
}

static bool read_use(struct reader *r, struct mr_rule *rule)
{
    for (unsigned u = 0; u < MR_RULE_USES; u++)
        if (take_word(r, use_names[u])) {
            rule->uses |= (uint8_t)(1u << u);
            return true;
        }
    return false;
}

static void read_uses(struct reader *r, struct mr_rule *rule, const char *begin, bool before)
{
    if (before)
        set_error(r, begin, "what the message is is said twice: join the words by |");
    while (!r->failed && take_token(r, "|")) {
        if (!read_use(r, rule))
            set_error(r, r->at, "after | comes one of control, eager, piece, rdma");
    }
}

static void read_condition(struct reader *r, struct mr_rule *rule)
{
    const char *begin = r->at;
    bool before = rule->uses;

    if (read_use(r, rule))
        read_uses(r, rule, begin, before);
    else if (take_word(r, "size"))
        read_rule_size(r, rule);
    else if (take_word(r, "count"))
        read_least(r, "count", &rule->count_min);
    else if (take_word(r, "rate"))
        read_least(r, "rate", &rule->rate_min);
    else if (take_word(r, "class"))
        read_class(r, rule);
    else if (!take_word(r, "any"))
        set_error(r, begin, "not a condition: any, control, eager, piece, rdma, size, count, rate or class");
    if (!r->failed && r->at < r->end && !is_blank(*r->at) && *r->at != ':')
        set_error(r, r->at, "a blank or a colon is missing here");
}

static void read_kinds(struct reader *r, struct mr_rule *rule)
{
    do {
        char names[MR_KINDS_TEXT];
        const char *begin;
        unsigned k;

        skip_blanks_and_comment(r);
        begin = r->at;
        k = mr_kind_by_name(begin, word_length(r));
        r->at += k < MR_LINK_KINDS ? word_length(r) : 0;
        if (k == MR_LINK_KINDS)
            set_error(r, r->at, "here comes a kind of link: %s", mr_kinds_list("or", names));
        else if (memchr(rule->kind, (int)k, rule->num_kinds))
            set_error(r, begin, "%s is named twice", mr_kind_name(k));
        else
            rule->kind[rule->num_kinds++] = (uint8_t)k;
        skip_blanks_and_comment(r);
    } while (!r->failed && take_token(r, ","));
    if (!r->failed && !at_end_of_rule(r))
        set_error(r, r->at, "after the kinds of links a rule ends, by a semicolon or a new line");
}

static void read_rule(struct reader *r, struct mr_rule *rule)
{
    const char *begin = r->at;

    *rule = (struct mr_rule){.size_max = UINT64_MAX};
    while (!r->failed && !at_end_of_rule(r) && *r->at != ':') {
        read_condition(r, rule);
        skip_blanks_and_comment(r);
    }
    if (r->failed)
        return;
    if (!take_token(r, ":"))
        set_error(r, r->at, "a colon and kinds of links are missing");
    else if (r->at == begin + 1)
        set_error(r, begin, "a condition is missing before the colon: any always holds");
    else
        read_kinds(r, rule);
    if (!rule->uses)
        rule->uses = ALL_USES;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* False: too many. */
static bool add_size(struct mr_rules *rules, uint64_t longest)
{
    unsigned i = 0;

    while (i < rules->num_sizes && rules->size[i] < longest)
        i++;
    if (i < rules->num_sizes && rules->size[i] == longest)
        return true;
    if (rules->num_sizes == MR_RULES_SIZES)
        return false;
    memmove(&rules->size[i + 1], &rules->size[i], (rules->num_sizes - i) * sizeof rules->size[0]);
    rules->size[i] = longest;
    rules->num_sizes++;
    return true;
}

static bool add_sizes(struct mr_rules *rules, const struct mr_rule *rule)
{
    return (!rule->size_min || add_size(rules, rule->size_min - 1)) &&
           (rule->size_max == UINT64_MAX || add_size(rules, rule->size_max));
}

bool mr_rules_parse(const char *text, size_t len, struct mr_rules *out, struct mr_rules_error *err)
{
    struct reader r = {.text = text, .at = text, .end = text + len, .err = err};

    memset(out, 0, sizeof *out);
    memset(err, 0, sizeof *err);
    if (len > MR_RULES_TEXT)
        set_error(&r, text, "the text is longer than %d characters", MR_RULES_TEXT);
    while (!r.failed) {
        const char *begin;

        skip_blanks_and_comment(&r);
        if (r.at == r.end)
            break;
        if (take_token(&r, ";") || take_token(&r, "\n"))
            continue;
        begin = r.at;
        if (out->num == MR_RULES_MAX) {
            set_error(&r, begin, "more than %d rules", MR_RULES_MAX);
            break;
        }
        read_rule(&r, &out->rule[out->num]);
        if (!r.failed && !add_sizes(out, &out->rule[out->num]))
            set_error(&r, begin, "the rules differ at more than %d sizes", MR_RULES_SIZES);
        out->num++;
    }
    if (r.failed)
        memset(out, 0, sizeof *out);
    return !r.failed;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static bool rule_holds(const struct mr_rule *rule, const struct mr_rules_peer *peer)
{
    return peer->count >= rule->count_min && peer->rate >= rule->rate_min &&
           (!*rule->class_name || !strcmp(rule->class_name, peer->class_name));
}

uint32_t mr_rules_holding(const struct mr_rules *r, const struct mr_rules_peer *peer)
{
    uint32_t set = 0;

    for (unsigned i = 0; i < r->num; i++)
        set |= (uint32_t)rule_holds(&r->rule[i], peer) << i;
    return set;
}

/* Bounds are where classes change, so that a class is within them or not. */
static bool takes_class(const struct mr_rules *r, const struct mr_rule *rule, unsigned size_class)
{
    uint64_t shortest = size_class ? r->size[size_class - 1] + 1 : 0;

    return shortest >= rule->size_min && shortest <= rule->size_max;
}

unsigned mr_rules_pick(const struct mr_rules *r, enum mr_rule_use use, unsigned size_class,
                       const struct mr_rules_peer *peer, unsigned open)
{
    for (unsigned i = 0; i < r->num; i++) {
        const struct mr_rule *rule = &r->rule[i];

        if (!(rule->uses >> use & 1) || !takes_class(r, rule, size_class) || !rule_holds(rule, peer))
            continue;
        for (unsigned k = 0; k < rule->num_kinds; k++)
            if (open >> rule->kind[k] & 1)
                return rule->kind[k];
    }
    return MR_LINK_KINDS;
}

unsigned mr_rules_kinds(const struct mr_rules *r)
{
    unsigned set = 0;

    for (unsigned i = 0; i < r->num; i++)
        for (unsigned k = 0; k < r->rule[i].num_kinds; k++)
            set |= 1u << r->rule[i].kind[k];
    return set;
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

struct line {
    char *out;
    size_t size, used;
};

static void append_text(struct line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append_text(struct line *l, const char *format, ...)
{
    va_list args;
    int n;

    if (l->used >= l->size)
        return;
    va_start(args, format);
    n = vsnprintf(l->out + l->used, l->size - l->used, format, args);
    va_end(args);
    l->used += n > 0 ? (size_t)n : 0;
}

static void append_number(struct line *l, const char *name, uint64_t n)
{
    unsigned shift = 0;

    while (shift < 3 && n && n % 1024 == 0) {
        n /= 1024;
        shift++;
    }
    append_text(l, "%s%s%llu%.1s", l->used ? " " : "", name, (unsigned long long)n, &"\0KMG"[shift]);
}

static void put_uses(struct line *l, unsigned uses)
{
    const char *between = "";

    for (unsigned u = 0; u < MR_RULE_USES && uses != ALL_USES; u++)
        if (uses >> u & 1) {
            append_text(l, "%s%s", between, use_names[u]);
            between = "|";
        }
}

void mr_rules_print(const struct mr_rules *r, unsigned i, char *out, size_t size)
{
    const struct mr_rule *rule = &r->rule[i];
    struct line l = {.out = out, .size = size};

    *out = '\0';
    put_uses(&l, rule->uses);
    if (rule->size_min)
        append_number(&l, "size>=", rule->size_min);
    if (rule->size_max != UINT64_MAX)
        append_number(&l, "size<=", rule->size_max);
    if (rule->count_min)
        append_number(&l, "count>=", rule->count_min);
    if (rule->rate_min)
        append_number(&l, "rate>=", rule->rate_min);
    if (*rule->class_name)
        append_text(&l, "%sclass=%s", l.used ? " " : "", rule->class_name);
    append_text(&l, "%s:", l.used ? "" : "any");
    for (unsigned k = 0; k < rule->num_kinds; k++)
        append_text(&l, "%s%s", k ? "," : " ", mr_kind_name(rule->kind[k]));
}

/* ---- without rules ----------------------------------------------------------------------------------------------- */

static struct mr_rule *add_standard(struct mr_rules *out, unsigned uses)
{
    struct mr_rule *rule = &out->rule[out->num++];

    *rule = (struct mr_rule){.uses = (uint8_t)uses, .size_max = UINT64_MAX};
    return rule;
}

static void add_rule_kind(struct mr_rule *rule, unsigned kind)
{
    rule->kind[rule->num_kinds++] = (uint8_t)kind;
}

/* Adds the kinds of the set, in their order. */
static void add_kinds(struct mr_rule *rule, const struct mr_kinds *kinds, unsigned set)
{
    for (unsigned k = 0; k < kinds->num; k++)
        if (set >> kinds->kind[k] & 1)
            add_rule_kind(rule, kinds->kind[k]);
}

/* Large messages go by the best kind that the peer has, too. */
static void add_rdma(struct mr_rules *out, unsigned set, bool by_ring)
{
    unsigned kind = mr_kinds_by_rdma(set, by_ring);
    struct mr_rule *rule;

    if (kind == MR_LINK_KINDS)
        return;
    rule = add_standard(out, 1u << MR_RULE_RDMA);
    for (; kind < MR_LINK_KINDS; kind = mr_kinds_by_rdma(set, by_ring)) {
        add_rule_kind(rule, kind);
        set &= ~(1u << kind);
    }
}

void mr_rules_standard(const struct mr_kinds *kinds, bool by_ring, uint32_t rc_after, struct mr_rules *out)
{
    unsigned set = mr_kinds_set(kinds), connected = mr_kinds_that_are(set, MR_IS_CONNECTED);
    struct mr_rule *rule;

    memset(out, 0, sizeof *out);
    add_rdma(out, set, by_ring);
    if (connected != set && kinds->num && connected >> kinds->kind[0] & 1 && rc_after) {
        rule = add_standard(out, ALL_USES & ~(1u << MR_RULE_RDMA));
        rule->count_min = rc_after;
        add_kinds(rule, kinds, set);
        add_kinds(add_standard(out, ALL_USES), kinds, set & ~connected); /* the others until then */
    }
    add_kinds(add_standard(out, ALL_USES), kinds, set);
}
