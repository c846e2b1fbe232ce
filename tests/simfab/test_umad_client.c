/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * /dev/infiniband/umad and issm on a simulated host, as seen by a program: the kernel's behaviour, call by call. Runs
 * under `simfab exec` on two-hosts-two-rails after opensm has brought the subnet up (tests/simfab/umad.sh); with
 * "--inherited FD", the program executed by another with an open umad.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_mad.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"

#define UMAD0 "/dev/infiniband/umad0"

struct mad {
    struct ib_user_mad_hdr hdr;
    uint8_t data[4096];
};

static const char *self;

static int open_umad(void)
{
    int fd = open(UMAD0, O_RDWR | O_NONBLOCK);

    ck_assert_msg(fd >= 0, "open: %s", strerror(errno));
    ck_assert_int_eq(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), 0);
    return fd;
}

static int reg(int fd, unsigned qpn, unsigned class, unsigned version, uint64_t methods, unsigned rmpp)
{
    struct ib_user_mad_reg_req r = {.qpn = (uint8_t)qpn,
                                    .mgmt_class = (uint8_t) class,
                                    .mgmt_class_version = (uint8_t)version,
                                    .rmpp_version = (uint8_t)rmpp};

    memcpy(r.method_mask, &methods, sizeof methods);
    return ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r) ? -errno : (int)r.id;
}

/* A directed-route Get by 0 hops: this host's own port answers. */
static void local_get(struct mad *m, unsigned id, unsigned attr, unsigned tid)
{
    memset(m, 0, sizeof *m);
    m->hdr.id = id;
    m->hdr.lid = 0xffff;
    m->hdr.timeout_ms = 1000;
    memcpy(m->data, (uint8_t[]){1, 0x81, 1, 1}, 4);
    m->data[15] = (uint8_t)tid;
    m->data[17] = (uint8_t)attr;
    memset(m->data + 32, 0xff, 4);
}

static int wait_in(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, ms) == 1 && p.revents & POLLIN;
}

static int node_info_works(int fd, unsigned tid)
{
    struct mad m;

    local_get(&m, 0, 0x11, tid);
    return write(fd, &m, 320) == 320 && wait_in(fd, 5000) && read(fd, &m, sizeof m) == 320 && m.data[3] == 0x81;
}

static unsigned read_unsigned(const char *path)
{
    char text[32] = "";
    int fd = open(path, O_RDONLY);

    ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
    ck_assert_int_gt(read(fd, text, sizeof text - 1), 0);
    close(fd);
    ck_assert(strchr(text, '\n') != NULL);
    return (unsigned)strtoul(text, NULL, 0);
}

START_TEST(polling)
{
    int fd = open_umad(), pipes[2], ep;
    struct epoll_event ev = {.events = EPOLLIN};
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN | POLLOUT}};
    struct mad m;

    ck_assert_int_eq(pipe(pipes), 0);
    p[1] = (struct pollfd){.fd = pipes[0], .events = POLLIN};
    ck_assert_int_eq(poll(p, 2, 0), 1);
    ck_assert_int_eq(p[0].revents, POLLOUT);
    ck_assert_int_eq(write(pipes[1], "x", 1), 1);
    ck_assert_int_eq(poll(p, 2, 0), 2);
    ck_assert_int_eq(p[1].revents, POLLIN);
    ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
    ep = epoll_create1(0);
    ck_assert_int_eq(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev), 0);
    ck_assert_int_eq(epoll_wait(ep, &ev, 1, 0), 0);
    ck_assert_int_eq(read(fd, &m, sizeof m), -1);
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_eq(reg(fd, 0, 0x81, 1, 0, 0), 0);
    local_get(&m, 0, 0x11, 1);
    ck_assert_int_eq(write(fd, &m, 64 + 256), 320);
    ck_assert_int_eq(epoll_wait(ep, &ev, 1, 5000), 1);
    ck_assert_int_eq(read(fd, &m, sizeof m), 320);
    ck_assert_uint_eq(m.data[3], 0x81);
    ck_assert_uint_eq(m.data[64 + 2], 1); /* NodeInfo: a CA */
    close(fd);
}
END_TEST

