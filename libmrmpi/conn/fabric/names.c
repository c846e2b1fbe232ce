/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of services at fabricd: see names.h. */
#include "libmrmpi/conn/fabric/names.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "fabricd/proto/proto.h"
#include "libmrmpi/base/base.h"
#include "libmrmpi/conn/fabric/client.h"
#include "libmrmpi/launch/launch.h"

#define WAIT_MS 2000

static struct {
    int fd; /* -1: none */
    uint32_t seq;
} names = {.fd = -1};

void mr_fabric_names_close(void)
{
    if (names.fd >= 0)
        close(names.fd);
    names.fd = -1;
}

static int open_names(void)
{
    struct timeval limit = {.tv_sec = WAIT_MS / 1000, .tv_usec = WAIT_MS % 1000 * 1000};
    struct sockaddr_un to;
    int err = names.fd >= 0 ? 0 : mr_fabric_address(mr_config.fabricd_socket, &to);

    if (err || names.fd >= 0)
        return err;
    names.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (names.fd < 0)
        return -errno;
    setsockopt(names.fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    setsockopt(names.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (!connect(names.fd, (struct sockaddr *)&to, sizeof to))
        return 0;
    err = -errno;
    mr_fabric_names_close();
    return err;
}

/* Positive: an answer to an earlier question. */
static int take_name_answer(const struct fd_name *asked, struct fd_name *answer, ssize_t len)
{
    const struct fd_done *done = (const void *)answer;

    if (len < (ssize_t)sizeof answer->h || answer->h.magic != FD_MAGIC || answer->h.version != FD_VERSION ||
        answer->h.length != (size_t)len)
        return -EPROTO;
    if (answer->h.type == FD_DONE && len == sizeof *done) /* refused, or the daemon knows no names */
        return done->status == -EINVAL ? -EINVAL : -EPROTO;
    if (answer->h.type != FD_NAMED || len != sizeof *answer || answer->status > 0 ||
        !memchr(answer->value, 0, sizeof answer->value))
        return -EPROTO;
    return answer->h.seq == asked->h.seq ? answer->status : 1;
}

static int ask_names(const struct fd_name *asked, struct fd_name *answer)
{
    ssize_t len;
    int err;

    do
        len = send(names.fd, asked, sizeof *asked, MSG_NOSIGNAL);
    while (len < 0 && errno == EINTR);
    if (len < 0)
        return -ENOTCONN;
    do {
        len = recv(names.fd, answer, sizeof *answer, MSG_TRUNC);
        if (len < 0 && errno == EINTR)
            continue;
        if (len <= 0)
            return -ENOTCONN;
        err = take_name_answer(asked, answer, len);
    } while (len < 0 || err > 0);
    return err;
}

/* A daemon that has been restarted knows nothing of an earlier connection: one more is tried. */
static int handle_name(enum fd_name_what what, const char *name, const char *value, struct fd_name *answer)
{
    struct fd_name m = {
        .h = {.magic = FD_MAGIC, .version = FD_VERSION, .type = FD_NAME, .length = sizeof m, .seq = ++names.seq},
        .what = what};
    bool again = names.fd >= 0;
    struct mr_card card;
    int err;

    if (mr_guest_identify(&card))
        return -EIO;
    m.job = card.job;
    if (strlen(name) >= sizeof m.name || strlen(value) >= sizeof m.value)
        return -ENAMETOOLONG;
    memcpy(m.name, name, strlen(name));
    memcpy(m.value, value, strlen(value));
    for (;;) {
        err = open_names() ? -ENOTCONN : ask_names(&m, answer);
        if (err == -ENOTCONN || err == -EPROTO || err == -EINVAL)
            mr_fabric_names_close();
        if (err != -ENOTCONN || !again)
            return err;
        again = false;
    }
}

int mr_fabric_publish_name(const char *name, const char *value)
{
    struct fd_name answer;

    return handle_name(FD_NAME_PUBLISH, name, value, &answer);
}

int mr_fabric_find_name(const char *name, char *value, size_t cap)
{
    struct fd_name answer;
    int err = handle_name(FD_NAME_FIND, name, "", &answer);

    if (err)
        return err;
    if (strlen(answer.value) >= cap)
        return -EMSGSIZE;
    memcpy(value, answer.value, strlen(answer.value) + 1);
    return 0;
}

int mr_fabric_withdraw_name(const char *name)
{
    struct fd_name answer;

    return handle_name(FD_NAME_WITHDRAW, name, "", &answer);
}
