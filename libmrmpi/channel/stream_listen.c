/* SPDX-License-Identifier: BSD-3-Clause */
/* Channel stream: the sockets at which processes of other jobs reach this one. */
#include "libmrmpi/channel/stream_peer.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Addresses of one link only mean nothing elsewhere. */
static bool card_address(const struct ifaddrs *i, sa_family_t family, struct in6_addr *out)
{
    if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP) || i->ifa_flags & IFF_LOOPBACK)
        return false;
    if (family == AF_INET6) {
        *out = ((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr;
        return !IN6_IS_ADDR_LINKLOCAL(out);
    }
    *out = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(&out->s6_addr[12], &((const struct sockaddr_in *)i->ifa_addr)->sin_addr, 4);
    return true;
}

static void add_addresses(struct mr_card *card, const struct ifaddrs *all, sa_family_t family, unsigned most)
{
    struct in6_addr a;

    for (const struct ifaddrs *i = all; i && card->num_address < most; i = i->ifa_next)
        if (card_address(i, family, &a))
            memcpy(card->address[card->num_address++], &a, sizeof a);
}

/* In the order in which others try them. There is room for an IPv6 address after any number of others. */
static void list_addresses(struct mr_card *card, sa_family_t listens)
{
    struct ifaddrs *all;

    if (getifaddrs(&all))
        return;
    add_addresses(card, all, AF_INET, MR_CARD_ADDRESSES - (listens == AF_INET6));
    if (listens == AF_INET6)
        add_addresses(card, all, AF_INET6, MR_CARD_ADDRESSES);
    freeifaddrs(all);
}

int mr_stream_watch(int op, int fd, uint32_t events, void *what)
{
    return epoll_ctl(mr_stream.epoll, op, fd, &(struct epoll_event){.events = events, .data.ptr = what});
}

/* A child that has not executed its program yet holds all descriptors: close() alone might leave the socket watched. */
void mr_stream_close_watched(int fd)
{
    mr_stream_watch(EPOLL_CTL_DEL, fd, 0, NULL);
    close(fd);
}

/* For both versions, if the host has IPv6. */
static int bind_listener(sa_family_t family, in_port_t *port)
{
    struct sockaddr_in6 at6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in at4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    struct sockaddr *at = family == AF_INET6 ? (struct sockaddr *)&at6 : (struct sockaddr *)&at4;
    socklen_t len = family == AF_INET6 ? sizeof at6 : sizeof at4;
    int no = 0;

    mr_stream.listen.any = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (mr_stream.listen.any < 0)
        return -errno;
    if ((family != AF_INET6 || !setsockopt(mr_stream.listen.any, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no)) &&
        !bind(mr_stream.listen.any, at, len) && !listen(mr_stream.listen.any, STREAM_BACKLOG) &&
        !getsockname(mr_stream.listen.any, at, &len)) {
        *port = family == AF_INET6 ? at6.sin6_port : at4.sin_port;
        return 0;
    }
    no = -errno;
    close(mr_stream.listen.any);
    mr_stream.listen.any = -1;
    return no;
}

/* Unique in the namespace of the network, as the port is. Returns the length. */
socklen_t mr_stream_local_address(const struct mr_card *card, struct sockaddr_un *at)
{
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)snprintf(at->sun_path + 1, sizeof at->sun_path - 1, "mrmpi-%016llx-%u-%u",
                                        (unsigned long long)card->job, card->rank, card->port));
}

/* Without it the processes of this node reach us by TCP. */
static void bind_local(const struct mr_card *card)
{
    struct sockaddr_un at;
    socklen_t len = mr_stream_local_address(card, &at);

    mr_stream.listen.near = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (mr_stream.listen.near >= 0 && !bind(mr_stream.listen.near, (struct sockaddr *)&at, len) &&
        !listen(mr_stream.listen.near, STREAM_BACKLOG) &&
        !mr_stream_watch(EPOLL_CTL_ADD, mr_stream.listen.near, EPOLLIN, &mr_stream.listen.end))
        return;
    mr_log(MR_LOG_INFO, "no shared memory with processes of other jobs: no local socket: %m");
    if (mr_stream.listen.near >= 0)
        close(mr_stream.listen.near);
    mr_stream.listen.near = -1;
}

/* The process at the other end is of our user. */
bool mr_stream_is_ours(int fd)
{
    struct ucred who;
    socklen_t len = sizeof who;

    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) && who.uid == geteuid();
}

int mr_stream_listen(struct mr_card *card)
{
    sa_family_t family = AF_INET6;
    in_port_t port = 0;
    int err = 0;

    mr_stream.epoll = epoll_create1(EPOLL_CLOEXEC);
    mr_stream.listen.end = END_LISTENER;
    if (mr_stream.epoll < 0)
        return -errno;
    if (bind_listener(family, &port)) {
        family = AF_INET;
        err = bind_listener(family, &port);
    }
    if (!err && mr_stream_watch(EPOLL_CTL_ADD, mr_stream.listen.any, EPOLLIN, &mr_stream.listen.end))
        err = -errno;
    card->port = ntohs(port);
    list_addresses(card, family);
    if (!err && card->host)
        bind_local(card);
    return err;
}

void mr_stream_close_listener(void)
{
    if (mr_stream.listen.any >= 0)
        close(mr_stream.listen.any);
    if (mr_stream.listen.near >= 0)
        close(mr_stream.listen.near);
    if (mr_stream.epoll >= 0)
        close(mr_stream.epoll);
    mr_stream.listen.any = mr_stream.listen.near = mr_stream.epoll = -1;
}
