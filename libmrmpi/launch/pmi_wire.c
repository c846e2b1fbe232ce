/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection to a PMI launcher: a socket that the launcher left open in this process (PMI_FD) or a connection to
 * its port (PMI_PORT).
 *
 * The launcher may die, stop or send nonsense: each ends in an error with a description. Reads wait with the socket's
 * own timeout, a part of MRMPI_LAUNCHER_TIMEOUT_S.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/backend.h"
#include "libmrmpi/launch/pmi.h"

enum { PAUSE_MAX_MS = 10000 };

/* ---- bytes ---- */

static int connection_failed(struct mr_pmi *pmi, int err)
{
    if (err == EPIPE || err == ECONNRESET || err == 0)
        return mr_launch_fail(-ECONNRESET, "%s (%s) has closed its connection to rank %d: it is gone, or ends the job",
                              pmi->launcher, pmi->protocol->name, pmi->rank);
    return mr_launch_fail(-err, "the connection to %s (%s) failed: %s", pmi->launcher, pmi->protocol->name,
                          strerror(err));
}

int mr_pmi_send(struct mr_pmi *pmi, const char *data, size_t len)
{
    while (len) {
        ssize_t n = send(pmi->fd, data, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return mr_launch_fail(-ETIMEDOUT, "%s (%s) took no message for %d s (MRMPI_LAUNCHER_TIMEOUT_S)",
                                  pmi->launcher, pmi->protocol->name, mr_config.launcher_timeout_s);
        if (n < 0)
            return connection_failed(pmi, errno);
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

int mr_pmi_silent(struct mr_pmi *pmi)
{
    return mr_launch_fail(-ETIMEDOUT, "%s (%s) gave no answer for %d s (MRMPI_LAUNCHER_TIMEOUT_S)", pmi->launcher,
                          pmi->protocol->name, mr_config.launcher_timeout_s);
}

static int receive_more(struct mr_pmi *pmi, enum mr_pmi_wait wait)
{
    int64_t left_ms = mr_config.launcher_timeout_s * INT64_C(1000);

    if (pmi->have == MR_PMI_MESSAGE_MAX)
        return mr_launch_fail(-EPROTO, "%s (%s) sent a message of more than %d bytes", pmi->launcher,
                              pmi->protocol->name, MR_PMI_MESSAGE_MAX);
    for (;;) {
        ssize_t n =
            recv(pmi->fd, pmi->in + pmi->have, MR_PMI_MESSAGE_MAX - pmi->have, wait == MR_PMI_NOW ? MSG_DONTWAIT : 0);

        if (n > 0) {
            pmi->have += (size_t)n;
            return 0;
        }
        if (n == 0)
            return connection_failed(pmi, 0);
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            return connection_failed(pmi, errno);
        if (wait != MR_PMI_SOON)
            return -EAGAIN;
        if ((left_ms -= pmi->pause_ms) <= 0)
            return mr_pmi_silent(pmi);
    }
}

/* ---- messages ---- */

/* A message is text: a zero byte would hide the rest. */
static int take_message(struct mr_pmi *pmi, size_t skip, size_t len, size_t all)
{
    memcpy(pmi->message, pmi->in + skip, len);
    pmi->message[len] = '\0';
    memmove(pmi->in, pmi->in + all, pmi->have - all);
    pmi->have -= all;
    return strlen(pmi->message) == len ? 0
                                       : mr_launch_fail(-EPROTO, "%s (%s) sent a message with a zero byte in it",
                                                        pmi->launcher, pmi->protocol->name);
}

int mr_pmi_read_line(struct mr_pmi *pmi, enum mr_pmi_wait wait)
{
    char *end;

    for (size_t seen = 0; !(end = memchr(pmi->in + seen, '\n', pmi->have - seen));) {
        seen = pmi->have;
        int err = receive_more(pmi, wait);
        if (err)
            return err;
    }
    size_t len = (size_t)(end - pmi->in);
    return take_message(pmi, 0, len, len + 1);
}

int mr_pmi_read_frame(struct mr_pmi *pmi, enum mr_pmi_wait wait)
{
    int err = 0, len;

    while (pmi->have < MR_PMI_FRAME_HEADER && !err)
        err = receive_more(pmi, wait);
    if (err)
        return err;
    len = mr_pmi2_frame_length(pmi->in);
    if (len < 0 || len > MR_PMI_MESSAGE_MAX - MR_PMI_FRAME_HEADER) {
        char header[MR_PMI_FRAME_HEADER + 1] = "", shown[MR_PMI_FRAME_HEADER + 1];
        memcpy(header, pmi->in, MR_PMI_FRAME_HEADER);
        mr_pmi_quote(header, shown, sizeof(shown));
        return mr_launch_fail(-EPROTO, "%s (%s) sent '%s' where the length of a message was due", pmi->launcher,
                              pmi->protocol->name, shown);
    }
    size_t all = MR_PMI_FRAME_HEADER + (size_t)len;
    while (pmi->have < all && !err)
        err = receive_more(pmi, wait == MR_PMI_PAUSE ? MR_PMI_SOON : wait);
    return err ? err : take_message(pmi, MR_PMI_FRAME_HEADER, (size_t)len, all);
}

int mr_pmi_nonsense(struct mr_pmi *pmi, const char *asked)
{
    char shown[120];

    mr_pmi_quote(pmi->message, shown, sizeof(shown));
    return mr_launch_fail(-EPROTO, "%s (%s) gave no proper answer to %s: '%s'", pmi->launcher, pmi->protocol->name,
                          asked, shown);
}

/* ---- opening ---- */

static int take_variable(const char *name, long long max, int *out)
{
    const char *text = mr_config_foreign(name);
    long long n;

    if (!text)
        return mr_launch_fail(-EINVAL, "PMI_FD is set without %s; start the program with mpiexec or srun", name);
    if (!mr_pmi_number(text, 0, max, &n))
        return mr_launch_fail(-EINVAL, "%s=%.40s is not a number from 0 to %lld", name, text, max);
    *out = (int)n;
    return 0;
}

static int open_inherited(struct mr_pmi *pmi)
{
    struct sockaddr_storage any;
    socklen_t len = sizeof(any);
    int err = take_variable("PMI_FD", 1 << 24, &pmi->fd);

    if (!err)
        err = take_variable("PMI_RANK", MR_PMI_RANKS_MAX - 1, &pmi->rank);
    if (!err)
        err = take_variable("PMI_SIZE", MR_PMI_RANKS_MAX, &pmi->size);
    if (!err && getsockname(pmi->fd, (struct sockaddr *)&any, &len))
        err = mr_launch_fail(-ENOTCONN,
                             "PMI_FD=%d is not an open socket: a program between %s and this one has closed it, or "
                             "this is not a rank but a child of one; MRMPI_LAUNCHER=none runs it as a single process",
                             pmi->fd, pmi->launcher);
    if (err)
        pmi->fd = -1; /* not ours to close */
    return err;
}

static int connect_to(struct mr_pmi *pmi, const struct addrinfo *to)
{
    struct timeval patience = {.tv_sec = mr_config.launcher_timeout_s};

    pmi->fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (pmi->fd < 0)
        return -errno;
    setsockopt(pmi->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    while (connect(pmi->fd, to->ai_addr, to->ai_addrlen)) {
        if (errno == EINTR)
            continue;
        int err = errno == EINPROGRESS ? -ETIMEDOUT : -errno;
        mr_pmi_close(pmi);
        return err;
    }
    setsockopt(pmi->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return 0;
}

static int connect_port(struct mr_pmi *pmi, const char *address)
{
    const char *colon = strrchr(address, ':');
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char host[256];

    if (!colon || colon == address || !colon[1] || (size_t)(colon - address) >= sizeof(host))
        return mr_launch_fail(-EINVAL, "PMI_PORT=%.80s is not HOST:PORT", address);
    memcpy(host, address, (size_t)(colon - address));
    host[colon - address] = '\0';
    int rc = getaddrinfo(host, colon + 1, &hints, &found);
    if (rc)
        return mr_launch_fail(-EHOSTUNREACH, "PMI_PORT=%.80s: %s", address, gai_strerror(rc));
    int err = -EHOSTUNREACH;
    for (const struct addrinfo *a = found; a && err; a = a->ai_next)
        err = connect_to(pmi, a);
    freeaddrinfo(found);
    return err ? mr_launch_fail(err, "%s does not answer at PMI_PORT=%.80s: %s", pmi->launcher, address, strerror(-err))
               : 0;
}

/* "cmd=set NAME=N" */
static int read_set(struct mr_pmi *pmi, const char *name, long long min, int *out)
{
    char text[32];
    long long n;
    int err = mr_pmi_read_line(pmi, MR_PMI_SOON);

    if (err)
        return err;
    if (mr_pmi1_value(pmi->message, name, text, sizeof(text)) || !mr_pmi_number(text, min, MR_PMI_RANKS_MAX, &n))
        return mr_pmi_nonsense(pmi, "initack");
    *out = (int)n;
    return 0;
}

/* The port serves many processes: the caller identifies itself, and gets its rank. */
static int introduce(struct mr_pmi *pmi)
{
    const char *id = mr_config_foreign("PMI_ID");
    char line[64], text[32];
    long long n;
    int debug;

    if (!id || !mr_pmi_number(id, 0, MR_PMI_RANKS_MAX, &n))
        return mr_launch_fail(-EINVAL, "PMI_PORT is set, and PMI_ID is not a number");
    int len = snprintf(line, sizeof(line), "cmd=initack pmiid=%lld\n", n);
    int err = mr_pmi_send(pmi, line, (size_t)len);
    if (!err)
        err = mr_pmi_read_line(pmi, MR_PMI_SOON);
    if (err)
        return err;
    if (mr_pmi1_value(pmi->message, "cmd", text, sizeof(text)) || strcmp(text, "initack"))
        return mr_pmi_nonsense(pmi, "initack");
    err = read_set(pmi, "size", 1, &pmi->size);
    if (!err)
        err = read_set(pmi, "rank", 0, &pmi->rank);
    return err ? err : read_set(pmi, "debug", 0, &debug);
}

/* An inherited descriptor may be of any kind; programs started by this process must not have it. */
static int prepare_socket(struct mr_pmi *pmi)
{
    struct timeval patience = {.tv_sec = mr_config.launcher_timeout_s}, pause;
    int flags = fcntl(pmi->fd, F_GETFL);

    pmi->pause_ms = mr_config.launcher_timeout_s * 250;
    if (pmi->pause_ms > PAUSE_MAX_MS)
        pmi->pause_ms = PAUSE_MAX_MS;
    pause = (struct timeval){.tv_sec = pmi->pause_ms / 1000, .tv_usec = pmi->pause_ms % 1000 * 1000};
    if (flags < 0 || fcntl(pmi->fd, F_SETFL, flags & ~O_NONBLOCK) || fcntl(pmi->fd, F_SETFD, FD_CLOEXEC) ||
        setsockopt(pmi->fd, SOL_SOCKET, SO_RCVTIMEO, &pause, sizeof(pause)) ||
        setsockopt(pmi->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)))
        return connection_failed(pmi, errno);
    return 0;
}

static int agree_on_version(struct mr_pmi *pmi)
{
    const struct mr_pmi_protocol *p = pmi->protocol;
    char line[64], text[32];
    long long rc = 0, version;
    int len = snprintf(line, sizeof(line), "cmd=init pmi_version=%d pmi_subversion=%d\n", p->version, p->subversion);
    int err = mr_pmi_send(pmi, line, (size_t)len);

    if (!err)
        err = mr_pmi_read_line(pmi, MR_PMI_SOON);
    if (err)
        return err;
    if (mr_pmi1_value(pmi->message, "cmd", text, sizeof(text)) || strcmp(text, "response_to_init") ||
        mr_pmi1_value(pmi->message, "pmi_version", text, sizeof(text)) || !mr_pmi_number(text, 0, 1000, &version) ||
        (!mr_pmi1_value(pmi->message, "rc", text, sizeof(text)) && !mr_pmi_number(text, INT32_MIN, INT32_MAX, &rc)))
        return mr_pmi_nonsense(pmi, "init");
    if (rc || version != p->version)
        return mr_launch_fail(-EPROTONOSUPPORT, "%s does not speak %s (it offers version %lld); try MRMPI_LAUNCHER=%s",
                              pmi->launcher, p->name, version, p->version == 2 ? "pmi1" : "pmi2");
    return 0;
}

int mr_pmi_open(struct mr_pmi *pmi)
{
    const char *port = mr_config_foreign("PMI_PORT");
    int err;

    pmi->fd = -1;
    pmi->have = 0;
    if (mr_config_foreign("PMI_FD"))
        err = open_inherited(pmi);
    else
        err = connect_port(pmi, port ? port : "");
    if (!err)
        err = prepare_socket(pmi);
    if (!err && !mr_config_foreign("PMI_FD"))
        err = introduce(pmi);
    if (!err)
        err = agree_on_version(pmi);
    if (err)
        mr_pmi_close(pmi);
    return err;
}

void mr_pmi_close(struct mr_pmi *pmi)
{
    if (pmi->fd >= 0)
        close(pmi->fd);
    pmi->fd = -1;
}
