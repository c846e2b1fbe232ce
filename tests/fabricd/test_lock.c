/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy.lock: its text and its purpose. Whatever an administrator changes in a policy, no service level of a running
 * job gets another meaning.
 */
#include "fabricd/policy/compile.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct text last; /* messages so far */

static bool parse(const char *s, struct policy_lock *l)
{
    struct diag d = {.file = "l"};
    bool ok = lock_parse(l, s, strlen(s), &d);
    ck_assert_uint_eq(ok, d.errors == 0);
    text_free(&last);
    last = d.out;
    return ok;
}

static bool next(const struct policy *p, const struct policy_lock *old, struct policy_lock *out)
{
    struct diag d = {.file = "p"};
    bool ok = lock_next(p, old, NULL, out, &d);
    ck_assert_uint_eq(ok, d.errors == 0);
    text_free(&last);
    last = d.out;
    return ok;
}

static bool said(const char *what)
{
    if (!strstr(text_str(&last), what))
        fprintf(stderr, "%s\n", text_str(&last));
    return strstr(text_str(&last), what) != NULL;
}

static void text_is(const struct policy_lock *l, const char *want)
{
    struct text t = {0};
    lock_text(&t, l);
    ck_assert_str_eq(strstr(t.s, "lock 1\n"), want);
    text_free(&t);
}

static struct policy_class class_of(const char *name, unsigned lanes, unsigned medium)
{
    struct policy_class c = {.share = 10, .priority = 1, .lanes = lanes, .small_max = 1024, .num_medium = medium};
    snprintf(c.name, sizeof(c.name), "%s", name);
    for (unsigned i = 0; i < medium; i++)
        c.medium_max[i] = 65536 << i;
    return c;
}

static struct policy three(void)
{
    struct policy p = {.vls = 15, .high_limit = -1, .num_classes = 3, .default_class = 1};
    p.classes[0] = class_of("urgent", 2, 1);
    p.classes[1] = class_of("normal", 1, 0);
    p.classes[2] = class_of("batch", 1, 0);
    return p;
}

/* ---- the text ---- */

static struct policy_lock random_lock(void)
{
    struct policy_lock l = {0};
    unsigned left = SLS;
    uint8_t sl[SLS];
    for (unsigned i = 0; i < SLS; i++)
        sl[i] = (uint8_t)i;
    for (unsigned i = SLS - 1; i; i--) {
        unsigned k = (unsigned)random() % (i + 1);
        uint8_t x = sl[i];
        sl[i] = sl[k];
        sl[k] = x;
    }
    if (random() % 4)
        l.fabric = (struct fabric_caps){.vls = random() % 2 ? 8 : 0,
                                        .low_cap = (unsigned)random() % 65,
                                        .high_cap = (unsigned)random() % 65,
                                        .mtu = 256u << random() % 5,
                                        .rate_mbps = (unsigned)random() % 800000,
                                        .hops = (unsigned)random() % 65,
                                        .oversubscription = (unsigned)random() % 3};
    for (unsigned n = (unsigned)random() % 4; n; n--)
        l.planes[l.num_planes++] = (struct lock_plane){(uint64_t)random() << 32 | n,
                                                       {.vls = 4, .low_cap = 8, .high_cap = 8, .mtu = 2048, .hops = n}};
    for (unsigned n = (unsigned)random() % 9; n && left >= 2; n--) {
        struct lock_class *c = &l.classes[l.num_classes++];
        snprintf(c->name, sizeof(c->name), "c%u.%c-_", n, "aZ9"[random() % 3]);
        c->retired = random() % 2;
        c->sl_small = sl[--left];
        c->sl_bulk[c->num_bulk++] = sl[--left];
        while (left && c->num_bulk < FD_LANES_MAX && random() % 2)
            c->sl_bulk[c->num_bulk++] = sl[--left];
        while (left && c->num_medium < FD_MEDIUM_MAX && random() % 2)
            c->sl_medium[c->num_medium++] = sl[--left];
    }
    return l;
}

