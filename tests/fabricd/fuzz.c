/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for all parsers of fabricd. The first byte chooses the reader, among those of FUZZ_KINDS in the
 * environment, digits as in LLVMFuzzerTestOneInput; default all. Besides not crashing: a compiled policy gives sound
 * tables, and merging opensm's file twice is the same as once.
 */
#include "fabricd/base/conf.h"
#include "fabricd/dbus/internal.h"
#include "fabricd/jobs/jobs_text.h"
#include "fabricd/jobs/orders.h"
#include "fabricd/ctl/json.h"
#include "fabricd/proto/message.h"
#include "fabricd/proto/ratio.h"
#include "fabricd/fabric/opensm.h"
#include "fabricd/fabric/partitions.h"
#include "fabricd/fabric/paths.h"
#include "fabricd/fabric/paths_text.h"
#include "fabricd/subscribers.h"

#include <stdio.h>
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

/* A lock is written as it was read, and no service level has two owners. */
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

/* JSON output is also YAML with the same contents. */
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

/*
 * A partition file, or the list of seen ports: merging twice is the same as once, and our section leaves nothing
 * behind.
 */
static void partitions(const char *s)
{
    static struct policy p = {.num_classes = 1,
                              .classes = {{.partition = {.pkey = 0x11, .num_members = 1, .members = {"h*"}}}}};
    struct partition_file old = {.there = true}, once = {0}, twice = {0}, rest = {0}, bare = {0};
    struct text why = {0};
    text_put(&old.text, s, strlen(s));
    partitions_merge(&old, &p, NULL, s, &once);
    partitions_merge(&once, &p, NULL, s, &twice);
    need(partition_file_equal(&once, &twice));
    partitions_take_section(&once, NULL, &rest);
    partitions_take_section(&old, NULL, &bare);
    need(partition_file_equal(&rest, &bare));
    need(partitions_free(&old, &p, "f", &why) == !why.len);
    text_free(&why);
    partition_file_free(&old);
    partition_file_free(&once);
    partition_file_free(&twice);
    partition_file_free(&rest);
    partition_file_free(&bare);
}

static void opensm_file(const char *s)
{
    partitions(s);
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
    const struct fd_health *health = fd_state_health(&m.s, len, n);
    const char *end = (const char *)&m + len;
    need(!health || (const char *)(health + 1) == end);
    need(!spread || (const char *)(spread + 1) == (health ? (const char *)health : end));
    for (int i = 0; i < n; i++)
        if (fd_level_is_sane(&fd_state_levels(&m.s)[i], 0))
            need(fd_state_levels(&m.s)[i].sl[fd_state_levels(&m.s)[i].num_lanes - 1] <= 15);
}

/*
 * Answers of the subnet administration: the first byte is the switch of the table, 0: cables; the second, the number of
 * bytes missing in a record. For any records, a trace ends.
 */
static void records(const char *s, size_t len)
{
    struct routes r = {0};
    struct paths_names names = {0};
    struct routes_pair pair;
    struct text out = {0};
    uint8_t order[FD_PATHS_MAX];
    routes_need need_what;
    if (len < 3)
        return;
    const uint8_t *record = (const uint8_t *)s + 2;
    uint8_t lid = (uint8_t)s[0], less = (uint8_t)s[1] % 8;
    size_t size = (lid ? ROUTES_TABLE_RECORD : 8) - less;
    need(!routes_take(&r, lid, record, (len - 2) / size, size, 1));
    const uint8_t cable[] = {0, 10, 1, 1, 0, lid, 0, 0, 0, lid, 2, 1, 0, lid, 0, 0, 0, 20, 1, 1, 0, lid, 0, 0};
    if (lid)
        need(!routes_take(&r, ROUTES_CABLES, cable, sizeof(cable) / 8, 8, 1));
    enum routes_end end = routes_pair(&r, 10, 20, 1 + lid % 9, &pair, &need_what);
    if (end == ROUTES_THERE) {
        unsigned n = routes_order(&pair, order);
        need(n >= 1 && n <= pair.num && !order[0]);
        need(!paths_names_take(&names, record, (len - 2) / 112, 112));
        paths_text(&out, &names, &(struct paths_question){.from = 10, .to = 20}, &pair);
        need(out.len);
    }
    text_free(&out);
    paths_names_free(&names);
    routes_free(&r);
}

/* ---- jobs: the file, and bus methods ----------------------------------------------------------------------------- */

static bool take_one(void *arg, const struct job *job, bool ended)
{
    (void)ended;
    *(struct job *)arg = *job;
    return true;
}

/* The parsed part of a line is written as it was read. */
static bool take(void *arg, const struct job *job, bool ended)
{
    unsigned *n = arg;
    struct text line = {0};
    struct diag d = {.file = "f"};
    text_printf(&line, "jobs:\n");
    if (ended)
        journal_ended(&line, job->id);
    else
        journal_job(&line, job);
    need(strchr(strchr(line.s, '\n') + 1, '\n') == line.s + line.len - 1); /* one line */
    struct job again = {.uid = 0};
    need(journal_parse(&line, take_one, &again, &d) == 1 && !d.errors);
    need(ended ? !strcmp(again.id, job->id) : !memcmp(&again, job, sizeof(again)));
    text_free(&line);
    text_free(&d.out);
    return ++*n <= 1000;
}

static void jobs_file(const char *s, size_t len)
{
    struct text t = {.s = (char *)s, .len = len, .cap = len};
    struct diag d = {.file = "f"};
    unsigned n = 0;
    (void)journal_parse(&t, take, &n, &d);
    need(!d.errors == !d.out.len);
    text_free(&d.out);
}

