/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends of the socket: see attach.h. */
#include "mrrun/attach.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "mrrun/inquiry.h"
#include "mrrun/processes.h"
#include "mrrun/scratch.h"

enum { PATIENCE_MS = 15000, REPORT_MAX = 64 << 20 };

#define SOCKET "attach"

static bool may_ask(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && (peer.uid == geteuid() || peer.uid == 0);
}

/* ---- the job's side ---------------------------------------------------------------------------------------------- */

/* The path of a scratch directory may be longer than a socket's address; the path of its descriptor is not. */
void attach_open(struct attach *a, int dir_fd)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    a->num_askers = 0;
    a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(at.sun_path, sizeof(at.sun_path), "/proc/self/fd/%d/" SOCKET, dir_fd);
    if (a->fd >= 0 && !bind(a->fd, (struct sockaddr *)&at, sizeof(at)) && !listen(a->fd, ATTACH_ASKERS))
        return;
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
}

bool attach_take(struct attach *a)
{
    int fd;

    while (a->num_askers < ATTACH_ASKERS && (fd = accept4(a->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        if (may_ask(fd))
            a->asker[a->num_askers++] = fd;
        else
            close(fd);
    }
    return a->num_askers;
}

static void send_file(int to, int file)
{
    char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
    struct iovec data = {&byte, 1};
    struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &file, sizeof(int));
    sendmsg(to, &m, MSG_NOSIGNAL | MSG_DONTWAIT); /* an asker that is gone needs no report */
}

void attach_answer(struct attach *a, const char *report)
{
    int file = a->num_askers ? memfd_create("report", MFD_CLOEXEC) : -1;
    size_t len = strlen(report);

    if (file >= 0 && write(file, report, len) != (ssize_t)len) {
        close(file);
        file = -1;
    }
    for (int i = 0; i < a->num_askers; i++) {
        if (file >= 0)
            send_file(a->asker[i], file);
        close(a->asker[i]);
    }
    a->num_askers = 0;
    if (file >= 0)
        close(file);
}

void attach_close(struct attach *a)
{
    attach_answer(a, "mrrun: the job has ended\n");
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
}

/* ---- the asking side --------------------------------------------------------------------------------------------- */

/* Connects to the socket in a directory that the process has open. -1: see errno. */
static int connect_to(pid_t pid)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char name[64], target[PATH_MAX];
    struct dirent *e;
    int fd = -1, error = ENOENT;
    DIR *d;

    snprintf(name, sizeof(name), "/proc/%d/fd", (int)pid);
    d = opendir(name);
    if (!d)
        return -1;
    while (fd < 0 && (e = readdir(d))) {
        ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1);

        target[n > 0 ? n : 0] = '\0';
        if (!scratch_is_name(target))
            continue;
        snprintf(at.sun_path, sizeof(at.sun_path), "%s/%d/" SOCKET, name, atoi(e->d_name));
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at))) {
            error = errno;
            close(fd);
            fd = -1;
        }
    }
    closedir(d);
    errno = error;
    return fd;
}

/* pid's mrrun, or the first one among its ancestors, as *found. -1: errno says why. */
static int connect_to_job(pid_t pid, pid_t *found)
{
    for (*found = pid; *found > 1; *found = processes_parent(*found)) {
        int fd = connect_to(*found);

        if (fd >= 0 || errno != ENOENT)
            return fd;
    }
    errno = ENOENT;
    return -1;
}

static int receive_file(int fd)
{
    char control[CMSG_SPACE(sizeof(int))], byte;
    struct iovec data = {&byte, 1};
    struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct cmsghdr *c;
    int file = -1;

    if (recvmsg(fd, &m, MSG_CMSG_CLOEXEC) <= 0)
        return -1;
    c = CMSG_FIRSTHDR(&m);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&file, CMSG_DATA(c), sizeof(int));
    return file;
}

/* Root prints data written by another user's process: control characters are removed, and the length is limited. */
static int print_file(int file)
{
    struct stat st;
    char bytes[4096];
    off_t at = 0;
    ssize_t n;

    if (fstat(file, &st) || !S_ISREG(st.st_mode) || st.st_size > REPORT_MAX)
        return -1;
    for (; at < st.st_size && (n = pread(file, bytes, sizeof(bytes), at)) > 0; at += n) {
        for (ssize_t i = 0; i < n; i++)
            bytes[i] = bytes[i] != '\n' && iscntrl((unsigned char)bytes[i]) ? '?' : bytes[i];
        fwrite(bytes, 1, (size_t)n, stdout);
    }
    return fflush(stdout) || at < st.st_size ? -1 : 0;
}

static int complain_of_process(pid_t pid, const char *what)
{
    fprintf(stderr, "mrrun: cannot attach to process %d: %s\n", (int)pid, what);
    return 1;
}

static int complain_of_connection(pid_t pid, int error)
{
    switch (error) {
    case EACCES:
    case EPERM:
        return complain_of_process(pid, "it belongs to another user");
    case EAGAIN:
        return complain_of_process(pid, "its mrrun does not answer");
    case ECONNREFUSED:
        return complain_of_process(pid, "its job has ended");
    case ENOENT:
        return complain_of_process(
            pid, kill(pid, 0) && errno == ESRCH
                     ? "there is no such process"
                     : "it is no mrrun with a running job, nor a rank of one on this host; attach where "
                       "mrrun runs");
    default:
        return complain_of_process(pid, strerror(error));
    }
}

int attach_print(pid_t pid)
{
    pid_t mrrun;
    int fd = connect_to_job(pid, &mrrun), file, status;
    struct pollfd p = {.fd = fd, .events = POLLIN};

    if (fd < 0)
        return complain_of_connection(pid, errno);
    if (inquiry_state(mrrun) == 'T')
        status = complain_of_process(pid, "its mrrun is stopped; continue it (kill -CONT) and try again");
    else if (poll(&p, 1, PATIENCE_MS) <= 0)
        status = complain_of_process(pid, "its mrrun does not answer");
    else if ((file = receive_file(fd)) < 0)
        status = complain_of_process(pid, "its job has ended, or too many are attached to it");
    else
        status = print_file(file) ? complain_of_process(pid, "the report cannot be read or printed") : 0;
    close(fd);
    return status;
}