START_TEST(text_and_back)
{
    for (unsigned seed = 0; seed < 2000; seed++) {
        struct policy_lock was, is;
        struct text a = {0}, b = {0};
        srandom(seed);
        was = random_lock();
        lock_text(&a, &was);
        ck_assert_msg(parse(a.s, &is), "seed %u: %s%s", seed, a.s, text_str(&last));
        ck_assert(lock_equal(&was, &is));
        lock_text(&b, &is);
        ck_assert_str_eq(a.s, b.s);
        ck_assert_uint_lt(a.len, FD_LOCK_MAX);
        text_free(&a);
        text_free(&b);
    }
}
END_TEST

static const struct {
    const char *text, *says;
} wrong[] = {
    {"class a small=1 bulk=2\n", "l:1:1: error: a lock begins with 'lock 1'"},
    {"# only words\n", "l: error: a lock begins with 'lock 1'"},
    {"lock 2\n", "l:1:6: error: this is not a lock of version 1"},
    {"lock\n", "l:1:5: error: this is not a lock of version 1"},
    {"lock 1x\n", "l:1:6: error: this is not a lock of version 1"},
    {"lock 1 1\n", "l:1:8: error: '1'; allowed here: the end of the line"},
    {"lock 1\nlock 1\n", "l:2:1: error: the version is given twice"},
    {"lock 1\n\nclas a\n", "l:3:1: error: 'clas'; allowed here: lock, policy, none, fabric, plane, class, retired"},
    {"lock 1\nnone\n", "l:2:5: error: ''; allowed here: generation=NUMBER"},
    {"lock 1\nnone generation=x\n", "l:2:6: error: 'generation=x'; allowed here: generation=NUMBER"},
    {"lock 1\nnone generation=3\npolicy generation=3 digest=1\n", "l:3:1: error: the policy is given twice"},
    {"lock 1\nplane 7 vls=8\n", "l:2:7: error: a plane is known by the GUID of a port"},
    {"lock 1\nplane 0x0 vls=8\n", "l:2:7: error: a plane is known by the GUID of a port"},
    {"lock 1\nplane 0x10000000000000000\n", "l:2:7: error: a plane is known by the GUID of a port"},
    {"lock 1\nplane 0x7 vls=8\nplane 0x7 vls=4\n", "l:3:7: error: the plane is given twice"},
    {"lock 1\nplane 0x7 vls=5\n", "l:2:11: error: 'vls=5' is not a value of vls"},
    {"lock 1\nclass a small=1 bulk=16\n", "l:2:17: error: 'bulk=16'; allowed: up to 8 service levels, 0 to 15"},
    {"lock 1\nclass a small=1,2 bulk=3\n", "l:2:9: error: 'small=1,2'; allowed: up to 1 service levels"},
    {"lock 1\nclass a small=1 bulk=\n", "l:2:17: error: 'bulk='"},
    {"lock 1\nclass a small=1 bulk=2,\n", "l:2:17: error: 'bulk=2,'"},
    {"lock 1\nclass a small=1 bulk=2,,3\n", "l:2:17: error: 'bulk=2,,3'"},
    {"lock 1\nclass a small=1 bulk=99999999999999999999\n", "l:2:17: error: 'bulk=9999"},
    {"lock 1\nclass a small=1 bulk=1\n", "l:2:17: error: service level 1 is given out twice"},
    {"lock 1\nclass a small=1 bulk=2\nretired b small=3 bulk=2\n", "l:3:19: error: service level 2 is given out twice"},
    {"lock 1\nclass a small=1 bulk=2\nclass a small=3 bulk=4\n", "l:3:7: error: class 'a' is given twice"},
    {"lock 1\nclass a small=1\n", "l:2:1: error: class 'a' has no bulk=LEVELS"},
    {"lock 1\nclass a bulk=1\n", "l:2:1: error: class 'a' has no small=LEVEL"},
    {"lock 1\nclass a small=1 small=2 bulk=3\n", "l:2:17: error: given twice"},
    {"lock 1\nclass a small=1 bulk=2 weight=3\n", "l:2:24: error: 'weight=3'; allowed here: small="},
    {"lock 1\nclass\n", "l:2:6: error: a class has a name"},
    {"lock 1\nclass a/b small=1 bulk=2\n", "l:2:7: error: a class name has letters"},
    {"lock 1\nclass aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa small=1 bulk=2\n", "l:2:7: error: a class has a name of up to 31"},
    {"lock 1\npolicy generation=1\n", "l:2:1: error: the policy has no digest"},
    {"lock 1\npolicy digest=1\n", "l:2:1: error: the policy has no generation"},
    {"lock 1\npolicy generation=1 digest=0\n", "l:2:21: error: 'digest=0'; allowed here: generation="},
    {"lock 1\npolicy generation=x digest=1\n", "l:2:8: error: 'generation=x'"},
    {"lock 1\npolicy generation=18446744073709551616 digest=1\n", "l:2:8: error: 'generation=18446744073709551616'"},
    {"lock 1\npolicy generation=1 generation=1 digest=1\n", "l:2:21: error: 'generation=1'"},
    {"lock 1\npolicy generation=1 digest=1\npolicy generation=1 digest=1\n", "l:3:1: error: the policy is given twice"},
    {"lock 1\nfabric vls=3\n", "l:2:8: error: 'vls=3' is not a value of vls"},
    {"lock 1\nfabric low=65\n", "l:2:8: error: 'low=65' is not a value of low"},
    {"lock 1\nfabric mtu=1500\n", "l:2:8: error: 'mtu=1500' is not a value of mtu"},
    {"lock 1\nfabric mtu=\n", "l:2:8: error: 'mtu=' is not a value of mtu"},
    {"lock 1\nfabric oversubscription=65536\n", "l:2:8: error: 'oversubscription=65536' is not a value of"},
    {"lock 1\nfabric speed=1\n", "l:2:8: error: 'speed=1'; allowed here: vls="},
    {"lock 1\nfabric vls=8\nfabric vls=8\n", "l:3:1: error: the fabric is given twice"},
};

