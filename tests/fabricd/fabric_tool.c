/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks of scripts beyond the shell: speak to the daemon like the library, misbehave as no library should, and change a
 * port's table behind opensm's back.
 *
 *   fabric_tool query SOCKET JOB             print the answer to a hello, one line of key=value
 *   fabric_tool watch SOCKET JOB             subscribe; print every state until the daemon ends the connection
 *   fabric_tool where SOCKET N DEVICE PORT GUID   ask N times at once; print the answers, one line of key=value each
 *   fabric_tool jobs SOCKET FIRST N CLASS    set N jobs of this user, called many-FIRST and so on, one after the other
 *   fabric_tool garbage SOCKET N             send N messages of nonsense, each on its own connection
 *   fabric_tool seen SOCKET DEVICE PORT N    say N times that the rail fails, then print the rails' health
 *   fabric_tool flood SOCKET                 ask and never read, until the daemon drops us
 *   fabric_tool vlarb HOPS MODIFIER V:W,...  set a VLArb block of the node at the end of the path ("1,3", "-": here)
 *   fabric_tool lft HOPS LID PORT            set a switch's forwarding entry, print what it was
 *
 * FABRIC_TOOL_DEVICE: the adapter whose first port sends the last two; else the first adapter with an active port.
 */
#include "fabricd/proto/message.h"
#include "fabricd/proto/proto_state.h"
#include "fabricd/fabric/smp.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int dial(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a))) {
        perror(path);
        exit(1);
    }
    return fd;
}

static void hello(int fd, const char *job, uint32_t flags)
{
    struct fd_hello m = {.h = message_header(FD_HELLO, sizeof(m), 5), .flags = flags};
    snprintf(m.job, sizeof(m.job), "%s", job);
    if (send(fd, &m, sizeof(m), MSG_NOSIGNAL) != (ssize_t)sizeof(m)) {
        perror("send");
        exit(1);
    }
}

/* False at the end of the connection. */
static bool print_state(int fd)
{
    struct fd_state_long room;
    ssize_t n = recv(fd, &room, sizeof(room), 0);
    const struct fd_state m = room.s;
    int levels = n > 0 ? fd_state_num_levels(&room.s, (size_t)n) : 0;
    if (n <= 0)
        return false;
    if (levels < 0 || m.h.type != FD_STATE || m.h.length != (uint32_t)n) {
        fprintf(stderr, "malformed answer of %zd bytes\n", n);
        exit(1);
    }
    printf("seq=%u status=%d changed=%u generation=%llu class=%s small=%u bulk=", m.h.seq, m.status, m.changed,
           (unsigned long long)m.generation, m.class_name, m.sl_small);
    for (unsigned i = 0; i < m.num_lanes; i++)
        printf("%s%u", i ? "," : "", m.sl_bulk[i]);
    printf(" small_max=%u ahead=%u messages=%u verified=%u rails=", m.small_max, m.num_rails ? m.rails[0].ahead : 0,
           m.messages, m.verified);
    for (unsigned i = 0; i < m.num_rails; i++)
        printf("%s%s/%u/lid%s/lmc%u/%s", i ? "," : "", m.rails[i].device, m.rails[i].port, m.rails[i].lid ? "ok" : "0",
               m.rails[i].lmc, m.rails[i].usable ? "up" : "down");
    for (int i = 0; i < levels; i++)
        printf(" medium=%u:%u", fd_state_levels(&room.s)[i].max, fd_state_levels(&room.s)[i].sl[0]);
    if (fd_state_spread(&room.s, (size_t)n, levels))
        printf(" rails=%s/%s", fd_state_spread(&room.s, (size_t)n, levels)->small,
               fd_state_spread(&room.s, (size_t)n, levels)->large);
    printf("\n");
    fflush(stdout);
    return true;
}

static int watch(const char *path, const char *job)
{
    int fd = dial(path);
    hello(fd, job, FD_HELLO_SUBSCRIBE);
    while (print_state(fd))
        ;
    printf("end\n");
    return 0;
}

