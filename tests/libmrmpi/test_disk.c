/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a file to any address, straight or by a buffer on the way: the same bytes, to its end, and an error's reason.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libmrmpi/base/lock.h"
#include "libmrmpi/io/disk.h"
#include "tests/check.h"

bool mr_threaded;
uint32_t mr_lock_word;
uint64_t mr_lock_news;
struct mr_comm *mr_comm_world;

enum { BYTES = 300000, ROOM = BYTES + 8192 };

static unsigned char bytes[BYTES], to[ROOM] __attribute__((aligned(4096)));

static struct mr_disk make_file(void)
{
    char name[] = "/tmp/mrmpi-disk-XXXXXX";
    int fd = mkstemp(name);

    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 256);
    ck_assert(fd >= 0 && write(fd, bytes, BYTES) == BYTES);
    unlink(name);
    return (struct mr_disk){fd, "a file", true};
}

static void read_everywhere(const struct mr_disk *d)
{
    static const int shifts[] = {0, 1, 16, 63, 64, 65, 2048, 4080}, from[] = {0, 1, 100, 4095, 4096, BYTES - 5000};
    static const size_t lens[] = {1, 4095, 4096, 65536, 65537, 131072, 200001, BYTES};
    size_t done;

    for (int s = 0; s < 8; s++)
        for (int f = 0; f < 6; f++)
            for (int l = 0; l < 8; l++) {
                size_t there = BYTES - (size_t)from[f] < lens[l] ? BYTES - (size_t)from[f] : lens[l];

                memset(to, 0xaa, sizeof(to));
                ck_assert_int_eq(mr_disk_read(d, to + shifts[s], lens[l], from[f], &done), MR_SUCCESS);
                ck_assert_uint_eq(done, there);
                ck_assert(!memcmp(to + shifts[s], bytes + from[f], there));
                ck_assert(to[shifts[s] + (int)there] == 0xaa && (!shifts[s] || to[shifts[s] - 1] == 0xaa));
            }
}

START_TEST(both_ways)
{
    struct mr_disk d = make_file();

    mr_disk_mode = MR_DISK_DIRECT;
    read_everywhere(&d);
    mr_disk_mode = MR_DISK_BUFFERED;
    read_everywhere(&d);
    close(d.fd);
}
END_TEST

START_TEST(tried_once)
{
    struct mr_disk d = make_file();

    mr_disk_mode = MR_DISK_UNTRIED;
    read_everywhere(&d);
    ck_assert_int_ne(mr_disk_mode, MR_DISK_UNTRIED);
    close(d.fd);
}
END_TEST

START_TEST(errors)
{
    struct mr_disk d = {-1, "no file", true};
    size_t done;

    for (int way = MR_DISK_DIRECT; way <= MR_DISK_BUFFERED; way++) {
        mr_disk_mode = (enum mr_disk_mode)way;
        ck_assert_int_eq(mr_disk_read(&d, to + 16, 10000, 0, &done), MR_ERR_IO);
        ck_assert_uint_eq(done, 0);
        ck_assert(strstr(mr_error_take_detail(), "cannot read 10000 bytes at 0 of \"no file\": Bad file descriptor"));
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("disk");

    tcase_add_test(tc, both_ways);
    tcase_add_test(tc, tried_once);
    tcase_add_test(tc, errors);
    return check_run(tc, NULL);
}
