/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that processes share, by memfd and where there is none: memfd_create and fstatvfs are the test's own. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libmrmpi/base/memfile.h"
#include "tests/check.h"

#define BYTES ((size_t)3 << 20)

static int forbidden;   /* errno of memfd_create */
static fsblkcnt_t room; /* free blocks of 4 KiB in the file system */

int memfd_create(const char *name, unsigned flags)
{
    errno = forbidden;
    return forbidden ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

int fstatvfs(int fd, struct statvfs *out)
{
    *out = (struct statvfs){.f_bsize = 1 << 20, .f_frsize = 4096, .f_bavail = room};
    return 0;
}

static void setup(void)
{
    forbidden = 0;
    room = BYTES / 4096;
}

static void *map(int fd)
{
    void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    ck_assert_ptr_ne(at, MAP_FAILED);
    return at;
}

/* Another process that opens it by pid and descriptor gets the same memory. */
static void share(void)
{
    int fd = mr_memfile_make("test", BYTES), status;
    char *here, zero[64] = {0};
    pid_t pid, self = getpid();

    ck_assert_int_ge(fd, 0);
    ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    here = map(fd);
    ck_assert_mem_eq(here, zero, sizeof zero);
    ck_assert_mem_eq(here + BYTES - sizeof zero, zero, sizeof zero);
    pid = fork();
    if (!pid) {
        int own = mr_memfile_open(self, fd, BYTES);

        ((char *)map(own))[BYTES - 1] = 42;
        _exit(own == fd || !(fcntl(own, F_GETFD) & FD_CLOEXEC));
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(here[BYTES - 1], 42);
    ck_assert_int_eq(mr_memfile_open(self, fd, BYTES + 1), -1);
    ck_assert_int_eq(errno, EPROTO);
    munmap(here, BYTES);
    close(fd);
    ck_assert_int_eq(mr_memfile_open(self, fd, BYTES), -1);
    ck_assert_int_eq(errno, ENOENT);
}

START_TEST(by_memfd)
{
    room = 0;
    share();
}
END_TEST

START_TEST(where_it_is_forbidden)
{
    forbidden = EPERM;
    share();
    forbidden = ENOSYS;
    share();
}
END_TEST

/* Whoever wrote there would be killed. */
START_TEST(a_file_system_without_room)
{
    forbidden = EPERM;
    room--;
    ck_assert_int_eq(mr_memfile_make("test", BYTES), -1);
    ck_assert_int_eq(errno, ENOSPC);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("files in memory");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, by_memfd);
    tcase_add_test(t, where_it_is_forbidden);
    tcase_add_test(t, a_file_system_without_room);
    return check_run(t, NULL);
}