/* No listeners: they would be the bus's and the socket's. */
void subscribers_publish(struct daemon *d)
{
    (void)d;
}

static const char *next_line(char **at)
{
    char *s = *at ? *at : "", *end = strchr(s, '\n');
    if (end)
        *end = 0;
    *at = end ? end + 1 : NULL;
    return s;
}

/* A daemon with a policy and a directory, and no connections. */
static struct daemon *host(void)
{
    static const char text[] = "version: 1\nclasses:\n  - {name: a, share: 50, max jobs: 3, choose: [{user: \"*\"}]}\n"
                               "  - {name: b, share: 50}\njobs: {default: b, rules: [{qos: \"h*\", class: a}]}\n";
    static struct daemon d;
    struct diag diag = {.file = "f"};
    char dir[] = "fuzz-state.XXXXXX"; /* where the script stands */
    if (d.generation)
        return &d;
    need(mkdtemp(dir) && jobs_open(&d.jobs, dir, &diag) && policy_parse(&d.current.policy, text, strlen(text), &diag));
    text_put(&d.current.text, text, strlen(text));
    d.current.valid = true;
    d.generation = 1;
    return &d;
}

/*
 * Lines: id, class, another class, a wish, a control group, and a number for owner, lease, run and half of a ratio, as
 * the arguments of the bus's methods. A refused call changes nothing, the values of an accepted call are there, and a
 * job's line stays a line.
 */
static void bus(const char *input)
{
    struct dbus b = {.d = host()};
    struct job job = {0};
    sd_bus_error err = SD_BUS_ERROR_NULL;
    struct text list = {0}, json = {0};
    char copy[4096], *at = copy;
    snprintf(copy, sizeof(copy), "%s", input);
    const char *id = next_line(&at), *class_name = next_line(&at), *other = next_line(&at), *wish = next_line(&at);
    const char *cgroup = next_line(&at), *number = next_line(&at);
    unsigned before = b.d->jobs.n;
    job.uid = (uint32_t)strtoul(number, NULL, 10);
    job.lease_s = job.uid % 3;
    job.run = job.uid % 5;
    bool good = order_text(job.id, sizeof(job.id), id, "id", false, &err) >= 0 &&
                order_text(job.class_name, sizeof(job.class_name), class_name, "class", true, &err) >= 0 &&
                order_text(job.qos, sizeof(job.qos), class_name, "qos", true, &err) >= 0 &&
                order_text(job.wish, sizeof(job.wish), wish, "wish", true, &err) >= 0 &&
                order_text(job.cgroup, sizeof(job.cgroup), cgroup, "cgroup", true, &err) >= 0;
    need(!good || message_good_text(job.id, sizeof(job.id), false));
    need(good == !sd_bus_error_is_set(&err));
    bool taken = good && order_set(&b, &job, 0, &err) >= 0;
    const struct job *is = jobs_find(&b.d->jobs, job.id);
    need(taken ? is && is->uid == job.uid && !strcmp(is->wish, job.wish) : b.d->jobs.n == before);
    need(taken == !sd_bus_error_is_set(&err));
    sd_bus_error_free(&err);
    (void)order_set_class(&b, NULL, 0, id, other, &err);
    sd_bus_error_free(&err);
    (void)order_choose(&b, NULL, job.uid, id, wish, &err);
    sd_bus_error_free(&err);
    struct ratio ratio;
    bool is_ratio = order_ratio(&b, NULL, job.uid, id, number, &err) >= 0;
    is = jobs_find(&b.d->jobs, id);
    need(!is_ratio || !is || !*is->small_ratio || ratio_parse(is->small_ratio, &ratio));
    sd_bus_error_free(&err);
    (void)order_renew(&b, NULL, &job, 0, &err);
    sd_bus_error_free(&err);
    jobs_text(&list, b.d, "", FD_UID_ANY, "", 100000);
    need(json_of_yaml(&json, text_str(&list), list.len));
    text_free(&list);
    text_free(&json);
    uint32_t run = (uint32_t)(strlen(other) % 4);
    is = jobs_find(&b.d->jobs, id);
    bool later = is && run && is->run > run;
    if (!taken || strlen(id) % 2)
        (void)order_end(&b, NULL, 0, id, run, &err);
    need(!later || jobs_find(&b.d->jobs, id));
    sd_bus_error_free(&err);
    while (b.d->jobs.n > 8)
        need(!orders_job_end(b.d, b.d->jobs.job[0]->id, 0, 0));
    need(b.d->jobs.seats.held[0] + b.d->jobs.seats.held[1] == b.d->jobs.n);
}

#define KINDS "012345678"
static const char *kinds = KINDS;

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *s = getenv("FUZZ_KINDS");
    if (s && (!*s || strspn(s, KINDS) != strlen(s)))
        abort();
    kinds = s ? s : kinds;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    char *s = malloc(size); /* an exact copy, so that reading past the end is detected */
    if (!s)
        abort();
    memcpy(s, data + 1, size - 1);
    s[size - 1] = 0;
    char kind = KINDS[data[0] % strlen(KINDS)];
    if (!strchr(kinds, kind))
        kind = kinds[data[0] % strlen(kinds)];
    switch (kind - '0') {
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
    case 8:
        records(s, size - 1);
        break;
    case 4:
        locks(s, size - 1);
        break;
    case 6:
        jobs_file(s, size - 1);
        break;
    case 7:
        bus(s);
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
