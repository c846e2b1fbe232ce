/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to the engine (SF_CONN_QUERY), and `simfab status`. */
#include "simfab/cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int greet(const char *dir, const char *host)
{
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

char *query_text(const char *dir, const char *host, enum sf_op op, const char *body)
{
    size_t len = strlen(body);
    struct sf_req *req = calloc(1, sizeof *req + len);
    struct sf_rep *rep = malloc(sizeof *rep + SF_MSG_MAX + 1);
    char *text = NULL;
    ssize_t n;
    int fd = -1, e = ENOMEM;

    if (!req || !rep)
        goto out;
    fd = greet(dir, host);
    if (fd < 0) {
        e = errno;
        goto out;
    }
    *req = (struct sf_req){.op = op, .seq = 1, .body_bytes = (uint32_t)len};
    memcpy(req + 1, body, len);
    if (send(fd, req, sizeof *req + len, MSG_NOSIGNAL) < 0 || (n = recv(fd, rep, sizeof *rep + SF_MSG_MAX, 0)) < 0) {
        e = errno;
    } else if ((size_t)n < sizeof *rep || rep->op != op || rep->body_bytes != (size_t)n - sizeof *rep) {
        e = EPROTO;
    } else if (!(e = rep->error)) {
        text = (char *)(rep + 1);
        text[rep->body_bytes] = 0;
        text = strdup(text);
        e = ENOMEM;
    }
out:
    if (fd >= 0)
        close(fd);
    free(req);
    free(rep);
    if (!text)
        errno = e;
    return text;
}

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
