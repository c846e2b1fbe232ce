/* SPDX-License-Identifier: BSD-3-Clause */
/* Looking at ports, and having that done on other hosts. */
#include "mrrun/rails.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/distance.h"
#include "libmrmpi/verbs/port.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/verbs/select.h"
#include "mrrun/environment.h"
#include "mrrun/tree.h"

#define FABRIC_TIMEOUT_MS 1000
#define AT_ONCE           8 /* hosts asked at the same time */

/* ---- on the host ------------------------------------------------------------------------------------------------- */

static void print_rail(const struct mr_rail_addr *a, unsigned distance, const struct mr_pkey *key, unsigned num_keys)
{
    printf("rail %s %u %u %u %u %u %u %u %u ", a->device, a->port, a->rate_mbps, a->lid, a->lmc, a->mtu, a->global,
           a->gid_kind, a->reads);
    for (unsigned i = 0; i < sizeof a->gid; i++)
        printf("%02x", a->gid[i]);
    printf(" %u", distance);
    for (unsigned i = 0; i < num_keys && i < MR_PKEYS_MAX; i++)
        printf(" %u", key[i].key);
    puts("");
}

static unsigned print_ports(struct ibv_context *ctx, const char *device, const struct mr_gid_wish *wish, unsigned most,
                            unsigned distance)
{
    struct ibv_device_attr attr;
    unsigned n = 0;

    if (ibv_query_device(ctx, &attr))
        return 0;
    for (unsigned num = 1; num <= attr.phys_port_cnt && n < most; num++) {
        struct mr_rail_addr a = {.reads = attr.max_qp_rd_atom > 0 && attr.max_qp_init_rd_atom > 0};
        struct mr_pkey key[MR_PKEYS_MAX];
        struct ibv_port_attr port;
        unsigned num_keys;
        uint8_t gid_index;

        if (!mr_device_selected(mr_config.devices, device, num) || ibv_query_port(ctx, (uint8_t)num, &port) ||
            mr_port_unusable(device, num, &port, mr_fabric_rejects, NULL) ||
            mr_port_describe(ctx, device, num, &port, wish, &a, &gid_index))
            continue;
        num_keys = mr_port_pkeys(
            ctx, num, &port,
            mr_config.pkey & MR_PKEY_PARTITION ? (uint16_t)mr_config.pkey : mr_fabric_pkey(device, (int)num), key);
        if (!num_keys)
            continue;
        print_rail(&a, distance, key, num_keys);
        n++;
    }
    return n;
}

static int print_devices(void)
{
    unsigned wanted = (unsigned)mr_config.rails_max, most = wanted && wanted < MR_RAILS_MAX ? wanted : MR_RAILS_MAX;
    struct mr_gid_wish wish;
    struct ibv_device **list;
    unsigned *distance;
    int n = 0;

    if (!mr_gid_wish_parse(mr_config.roce_gid, &wish))
        return 1;
    list = ibv_get_device_list(&n);
    distance = calloc((size_t)n + 1, sizeof *distance);
    if (!distance)
        most = 0;
    else if (list)
        mr_distances_of(list, (unsigned)n, distance);
    for (int i = 0; list && i < n && most; i++) {
        const char *name = ibv_get_device_name(list[i]);
        struct ibv_context *ctx = mr_device_selected(mr_config.devices, name, 0) ? ibv_open_device(list[i]) : NULL;

        if (!ctx)
            continue;
        most -= print_ports(ctx, name, &wish, most, distance[i]);
        ibv_close_device(ctx);
    }
    if (list)
        ibv_free_device_list(list);
    free(distance);
    return distance ? 0 : 1;
}

static void print_qos(const struct mr_fabric_qos *q, int err)
{
    printf("fabricd %d %d %llu %s\n", err, q->verified, (unsigned long long)q->generation,
           *q->class_name ? q->class_name : "-");
    for (unsigned l = 0; l < MR_LEVELS; l++) {
        printf("level %u %u %u", l, q->level[l].max, q->level[l].num_lanes);
        for (unsigned i = 0; i < q->level[l].num_lanes; i++)
            printf(" %u", q->level[l].sl[i]);
        puts("");
    }
}

int rails_print(void)
{
    struct mr_fabric_qos q;
    int err;

    if (mr_config_early()) {
        fprintf(stderr, "mrrun: out of memory\n");
        return 1;
    }
    print_qos(&q, -mr_fabric_open(mr_config.fabricd_socket, mr_config.job_id, FABRIC_TIMEOUT_MS, &q));
    err = print_devices();
    mr_fabric_close();
    mr_config_finalize();
    return err || fflush(stdout) ? 1 : 0;
}

static bool await_paths(struct mr_fabric_paths *out)
{
    struct mr_fabric_qos q;

    for (unsigned i = 0; i < FABRIC_TIMEOUT_MS && !mr_fabric_paths(out); i++) {
        mr_fabric_news(&q, mr_clock_ns());
        if (mr_fabric_paths(out))
            return true;
        usleep(1000);
    }
    return false;
}

