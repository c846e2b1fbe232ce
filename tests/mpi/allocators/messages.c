/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of all sizes from and to memory that is freed, grown, shrunk and mapped anew between them, at two ranks.
 * Every byte is checked: a registration that outlived its memory would move other bytes. With an argument the first
 * rank prints "kept" or "not kept", as reported by the library for registrations. With PLUGIN a library (host.c loads
 * it). With DEEP also from blocks of blocks.so, with a second allocator beside the program's.
 */
#include "../p2p.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#ifndef ROUNDS
#define ROUNDS 30
#endif
enum { MAPPED = 400000, SLOTS = 6 };

static void bounce(void *p, size_t n, unsigned seed)
{
    for (int from = 0; from < 2; from++) {
        if (rank == from) {
            fill(p, n, seed + (unsigned)from);
            MPI_Send(p, (int)n, MPI_CHAR, !from, 1, MPI_COMM_WORLD);
            CHECK(holds(p, n, seed + (unsigned)from));
        } else {
            memset(p, 0, n);
            MPI_Recv(p, (int)n, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(holds(p, n, seed + (unsigned)from));
        }
    }
}

static unsigned random_below(unsigned n)
{
    static unsigned long long state = 88172645463325252u; /* the same at both ranks */

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

static size_t random_size(void)
{
    static const size_t around[] = {100, 5000, 40000, 300000, 1000000};
    size_t base = around[random_below(5)];

    return base + random_below((unsigned)base);
}

/* Blocks that come and go; most messages are from memory used before. */
static void blocks(void)
{
    char *slot[SLOTS] = {NULL};
    size_t bytes[SLOTS] = {0};

    for (unsigned r = 0; r < ROUNDS; r++) {
        unsigned i = random_below(SLOTS), how = random_below(6);

        if (how == 0 || !slot[i]) {
            free(slot[i]);
            bytes[i] = random_size();
            slot[i] = room(bytes[i]);
        } else if (how == 1) {
            size_t before = bytes[i];

            fill(slot[i], before, r);
            bytes[i] = random_size();
            slot[i] = realloc(slot[i], bytes[i]);
            CHECK(slot[i] && holds(slot[i], bytes[i] < before ? bytes[i] : before, r));
        } else if (how == 2) {
            void *p = NULL;

            free(slot[i]);
            bytes[i] = random_size();
            CHECK(!posix_memalign(&p, 4096, bytes[i]));
            slot[i] = p;
        } else if (how == 3) {
            free(slot[i]);
            bytes[i] = random_size();
            slot[i] = calloc(1, bytes[i]);
            CHECK(slot[i] && !slot[i][bytes[i] - 1]);
        }
        bounce(slot[i], bytes[i], r);
        bounce(slot[i], bytes[i], r + 7);
    }
    for (unsigned i = 0; i < SLOTS; i++)
        free(slot[i]);
}

/* A large block is freed, and another one takes its place. */
static void in_the_same_place(void)
{
    for (unsigned r = 0; r < 6; r++) {
        size_t n = 40u << 20 >> random_below(3);
        char *p = room(n);

        bounce(p + n / 2, 300000, r);
        bounce(p + n / 2, 300000, r + 1);
        free(p);
    }
}

static void mapped_again(void)
{
    int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *p = mmap(NULL, MAPPED, prot, flags, -1, 0);

    CHECK(p != MAP_FAILED);
    for (unsigned r = 0; r < 4; r++) {
        bounce(p, MAPPED, r);
        bounce(p, MAPPED, r + 3);
        if (r % 2) {
            CHECK(mmap(p, MAPPED, prot, flags | MAP_FIXED, -1, 0) == p);
        } else {
            CHECK(!munmap(p, MAPPED));
            CHECK(mmap(p, MAPPED, prot, flags | MAP_FIXED, -1, 0) == p);
        }
        CHECK(!p[0] && !p[MAPPED - 1]);
    }
    CHECK(!munmap(p, MAPPED));
}

/* Memory allocated by one library and freed by another. */
static void across_libraries(void)
{
    char *line = NULL, *text = NULL;
    size_t room_for = 0;
    FILE *f = tmpfile();

    CHECK(f && asprintf(&text, "%0300d\n", 7) == 301);
    CHECK(fputs(text, f) >= 0);
    rewind(f);
    CHECK(getline(&line, &room_for, f) == 301);
    free(text);
    text = strdup(line);
    CHECK(!strcmp(text, line));
    free(text);
    free(line);
    fclose(f);
}

/* On the stack of a thread: the next thread's may be in the same place. */
static void *in_a_thread(void *arg)
{
    char here[200000], *p = room(500000);

    bounce(here, sizeof here, *(unsigned *)arg);
    bounce(here, sizeof here, *(unsigned *)arg + 1);
    bounce(p, 500000, *(unsigned *)arg);
    free(p);
    return NULL;
}

static void threads(void)
{
    pthread_attr_t attr;
    pthread_t t;

    pthread_attr_init(&attr);
    CHECK(!pthread_attr_setstacksize(&attr, 64 << 20)); /* more than the C library keeps */
    for (unsigned r = 0; r < 4; r++) {
        CHECK(!pthread_create(&t, &attr, in_a_thread, &r));
        pthread_join(t, NULL);
    }
}

#ifdef DEEP
static void beside_another_allocator(void)
{
    void *library = dlopen("./blocks.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    void *(*get)(size_t) = library ? (void *(*)(size_t))dlsym(library, "get_block") : NULL;
    void (*give)(void *) = library ? (void (*)(void *))dlsym(library, "give_block") : NULL;

    CHECK(get && give);
    for (unsigned r = 0; r < 20; r++) {
        size_t n = random_size() + 100000;
        char *p = get(n), *q = room(n);

        bounce(p, n, r);
        bounce(q, n, r + 1);
        bounce(p, n, r + 2);
        give(p);
        free(q);
    }
    bounce(dlsym(library, "unloaded"), 200000, 1);
    bounce(dlsym(library, "unloaded"), 200000, 2);
    CHECK(!dlclose(library));
    /* at the former place, or nearby */
    for (unsigned r = 0; r < 4; r++) {
        char *p = mmap(NULL, 300000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        bounce(p, 300000, r);
    }
}
#endif

static void tell_what_is_kept(void)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    unsigned long long kept = 0;
    int index, count, provided;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    CHECK(MPI_T_pvar_get_index("reg_cache_kept", MPI_T_PVAR_CLASS_LEVEL, &index) == MPI_SUCCESS);
    MPI_T_pvar_session_create(&session);
    CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_read(session, handle, &kept) == MPI_SUCCESS);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    puts(kept ? "kept" : "not kept");
}

__attribute__((visibility("default"))) int run(int argc, char **argv);
int run(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(size == 2);
    blocks();
    in_the_same_place();
    mapped_again();
    across_libraries();
#ifdef DEEP
    beside_another_allocator();
#endif
    threads();
    if (argc > 1 && !rank)
        tell_what_is_kept();
    MPI_Finalize();
    return 0;
}

#ifndef PLUGIN
int main(int argc, char **argv)
{
    return run(argc, argv);
}
#endif
