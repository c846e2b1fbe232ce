/* SPDX-License-Identifier: BSD-3-Clause */
/* The text form of policy.lock: see lock.h. Reading is strict, because levels that move would be worse than none. */
#include "fabricd/policy/lock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LOCK_VERSION 1
#define NAME_CHARS   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

/* ---- writing ---- */

static void levels_text(struct text *out, const char *key, const uint8_t *sl, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        text_printf(out, "%s%u", i ? "," : key, sl[i]);
}

static void caps_text(struct text *out, const struct fabric_caps *f)
{
    text_printf(out, " vls=%u low=%u high=%u mtu=%u rate=%u hops=%u", f->vls, f->low_cap, f->high_cap, f->mtu,
                f->rate_mbps, f->hops);
    if (f->oversubscription)
        text_printf(out, " oversubscription=%u", f->oversubscription);
    text_put(out, "\n", 1);
}

void lock_text(struct text *out, const struct policy_lock *l)
{
    const struct fabric_caps *f = &l->fabric;
    text_printf(out,
                "# What this policy was compiled with: the service levels that classes have been given, and what the\n"
                "# fabric can do. Written by fabricd and fabricctl; keep it beside the policy. See mrmpi-policy(5).\n"
                "lock %d\n",
                LOCK_VERSION);
    if (l->digest)
        text_printf(out, "policy generation=%" PRIu64 " digest=%016" PRIx64 "\n", l->generation, l->digest);
    else if (l->none)
        text_printf(out, "none generation=%" PRIu64 "\n", l->generation);
    if (f->vls || f->low_cap || f->high_cap || f->mtu || f->rate_mbps || f->hops || f->oversubscription) {
        text_printf(out, "fabric");
        caps_text(out, f);
    }
    for (unsigned i = 0; i < l->num_planes; i++) {
        text_printf(out, "plane 0x%016" PRIx64, l->planes[i].guid);
        caps_text(out, &l->planes[i].caps);
    }
    for (unsigned i = 0; i < l->num_classes; i++) {
        const struct lock_class *c = &l->classes[i];
        text_printf(out, "%s %s small=%u", c->retired ? "retired" : "class", c->name, c->sl_small);
        levels_text(out, " medium=", c->sl_medium, c->num_medium);
        levels_text(out, " bulk=", c->sl_bulk, c->num_bulk);
        text_put(out, "\n", 1);
    }
}

uint64_t lock_digest(const char *policy, size_t len)
{
    uint64_t h = text_hash(policy, len);
    return h ? h : 1;
}

/* ---- reading ---- */

struct reader {
    const char *at, *end, *line_begin;
    unsigned line;
    struct diag *diag;
    struct policy_lock *lock;
    unsigned used;   /* service levels, a bit each */
    unsigned errors; /* before it began */
    bool has_version, has_fabric;
};