START_TEST(text_that_is_wrong)
{
    struct policy_lock l;
    ck_assert(!parse(wrong[_i].text, &l));
    ck_assert(said(wrong[_i].says));
    ck_assert_uint_eq(l.num_classes, 0);
}
END_TEST

START_TEST(of_which_policy)
{
    static const char text[] = "lock 1\npolicy generation=18446744073709551615 digest=0123456789abcdef\n";
    struct policy_lock l, next;
    struct policy p = three();
    struct diag d = {0};
    ck_assert(parse(text, &l));
    ck_assert_uint_eq(l.generation, UINT64_MAX);
    ck_assert_uint_eq(l.digest, 0x0123456789abcdef);
    text_is(&l, text);
    ck_assert(lock_next(&p, &l, NULL, &next, &d)); /* a lock to follow belongs to no policy until that is in force */
    ck_assert_uint_eq(next.digest, 0);
    ck_assert_uint_eq(lock_digest("", 0), 0xcbf29ce484222325); /* the published values of FNV-1a */
    ck_assert_uint_eq(lock_digest("foobar", 6), 0x85944171f73967e8);
}
END_TEST

START_TEST(text_that_is_right)
{
    struct policy_lock l;
    struct diag d = {.file = "l"};
    ck_assert(parse("", &l));
    ck_assert_uint_eq(l.num_classes, 0);
    ck_assert(parse("  # by hand\r\n\r\nlock 1\r\n\tclass  a bulk=3,2 \t small=1", &l));
    ck_assert_uint_eq(l.num_classes, 1);
    ck_assert_uint_eq(l.classes[0].sl_bulk[1], 2);
    ck_assert(parse("lock 1\nfabric vls=8 low=8 high=8 mtu=2048 rate=16000 hops=2\n", &l));
    ck_assert_uint_eq(l.fabric.oversubscription, 0); /* older locks lack this fact */
    ck_assert(!lock_parse(&l, "lock 1\n\0", 8, &d));
    text_free(&d.out);
}
END_TEST

