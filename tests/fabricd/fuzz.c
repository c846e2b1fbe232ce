/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for everything in fabricd that reads what others wrote. The first byte chooses the reader. Besides
 * not crashing: a policy that compiles gives tables that are sound, and opensm's file merged twice is the same as once.
 */
#include "fabricd/conf.h"
#include "fabricd/json.h"
#include "fabricd/message.h"
#include "fabricd/fabric/opensm.h"

#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static void need(bool ok)
{
    if (!ok)
        abort();
}

static void sound(const struct qos_tables *t)
{
    need(t->num_low >= 1 && t->num_low <= TABLE_ENTRIES_MAX && t->num_high <= TABLE_ENTRIES_MAX);
    for (unsigned sl = 0; sl < SLS; sl++) {
        unsigned served = 0;
        for (unsigned e = 0; e < t->num_low; e++)
            served += t->low[e].vl == t->sl2vl[sl] ? t->low[e].weight : 0;
        for (unsigned e = 0; e < t->num_high; e++)
            served += t->high[e].vl == t->sl2vl[sl] ? t->high[e].weight : 0;
        need(served && t->sl2vl[sl] < t->vls);
    }
}

static void policy(const char *s, size_t len)
{
    static struct policy p;
    static struct qos_tables t;
    struct diag d = {.file = "f"};
    struct policy_lock none = {0}, lock;
    struct fabric_caps caps = {.vls = 8,
                               .low_cap = len % 3 ? 8 : 64,
                               .high_cap = 8,
                               .mtu = len % 2 ? 4096 : 2048,
                               .rate_mbps = len % 5 ? 16000 : 0};
    if (policy_parse(&p, s, len, &d) && lock_next(&p, &none, &caps, &lock, &d) && policy_compile(&p, &lock, &t, &d)) {
        struct text out = {0};
        sound(&t);
        tables_plan_text(&out, &p, &t);
        text_free(&out);
    } else {
        need(d.errors && d.out.len);
    }
    text_free(&d.out);
}

/* What is read is written as it is read, and no service level is anybody's twice. */
static void locks(const char *s, size_t len)
{
    struct policy_lock l, again;
    struct diag d = {.file = "f"};
    struct text out = {0};
    if (lock_parse(&l, s, len, &d)) {
        unsigned seen = 0;
        lock_text(&out, &l);
        need(out.len <= FD_LOCK_MAX && lock_parse(&again, out.s, out.len, &d) && lock_equal(&l, &again));
        for (unsigned i = 0; i < l.num_classes; i++) {
            need(!(seen & lock_levels(&l.classes[i])));
            seen |= lock_levels(&l.classes[i]);
        }
    } else {
        need(d.errors && d.out.len && !l.num_classes);
    }
    text_free(&out);
    text_free(&d.out);
}

static void settings(const char *s, size_t len)
{
    static struct conf c;
    struct diag d = {.file = "f"};
    conf_defaults(&c);
    need(conf_parse(&c, s, len, &d) == !d.errors);
    text_free(&d.out);
}

/* What has become JSON is YAML, too, of the same. */
static void answers(const char *s, size_t len)
{
    struct text once = {0}, twice = {0};
    if (json_of_yaml(&once, s, len)) {
        need(json_of_yaml(&twice, once.s, once.len));
        need(once.len == twice.len && !memcmp(once.s, twice.s, once.len));
    } else {
        need(!once.len);
    }
    text_free(&once);
    text_free(&twice);
}

static void opensm_file(const char *s)
{
    static const struct qos_tables t = {.num_low = 1, .low = {{0, 64}}, .vls = 8, .op_vls_code = 4};
    struct text once = {0}, twice = {0};
    char v[8];
    opensm_conf_merge(s, &t, &once);
    opensm_conf_merge(once.s, &t, &twice);
    need(!strcmp(once.s, twice.s));
    need(opensm_conf_get(once.s, "lmc", v, sizeof(v)) && !strcmp(v, "0"));
    need(opensm_conf_get(once.s, "qos", v, sizeof(v)) && !strcmp(v, "TRUE"));
    text_free(&once);
    text_free(&twice);
}

/* An answer with levels, as a client looks at it. */
static void answer(const char *s, size_t len)
{
    struct fd_state_long m = {0};
    memcpy(&m, s, len < sizeof(m) ? len : sizeof(m));
    int n = fd_state_num_levels(&m.s, len);
    const struct fd_spread *spread = fd_state_spread(&m.s, len, n);
    need(!spread || (const char *)(spread + 1) == (const char *)&m + len);
    for (int i = 0; i < n; i++)
        if (fd_level_is_sane(&fd_state_levels(&m.s)[i], 0))
            need(fd_state_levels(&m.s)[i].sl[fd_state_levels(&m.s)[i].num_lanes - 1] <= 15);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    char *s = malloc(size); /* exactly as long as it is, so that reading past the end is seen */
    if (!s)
        abort();
    memcpy(s, data + 1, size - 1);
    s[size - 1] = 0;
    switch (data[0] % 6) {
    case 0:
        settings(s, size - 1);
        break;
    case 1:
        opensm_file(s);
        break;
    case 2:
        (void)message_check(s, size - 1);
        answer(s, size - 1);
        break;
    case 4:
        locks(s, size - 1);
        break;
    case 5:
        answers(s, size - 1);
        break;
    default:
        policy(s, size - 1);
    }
    free(s);
    return 0;
}