struct word {
    const char *s;
    size_t len;
    struct place at;
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line; false at its end. */
static bool next_word(struct reader *r, struct word *w)
{
    while (r->at < r->end && is_space(*r->at))
        r->at++;
    w->s = r->at;
    w->at = (struct place){r->line, (unsigned)(r->at - r->line_begin) + 1};
    while (r->at < r->end && !is_space(*r->at) && *r->at != '\n')
        r->at++;
    w->len = (size_t)(r->at - w->s);
    return w->len > 0;
}

static bool word_is(const struct word *w, const char *s)
{
    return w->len == strlen(s) && !memcmp(w->s, s, w->len);
}

static void unexpected(struct reader *r, const struct word *w, const char *allowed)
{
    diag_error(r->diag, w->at, "'%.*s'; allowed here: %s", (int)(w->len < 40 ? w->len : 40), w->s, allowed);
}

/* Digits only, up to max. */
static bool take_number(const char **s, const char *end, unsigned max, unsigned *out)
{
    unsigned v = 0;
    const char *p = *s;
    while (p < end && *p >= '0' && *p <= '9' && v <= max)
        v = v * 10 + (unsigned)(*p++ - '0');
    if (p == *s || v > max || (p < end && *p >= '0' && *p <= '9'))
        return false;
    *s = p;
    *out = v;
    return true;
}

/* The word after KEY=, or NULL. */
static const char *value_of(const struct word *w, const char *key)
{
    size_t n = strlen(key);
    return w->len > n && !memcmp(w->s, key, n) && w->s[n] == '=' ? w->s + n + 1 : NULL;
}

static bool read_levels(struct reader *r, const struct word *w, const char *s, unsigned max, uint8_t *out, uint8_t *num)
{
    const char *end = w->s + w->len;
    if (*num) {
        diag_error(r->diag, w->at, "given twice");
        return false;
    }
    for (;; s++) {
        unsigned sl;
        if (*num == max || !take_number(&s, end, SLS - 1, &sl) || (s < end && *s != ',')) {
            diag_error(r->diag, w->at, "'%.*s'; allowed: up to %u service levels, 0 to %d, with commas between them",
                       (int)(w->len < 60 ? w->len : 60), w->s, max, SLS - 1);
            return false;
        }
        if (r->used & 1u << sl) {
            diag_error(r->diag, w->at, "service level %u is given out twice", sl);
            return false;
        }
        r->used |= 1u << sl;
        out[(*num)++] = (uint8_t)sl;
        if (s == end)
            return true;
    }
}

static bool read_name(struct reader *r, struct lock_class *c)
{
    struct word w;
    if (!next_word(r, &w) || w.len >= sizeof(c->name)) {
        diag_error(r->diag, w.at, "a class has a name of up to %zu characters", sizeof(c->name) - 1);
        return false;
    }
    memcpy(c->name, w.s, w.len);
    if (strspn(c->name, NAME_CHARS) != w.len) {
        diag_error(r->diag, w.at, "a class name has letters, digits, '_', '-' and '.'");
        return false;
    }
    if (lock_find(r->lock, c->name)) {
        diag_error(r->diag, w.at, "class '%s' is given twice", c->name);
        return false;
    }
    return true;
}

static void read_lock_class(struct reader *r, const struct word *first)
{
    struct lock_class c = {.retired = word_is(first, "retired")};
    struct word w;
    uint8_t num_small = 0;
    if (r->lock->num_classes == LOCK_CLASSES_MAX) {
        diag_error(r->diag, first->at, "more than %d classes", LOCK_CLASSES_MAX);
        return;
    }
    if (!read_name(r, &c))
        return;
    while (next_word(r, &w)) {
        const char *s;
        bool good = false;
        if ((s = value_of(&w, "small")))
            good = read_levels(r, &w, s, 1, &c.sl_small, &num_small);
        else if ((s = value_of(&w, "medium")))
            good = read_levels(r, &w, s, FD_MEDIUM_MAX, c.sl_medium, &c.num_medium);
        else if ((s = value_of(&w, "bulk")))
            good = read_levels(r, &w, s, FD_LANES_MAX, c.sl_bulk, &c.num_bulk);
        else
            unexpected(r, &w, "small=LEVEL, medium=LEVELS, bulk=LEVELS");
        if (!good)
            return;
    }
    if (!num_small || !c.num_bulk)
        diag_error(r->diag, first->at, "class '%s' has no %s", c.name, num_small ? "bulk=LEVELS" : "small=LEVEL");
    else
        r->lock->classes[r->lock->num_classes++] = c;
}

/* Digits of the base only, at least one, and no more than 64 bits hold. */
static bool take_uint64(const struct word *w, const char *s, unsigned base, uint64_t *out)
{
    static const char digits[] = "0123456789abcdef";
    const char *end = w->s + w->len;
    *out = 0;
    for (; s < end; s++) {
        const char *digit = memchr(digits, *s, base);
        if (!digit || __builtin_mul_overflow(*out, base, out) ||
            __builtin_add_overflow(*out, (uint64_t)(digit - digits), out))
            return false;
    }
    return true;
}

static void read_policy(struct reader *r, const struct word *first)
{
    struct policy_lock *l = r->lock;
    struct word w;
    bool has_generation = false;
    if (l->digest || l->none)
        diag_error(r->diag, first->at, "the policy is given twice");
    while (next_word(r, &w)) {
        const char *s;
        bool good = false;
        if ((s = value_of(&w, "generation")) && !has_generation)
            good = has_generation = take_uint64(&w, s, 10, &l->generation);
        else if ((s = value_of(&w, "digest")) && !l->digest)
            good = take_uint64(&w, s, 16, &l->digest) && l->digest;
        if (!good) {
            unexpected(r, &w, "generation=NUMBER and digest=HEXADECIMAL, once each");
            return;
        }
    }
    if (!has_generation || !l->digest)
        diag_error(r->diag, first->at, "the policy has no %s", has_generation ? "digest" : "generation");
}

static void read_none(struct reader *r, const struct word *first)
{
    struct policy_lock *l = r->lock;
    struct word w = *first;
    const char *s = NULL;
    if (l->digest || l->none)
        diag_error(r->diag, first->at, "the policy is given twice");
    else if (!next_word(r, &w) || !(s = value_of(&w, "generation")) || !take_uint64(&w, s, 10, &l->generation))
        unexpected(r, &w, "generation=NUMBER");
    l->none = true;
}

static bool good_fact(const char *key, unsigned v)
{
    if (!strcmp(key, "vls"))
        return v <= 15 && (0x8117u >> v & 1); /* 0, 1, 2, 4, 8, 15 */
    if (!strcmp(key, "mtu"))
        return !v || ((v & (v - 1)) == 0 && v >= 256 && v <= 4096);
    return true;
}

static void read_caps(struct reader *r, struct fabric_caps *f)
{
    const struct {
        const char *key;
        unsigned max, *to;
    } facts[] = {{"vls", 15, &f->vls},
                 {"low", 64, &f->low_cap},
                 {"high", 64, &f->high_cap},
                 {"mtu", 4096, &f->mtu},
                 {"rate", 100000000, &f->rate_mbps},
                 {"hops", 64, &f->hops},
                 {"oversubscription", 65535, &f->oversubscription}};
    struct word w;
    while (next_word(r, &w)) {
        bool known = false;
        for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]) && !known; i++) {
            const char *s = value_of(&w, facts[i].key);
            unsigned v;
            if (!s)
                continue;
            known = true;
            if (!take_number(&s, w.s + w.len, facts[i].max, &v) || s != w.s + w.len || !good_fact(facts[i].key, v))
                diag_error(r->diag, w.at, "'%.*s' is not a value of %s", (int)(w.len < 40 ? w.len : 40), w.s,
                           facts[i].key);
            else
                *facts[i].to = v;
        }
        if (!known)
            unexpected(r, &w, "vls=, low=, high=, mtu=, rate=, hops=, oversubscription=");
    }
}

