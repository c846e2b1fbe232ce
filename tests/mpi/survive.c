/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * survive CASE STEP DEAD [MANNER [SEED]]: rank DEAD dies before STEP of a round of calls that synchronize the processes
 * of a window or a file, under mrrun --recover. Every call of every survivor ends, in success or in an error of a
 * failed process, and so do the ends of the window and of the file; the script measures the time. survive list: prints
 * CASE and STEP, each of the tests in a line.
 *
 * MANNER is a word of letters:
 * - l: survivors leave at their first error, in the middle of an epoch, and so give up on others. Otherwise they make
 *   all calls of all rounds.
 * - f: survivors free the window at once, instead of after an agreement that all have left. In any manner, if the
 *   window or the file ends in a step: others may be in that collective call, which waits for all survivors.
 * - w: others wait for the dying rank. Otherwise the rank dies at once, and others come later.
 * - r: the rank dies at a random moment from then on, perhaps within its call.
 * - c: the window is of the program's memory, instead of MPI's.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "mt.h"

enum { DEADLY = 2, ROUNDS = 5, MOST_STEPS = 8, WORDS = 64 };

static const char *manner = "";
static int dead;
static int *died; /* has the rank? In a file that all ranks map */

static MPI_Comm all;
static MPI_Win win;
static MPI_File file;
static MPI_Group to, from;
static int *mine, memory[WORDS], out[WORDS], in[WORDS];
static char file_name[64];
static MPI_Request pending;

static int is_so(char letter)
{
    return strchr(manner, letter) != NULL;
}

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static int has_died(void)
{
    return __atomic_load_n(died, __ATOMIC_SEQ_CST);
}

static void map_death(void)
{
    char name[64];
    int fd;
    snprintf(name, sizeof(name), "/tmp/mrmpi-survive.%d", (int)getpid());
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, all);
    fd = open(name, O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0 && !ftruncate(fd, sizeof(*died)));
    died = mmap(NULL, sizeof(*died), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(died != MAP_FAILED);
    close(fd);
    MPI_Barrier(all);
    if (rank == 0)
        unlink(name);
}