/* ---- levels ---- */

START_TEST(first_lock)
{
    struct policy p = three();
    struct policy_lock none = {0}, l;
    ck_assert(next(&p, &none, &l));
    text_is(
        &l,
        "lock 1\nclass urgent small=1 medium=2 bulk=3,4\nclass normal small=5 bulk=6\nclass batch small=7 bulk=8\n");
}
END_TEST

START_TEST(levels_stay)
{
    struct policy p = three(), q = p;
    struct policy_lock none = {0}, a, b, c;
    ck_assert(next(&p, &none, &a));
    q.classes[0] = p.classes[2]; /* two swap places, one goes and one comes, another is the default */
    q.classes[1] = class_of("new", 1, 1);
    q.classes[2] = p.classes[0];
    q.classes[2].lanes = 1;
    q.default_class = 0;
    ck_assert(next(&q, &a, &b));
    text_is(
        &b,
        "lock 1\nclass urgent small=1 medium=2 bulk=3,4\nretired normal small=5 bulk=6\nclass batch small=7 bulk=8\n"
        "class new small=9 medium=10 bulk=11\n");
    ck_assert(next(&p, &b, &c)); /* a returning class has its levels again */
    text_is(&c,
            "lock 1\nclass urgent small=1 medium=2 bulk=3,4\nclass normal small=5 bulk=6\nclass batch small=7 bulk=8\n"
            "retired new small=9 medium=10 bulk=11\n");
    struct qos_tables t;
    struct diag d = {.file = "p"};
    ck_assert(policy_compile(&q, &b, &t, &d));
    ck_assert_uint_eq(t.sl2vl[5], t.classes[0].vl_bulk[0]); /* retired levels go with the default's bulk */
    ck_assert_uint_eq(t.sl2vl[6], t.classes[0].vl_bulk[0]);
    ck_assert_uint_eq(t.sl2vl[0], t.classes[0].vl_bulk[0]);
    ck_assert_uint_eq(t.sl2vl[4], t.classes[2].vl_bulk[0]); /* a lane that its class no longer has */
    ck_assert(!policy_compile(&p, &(struct policy_lock){0}, &t, &d));
    text_free(&d.out);
}
END_TEST

START_TEST(levels_run_out)
{
    struct policy p = three(), q = p;
    struct policy_lock none = {0}, a, b;
    p.classes[0] = class_of("wide", 7, 0);
    ck_assert(next(&p, &none, &a)); /* 12 */
    q.classes[0] = class_of("other", 2, 1);
    ck_assert(!next(&q, &a, &b));
    ck_assert(said("need 4 more service levels, and 3 of the 16 are free; retired class 'wide' holds 8"));
    q.classes[0] = class_of("wide", 1, 0);
    q.classes[q.num_classes++] = class_of("other", 2, 1);
    ck_assert(!next(&q, &a, &b));
    ck_assert(said("class 'wide' holds 6: 'fabricctl policy forget CLASS'"));
    ck_assert(lock_forget(&a, &q, "wide"));
    ck_assert(!lock_forget(&a, &q, "wide"));
    ck_assert(!lock_forget(&a, &q, "nobody"));
    ck_assert(next(&q, &a, &b));
    ck_assert(lock_forget(&b, &p, "other")); /* unknown to p */
    ck_assert_ptr_null(lock_find(&b, "other"));
    ck_assert_ptr_nonnull(lock_find(&b, "batch"));
}
END_TEST