START_TEST(registering)
{
    struct ib_user_mad_reg_req2 r = {.mgmt_class = 1, .mgmt_class_version = 1, .flags = 8};
    int fd = open_umad(), fd2 = open_umad();
    uint32_t id = 3;

    ck_assert_int_eq(reg(fd, 1, 0x0a, 1, 0x0e, 0), 0);
    ck_assert_int_eq(reg(fd2, 1, 0x0a, 1, 0x02, 0), -EINVAL);
    ck_assert_int_eq(reg(fd2, 1, 0x0a, 1, 0, 0), 0);
    ck_assert_int_eq(reg(fd, 0, 1, 1, 0, 1), -EINVAL); /* RMPP on class 1 */
    ck_assert_int_eq(reg(fd, 0, 1, 9, 0, 0), -EINVAL); /* class version 9 */
    ck_assert_int_eq(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &r), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_uint_eq(r.flags, IB_USER_MAD_REG_FLAGS_CAP);
    for (int i = 1; i < 32; i++)
        ck_assert_int_eq(reg(fd, 0, 0x81, 1, 0, 0), i);
    ck_assert_int_eq(reg(fd, 0, 0x81, 1, 0, 0), -ENOMEM);
    ck_assert_int_eq(ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, &id), 0);
    ck_assert_int_eq(reg(fd, 0, 0x81, 1, 0, 0), 3);
    ck_assert_int_eq(ioctl(fd, FIONREAD + 0x77), -1); /* not ours: the kernel's own answer */
    close(fd);
    ck_assert_int_eq(reg(fd2, 1, 0x0a, 1, 0x02, 0), 1);
    close(fd2);
}
END_TEST

