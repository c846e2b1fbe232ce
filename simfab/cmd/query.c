/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to the engine (SF_CONN_QUERY), and `simfab status`. */
#include "simfab/cmd/query.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "simfab/cmd/cmd.h"
#include "simfab/cmd/paths.h"
#include "simfab/cmd/say.h"

enum { SOON_MS = 500 };

static int greet(const char *dir, const char *host, int limit_ms)
{
    struct timeval limit = {.tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000};
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct sf_hello hello = {.magic = SF_MAGIC, .version = SF_VERSION, .kind = SF_CONN_QUERY};
    struct sf_welcome w;
    int fd, e;

    if (snprintf(addr.sun_path, sizeof addr.sun_path, "%s/engine.sock", dir) >= (int)sizeof addr.sun_path ||
        strlen(host) >= sizeof hello.host) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(hello.host, host);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&addr, sizeof addr) || send(fd, &hello, sizeof hello, MSG_NOSIGNAL) < 0)
        goto fail;
    errno = EPROTO;
    if (recv(fd, &w, sizeof w, 0) != sizeof w || w.magic != SF_MAGIC || w.version != SF_VERSION)
        goto fail;
    if (w.error) {
        errno = w.error;
        goto fail;
    }
    return fd;

fail:
    e = errno;
    close(fd);
    errno = e;
    return -1;
}

/* Receives a message, and its descriptor (else -1). */
static ssize_t receive(int from, void *data, size_t cap, int *fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {data, cap};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(from, &msg, MSG_CMSG_CLOEXEC);
    struct cmsghdr *c = n >= 0 ? CMSG_FIRSTHDR(&msg) : NULL;

    *fd = -1;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(c), sizeof *fd);
    return n;
}

static bool read_all(int fd, char *to, size_t bytes)
{
    size_t got = 0;
    ssize_t n;

    while (got < bytes && (n = pread(fd, to + got, bytes - got, (off_t)got)) > 0)
        got += (size_t)n;
    return got == bytes;
}

/* The answer's text: in the message, or in the memory that came with the message. NULL and errno: no answer. */
static char *read_answer(int from, enum sf_op op)
{
    struct sf_rep *rep = malloc(SF_MSG_MAX);
    char *text = NULL;
    int fd = -1, e = ENOMEM;
    ssize_t n = rep ? receive(from, rep, SF_MSG_MAX, &fd) : 0;
    size_t body = n > (ssize_t)sizeof *rep ? (size_t)n - sizeof *rep : 0;

    if (n < 0) {
        e = errno;
    } else if (rep && ((size_t)n < sizeof *rep || rep->op != op || (fd < 0 && rep->body_bytes != body))) {
        e = EPROTO;
    } else if (rep && !(e = rep->error) && (text = malloc((size_t)rep->body_bytes + 1))) {
        text[rep->body_bytes] = 0;
        if (fd < 0)
            memcpy(text, rep + 1, body);
        else if (!read_all(fd, text, rep->body_bytes)) {
            free(text);
            text = NULL;
            e = EPROTO;
        }
    }
    if (fd >= 0)
        close(fd);
    free(rep);
    errno = e;
    return text;
}

/* Sends a message, with a descriptor unless -1. */
static bool send_with_fd(int to, const void *data, size_t len, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {(void *)data, len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

    if (fd >= 0) {
        msg.msg_control = &control;
        msg.msg_controllen = sizeof control;
        *CMSG_FIRSTHDR(&msg) =
            (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &fd, sizeof fd);
    }
    return sendmsg(to, &msg, MSG_NOSIGNAL) == (ssize_t)len;
}

/* limit_ms: the longest wait for a message; 0: none. */
static char *query_within(const char *dir, const char *host, enum sf_op op, const char *body, int pass, int limit_ms)
{
    size_t len = strlen(body);
    struct sf_req *req = calloc(1, sizeof *req + len);
    char *text = NULL;
    int fd = req ? greet(dir, host, limit_ms) : -1, e = errno;

    if (fd >= 0) {
        *req = (struct sf_req){.op = op, .seq = 1, .body_bytes = (uint32_t)len};
        memcpy(req + 1, body, len);
        if (send_with_fd(fd, req, sizeof *req + len, pass))
            text = read_answer(fd, op);
        e = errno;
        close(fd);
    }
    free(req);
    errno = e;
    return text;
}

char *query_text(const char *dir, const char *host, enum sf_op op, const char *body)
{
    return query_within(dir, host, op, body, -1, 0);
}

char *query_with_fd(const char *dir, const char *host, enum sf_op op, const char *body, int pass)
{
    return query_within(dir, host, op, body, pass, 0);
}

char *query_soon(const char *dir, enum sf_op op, const char *body)
{
    return query_within(dir, "", op, body, -1, SOON_MS);
}

/* The arguments, one per line; NULL without memory, or if an argument holds a line end. */
static char *join_lines(int argc, char **argv)
{
    size_t len = 1;
    char *line;

    for (int i = 0; i < argc; i++)
        len += strlen(argv[i]) + 1;
    line = calloc(1, len);
    for (int i = 0; line && i < argc; i++) {
        if (i)
            strcat(line, "\n");
        strcat(line, argv[i]);
    }
    return line;
}

int ask_engine(enum sf_op op, int argc, char **argv)
{
    const char *dir = fabric_dir();
    char *line, *answer = NULL;
    int status = 1;

    if (!dir)
        return EXIT_USAGE;
    for (int i = 0; i < argc; i++)
        if (strchr(argv[i], '\n')) {
            complain("an argument holds a line end");
            return EXIT_USAGE;
        }
    line = join_lines(argc, argv);
    if (line)
        answer = query_text(dir, "", op, line);
    if (!answer) {
        complain("the engine at %s does not answer: %s", dir, strerror(errno));
    } else if (*answer == '+') {
        fputs(answer + 1, stdout);
        status = fflush(stdout) ? 1 : 0;
    } else {
        complain("%s", *answer ? answer + 1 : "the engine says nothing");
        status = EXIT_USAGE;
    }
    free(answer);
    free(line);
    return status;
}

const char usage_status[] = "usage: simfab status [--hosts|--counters [\"NODE PORT\"]]\n"
                            "\n"
                            "Prints the state of the fabric: virtual time, events, processes, ports with their LIDs. "
                            "--hosts prints the names of the\n"
                            "hosts, one per line; --counters prints data and packets by port and virtual lane.\n";

int cmd_status(int argc, char **argv)
{
    enum sf_op op = SF_OP_STATUS;
    const char *dir, *body = "";
    char *text;

    if (argc >= 1 && !strcmp(argv[0], "--hosts") && argc == 1) {
        body = "hosts";
    } else if (argc >= 1 && !strcmp(argv[0], "--counters") && argc <= 2) {
        op = SF_OP_COUNTERS;
        body = argc == 2 ? argv[1] : "";
    } else if (argc) {
        fputs(usage_status, stderr);
        return EXIT_USAGE;
    }
    dir = fabric_dir();
    if (!dir)
        return EXIT_USAGE;
    text = query_text(dir, "", op, body);
    if (!text) {
        complain("the engine at %s does not answer: %s", dir, strerror(errno));
        return 1;
    }
    fputs(text, stdout);
    free(text);
    return fflush(stdout) ? 1 : 0;
}