static int jobs(const char *path, unsigned first, unsigned n, const char *class_name)
{
    int fd = dial(path);
    for (unsigned i = first; i < first + n; i++) {
        struct fd_job m = {.h = message_header(FD_JOB_SET, sizeof(m), i), .uid = getuid(), .account = "an account"};
        struct fd_done done = {.status = -EPROTO};
        snprintf(m.job, sizeof(m.job), "many-%u", i);
        snprintf(m.class_name, sizeof(m.class_name), "%s", class_name);
        if (send(fd, &m, sizeof(m), MSG_NOSIGNAL) != (ssize_t)sizeof(m) || recv(fd, &done, sizeof(done), 0) <= 0 ||
            done.status) {
            fprintf(stderr, "%s: %s\n", m.job, strerror(-done.status));
            return 1;
        }
    }
    return 0;
}

static int where(const char *path, int n, const char *device, const char *port, const char *guid)
{
    struct fd_where m = {.port = (uint8_t)atoi(port), .guid = strtoull(guid, NULL, 16)};
    struct fd_place p;
    int fd = dial(path);
    snprintf(m.device, sizeof(m.device), "%s", device);
    hello(fd, "", FD_HELLO_PLACES);
    struct fd_state_long state;
    if (recv(fd, &state, sizeof(state), 0) <= 0 || !(state.s.changed & FD_CAN_PLACES))
        return 1;
    for (int i = 0; i < n; i++) {
        m.h = message_header(FD_WHERE, sizeof(m), 100 + (unsigned)i);
        if (send(fd, &m, sizeof(m), MSG_NOSIGNAL) != (ssize_t)sizeof(m))
            return 1;
    }
    for (int i = 0; i < n; i++) {
        if (recv(fd, &p, sizeof(p), 0) != (ssize_t)sizeof(p) || p.h.type != FD_PLACE || p.guid != m.guid)
            return 1;
        printf("seq=%u status=%d lid=%u lmc=%u\n", p.h.seq, p.status, p.lid, p.lmc);
    }
    return 0;
}

static int seen(const char *path, const char *device, const char *port, int n)
{
    struct fd_seen m = {.h = message_header(FD_SEEN, sizeof(m), 7), .port = (uint8_t)atoi(port), .broken = 3};
    struct fd_state_long s;
    int fd = dial(path);
    snprintf(m.device, sizeof(m.device), "%s", device);
    for (int i = 0; i < n; i++)
        if (send(fd, &m, sizeof(m), MSG_NOSIGNAL) != (ssize_t)sizeof(m))
            return 1;
    hello(fd, "", FD_HELLO_HEALTH);
    ssize_t len = recv(fd, &s, sizeof(s), 0);
    int levels = len > 0 ? fd_state_num_levels(&s.s, (size_t)len) : -1;
    const struct fd_health *h = levels < 0 ? NULL : fd_state_health(&s.s, (size_t)len, levels);
    for (unsigned i = 0; h && i < s.s.num_rails; i++)
        printf("%s%s/%u=%u", i ? " " : "", s.s.rails[i].device, s.s.rails[i].port, h->rail[i].weight);
    printf("\n");
    return !h;
}

static int garbage(const char *path, int n)
{
    _Alignas(8) unsigned char buf[FD_MSG_MAX + 4096];
    srandom(42);
    for (int i = 0; i < n; i++) {
        int fd = dial(path), size = 4 * FD_MSG_MAX;
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
        size_t len = (size_t)random() % (i % 10 ? 512 : sizeof(buf)) + 1;
        for (size_t k = 0; k < len; k++)
            buf[k] = (unsigned char)random();
        if (i % 3 && len >= sizeof(struct fd_header)) {
            struct fd_header h = message_header((enum fd_type)(random() % 40), len, 1);
            if (i % 5 == 0)
                h.length ^= 1;
            memcpy(buf, &h, sizeof(h));
        }
        if (send(fd, buf, len, MSG_NOSIGNAL) < 0 && errno != EMSGSIZE && errno != EPIPE)
            perror("send");
        close(fd);
    }
    return 0;
}

