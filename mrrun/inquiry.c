/* SPDX-License-Identifier: BSD-3-Clause */
/* Asking, and collecting the answers: see inquiry.h. */
#include "mrrun/inquiry.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libmrmpi/api/inquiry.h"
#include "mrrun/waits.h"

enum { ANSWERS_MS = 2000, LOOK_MS = 20, ANSWER_MAX = 256 * 1024 };

static size_t bytes_of_board(int ranks)
{
    return sizeof(struct mr_inquiry_board) + (size_t)ranks * sizeof(int32_t);
}

void inquiry_open(struct inquiry *q, const char *directory, bool simulated, int ranks)
{
    char name[512];
    int fd;
    void *at = MAP_FAILED;

    *q = (struct inquiry){.directory = directory, .simulated = simulated, .ranks = (uint32_t)ranks};
    snprintf(name, sizeof(name), MR_INQUIRY_ASKED, directory);
    fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    if (!posix_fallocate(fd, 0, (off_t)bytes_of_board(ranks)))
        at = mmap(NULL, bytes_of_board(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at != MAP_FAILED)
        q->board = at;
}

void inquiry_close(struct inquiry *q)
{
    if (q->board)
        munmap(q->board, bytes_of_board((int)q->ranks));
    q->board = NULL;
}

uint32_t inquiry_number(const struct inquiry *q)
{
    return q->board ? q->board->asked : 0;
}

bool inquiry_pass(struct inquiry *q, uint32_t number)
{
    if (!q->board)
        return false;
    __atomic_store_n(&q->board->asked, number, __ATOMIC_RELAXED);
    __atomic_add_fetch(&q->board->news, 1, __ATOMIC_RELEASE);
    return true;
}

void inquiry_tell_end(struct inquiry *q, int rank)
{
    struct mr_inquiry_board *b = q->board;

    if (!b || b->num_ended == q->ranks)
        return;
    b->ended[b->num_ended] = rank;
    __atomic_add_fetch(&b->num_ended, 1, __ATOMIC_RELEASE);
    __atomic_add_fetch(&b->news, 1, __ATOMIC_RELEASE);
}

static bool may_answer(const struct inquiry_rank *r)
{
    return r->running && r->connected && !r->finalized;
}

/*
 * A poll in vain on a simulated host comes back when something happens there, or when a signal is handled: simfab has a
 * handler of SIGURG that does nothing. To each thread, since any may wait.
 */
void inquiry_wake(pid_t pid)
{
    char name[64];
    struct dirent *e;
    DIR *d;

    snprintf(name, sizeof(name), "/proc/%d/task", (int)pid);
    d = opendir(name);
    while (d && (e = readdir(d)))
        if (atoi(e->d_name) > 0)
            tgkill(pid, atoi(e->d_name), SIGURG);
    if (d)
        closedir(d);
}

bool inquiry_ask(struct inquiry *q, const struct inquiry_rank *rank, int ranks, uint64_t now_ms)
{
    bool any = false;

    for (int r = 0; r < ranks; r++)
        any |= may_answer(&rank[r]);
    if (!q->board || !any)
        return false;
    if (q->until_ms) /* already under way */
        return true;
    inquiry_pass(q, inquiry_number(q) + 1);
    q->until_ms = now_ms + ANSWERS_MS;
    for (int r = 0; q->simulated && r < ranks; r++)
        if (may_answer(&rank[r]) && !rank[r].far)
            inquiry_wake(rank[r].pid);
    return true;
}

uint64_t inquiry_due_ms(const struct inquiry *q, uint64_t now_ms)
{
    return q->until_ms ? now_ms + LOOK_MS : 0;
}

/* ---- collecting -------------------------------------------------------------------------------------------------- */

static char *read_answer_file(const struct inquiry *q, int rank, size_t *len)
{
    char name[512], *text = NULL;
    ssize_t n;
    int fd;

    snprintf(name, sizeof(name), MR_INQUIRY_ANSWER, q->directory, rank);
    fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    text = malloc(ANSWER_MAX);
    n = text ? read(fd, text, ANSWER_MAX) : -1;
    close(fd);
    if (n < 0) {
        free(text);
        return NULL;
    }
    *len = (size_t)n;
    return text;
}

static bool take_rank_answer(const struct inquiry *q, struct waits *w, int rank)
{
    size_t len;
    char *text = read_answer_file(q, rank, &len);
    bool good = text && waits_answer(w, rank, inquiry_number(q), text, len);

    free(text);
    return good;
}

char *inquiry_read(const struct inquiry *q, int rank, size_t *len)
{
    char *text = q->board ? read_answer_file(q, rank, len) : NULL;
    unsigned number;
    char head[32];

    snprintf(head, sizeof(head), "%.*s", text ? (int)(*len < 31 ? *len : 31) : 0, text ? text : "");
    if (text && sscanf(head, "asked %u", &number) == 1 && number == inquiry_number(q))
        return text;
    free(text);
    return NULL;
}

char inquiry_state(pid_t pid)
{
    char name[64], text[512] = "";
    const char *end;
    FILE *f;

    snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
    f = fopen(name, "re");
    if (!f)
        return '?';
    text[fread(text, 1, sizeof(text) - 1, f)] = 0;
    fclose(f);
    end = strrchr(text, ')');
    return end && end[1] == ' ' && end[2] ? end[2] : '?';
}

static void tell_silent(const struct inquiry_rank *r, struct waits *w, int rank)
{
    const char *where = r->finalized   ? "past MPI_Finalize"
                        : r->connected ? "not waiting in an MPI function"
                                       : "has not called MPI_Init";
    char why[160];

    switch (r->far ? r->state : inquiry_state(r->pid)) {
    case 'R':
        snprintf(why, sizeof(why), "%s; its process computes", where);
        break;
    case 'S':
        snprintf(why, sizeof(why), "%s; its process sleeps (in a system call, or waits for one that it started)",
                 where);
        break;
    case 'D':
        snprintf(why, sizeof(why), "%s; its process waits for a device or a file system", where);
        break;
    case 'T':
    case 't':
        snprintf(why, sizeof(why), "%s; its process is stopped by a signal or a debugger", where);
        break;
    default:
        snprintf(why, sizeof(why), "%s", where);
    }
    waits_silent(w, rank, why);
}

/* True: all possible answers are there. */
static bool collect(const struct inquiry *q, const struct inquiry_rank *rank, int ranks, struct waits *w)
{
    bool whole = true;

    for (int r = 0; r < ranks; r++) {
        if (!rank[r].running) {
            waits_ended(w, r);
        } else if (!take_rank_answer(q, w, r)) {
            tell_silent(&rank[r], w, r);
            whole &= !may_answer(&rank[r]);
        }
    }
    return whole;
}

char *inquiry_report(struct inquiry *q, const struct inquiry_rank *rank, int ranks, uint64_t now_ms)
{
    struct waits *w = q->until_ms ? waits_new(ranks) : NULL;
    char *text = NULL;
    size_t len;
    FILE *out;

    if (!q->until_ms)
        return NULL;
    if (!w)
        abort();
    if (collect(q, rank, ranks, w) || now_ms >= q->until_ms) {
        q->until_ms = 0;
        out = open_memstream(&text, &len);
        if (!out)
            abort();
        fprintf(out, "mrrun: the ranks wait for:\n");
        waits_write(w, "mrrun:   ", q->simulated, out);
        fclose(out);
    }
    waits_free(w);
    return text;
}