static void read_lock_fabric(struct reader *r, const struct word *first)
{
    if (r->has_fabric)
        diag_error(r->diag, first->at, "the fabric is given twice");
    r->has_fabric = true;
    read_caps(r, &r->lock->fabric);
}

static void read_plane(struct reader *r, const struct word *first)
{
    struct policy_lock *l = r->lock;
    struct lock_plane p = {0};
    struct word w;
    if (l->num_planes == LOCK_PLANES_MAX)
        diag_error(r->diag, first->at, "more than %d planes", LOCK_PLANES_MAX);
    else if (!next_word(r, &w) || w.len < 3 || memcmp(w.s, "0x", 2) || !take_uint64(&w, w.s + 2, 16, &p.guid) ||
             !p.guid)
        diag_error(r->diag, w.at, "a plane is known by the GUID of a port, as 0x0253460101000101");
    for (unsigned i = 0; i < l->num_planes && r->diag->errors == r->errors; i++)
        if (l->planes[i].guid == p.guid)
            diag_error(r->diag, w.at, "the plane is given twice");
    if (r->diag->errors != r->errors)
        return;
    read_caps(r, &p.caps);
    l->planes[l->num_planes++] = p;
}

static void read_version(struct reader *r, const struct word *first)
{
    struct word w;
    unsigned v;
    if (r->has_version)
        diag_error(r->diag, first->at, "the version is given twice");
    r->has_version = true;
    const char *end = next_word(r, &w) ? w.s + w.len : w.s;
    if (!take_number(&w.s, end, 1000000, &v) || w.s != end || v != LOCK_VERSION)
        diag_error(r->diag, w.at, "this is not a lock of version %d; a newer fabricd may have written it",
                   LOCK_VERSION);
}

static void read_line(struct reader *r)
{
    struct word w;
    if (!next_word(r, &w) || *w.s == '#') {
        r->at = memchr(r->at, '\n', (size_t)(r->end - r->at));
        r->at = r->at ? r->at : r->end;
        return;
    }
    if (word_is(&w, "lock"))
        read_version(r, &w);
    else if (!r->has_version)
        diag_error(r->diag, w.at, "a lock begins with 'lock %d'", LOCK_VERSION);
    else if (word_is(&w, "policy"))
        read_policy(r, &w);
    else if (word_is(&w, "none"))
        read_none(r, &w);
    else if (word_is(&w, "fabric"))
        read_lock_fabric(r, &w);
    else if (word_is(&w, "plane"))
        read_plane(r, &w);
    else if (word_is(&w, "class") || word_is(&w, "retired"))
        read_lock_class(r, &w);
    else
        unexpected(r, &w, "lock, policy, none, fabric, plane, class, retired");
    if (r->diag->errors == r->errors && next_word(r, &w))
        unexpected(r, &w, "the end of the line");
}

bool lock_parse(struct policy_lock *l, const char *text, size_t len, struct diag *d)
{
    struct reader r = {.at = text, .end = text + len, .diag = d, .lock = l, .errors = d->errors};
    unsigned before = d->errors;
    *l = (struct policy_lock){0};
    if (len && memchr(text, 0, len))
        diag_error(d, (struct place){0}, "a zero byte: this is not a lock");
    while (d->errors == before && r.at < r.end) {
        r.line++;
        r.line_begin = r.at;
        read_line(&r);
        r.at += r.at < r.end; /* the new line */
    }
    if (d->errors == before && r.line && !r.has_version)
        diag_error(d, (struct place){0}, "a lock begins with 'lock %d'", LOCK_VERSION);
    if (d->errors != before)
        *l = (struct policy_lock){0};
    return d->errors == before;
}