static void die(unsigned after_us)
{
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec at = {.it_value = {.tv_nsec = (long)after_us * 1000}};
    timer_t t;
    __atomic_store_n(died, 1, __ATOMIC_SEQ_CST);
    if (after_us) {
        CHECK(timer_create(CLOCK_MONOTONIC, &ev, &t) == 0);
        CHECK(timer_settime(t, 0, &at, NULL) == 0);
        return;
    }
    kill(getpid(), SIGKILL);
    pause();
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

static int next_rank(void)
{
    return (rank + 1) % size;
}

static int fence(void)
{
    return MPI_Win_fence(0, win);
}

static int put_next(void)
{
    return MPI_Put(out, 8, MPI_INT, next_rank(), 8, 8, MPI_INT, win);
}

static int post(void)
{
    return MPI_Win_post(from, 0, win);
}

static int start(void)
{
    return MPI_Win_start(to, 0, win);
}

static int complete(void)
{
    return MPI_Win_complete(win);
}

static int wait_exposed(void)
{
    return MPI_Win_wait(win);
}

static int test_exposed(void)
{
    int flag = 0, err = 0;
    while (!err && !flag)
        err = MPI_Win_test(win, &flag);
    return err;
}

static int lock_first(void)
{
    return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
}

static int share_first(void)
{
    return MPI_Win_lock(rank % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, win);
}

static int put_first(void)
{
    return MPI_Put(out, 8, MPI_INT, 0, 8, 8, MPI_INT, win);
}

static int flush_first(void)
{
    return MPI_Win_flush(0, win);
}

static int unlock_first(void)
{
    return MPI_Win_unlock(0, win);
}

static int lock_all(void)
{
    return MPI_Win_lock_all(0, win);
}

static int unlock_all(void)
{
    return MPI_Win_unlock_all(win);
}

static int put_all(void)
{
    int err = 0;
    for (int to_rank = 0; to_rank < size && !err; to_rank++)
        if (to_rank != rank)
            err = MPI_Put(out, 8, MPI_INT, to_rank, 8, 8, MPI_INT, win);
    return err;
}

static int update_all(void)
{
    int err = 0;
    for (int to_rank = 0; to_rank < size && !err; to_rank++) {
        err = MPI_Accumulate(out, 4, MPI_INT, to_rank, 16, 4, MPI_INT, MPI_SUM, win);
        if (!err)
            err = MPI_Fetch_and_op(out, &in[to_rank], MPI_INT, to_rank, 20, MPI_SUM, win);
    }
    return err;
}

static int read_next(void)
{
    int err = MPI_Rget(in, 8, MPI_INT, next_rank(), 8, 8, MPI_INT, win, &pending);
    return err ? err : MPI_Wait(&pending, MPI_STATUS_IGNORE);
}

static int flush_all(void)
{
    return MPI_Win_flush_all(win);
}

static int flush_local_all(void)
{
    return MPI_Win_flush_local_all(win);
}

static int make_window(void)
{
    int err;
    if (is_so('c'))
        err = MPI_Win_create(mine = memory, sizeof(memory), sizeof(int), MPI_INFO_NULL, all, &win);
    else
        err = MPI_Win_allocate(sizeof(memory), sizeof(int), MPI_INFO_NULL, all, &mine, &win);
    if (!err)
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    else
        EQ(win, MPI_WIN_NULL);
    return err;
}

static int free_window(void)
{
    int err;
    if (win == MPI_WIN_NULL)
        return MPI_SUCCESS;
    err = MPI_Win_free(&win);
    EQ(win, MPI_WIN_NULL);
    return err;
}

static int fence_made(void)
{
    return win == MPI_WIN_NULL ? MPI_SUCCESS : fence();
}

/* Others may not have the window. */
static int put_made(void)
{
    int err = MPI_SUCCESS, ended;
    for (int to_rank = 0; to_rank < size && win != MPI_WIN_NULL && !err; to_rank++) {
        err = MPI_Win_lock(MPI_LOCK_SHARED, to_rank, 0, win);
        if (err)
            break;
        err = MPI_Put(out, 8, MPI_INT, to_rank, 8, 8, MPI_INT, win);
        if (!err)
            err = MPI_Get(in, 8, MPI_INT, to_rank, 8, 8, MPI_INT, win);
        ended = MPI_Win_unlock(to_rank, win);
        if (!err)
            err = ended;
    }
    return err;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static int open_file(void)
{
    int err = MPI_File_open(all, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    if (err)
        EQ(file, MPI_FILE_NULL);
    return err;
}

static int close_file(void)
{
    int err;
    if (file == MPI_FILE_NULL)
        return MPI_SUCCESS;
    err = MPI_File_close(&file);
    EQ(file, MPI_FILE_NULL);
    return err;
}

static int write_all(void)
{
    return MPI_File_write_at_all(file, rank * 32, out, 8, MPI_INT, MPI_STATUS_IGNORE);
}

static int read_all(void)
{
    return MPI_File_read_at_all(file, rank * 32, in, 8, MPI_INT, MPI_STATUS_IGNORE);
}

static int write_ordered(void)
{
    return MPI_File_write_ordered(file, out, 8, MPI_INT, MPI_STATUS_IGNORE);
}

static int write_shared(void)
{
    return MPI_File_write_shared(file, out, 8, MPI_INT, MPI_STATUS_IGNORE);
}

static int seek_shared(void)
{
    return MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
}

static int set_view(void)
{
    return MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
}

static int set_size(void)
{
    return MPI_File_set_size(file, 4096);
}

static int preallocate(void)
{
    return MPI_File_preallocate(file, 8192);
}

static int sync_file(void)
{
    return MPI_File_sync(file);
}

static int set_atomicity(void)
{
    return MPI_File_set_atomicity(file, rank < 0);
}

static int begin_write(void)
{
    return MPI_File_write_at_all_begin(file, rank * 32, out, 8, MPI_INT);
}

static int end_write(void)
{
    return MPI_File_write_at_all_end(file, out, MPI_STATUS_IGNORE);
}

static int begin_nonblocking(void)
{
    return MPI_File_iwrite_at_all(file, rank * 32, out, 8, MPI_INT, &pending);
}

static int end_nonblocking(void)
{
    return MPI_Wait(&pending, MPI_STATUS_IGNORE);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

enum { NO_WINDOW = 1, FILES = 2, NO_FILE = 4, RING = 8, SEEN = 16 /* by each survivor that makes all calls */ };

static const struct {
    const char *name;
    unsigned flags;
    int (*step[MOST_STEPS])(void);
} cases[] = {
    {"fence", SEEN, {fence, put_next, fence}},
    {"groups", SEEN, {post, start, put_all, complete, wait_exposed}},
    {"ring", RING, {post, start, put_next, complete, wait_exposed}},
    {"test", RING, {post, start, complete, test_exposed}},
    {"lock", 0, {lock_first, put_first, flush_first, unlock_first}},
    {"shared", 0, {share_first, put_first, unlock_first}},
    {"all", SEEN, {lock_all, put_all, flush_all, update_all, flush_local_all, unlock_all}},
    {"request", 0, {lock_all, read_next, unlock_all}},
    {"make", SEEN | NO_WINDOW, {make_window, put_made, fence_made, free_window}},
    {"collective", SEEN | FILES, {write_all, read_all}},
    {"ordered", SEEN | FILES, {write_ordered, write_shared, seek_shared}},
    {"change", SEEN | FILES, {set_view, set_size, preallocate, set_atomicity, sync_file}},
    {"split", SEEN | FILES, {begin_write, end_write}},
    {"nonblocking", FILES, {begin_nonblocking, end_nonblocking}},
    {"open", SEEN | FILES | NO_FILE, {open_file, close_file}},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static int num_steps(int k)
{
    int n = 0;
    while (n < MOST_STEPS && cases[k].step[n])
        n++;
    return n;
}

static int list_steps(void)
{
    for (int k = 0; k < CASES; k++)
        for (int s = 0; s < num_steps(k); s++)
            printf("%s %d\n", cases[k].name, s);
    return 0;
}

/* ---- the rounds -------------------------------------------------------------------------------------------------- */

static unsigned long long seed;

static unsigned pick(unsigned below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % below;
}

static int seen; /* errors */

/* True: success. An epoch or a split access that did not begin is an error of later calls. */
static int ends(const char *name, int step, int err)
{
    int class = class_of(err);
    if (class == MPI_SUCCESS)
        return 1;
    if (class != MPIX_ERR_PROC_FAILED && class != MPIX_ERR_REVOKED &&
        !(seen && (class == MPI_ERR_RMA_SYNC || class == MPI_ERR_OTHER))) {
        char text[MPI_MAX_ERROR_STRING];
        int len;
        MPI_Error_string(err, text, &len);
        fprintf(stderr, "rank %d: step %d of %s: %s\n", rank, step, name, text);
        CHECK(!"an error of a failed process");
    }
    CHECK(has_died());
    seen++;
    return 0;
}

static int knows_of_death(void)
{
    MPI_Group g;
    int n;
    MPIX_Comm_get_failed(all, &g);
    MPI_Group_size(g, &n);
    if (g != MPI_GROUP_EMPTY)
        MPI_Group_free(&g);
    return n > 0;
}

/* Others may need this process meanwhile. */
static void poll_awhile(void)
{
    int flag;
    MPI_Iprobe(0, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    usleep(100);
}

/* Rounds after the deadly one begin after the death, and the last after the news. */
static void sleep_before(int round, int step, int fatal_step)
{
    while (round > DEADLY && step == 0 && !(round < ROUNDS - 1 ? has_died() : knows_of_death()))
        poll_awhile();
    if (round != DEADLY)
        return;
    if (rank == dead && step == fatal_step) {
        usleep(is_so('w') ? 20000 : 0);
        die(is_so('r') ? 1 + pick(1000) : 0);
    }
    if (pick(3) == 0)
        usleep(pick(5000));
}

static void run_case(int k, int fatal_step)
{
    int over = 0;
    for (int round = 0; round < ROUNDS && !over; round++)
        for (int s = 0; s < num_steps(k) && !over; s++) {
            sleep_before(round, s, fatal_step);
            over = !ends(cases[k].name, s, cases[k].step[s]()) && is_so('l');
        }
    CHECK(seen || !(cases[k].flags & SEEN));
}

static void make_groups(int ring)
{
    MPI_Group everybody;
    int next = next_rank(), last = (rank + size - 1) % size;
    MPI_Comm_group(all, &everybody);
    if (ring) {
        MPI_Group_incl(everybody, 1, &next, &to);
        MPI_Group_incl(everybody, 1, &last, &from);
    } else {
        MPI_Group_excl(everybody, 1, &rank, &to);
        MPI_Group_excl(everybody, 1, &rank, &from);
    }
    MPI_Group_free(&everybody);
}

static void agree_to_end(void)
{
    int flag = 1;
    ends("agree", 0, MPIX_Comm_agree(all, &flag));
}

static void end_all(int at_once)
{
    MPI_Comm rest;
    int n, sum, one = 1;
    if (!at_once)
        agree_to_end();
    ends("free", 0, free_window());
    ends("close", 0, close_file());
    if (at_once)
        agree_to_end();
    EQ(MPIX_Comm_shrink(all, &rest), MPI_SUCCESS);
    MPI_Comm_size(rest, &n);
    EQ(n, size - 1);
    EQ(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, rest), MPI_SUCCESS);
    EQ(sum, n);
    MPI_Comm_rank(rest, &n);
    if (n == 0)
        unlink(file_name);
    MPI_Comm_free(&rest);
    MPI_Comm_free(&all);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
}

static void survive(int k, int step)
{
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    map_death();
    make_groups(cases[k].flags & RING);
    snprintf(file_name, sizeof(file_name), "%s/mrmpi-survive.%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm",
             (int)getpid());
    MPI_Bcast(file_name, sizeof(file_name), MPI_CHAR, 0, all);
    win = MPI_WIN_NULL;
    file = MPI_FILE_NULL;
    pending = MPI_REQUEST_NULL;
    if (!(cases[k].flags & (NO_WINDOW | FILES)))
        EQ(make_window(), MPI_SUCCESS);
    if ((cases[k].flags & (FILES | NO_FILE)) == FILES)
        EQ(open_file(), MPI_SUCCESS);
    MPI_Barrier(all); /* all have them */
    run_case(k, step);
    end_all(is_so('f') || cases[k].flags & (NO_WINDOW | NO_FILE));
}

int main(int argc, char **argv)
{
    int step = argc > 2 ? atoi(argv[2]) : 0, k = 0;
    if (argc > 1 && !strcmp(argv[1], "list"))
        return list_steps();
    mt_begin(&argc, &argv);
    while (argc > 1 && k < CASES && strcmp(cases[k].name, argv[1]) != 0)
        k++;
    CHECK(argc > 3 && k < CASES && step < num_steps(k));
    dead = atoi(argv[3]);
    manner = argc > 4 ? argv[4] : "";
    seed = (argc > 5 ? strtoull(argv[5], NULL, 0) : 1) * 1000 + (unsigned)rank;
    pick(2);
    survive(k, step);
    return mt_end();
}