int rails_print_paths(const char *question)
{
    struct mr_fabric_paths answer = {.status = -ETIMEDOUT};
    struct mr_fabric_qos q;
    char device[32];
    uint8_t port, lmc;
    uint16_t lid;
    int err;

    if (sscanf(question, "%31[^:]:%hhu:%hu:%hhu", device, &port, &lid, &lmc) != 4 || mr_config_early())
        return 1;
    err = mr_fabric_open(mr_config.fabricd_socket, mr_config.job_id, FABRIC_TIMEOUT_MS, &q);
    if (!err)
        err = mr_fabric_ask_paths(device, port, lid, lmc);
    if (!err && await_paths(&answer))
        err = answer.status;
    else if (!err)
        err = -ETIMEDOUT;
    printf("paths %d %u\n", -err, answer.set);
    mr_fabric_close();
    mr_config_finalize();
    return fflush(stdout) ? 1 : 0;
}

/* ---- from here --------------------------------------------------------------------------------------------------- */

static bool read_gid(const char *hex, uint8_t gid[16])
{
    for (unsigned i = 0; i < 16; i++)
        if (sscanf(hex + 2 * i, "%2hhx", &gid[i]) != 1)
            return false;
    return true;
}

static void read_rail(const char *line, struct host_rails *h)
{
    struct mr_rail_addr a = {.port = 0};
    unsigned distance;
    int used, more;
    char gid[33];

    if (h->num == MR_RAILS_MAX ||
        sscanf(line, "rail %31s %hhu %u %hu %hhu %hhu %hhu %hhu %hhu %32s %u%n", a.device, &a.port, &a.rate_mbps,
               &a.lid, &a.lmc, &a.mtu, &a.global, &a.gid_kind, &a.reads, gid, &distance, &used) != 11 ||
        strlen(gid) != 32 || !read_gid(gid, a.gid))
        return;
    for (unsigned i = 0; i < MR_PKEYS_MAX && sscanf(line + used, " %hu%n", &h->key[h->num][i], &more) == 1; i++)
        used += more;
    h->distance[h->num] = distance;
    h->rail[h->num++] = a;
}

static void read_level(const char *line, struct mr_fabric_qos *q)
{
    struct mr_fabric_level level = {.max = 0};
    unsigned l, lanes;
    int used;

    if (sscanf(line, "level %u %u %u%n", &l, &level.max, &lanes, &used) != 3 || l >= MR_LEVELS || lanes > MR_LANES_MAX)
        return;
    level.num_lanes = (uint8_t)lanes;
    for (unsigned i = 0; i < lanes; i++) {
        int more = 0;

        if (sscanf(line += used, " %hhu%n", &level.sl[i], &more) != 1)
            return;
        used = more;
    }
    q->level[l] = level;
}

static void read_qos(const char *line, struct host_rails *h)
{
    char name[sizeof h->qos.class_name] = "";
    unsigned long long generation;
    int verified;

    if (sscanf(line, "fabricd %d %d %llu %31s", &h->fabricd_error, &verified, &generation, name) != 4)
        return;
    h->qos.verified = verified;
    h->qos.generation = generation;
    if (strcmp(name, "-"))
        memcpy(h->qos.class_name, name, sizeof name);
}

static void read_rails_answer(FILE *in, struct host_rails *h)
{
    char line[512];

    while (fgets(line, sizeof line, in)) {
        if (!strncmp(line, "rail ", 5))
            read_rail(line, h);
        else if (!strncmp(line, "level ", 6))
            read_level(line, &h->qos);
        else
            read_qos(line, h);
    }
}

/* Ranks' hosts answer queries without complaints of their own. */
static char **make_query_env(char *const *env, const char *devices)
{
    char **own = environment_copy(env);

    if (own && !environment_set(&own, "MRMPI_LOG_LEVEL", "0") &&
        (!devices || !environment_set(&own, "MRMPI_DEVICES", devices)))
        return own;
    environment_free(own);
    return NULL;
}

/* The library's settings go with the command: a launcher may pass no environment. */
static char **command_afar(const struct hosts *hosts, int i, char *self, char *option, char *value, char *const *env)
{
    size_t n = 1, all = 0;
    char **words, **out;

    while (env && env[all])
        all++;
    words = env ? calloc(all + 5, sizeof(*words)) : NULL;
    if (!words)
        return NULL;
    words[0] = (char *)"env";
    for (; *env; env++)
        if (!strncmp(*env, "MRMPI_", 6))
            words[n++] = *env;
    words[n++] = self;
    words[n++] = option;
    words[n] = value;
    out = tree_command(hosts->launcher, hosts->name[i], words);
    free(words);
    return out;
}