START_TEST(sixteen_levels)
{
    struct policy p = {.vls = 15, .high_limit = -1, .num_classes = 8, .default_class = 3}, q;
    struct policy_lock none = {0}, a, b;
    for (unsigned i = 0; i < 8; i++)
        p.classes[i] = class_of((char[]){(char)('a' + i), 0}, 1, 0);
    ck_assert(next(&p, &none, &a));
    ck_assert_uint_eq(lock_find(&a, "d")->sl_bulk[0], 0); /* the only rest */
    q = p;
    q.default_class = 4;
    ck_assert(!next(&q, &a, &b));
    ck_assert(said("the default class cannot become 'e': jobs of class 'd' use service level 0"));
    snprintf(q.classes[3].name, sizeof(q.classes[3].name), "x");
    ck_assert(!next(&q, &a, &b)); /* d is retired, and nothing is left for x */
    ck_assert(said("retired class 'd' holds 2"));
    ck_assert(lock_forget(&a, &q, "d"));
    ck_assert(!next(&q, &a, &b)); /* one of these is level 0, which cannot be x's while e is the default */
    q.default_class = 3;
    ck_assert(next(&q, &a, &b));
    ck_assert_uint_eq(lock_find(&b, "x")->sl_bulk[0], 0);
}
END_TEST

/*
 * Levels of an older fabricd, which counted levels anew each time: the default class's bulk, the others', small,
 * medium.
 */
START_TEST(levels_of_before)
{
    struct policy p = three();
    struct policy_lock a, b;
    struct qos_tables t;
    struct diag d = {.file = "p"};
    ck_assert(lock_of_before(&p, &a));
    text_is(
        &a,
        "lock 1\nclass urgent small=4 medium=7 bulk=1,2\nclass normal small=5 bulk=0\nclass batch small=6 bulk=3\n");
    ck_assert(next(&p, &a, &b));
    ck_assert(lock_equal(&a, &b));
    ck_assert(policy_compile(&p, &a, &t, &d));
    ck_assert_uint_eq(t.classes[0].sl_bulk[1], 2);
    ck_assert_uint_eq(t.sl2vl[0], 0);
    p.classes[0].lanes = 8;
    p.classes[1].lanes = 4;
    ck_assert(!lock_of_before(&p, &a));
}
END_TEST

START_TEST(two_locks)
{
    struct policy p = three();
    struct policy_lock none = {0}, a, b, c;
    ck_assert(parse("lock 1\nfabric low=8 mtu=2048\nclass normal small=1 bulk=2\nretired gone small=3 bulk=4\n", &a));
    c = none;
    ck_assert(lock_merge(&c, &a, &p)); /* nothing was known: all is taken */
    ck_assert(lock_equal(&a, &c));
    ck_assert(parse("lock 1\nclass normal small=1 bulk=2,5\n", &b));
    c = b;
    ck_assert(lock_merge(&c, &a, &p)); /* forgotten here: not taken back */
    text_is(&c, "lock 1\nfabric vls=0 low=8 high=0 mtu=2048 rate=0 hops=0\nclass normal small=1 bulk=2,5\n");
    ck_assert(parse("lock 1\nfabric low=64 mtu=4096 oversubscription=3\n", &b));
    c = a;
    ck_assert(lock_merge(&c, &b, &p)); /* the only unknown fact */
    ck_assert_uint_eq(c.fabric.oversubscription, 3);
    ck_assert_uint_eq(c.fabric.mtu, 2048);
    c.fabric.oversubscription = 2;
    ck_assert(!lock_equal(&b, &c) && lock_merge(&c, &b, &p));
    ck_assert_uint_eq(c.fabric.oversubscription, 2);
    ck_assert(parse("lock 1\nclass batch small=6 bulk=7\nclass urgent small=3 bulk=1\n", &b));
    c = a;
    ck_assert(!lock_merge(&c, &b, &p)); /* levels of urgent are others' here */
    ck_assert_ptr_nonnull(lock_find(&c, "batch"));
    ck_assert_ptr_null(lock_find(&c, "urgent"));
    ck_assert(parse("lock 1\nclass normal small=2 bulk=1\n", &b));
    c = a;
    ck_assert(!lock_merge(&c, &b, &p));
    ck_assert_uint_eq(lock_find(&c, "normal")->sl_small, 1);
}
END_TEST

