/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * levels SOCKET SMALL BULK: answers every hello like a fabricd with a policy that puts messages of up to 4096 bytes on
 * service level SMALL and longer messages on BULK. For the laboratory: no subnet manager, hence no fabricd.
 * Prints "ready" when listening; ends when its standard input does.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fabricd/proto/proto_state.h"

#define CLIENTS 64

static int listen_at(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

    if (strlen(path) >= sizeof a.sun_path)
        return -1;
    strcpy(a.sun_path, path);
    unlink(path);
    return fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, CLIENTS) ? -1 : fd;
}

/* False when the client is gone. */
static int answer(int fd, uint8_t small, uint8_t bulk)
{
    struct fd_hello hello;
    struct fd_state s;

    if (recv(fd, &hello, sizeof hello, 0) != sizeof hello || hello.h.type != FD_HELLO)
        return 0;
    memset(&s, 0, sizeof s);
    s.h = (struct fd_header){
        .magic = FD_MAGIC, .version = FD_VERSION, .type = FD_STATE, .length = FD_STATE_LENGTH(0), .seq = hello.h.seq};
    s.generation = 1;
    s.small_max = 4096;
    s.verified = 1;
    s.sl_small = small;
    s.num_lanes = 1;
    s.sl_bulk[0] = bulk;
    strcpy(s.class_name, "laboratory");
    memcpy(s.job, hello.job, sizeof s.job);
    return send(fd, &s, s.h.length, MSG_NOSIGNAL) == (ssize_t)s.h.length;
}

int main(int argc, char **argv)
{
    struct pollfd p[2 + CLIENTS] = {{.fd = 0, .events = POLLIN}};
    unsigned n = 2;

    if (argc != 4 || (p[1].fd = listen_at(argv[1])) < 0) {
        perror(argc == 4 ? argv[1] : "usage: levels SOCKET SMALL BULK");
        return 2;
    }
    p[1].events = POLLIN;
    puts("ready");
    fflush(stdout);
    while (poll(p, n, -1) > 0 && !p[0].revents) {
        for (unsigned i = n - 1; i >= 2; i--)
            if (p[i].revents && !answer(p[i].fd, (uint8_t)atoi(argv[2]), (uint8_t)atoi(argv[3]))) {
                close(p[i].fd);
                p[i] = p[--n];
            }
        if (p[1].revents && n < 2 + CLIENTS)
            p[n++] = (struct pollfd){.fd = accept(p[1].fd, NULL, NULL), .events = POLLIN};
    }
    unlink(argv[1]);
    return 0;
}