/* mrrun with this option, on host i. value: of the option, or NULL. */
static FILE *start(const struct hosts *hosts, int i, char *option, char *value, char *const *env, pid_t *pid)
{
    char self[PATH_MAX] = "";
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    bool far = hosts->far && hosts->far[i] && !hosts->simfab;
    char *here[] = {self, option, value, NULL};
    char *there[] = {hosts->simfab, (char *)"exec", hosts->name[i], (char *)"--", self, option, value, NULL};
    char **own = make_query_env(env, hosts->devices[i]);
    char **afar = far ? command_afar(hosts, i, self, option, value, own) : NULL;
    char **argv = far ? afar : hosts->simfab ? there : here;
    posix_spawn_file_actions_t actions;
    int fds[2], err;
    FILE *in;

    if (n < 0 || !own || !argv || pipe(fds)) {
        environment_free(own);
        tree_free_command(afar);
        return NULL;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
    posix_spawn_file_actions_addclose(&actions, fds[0]);
    posix_spawn_file_actions_addclose(&actions, fds[1]);
    err = posix_spawnp(pid, argv[0], &actions, NULL, argv, own);
    posix_spawn_file_actions_destroy(&actions);
    environment_free(own);
    tree_free_command(afar);
    close(fds[1]);
    in = err ? NULL : fdopen(fds[0], "r");
    if (!in)
        close(fds[0]);
    return in;
}

static void ask_some(const struct hosts *hosts, int first, int num, char *const *env, struct host_rails *out)
{
    FILE *in[AT_ONCE];
    pid_t pid[AT_ONCE];

    for (int i = 0; i < num; i++)
        in[i] = start(hosts, first + i, (char *)"--rails", NULL, env, &pid[i]);
    for (int i = 0; i < num; i++) {
        int status = 0;

        if (!in[i])
            continue;
        read_rails_answer(in[i], &out[first + i]);
        fclose(in[i]);
        while (waitpid(pid[i], &status, 0) < 0 && errno == EINTR)
            continue;
        out[first + i].known = !status;
    }
}

void rails_ask(const struct hosts *hosts, int num, char *const *env, struct host_rails *out)
{
    for (int i = 0; i < num; i++) {
        out[i] = (struct host_rails){.num = 0};
        mr_fabric_defaults(&out[i].qos);
    }
    for (int i = 0; i < num; i += AT_ONCE)
        ask_some(hosts, i, num - i < AT_ONCE ? num - i : AT_ONCE, env, out);
}

int rails_ask_paths(const struct hosts *hosts, int i, char *const *env, const struct mr_rail_addr *from,
                    const struct mr_rail_addr *to, uint32_t *set)
{
    char value[96], line[80] = "";
    int status = 0, err = ECHILD;
    pid_t pid;
    FILE *in;

    snprintf(value, sizeof value, "%s:%u:%u:%u", from->device, from->port, to->lid, to->lmc);
    in = start(hosts, i, (char *)"--rail-paths", value, env, &pid);
    if (!in)
        return err;
    while (fgets(line, sizeof line, in) && sscanf(line, "paths %d %u", &err, set) != 2)
        ;
    fclose(in);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return err;
}

/* ---- of a host --------------------------------------------------------------------------------------------------- */

unsigned rails_num_keys(const struct host_rails *h, unsigned rail)
{
    unsigned n = 0;

    while (n < MR_PKEYS_MAX && h->key[rail][n])
        n++;
    return n;
}

bool rails_answer_reads(const struct host_rails *h)
{
    for (unsigned i = 0; i < h->num; i++)
        if (!h->rail[i].reads)
            return false;
    return true;
}

uint32_t rails_nearest(const struct host_rails *h)
{
    unsigned least = ~0u;
    uint32_t set = 0;

    for (unsigned i = 0; i < h->num; i++)
        least = h->distance[i] < least ? h->distance[i] : least;
    for (unsigned i = 0; i < h->num; i++)
        set |= (uint32_t)(h->distance[i] == least) << i;
    return set;
}

char *rails_adapters(const struct host_rails *rails, const char *named)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return NULL;
    for (unsigned i = 0; i < rails->num; i++)
        fprintf(out, "%s%s", i ? "," : "", rails->rail[i].device);
    if (!rails->num && named)
        fputs(named, out);
    return fclose(out) ? NULL : text;
}

static void print_rails_of(const struct host_rails *h, uint32_t set)
{
    for (unsigned i = 0; i < h->num; i++)
        if (set >> i & 1)
            printf(" %s:%u", h->rail[i].device, h->rail[i].port);
}

void rails_print_distances(const struct host_rails *h, const char *who)
{
    uint32_t near = rails_nearest(h);
    unsigned num_near = (unsigned)__builtin_popcount(near);

    printf("      near the ranks%s%s:", who ? " of " : "", who ? who : "");
    if (num_near == h->num) {
        puts(" all rails");
        return;
    }
    print_rails_of(h, near);
    printf("; far:");
    print_rails_of(h, ~near);
    puts("");
}