START_TEST(writing)
{
    int fd = open_umad(), smi = reg(fd, 0, 0x81, 1, 0, 0), sa = reg(fd, 1, 3, 2, 0, 1);
    struct mad m;

    local_get(&m, (unsigned)smi, 0x11, 1);
    ck_assert_int_eq(write(fd, &m, 64 + 35), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(write(fd, &m, 64 + 257), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(write(fd, &m, 64 + 64), 64 + 64);
    ck_assert(wait_in(fd, 5000));
    ck_assert_int_eq(read(fd, &m, sizeof m), 320);
    local_get(&m, 32, 0x11, 1);
    ck_assert_int_eq(write(fd, &m, 320), -1);
    ck_assert_int_eq(errno, EINVAL);
    local_get(&m, 7, 0x11, 1);
    ck_assert_int_eq(write(fd, &m, 320), -1);
    ck_assert_int_eq(errno, EIO);
    local_get(&m, (unsigned)sa, 0x11, 1);
    ck_assert_int_eq(write(fd, &m, 320), -1);
    ck_assert_int_eq(errno, EINVAL);
    local_get(&m, (unsigned)smi, 0x11, 1);
    m.data[7] = 1; /* one hop, by a port missing at this HCA */
    m.data[129] = 9;
    ck_assert_int_eq(write(fd, &m, 320), -1);
    ck_assert_int_eq(errno, EINVAL);
    local_get(&m, (unsigned)smi, 0x33, 5); /* no such attribute */
    ck_assert_int_eq(write(fd, &m, 320), 320);
    ck_assert(wait_in(fd, 5000));
    ck_assert_int_eq(read(fd, &m, 319), -1); /* too small: the datagram stays */
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(read(fd, &m, 320), 320);
    ck_assert_uint_eq(m.data[5], 0x0c);
    ck_assert_uint_eq(m.data[15], 5);
    close(fd);
}
END_TEST

START_TEST(timing_out)
{
    int fd = open_umad(), id = reg(fd, 0, 1, 1, 0, 0);
    struct timespec a, b;
    struct mad m;
    long ms;

    local_get(&m, (unsigned)id, 0x11, 1);
    m.data[1] = 1;
    m.hdr.lid = htons(0x777);
    m.hdr.timeout_ms = 150;
    m.hdr.retries = 1;
    clock_gettime(CLOCK_MONOTONIC, &a);
    ck_assert_int_eq(write(fd, &m, 320), 320);
    ck_assert_int_eq(write(fd, &m, 320), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert(!wait_in(fd, 200));
    ck_assert(wait_in(fd, 5000));
    clock_gettime(CLOCK_MONOTONIC, &b);
    ck_assert_int_eq(read(fd, &m, sizeof m), 64 + 24);
    ck_assert_uint_eq(m.hdr.status, ETIMEDOUT);
    ms = (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000;
    ck_assert_int_ge(ms, 300);
    close(fd);
}
END_TEST

/* Many requests without a look at responses in between: errors are still told by the write that is wrong. */
START_TEST(many_under_way)
{
    enum { N = 300 };
    int fd = open_umad(), id = reg(fd, 0, 0x81, 1, 0, 0), lid = reg(fd, 0, 1, 1, 0, 0);
    bool seen[N] = {false};
    struct rlimit files, none;
    struct mad m;

    /* nor does any write use a socket of its own to the engine, which could not be made */
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = files.rlim_max};
    for (unsigned i = 0; i < N; i++) {
        local_get(&m, (unsigned)id, 0x11, 0);
        m.data[14] = (uint8_t)(i >> 8);
        m.data[15] = (uint8_t)i;
        setrlimit(RLIMIT_NOFILE, &none);
        ck_assert_int_eq(write(fd, &m, 320), 320);
        setrlimit(RLIMIT_NOFILE, &files);
        if (i % 100 == 50) {
            m.hdr.id = 9;
            ck_assert_int_eq(write(fd, &m, 320), -1);
            ck_assert_int_eq(errno, EIO);
        }
    }
    for (unsigned i = 0; i < N; i++) {
        ck_assert(wait_in(fd, 5000));
        ck_assert_int_eq(read(fd, &m, sizeof m), 320);
        ck_assert_uint_eq(m.data[3], 0x81);
        ck_assert_uint_eq(m.data[14] << 8 | m.data[15], i);
        ck_assert(!seen[i]);
        seen[i] = true;
    }
    /* to nobody: each waits, and none may be sent a second time */
    for (int again = 0; again < 2; again++) {
        for (unsigned i = 0; i < 100; i++) {
            local_get(&m, (unsigned)lid, 0x11, i);
            m.data[1] = 1;
            m.hdr.lid = htons(0x777);
            m.hdr.timeout_ms = 60000;
            ck_assert_int_eq(write(fd, &m, 320), again ? -1 : 320);
            ck_assert(!again || errno == EINVAL);
        }
    }
    close(fd);
}
END_TEST

/* More open files than the library keeps pages of, and again when all have been closed. */
START_TEST(many_files)
{
    enum { N = 100 };
    int fd[N];

    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < N; i++) {
            fd[i] = open_umad();
            ck_assert_int_eq(reg(fd[i], 0, 0x81, 1, 0, 0), 0);
        }
        for (int i = 0; i < N; i++)
            ck_assert(node_info_works(fd[i], (unsigned)i + 1));
        for (int i = 0; i < N; i++)
            close(fd[i]);
    }
}
END_TEST

START_TEST(old_header)
{
    int fd = open(UMAD0, O_RDWR), id = reg(fd, 0, 0x81, 1, 0, 0);
    struct mad m;
    uint8_t buf[56 + 256], back[400];

    local_get(&m, (unsigned)id, 0x11, 1);
    memcpy(buf, &m.hdr, 56);
    memcpy(buf + 56, m.data, 256);
    ck_assert_int_eq(write(fd, buf, sizeof buf), 56 + 256);
    ck_assert_int_eq(read(fd, back, sizeof back), 56 + 256); /* this read blocks */
    ck_assert_uint_eq(back[56 + 3], 0x81);
    close(fd);
}
END_TEST

/* A table of several segments: SubnAdmGetTable of all NodeRecords */
START_TEST(large_answer)
{
    int fd = open_umad(), id = reg(fd, 1, 3, 2, 0, 1);
    struct mad m, first;
    ssize_t all;

    memset(&m, 0, sizeof m);
    m.hdr.id = (unsigned)id;
    m.hdr.qpn = htonl(1);
    m.hdr.qkey = htonl(0x80010000);
    m.hdr.lid = htons((uint16_t)read_unsigned("/sys/class/infiniband/mlx5_0/ports/1/sm_lid"));
    m.hdr.timeout_ms = 5000;
    memcpy(m.data, (uint8_t[]){1, 3, 2, 0x12}, 4);
    m.data[15] = 9;
    m.data[17] = 0x11;
    ck_assert_int_eq(write(fd, &m, 320), 320);
    ck_assert(wait_in(fd, 10000));
    ck_assert_int_eq(read(fd, &m, 63), -1);
    ck_assert_int_eq(errno, EINVAL);
    memset(&first, 0, sizeof first);
    ck_assert_int_eq(read(fd, &first, 320), -1);
    ck_assert_int_eq(errno, ENOSPC);
    ck_assert_uint_gt(first.hdr.length, 320);
    ck_assert_uint_eq(first.data[3], 0x92); /* header and first segment are shown */
    ck_assert(wait_in(fd, 0));
    all = read(fd, &m, first.hdr.length);
    ck_assert_int_eq(all, first.hdr.length);
    ck_assert_int_eq(all, 64 + 56 + 5 * 112); /* five nodes */
    ck_assert_int_eq(read(fd, &m, sizeof m), -1);
    ck_assert_int_eq(errno, EAGAIN);
    close(fd);
}
END_TEST

START_TEST(duplicates_and_children)
{
    int fd = open_umad(), copy, status, other, err = 0;
    pid_t pid;

    ck_assert_int_eq(reg(fd, 0, 0x81, 1, 0, 0), 0);
    ck_assert_int_eq(reg(fd, 1, 0x0a, 1, 0x02, 0), 1);
    copy = dup(fd);
    close(fd);
    ck_assert(node_info_works(copy, 1));
    pid = fork();
    if (pid == 0)
        _exit(node_info_works(copy, 2) ? 0 : 1);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    pid = fork();
    if (pid == 0) {
        char number[16];

        snprintf(number, sizeof number, "%d", copy);
        execl(self, self, "--inherited", number, (char *)NULL);
        _exit(2);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    /* as long as one is open, its agents are there */
    other = open_umad();
    ck_assert_int_eq(reg(other, 1, 0x0a, 1, 0x02, 0), -EINVAL);
    close(copy);
    /* the engine hears of the children's end by their sockets, on a busy machine a moment after we do */
    for (unsigned ms = 0; ms < 5000 && (err = reg(other, 1, 0x0a, 1, 0x02, 0)); ms++)
        usleep(1000);
    ck_assert_int_eq(err, 0);
    close(other);
}
END_TEST

static void *worker(void *arg)
{
    int fd = open_umad();
    intptr_t bad = reg(fd, 0, 0x81, 1, 0, 0) != 0;

    for (unsigned i = 1; i < 100; i++)
        bad += !node_info_works(fd, i);
    close(fd);
    return (void *)bad;
}

START_TEST(threads)
{
    pthread_t t[4];
    void *bad;

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, worker, NULL), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], &bad);
        ck_assert_ptr_null(bad);
    }
}
END_TEST

