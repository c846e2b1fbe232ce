/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process has at present, for programs that do something many times, and have no more afterwards. */
#ifndef MT_KEPT_H
#define MT_KEPT_H

#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mt.h"

struct kept {
    long heap, resident; /* bytes */
    int descriptors, children;
    int shared;                     /* mappings of shared memory with a name, and of nameless files */
    int contexts;                   /* communicators that can still be made */
    int queue_pairs, registrations; /* most at a time so far */
};

static int kept_descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 2048; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Lines of a file of /proc with the word, or words of the first line. */
static int kept_count(const char *file, const char *word)
{
    char line[8192];
    int n = 0;
    FILE *f = fopen(file, "r");
    CHECK(f);
    while (fgets(line, sizeof(line), f)) {
        if (word)
            n += strstr(line, word) != NULL;
        for (const char *c = line; !word && *c; c++)
            n += *c == ' ';
    }
    fclose(f);
    return n;
}

static int kept_children(void)
{
    char name[64];
    snprintf(name, sizeof(name), "/proc/self/task/%d/children", (int)getpid());
    return kept_count(name, NULL);
}

/*
 * Resident memory, but of the heap its size: free parts of it become resident one by one. Not the memory that a
 * simulated adapter shares with its fabric: its pages become resident when a completion queue is written there for the
 * first time, 64 bytes for each completion, until the queue has been written once, 2 MiB with reliable connections.
 */
static long kept_resident(void)
{
    char line[8192];
    long sum = (long)mallinfo2().arena, kib;
    bool counts = true;
    FILE *f = fopen("/proc/self/smaps", "r");
    CHECK(f);
    while (fgets(line, sizeof(line), f)) {
        if (strchr("0123456789abcdef", *line) && strchr(line, '-'))
            counts = !strstr(line, "[heap]") && !strstr(line, "/memfd:simfab-arena");
        if (counts && sscanf(line, "Rss: %ld", &kib) == 1)
            sum += kib << 10;
    }
    fclose(f);
    return sum;
}

static int kept_contexts(void)
{
    static MPI_Comm made[5000];
    int n = 0;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    while (n < 5000 && !MPI_Comm_dup(MPI_COMM_SELF, &made[n]))
        n++;
    for (int i = 0; i < n; i++)
        MPI_Comm_free(&made[i]);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    return n;
}

static int kept_counter(const char *name)
{
    MPI_T_pvar_session s;
    MPI_T_pvar_handle h;
    unsigned long long value = 0;
    int i, count, level;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    EQ(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &i), MPI_SUCCESS);
    MPI_T_pvar_session_create(&s);
    EQ(MPI_T_pvar_handle_alloc(s, i, NULL, &h, &count), MPI_SUCCESS);
    EQ(MPI_T_pvar_read(s, h, &value), MPI_SUCCESS);
    MPI_T_pvar_session_free(&s);
    MPI_T_finalize();
    return (int)value;
}

/* Other processes that have ended are forgotten by a disconnect, children also waited for. */
static void kept_forget_ended(void)
{
    MPI_Comm one;
    MPI_Comm_dup(MPI_COMM_SELF, &one);
    MPI_Comm_disconnect(&one);
}

/* On a busy machine children are still ending: they have 10 s of real time. */
static void kept_measure(struct kept *k)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    kept_forget_ended();
    for (int i = 0; i < 100 && kept_children() > 1; i++) {
        syscall(SYS_nanosleep, &pause, NULL);
        kept_forget_ended();
    }
    k->contexts = kept_contexts();
    k->queue_pairs = kept_counter("queue_pairs_most");
    k->registrations = kept_counter("reg_cache_entries_most");
    k->descriptors = kept_descriptors();
    k->children = kept_children();
    k->shared = kept_count("/proc/self/maps", "/dev/shm/") + kept_count("/proc/self/maps", "/memfd:");
    k->heap = (long)(mallinfo2().uordblks + mallinfo2().hblkhd);
    k->resident = kept_resident();
}

/*
 * The heap has no more but for lists that grow now and then: up to 14 KiB were seen, after 20 rounds or 200. It grows
 * by one step of the C library at most. The last child may not have been waited for.
 */
static void kept_compare(const char *what, const struct kept *a, const struct kept *b)
{
    const long heap = 24 << 10, resident = 132 << 10;
    printf("# %s: more heap %ld (most %ld), resident memory %ld (%ld), descriptors %d, children %d, shared %d, "
           "contexts %d, queue pairs %d, registrations %d\n",
           what, b->heap - a->heap, heap, b->resident - a->resident, resident, b->descriptors - a->descriptors,
           b->children - a->children, b->shared - a->shared, a->contexts - b->contexts, b->queue_pairs - a->queue_pairs,
           b->registrations - a->registrations);
    fflush(stdout);
    CHECK(b->heap - a->heap <= heap);
    CHECK(b->resident - a->resident <= resident);
    CHECK(b->descriptors <= a->descriptors);
    CHECK(b->children <= a->children + 1);
    CHECK(b->shared <= a->shared); /* the first time the next connection may have been begun */
    EQ(b->contexts, a->contexts);
    EQ(b->queue_pairs, a->queue_pairs);
    EQ(b->registrations, a->registrations);
}

#endif