START_TEST(where_it_is)
{
    char path[32];
    ck_assert(lock_path("a/p.yaml", path, sizeof(path)));
    ck_assert_str_eq(path, "a/p.lock");
    ck_assert(lock_path("p.yml", path, sizeof(path)));
    ck_assert_str_eq(path, "p.lock");
    ck_assert(lock_path("a.yaml/p", path, sizeof(path)));
    ck_assert_str_eq(path, "a.yaml/p.lock");
    ck_assert(!lock_path("/12345678901234567890123456789.yaml", path, sizeof(path)));
}
END_TEST

/* ---- any sequence of edits ---- */

/* The owner of a level, and its list; or no owner. */
struct meaning {
    char name[FD_NAME_MAX];
    char kind;
};

static void meanings_of(const struct policy_lock *l, struct meaning m[SLS])
{
    memset(m, 0, SLS * sizeof(m[0]));
    for (unsigned i = 0; i < l->num_classes; i++) {
        const struct lock_class *c = &l->classes[i];
        uint16_t all = lock_levels(c);
        for (unsigned sl = 0; sl < SLS; sl++) {
            if (!(all >> sl & 1))
                continue;
            ck_assert_int_eq(m[sl].kind, 0); /* nobody else's */
            memcpy(m[sl].name, c->name, sizeof(m[sl].name));
            m[sl].kind = c->sl_small == sl ? 's' : memchr(c->sl_medium, (int)sl, c->num_medium) ? 'm' : 'b';
        }
    }
}

static void edit(struct policy *p, unsigned *names)
{
    unsigned i = (unsigned)random() % p->num_classes, k = (unsigned)random() % p->num_classes;
    char name[8];
    struct policy_class c = p->classes[i];
    switch (random() % 6) {
    case 0: /* another class, or an earlier class */
        snprintf(name, sizeof(name), "n%u", random() % 3 ? (*names)++ : (unsigned)random() % *names);
        for (unsigned n = 0; n < p->num_classes; n++)
            if (!strcmp(p->classes[n].name, name))
                return;
        if (p->num_classes < POLICY_CLASSES_MAX)
            p->classes[p->num_classes++] = class_of(name, 1 + (unsigned)random() % 2, (unsigned)random() % 3);
        break;
    case 1:
        if (p->num_classes == 1)
            break;
        memmove(&p->classes[i], &p->classes[i + 1], (p->num_classes - i - 1) * sizeof(c));
        p->num_classes--;
        p->default_class %= p->num_classes;
        break;
    case 2:
        p->classes[i] = p->classes[k];
        p->classes[k] = c;
        break;
    case 3:
        p->default_class = i;
        break;
    case 4:
        p->classes[i].lanes = 1 + (unsigned)random() % 3;
        p->classes[i].priority = (uint32_t)random() % 4;
        break;
    default:
        p->classes[i] = class_of(c.name, c.lanes, (unsigned)random() % 3);
    }
}

/* The tables agree with the lock: each level of a class on a lane of the class, unowned levels on the default's. */
static void check_tables(const struct policy *p, const struct policy_lock *l, const struct meaning m[SLS])
{
    struct qos_tables t, again;
    struct diag d = {.file = "p"};
    if (policy_compile(p, l, &t, &d)) {
        for (unsigned sl = 0; sl < SLS; sl++) {
            unsigned i = 0;
            while (i < p->num_classes && strcmp(p->classes[i].name, m[sl].name))
                i++;
            const struct class_levels *c = &t.classes[i < p->num_classes ? i : p->default_class];
            bool bulk = memchr(c->vl_bulk, t.sl2vl[sl], c->num_lanes),
                 medium = memchr(c->vl_medium, t.sl2vl[sl], c->num_medium);
            if (i < p->num_classes && m[sl].kind == 's')
                ck_assert_uint_eq(t.sl2vl[sl], c->vl_small);
            else
                ck_assert(bulk || (i < p->num_classes && m[sl].kind == 'm' && medium));
        }
        ck_assert(memchr(t.classes[p->default_class].vl_bulk, t.sl2vl[0], t.classes[p->default_class].num_lanes));
        ck_assert(policy_compile(p, l, &again, &d));
        ck_assert(tables_equal(&t, &again));
    }
    text_free(&d.out);
}