START_TEST(issm)
{
    const char *cap = "/sys/class/infiniband/mlx5_1/ports/1/cap_mask";
    unsigned before = read_unsigned(cap);
    int fd = open("/dev/infiniband/issm1", O_RDONLY | O_NONBLOCK);

    ck_assert_int_ge(fd, 0);
    ck_assert_uint_eq(read_unsigned(cap), before | 2);
    ck_assert_int_eq(open("/dev/infiniband/issm1", O_RDONLY | O_NONBLOCK), -1);
    ck_assert_int_eq(errno, EAGAIN);
    close(fd);
    for (int i = 0; i < 1000 && read_unsigned(cap) != before; i++)
        ; /* the engine notices the hang-up in its own time */
    ck_assert_uint_eq(read_unsigned(cap), before);
    ck_assert_int_eq(open("/dev/infiniband/issm9", O_RDONLY), -1);
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

static int digits(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

START_TEST(sysfs)
{
    struct dirent **list;
    struct stat st;
    char line[64] = "";
    glob_t g;
    FILE *f;
    DIR *d;
    int dir, fd, n;

    ck_assert_uint_eq(read_unsigned("/sys/class/infiniband/mlx5_0/ports/1/state"), 4);
    ck_assert_uint_eq(read_unsigned("/sys//class/infiniband/./mlx5_0//ports/1/state"), 4);
    f = fopen("/sys/class/infiniband/mlx5_1/ports/1/gids/0", "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
    ck_assert_int_eq(strncmp(line, "fe80:0000:0000:0000:0002:c900:", 30), 0);
    fclose(f);
    ck_assert_ptr_null(fopen("/sys/class/infiniband/mlx5_1/ports/1/state", "w"));
    ck_assert_int_eq(scandir("/sys/class/infiniband", &list, digits, alphasort), 2);
    ck_assert_str_eq(list[0]->d_name, "mlx5_0");
    ck_assert_str_eq(list[1]->d_name, "mlx5_1");
    free(list[0]);
    free(list[1]);
    free(list);
    ck_assert_int_eq(stat(UMAD0, &st), 0);
    ck_assert(S_ISCHR(st.st_mode));
    ck_assert_int_eq(stat("/sys/class/infiniband", &st), 0);
    ck_assert(S_ISDIR(st.st_mode));
    ck_assert_int_eq(stat("/sys/class/infiniband/mlx5_9", &st), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(access("/sys/class/infiniband/mlx5_0/node_guid", R_OK), 0);
    ck_assert_int_eq(glob("/sys/class/infiniband/mlx5_?/ports/*/lid", 0, NULL, &g), 0);
    ck_assert_uint_eq(g.gl_pathc, 2);
    ck_assert_str_eq(g.gl_pathv[1], "/sys/class/infiniband/mlx5_1/ports/1/lid");
    globfree(&g);
    /* by a directory's descriptor: names are there, and files have their contents of now */
    dir = open("/sys/class/infiniband/mlx5_0/ports/1", O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(dir, 0);
    fd = openat(dir, "state", O_RDONLY);
    memset(line, 0, sizeof line);
    ck_assert_int_gt(read(fd, line, sizeof line - 1), 0);
    ck_assert_str_eq(line, "4: ACTIVE\n");
    close(fd);
    d = fdopendir(dir);
    for (n = 0; readdir(d);)
        n++;
    closedir(d);
    ck_assert_int_gt(n, 10);
    /* everything else is unchanged */
    ck_assert_int_eq(stat("/etc/passwd", &st), 0);
    ck_assert_int_ge(fd = open("/dev/null", O_RDWR), 0);
    close(fd);
    fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    if (fd >= 0)
        close(fd);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *t = tcase_create("umad");

    self = argv[0];
    if (argc == 3 && !strcmp(argv[1], "--inherited"))
        return !node_info_works(atoi(argv[2]), 77);
    tcase_add_test(t, polling);
    tcase_add_test(t, registering);
    tcase_add_test(t, writing);
    tcase_add_test(t, timing_out);
    tcase_add_test(t, many_under_way);
    tcase_add_test(t, many_files);
    tcase_add_test(t, old_header);
    tcase_add_test(t, large_answer);
    tcase_add_test(t, duplicates_and_children);
    tcase_add_test(t, threads);
    tcase_add_test(t, issm);
    tcase_add_test(t, sysfs);
    return check_run(t, NULL);
}