static int flood(const char *path)
{
    struct fd_header h = message_header(FD_STATUS, sizeof(h), 1);
    int fd = dial(path);
    for (int i = 0; i < 1000000; i++)
        if (send(fd, &h, sizeof(h), MSG_NOSIGNAL) < 0) {
            printf("dropped\n");
            return 0;
        }
    printf("still there\n");
    return 1;
}

static struct smp_path parse_hops(const char *hops)
{
    struct smp_path path = {0};
    for (const char *p = hops; *p >= '0' && *p <= '9' && path.hops < SMP_HOPS_MAX;) {
        char *end;
        path.port[++path.hops] = (uint8_t)strtoul(p, &end, 10);
        p = *end ? end + 1 : end;
    }
    return path;
}

static struct smp *open_port(void)
{
    const char *device = getenv("FABRIC_TOOL_DEVICE");
    struct smp *s = smp_open(device, device != NULL);
    if (!s) {
        perror("umad");
        exit(1);
    }
    return s;
}

static int set_vlarb(const char *hops, const char *modifier, const char *table)
{
    struct smp_path path = parse_hops(hops);
    uint8_t data[64] = {0};
    const char *p = table;
    for (int i = 0; i < 32 && *p; i++) {
        char *end;
        data[2 * i] = (uint8_t)strtoul(p, &end, 10);
        data[2 * i + 1] = (uint8_t)strtoul(*end ? end + 1 : end, &end, 10);
        p = *end ? end + 1 : end;
    }
    struct smp *s = open_port();
    int rc = smp_set(s, &path, SMP_VLARB, (uint32_t)strtoul(modifier, NULL, 0), data);
    smp_close(s);
    if (rc)
        fprintf(stderr, "set: %d\n", rc);
    return rc != 0;
}

static int set_lft(const char *hops, unsigned lid, unsigned port)
{
    enum { ATTRIBUTE_LFT = 0x19 };
    struct smp_path path = parse_hops(hops);
    uint8_t data[64] = {0};
    struct smp *s = open_port();
    int rc = smp_get(s, &path, ATTRIBUTE_LFT, lid / 64, data);
    printf("%u\n", data[lid % 64]);
    data[lid % 64] = (uint8_t)port;
    if (!rc)
        rc = smp_set(s, &path, ATTRIBUTE_LFT, lid / 64, data);
    smp_close(s);
    return rc != 0;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";
    if (argc == 4 && (!strcmp(verb, "query") || !strcmp(verb, "levels"))) {
        int fd = dial(argv[2]);
        hello(fd, argv[3], *verb == 'l' ? FD_HELLO_LEVELS : 0);
        return !print_state(fd);
    }
    if (argc == 4 && !strcmp(verb, "watch"))
        return watch(argv[2], argv[3]);
    if (argc == 6 && !strcmp(verb, "jobs"))
        return jobs(argv[2], (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]), argv[5]);
    if (argc == 6 && !strcmp(verb, "seen"))
        return seen(argv[2], argv[3], argv[4], atoi(argv[5]));
    if (argc == 7 && !strcmp(verb, "where"))
        return where(argv[2], atoi(argv[3]), argv[4], argv[5], argv[6]);
    if (argc == 4 && !strcmp(verb, "garbage"))
        return garbage(argv[2], atoi(argv[3]));
    if (argc == 3 && !strcmp(verb, "flood"))
        return flood(argv[2]);
    if (argc == 5 && !strcmp(verb, "vlarb"))
        return set_vlarb(argv[2], argv[3], argv[4]);
    if (argc == 5 && !strcmp(verb, "lft"))
        return set_lft(argv[2], (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
    fprintf(stderr, "usage: see the head of fabric_tool.c\n");
    return 2;
}
