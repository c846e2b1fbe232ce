/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma_attach WHAT DIRECTORY COMMAND: memory of a dynamic window on another host, by RDMA. Rank 0 is the origin, rank 1
 * the target. Where MPI must not know, the ranks talk by a file in the directory.
 *
 *   asleep  the target is in no MPI function until the origin has put and got; COMMAND is not used
 *   regions the same for words with gaps, posted in lists: to two regions, in turn
 *   anew    the target runs the command, detaches memory, maps other memory there and attaches that. The origin, with
 *           the old keys, writes and reads there: the new memory, not the old
 *   gone    the same, but nothing is attached again: nothing is written
 *   anew-words, gone-words   the same with words posted in lists
 *
 * In rma_attach.sh, the command keeps the target from reporting that the keys are gone.
 */
#include "rma.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEN = 1 << 20, WORDS = 1000, APART = 24, SECOND = APART * WORDS / 2 };

static MPI_Win win;
static MPI_Aint there; /* the target's memory */
static uint64_t word[WORDS];
static char *mem, *data, *back, told[4096];

static void map(void *at)
{
    mem = mmap(at, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
    CHECK(mem != MAP_FAILED);
    memset(mem, 7, LEN);
}

static void tell(void)
{
    FILE *f = fopen(told, "w");
    CHECK(f && !fclose(f));
}

/* Not in an MPI function. */
static void wait_until_told(void)
{
    struct stat st;
    while (stat(told, &st))
        usleep(20);
}

static void fill(int round)
{
    for (size_t i = 0; i < LEN; i++)
        data[i] = byte_of(0, round, i);
}

static void is_filled(const char *p, int round, size_t len)
{
    for (size_t i = 0; i < len; i++)
        EQ(p[i], byte_of(0, round, i));
}

static int put(size_t len)
{
    MPI_Put(data, (int)len, MPI_BYTE, 1, there, (int)len, MPI_BYTE, win);
    return MPI_Win_flush(1, win);
}

static void get(size_t len)
{
    memset(back, 0, len);
    MPI_Get(back, (int)len, MPI_BYTE, 1, there, (int)len, MPI_BYTE, win);
    EQ(MPI_Win_flush(1, win), MPI_SUCCESS);
}

/* num words from `first` on, each APART bytes behind the one before. */
static void put_words(int round, int first, int num)
{
    for (int i = first; i < first + num; i++) {
        word[i] = ((uint64_t)round << 32) + (uint64_t)i;
        MPI_Put(&word[i], 8, MPI_BYTE, 1, there + APART * i, 8, MPI_BYTE, win);
    }
}

/* At p, where all else is as it was in old. */
static void are_words(const char *p, int round, int first, int num, const char *old)
{
    for (int i = first; i < first + num; i++) {
        uint64_t w;
        memcpy(&w, p + APART * i, 8);
        EQ(w, ((uint64_t)round << 32) + (uint64_t)i);
        CHECK(!memcmp(p + APART * i + 8, old + APART * i + 8, APART - 8));
    }
}

/* Keys are known, and buffers registered, after a few. */
static void warm(size_t len, size_t second)
{
    fill(1);
    for (int i = 0; i < 4; i++) {
        EQ(put(len), MPI_SUCCESS);
        get(len);
        is_filled(back, 1, len);
        MPI_Put(data + len, (int)second, MPI_BYTE, 1, there + (MPI_Aint)len, (int)second, MPI_BYTE, win);
        EQ(MPI_Win_flush(1, win), MPI_SUCCESS);
    }
}

static void asleep(const char *command)
{
    static const size_t length[] = {8, 4096, 65536, LEN};
    if (rank) {
        wait_until_told();
        return;
    }
    for (size_t i = 0; i < sizeof(length) / sizeof(length[0]); i++) {
        MPI_Request r;
        fill(2 + (int)i);
        EQ(put(length[i]), MPI_SUCCESS);
        get(length[i]);
        is_filled(back, 2 + (int)i, length[i]);
        fill(3 + (int)i);
        MPI_Rput(data, (int)length[i], MPI_BYTE, 1, there, (int)length[i], MPI_BYTE, win, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        EQ(MPI_Win_flush(1, win), MPI_SUCCESS);
        MPI_Rget(back, (int)length[i], MPI_BYTE, 1, there, (int)length[i], MPI_BYTE, win, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        is_filled(back, 3 + (int)i, length[i]);
    }
    put_words(9, 0, WORDS);
    EQ(MPI_Win_flush(1, win), MPI_SUCCESS);
    get(LEN);
    are_words(back, 9, 0, WORDS, data);
    tell();
}

/* The second region has the second half of the words. */
static void regions(const char *command)
{
    for (int round = 2; !rank && round < 6; round++) {
        for (int i = 0; i < WORDS / 2; i += 10) {
            put_words(round, i, 10);
            put_words(round, WORDS / 2 + i, 10);
        }
        EQ(MPI_Win_flush(1, win), MPI_SUCCESS);
    }
    if (!rank) {
        tell();
        return;
    }
    wait_until_told();
    fill(1);
    are_words(mem, 5, 0, WORDS, data);
}

static void change(const char *command, int again)
{
    if (rank) {
        CHECK(!system(command));
        MPI_Win_detach(win, mem);
        map(mem);
        if (again)
            MPI_Win_attach(win, mem, LEN);
        tell();
    } else {
        wait_until_told();
    }
}

/* By a request, too; then the same without another fault. */
static void anew(const char *command)
{
    fill(5); /* slow: the origin would get the news meanwhile */
    change(command, 1);
    for (int k = 5; !rank && k < 8; k++) {
        MPI_Request r[2];
        if (k > 5)
            fill(k);
        MPI_Rput(data, LEN / 2, MPI_BYTE, 1, there, LEN / 2, MPI_BYTE, win, &r[0]);
        MPI_Put(data + LEN / 2, LEN / 4, MPI_BYTE, 1, there + LEN / 2, LEN / 4, MPI_BYTE, win);
        MPI_Rget(back, LEN / 4, MPI_BYTE, 1, there + LEN / 4 * 3, LEN / 4, MPI_BYTE, win, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        for (size_t i = 0; i < LEN / 4; i++)
            EQ(back[i], 7);
        EQ(MPI_Win_flush(1, win), MPI_SUCCESS);
        get(LEN);
        is_filled(back, k, LEN / 4 * 3);
        if (k == 5)
            memset(data, 0xee, LEN);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank) {
        is_filled(mem, 7, LEN / 4 * 3);
        for (size_t i = LEN / 4 * 3; i < LEN; i++)
            EQ(mem[i], 7);
    }
}

static void gone(const char *command)
{
    change(command, 0);
    if (!rank)
        EQ(class_of(put(LEN)), MPI_ERR_RMA_RANGE);
    if (!rank)
        EQ(class_of(put(8)), MPI_ERR_RMA_RANGE);
    MPI_Barrier(MPI_COMM_WORLD);
    for (size_t i = 0; rank && i < LEN; i++)
        EQ(mem[i], 7);
}

static void anew_words(const char *command)
{
    static const char sevens[LEN] = {[0 ... LEN - 1] = 7};
    change(command, 1);
    for (int round = 5; !rank && round < 8; round++) {
        put_words(round, 0, WORDS);
        EQ(MPI_Win_flush(1, win), MPI_SUCCESS);
        get(LEN);
        are_words(back, round, 0, WORDS, sevens);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank)
        are_words(mem, 7, 0, WORDS, sevens);
}

static void gone_words(const char *command)
{
    change(command, 0);
    put_words(5, 0, rank ? 0 : WORDS);
    if (!rank)
        EQ(class_of(MPI_Win_flush(1, win)), MPI_ERR_RMA_RANGE);
    MPI_Barrier(MPI_COMM_WORLD);
    for (size_t i = 0; rank && i < LEN; i++)
        EQ(mem[i], 7);
}

static const struct {
    const char *name;
    void (*run)(const char *command);
    int attached; /* in the end */
} tests[] = {{"asleep", asleep, 1}, {"regions", regions, 2},       {"anew", anew, 1},
             {"gone", gone, 0},     {"anew-words", anew_words, 1}, {"gone-words", gone_words, 0}};

int main(int argc, char **argv)
{
    int test = 0;
    mt_begin(&argc, &argv);
    CHECK(argc == 4 && size == 2);
    while (strcmp(tests[test].name, argv[1]))
        test++;
    snprintf(told, sizeof(told), "%s/told", argv[2]);
    data = room(LEN);
    back = room(LEN);
    if (rank)
        map(NULL);
    MPI_Get_address(mem, &there);
    MPI_Bcast(&there, 1, MPI_AINT, 1, MPI_COMM_WORLD);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    if (rank)
        MPI_Win_attach(win, mem, tests[test].attached == 2 ? SECOND : LEN);
    if (rank && tests[test].attached == 2)
        MPI_Win_attach(win, mem + SECOND, SECOND);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    if (!rank)
        warm(tests[test].attached == 2 ? SECOND : LEN, tests[test].attached == 2 ? SECOND : 0);
    MPI_Barrier(MPI_COMM_WORLD);
    tests[test].run(argv[3]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(win);
    if (rank && tests[test].attached)
        MPI_Win_detach(win, mem);
    if (rank && tests[test].attached == 2)
        MPI_Win_detach(win, mem + SECOND);
    MPI_Win_free(&win);
    if (rank)
        munmap(mem, LEN);
    free(data);
    free(back);
    return mt_end();
}
