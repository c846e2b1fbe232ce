/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a ring between jobs: mappings and refusals of a reader, the sleep, and mad writers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libmrmpi/channel/job_ring.h"
#include "libmrmpi/channel/shm_ring.h"
#include "libmrmpi/channel/shm_ring_writer.h"
#include "tests/check.h"

static const struct mr_ring_shape small = {.num_slots = 8, .data_bytes = 4096};

static struct mr_hdr header_of(uint32_t number, size_t len)
{
    return (struct mr_hdr){.kind = MR_VC_KIND_EAGER, .seq = number, .src = 3, .tag = (int32_t)number, .len = len};
}

static off_t size_of(int fd)
{
    struct stat st;

    ck_assert_int_eq(fstat(fd, &st), 0);
    return st.st_size;
}

/* Another process reads what this one writes, each with a mapping of its own and no descriptor. */
START_TEST(two_processes)
{
    struct mr_job_ring ours = {0}, theirs = {0};
    struct mr_ring_writer w;
    uint8_t bytes[700];
    int fd = mr_job_ring_make(&ours, small), status;
    pid_t pid;

    ck_assert_int_ge(fd, 0);
    ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    ck_assert_int_ne(ftruncate(fd, 0), 0);
    mr_ring_writer_init(&w, mr_job_ring_packets(&ours), small);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (!pid) {
        struct mr_ring_reader r;
        uint32_t number = 0, far;

        mr_job_ring_leave(&ours);
        if (mr_job_ring_join(&theirs, small, fd) || close(fd))
            _exit(1);
        mr_ring_reader_init(&r, mr_job_ring_packets(&theirs), small, 3);
        while (number < 1000) {
            struct mr_hdr hdr, want = header_of(number, number % 700);
            const void *payload;
            size_t len;
            int got = mr_ring_peek(&r, &hdr, &payload, &len, &far);

            if (!got)
                mr_ring_tell(&r);
            if (got < 0 || (got && (len != number % 700 || memcmp(&hdr, &want, sizeof hdr))))
                _exit(2);
            for (size_t i = 0; got && i < len; i++)
                if (((const uint8_t *)payload)[i] != (uint8_t)(i + number))
                    _exit(3);
            if (got) {
                mr_ring_release(&r);
                number++;
            }
        }
        mr_job_ring_leave(&theirs);
        _exit(theirs.head ? 4 : 0);
    }
    close(fd);
    for (uint32_t number = 0; number < 1000;) {
        struct mr_hdr hdr = header_of(number, number % 700);

        for (size_t i = 0; i < number % 700; i++)
            bytes[i] = (uint8_t)(i + number);
        number += mr_ring_write(&w, &hdr, bytes, number % 700);
        ck_assert_int_eq(number < 1000 ? waitpid(pid, &status, WNOHANG) : 0, 0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    mr_job_ring_leave(&ours);
    mr_job_ring_leave(&ours);
}
END_TEST

static const struct mr_ring_shape impossible[] = {{0, 4096},
                                                  {4, 4096},
                                                  {12, 4096},
                                                  {2048, 4096},
                                                  {8, 0},
                                                  {8, 2048},
                                                  {8, 4097},
                                                  {8, 8u << 20},
                                                  {8, 1u << 31},
                                                  {1u << 31, 4096},
                                                  {UINT32_MAX, UINT32_MAX}};

START_TEST(impossible_shapes)
{
    struct mr_job_ring ours = {0}, theirs = {0};
    int fd = mr_job_ring_make(&ours, small);

    ck_assert(mr_job_ring_is_possible(small));
    ck_assert_int_eq(mr_job_ring_join(&theirs, small, fd), 0);
    mr_job_ring_leave(&theirs);
    ck_assert(!mr_job_ring_is_possible(impossible[_i]));
    ck_assert_int_eq(mr_job_ring_join(&theirs, impossible[_i], fd), -EPROTO);
    ck_assert_ptr_null(theirs.head);
    /* possible, but not that of the file */
    ck_assert_int_eq(mr_job_ring_join(&theirs, (struct mr_ring_shape){16, 4096}, fd), -EPROTO);
    ck_assert_int_eq(mr_job_ring_join(&theirs, (struct mr_ring_shape){8, 8192}, fd), -EPROTO);
    close(fd);
    mr_job_ring_leave(&ours);
}
END_TEST

/* Files that could become shorter under the reader, or that cannot be mapped. */
START_TEST(wrong_files)
{
    struct mr_job_ring ours = {0}, theirs = {0};
    int made = mr_job_ring_make(&ours, small), fd = -1, ends[2];
    off_t bytes = size_of(made);

    switch (_i) {
    case 0: /* not sealed */
        fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        ck_assert_int_eq(ftruncate(fd, bytes), 0);
        break;
    case 1: /* cannot be sealed */
        fd = memfd_create("test", MFD_CLOEXEC);
        ck_assert_int_eq(ftruncate(fd, bytes), 0);
        break;
    case 2: /* can only grow, and is too short */
        fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        ck_assert_int_eq(ftruncate(fd, bytes - 4096) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
        break;
    case 3: /* can only grow, and is too long */
        fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        ck_assert_int_eq(ftruncate(fd, bytes + 4096) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
        break;
    case 4:
        fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        break;
    case 5:
        ck_assert_int_eq(pipe(ends), 0);
        fd = ends[0];
        break;
    case 6: /* not open */
        fd = dup(made);
        close(fd);
        break;
    case 7: /* can be read only: the kernel refuses */
        fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        ck_assert_int_eq(ftruncate(fd, bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE), 0);
        break;
    }
    ck_assert_int_lt(mr_job_ring_join(&theirs, small, fd), 0);
    ck_assert_ptr_null(theirs.head);
    mr_job_ring_leave(&ours);
}
END_TEST

/* A reader that says that it sleeps is woken once. */
START_TEST(sleep_and_wake)
{
    struct mr_job_ring ours = {0}, theirs = {0};
    int fd = mr_job_ring_make(&ours, small);

    ck_assert_int_eq(mr_job_ring_join(&theirs, small, fd), 0);
    ck_assert(!mr_job_ring_must_wake(&ours));
    for (int i = 0; i < 3; i++) {
        mr_job_ring_doze(&theirs);
        ck_assert(mr_job_ring_must_wake(&ours));
        ck_assert(!mr_job_ring_must_wake(&ours));
    }
    mr_job_ring_doze(&theirs);
    mr_job_ring_rise(&theirs);
    ck_assert(!mr_job_ring_must_wake(&ours));
    close(fd);
    mr_job_ring_leave(&ours);
    mr_job_ring_leave(&theirs);
}
END_TEST

static uint32_t random_word(void)
{
    static const uint32_t edges[] = {0, 1, 455, 456, 457, 488, 489, 2047, 2048, 2049, 4095, 4096, UINT32_MAX};

    return rand() % 2 ? edges[(unsigned)rand() % (sizeof edges / sizeof *edges)] : (uint32_t)rand() * 5u;
}

/*
 * The writer writes anything anywhere, with the right number of the slot, so that the reader believes the rest: the
 * reader stays inside the mapping, behind which no page can be read.
 */
START_TEST(any_contents)
{
    const size_t bytes = sizeof(struct mr_job_ring_head) + mr_ring_bytes(small);
    uint8_t *at = mmap(NULL, 16384, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *memory;
    struct mr_ring *ring;
    unsigned good = 0, bad = 0, sum = 0;

    ck_assert_ptr_ne(at, MAP_FAILED);
    ck_assert_uint_le(bytes, 12288);
    ck_assert_int_eq(mprotect(at, 12288, PROT_READ | PROT_WRITE), 0);
    memory = at + 12288 - mr_ring_bytes(small); /* ends with its pages */
    ring = (struct mr_ring *)memory;
    srand((unsigned)_i + 1);
    for (int round = 0; round < 50000; round++) {
        struct mr_ring_reader r;
        struct mr_ring_slot *s;
        const uint8_t *payload;
        struct mr_hdr hdr;
        uint32_t far = 0;
        size_t len;
        int got;

        mr_ring_reader_init(&r, memory, small, 3);
        r.slot = (uint64_t)rand();
        s = &ring->slots[r.slot % small.num_slots];
        for (unsigned i = 0; i < sizeof *s / 4; i += 1 + (unsigned)rand() % 7)
            ((uint32_t *)s)[i] = random_word();
        s->seq = (uint32_t)(r.slot + 1);
        s->len = random_word() & (rand() % 2 ? 0x80ffffffu : UINT32_MAX);
        if (rand() % 2)
            s->position = s->brief.position = random_word();
        got = mr_ring_peek(&r, &hdr, (const void **)&payload, &len, &far);
        ck_assert_int_ne(got, 0);
        good += got > 0 && payload;
        bad += got < 0 || !payload;
        for (size_t i = 0; got > 0 && payload && i < len; i++)
            sum += payload[i];
        if (got > 0 && payload) {
            ck_assert_uint_le(len, mr_ring_max_payload(small));
            mr_ring_release(&r);
        }
    }
    ck_assert_uint_gt(good, 1000);
    ck_assert_uint_gt(bad, 1000);
    ck_assert_uint_ne(sum, 1);
    munmap(at, 16384);
}
END_TEST

/* A reader that gives back what it never had: the writer finds the ring full, and stays inside. */
START_TEST(mad_reader)
{
    struct mr_job_ring ours = {0};
    struct mr_ring_writer w;
    static uint8_t bytes[2048];
    int fd = mr_job_ring_make(&ours, small);
    struct mr_ring *ring = mr_job_ring_packets(&ours);

    close(fd);
    mr_ring_writer_init(&w, ring, small);
    srand((unsigned)_i + 1);
    for (uint32_t i = 0; i < 20000; i++) {
        struct mr_hdr hdr = header_of(i, i % 2049);

        ring->slots_freed = rand() % 2 ? w.slot - (unsigned)rand() % 4 : (uint64_t)random_word() << rand() % 32;
        ring->data_freed = rand() % 2 ? w.position : (uint64_t)random_word() << rand() % 32;
        if (i % 2)
            mr_ring_write(&w, &hdr, bytes, i % 2049);
        else
            mr_ring_write_brief(&w, &hdr, bytes, i % 2049);
    }
    ck_assert_uint_gt(w.slot, 1000);
    mr_job_ring_leave(&ours);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("job_ring");

    tcase_set_timeout(c, 60);
    tcase_add_test(c, two_processes);
    tcase_add_loop_test(c, impossible_shapes, 0, sizeof impossible / sizeof *impossible);
    tcase_add_loop_test(c, wrong_files, 0, 8);
    tcase_add_test(c, sleep_and_wake);
    tcase_add_loop_test(c, any_contents, 0, 4);
    tcase_add_loop_test(c, mad_reader, 0, 2);
    return check_run(c, NULL);
}