START_TEST(no_level_gets_another_meaning)
{
    unsigned good = 0, refused = 0;
    for (unsigned seed = 0; seed < 150; seed++) {
        struct policy now = three(), p;
        struct policy_lock lock = {0}, after;
        struct meaning before[SLS], is[SLS];
        unsigned names = 1;
        srandom(seed);
        if (seed & 1)
            ck_assert(lock_of_before(&now, &lock));
        ck_assert(next(&now, &lock, &lock));
        for (unsigned step = 0; step < 40; step++) {
            p = now;
            edit(&p, &names);
            meanings_of(&lock, before);
            if (!next(&p, &lock, &after)) {
                refused++;
                continue;
            }
            good++;
            meanings_of(&after, is);
            for (unsigned sl = 0; sl < SLS; sl++)
                ck_assert_msg(!before[sl].kind || !memcmp(&before[sl], &is[sl], sizeof(is[sl])),
                              "seed %u: level %u was %c of %s, is %c of %s", seed, sl, before[sl].kind, before[sl].name,
                              is[sl].kind, is[sl].name);
            for (unsigned i = 0; i < p.num_classes; i++)
                ck_assert_ptr_nonnull(lock_find(&after, p.classes[i].name));
            check_tables(&p, &after, is);
            now = p;
            lock = after;
        }
    }
    ck_assert_uint_gt(good, 1500);
    ck_assert_uint_gt(refused, 100);
}
END_TEST

/* Capabilities of planes are distinguished only if tables of one plane do not suit another. */
START_TEST(planes_that_differ)
{
    struct fabric_caps all = {.vls = 4, .low_cap = 8, .high_cap = 8, .mtu = 2048, .hops = 3, .oversubscription = 2};
    struct lock_plane seen[3] = {{0x11, all}, {0x12, all}, {0x13, {0}}}; /* nothing is up at the third */
    struct policy_lock l = {0};
    lock_take_planes(&l, &all, seen, 3);
    ck_assert_uint_eq(l.num_planes, 0);
    seen[0].caps.hops = 1; /* no table depends on this */
    lock_take_planes(&l, &all, seen, 3);
    ck_assert_uint_eq(l.num_planes, 0);
    ck_assert_uint_eq(l.fabric.hops, 3);
    seen[1].caps.vls = 8;
    seen[1].caps.oversubscription = 1;
    lock_take_planes(&l, &all, seen, 3);
    ck_assert_uint_eq(l.num_planes, 2);
    ck_assert_uint_eq(l.fabric.vls, 8); /* the most capable plane informs jobs */
    ck_assert_uint_eq(l.fabric.oversubscription, 2);
    ck_assert_uint_eq(l.planes[0].caps.vls, 4);
    lock_add_planes(&l, seen, 2);
    ck_assert_uint_eq(l.num_planes, 2);
    seen[2] = (struct lock_plane){0x14, seen[0].caps};
    lock_add_planes(&l, seen, 3);
    ck_assert_uint_eq(l.num_planes, 3);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("lock");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, text_and_back);
    tcase_add_loop_test(t, text_that_is_wrong, 0, (int)(sizeof(wrong) / sizeof(wrong[0])));
    tcase_add_test(t, of_which_policy);
    tcase_add_test(t, text_that_is_right);
    tcase_add_test(t, first_lock);
    tcase_add_test(t, levels_stay);
    tcase_add_test(t, levels_run_out);
    tcase_add_test(t, sixteen_levels);
    tcase_add_test(t, levels_of_before);
    tcase_add_test(t, two_locks);
    tcase_add_test(t, where_it_is);
    tcase_add_test(t, planes_that_differ);
    tcase_add_test(t, no_level_gets_another_meaning);
    return check_run(t, NULL);
}
