/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel knows the owner of each socket (sock_diag(7)); where it has no such interface, /proc/net/tcp lists them.
 */
#include "mrrun/peer.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* The two ends, the peer's first. */
struct ends {
    struct sockaddr_in peer, own;
};

static bool find_ends(int fd, struct ends *e)
{
    socklen_t peer_len = sizeof(e->peer), own_len = sizeof(e->own);

    return !getpeername(fd, (struct sockaddr *)&e->peer, &peer_len) &&
           !getsockname(fd, (struct sockaddr *)&e->own, &own_len) && e->peer.sin_family == AF_INET;
}

/* False: the kernel does not tell. */
static bool ask_kernel(int netlink, const struct ends *e, uid_t *uid)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } ask = {.head = {.nlmsg_len = sizeof(ask), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
             .body = {.sdiag_family = AF_INET,
                      .sdiag_protocol = IPPROTO_TCP,
                      .idiag_states = ~0u,
                      .id = {.idiag_sport = e->peer.sin_port,
                             .idiag_dport = e->own.sin_port,
                             .idiag_src = {e->peer.sin_addr.s_addr},
                             .idiag_dst = {e->own.sin_addr.s_addr},
                             .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}};
    struct {
        struct nlmsghdr head;
        struct inet_diag_msg body;
        char more[1024];
    } answer = {0};

    if (send(netlink, &ask, sizeof(ask), 0) != sizeof(ask) ||
        recv(netlink, &answer, sizeof(answer), 0) < (ssize_t)(sizeof(answer.head) + sizeof(answer.body)) ||
        answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || answer.body.id.idiag_sport != e->peer.sin_port ||
        answer.body.id.idiag_dport != e->own.sin_port)
        return false;
    *uid = answer.body.idiag_uid;
    return true;
}

static bool ask_by_netlink(const struct ends *e, uid_t *uid)
{
    int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    struct timeval patience = {.tv_usec = 100000};
    bool told = netlink >= 0 && !setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) &&
                ask_kernel(netlink, e, uid);

    if (netlink >= 0)
        close(netlink);
    return told;
}

/* Addresses are numbers in the order of this machine's bytes, ports in the usual one. */
static bool read_table(const struct ends *e, uid_t *uid)
{
    FILE *table = fopen("/proc/net/tcp", "re");
    char line[256];
    bool found = false;

    while (table && !found && fgets(line, sizeof(line), table)) {
        unsigned from, from_port, to, to_port, owner;

        found = sscanf(line, " %*u: %x:%x %x:%x %*x %*x:%*x %*x:%*x %*x %u", &from, &from_port, &to, &to_port,
                       &owner) == 5 &&
                from == e->peer.sin_addr.s_addr && from_port == ntohs(e->peer.sin_port) &&
                to == e->own.sin_addr.s_addr && to_port == ntohs(e->own.sin_port);
        if (found)
            *uid = owner;
    }
    if (table)
        fclose(table);
    return found;
}

bool peer_is_ours(int fd)
{
    struct ends e;
    uid_t uid;

    return find_ends(fd, &e) && (ask_by_netlink(&e, &uid) || read_table(&e, &uid)) && (uid == geteuid() || uid == 0);
}
