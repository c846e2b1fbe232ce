/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the time stamp counter in every way, on a simulated host: run by tsc.sh, and by hand to find out whether simfab
 * can catch the readings here.
 *
 *   tsc_reads             uses a device, reads, and prints "the counter: virtual" or "real"
 *   tsc_reads all OBJECT  reads in threads, handlers, children and so on, and in OBJECT (tsc.sh makes it), which it
 * loads; prints what each saw, and how much later in virtual time tsc_reads storm OBJECT...  a thread for each of these
 * copies loads, calls and unloads it again and again, while others read and fork; prints how many readings there were,
 * and how many were not virtual time
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BURN_NS 5000000 /* of processor time between two readings, which is real */

typedef uint64_t (*reader)(void);

static uint64_t rdtsc(void)
{
    uint32_t lo, hi;

    __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
    return (uint64_t)hi << 32 | lo;
}

static uint64_t rdtscp(void)
{
    uint32_t lo, hi, aux;

    __asm__ volatile("rdtscp" : "=a"(lo), "=d"(hi), "=c"(aux));
    return (uint64_t)hi << 32 | lo;
}

static uint64_t with_prefix(void)
{
    uint32_t lo, hi;

    __asm__ volatile(".byte 0x66\nrdtsc" : "=a"(lo), "=d"(hi));
    return (uint64_t)hi << 32 | lo;
}

/* rdtsc's bytes, in a constant */
__attribute__((noinline)) static uint32_t constant(void)
{
    uint32_t value;

    __asm__ volatile("mov $0x0000310f, %0" : "=r"(value));
    return value;
}

static uint64_t cpu_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* A counter of 100 MHz and more counts 100000 in a millisecond: virtual time does not move that far while this thread
 * computes. */
static bool is_virtual(reader read)
{
    uint64_t start = cpu_ns(), first = read();

    while (cpu_ns() - start < BURN_NS)
        ;
    return read() - first < 100000;
}

static void say(const char *what, reader read)
{
    bool is = is_virtual(read);
    uint64_t first = read();

    printf("%s: %s", what, is ? "virtual" : "real");
    if (is)
        printf(", %llu later", (unsigned long long)(read() - first));
    putchar('\n');
    fflush(stdout);
}

static void use_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    if (!list || !*list || !ibv_open_device(*list)) {
        perror("device");
        exit(1);
    }
    ibv_free_device_list(list);
}

/* ---- places of the readings -------------------------------------------------------------------------------------- */

static int to_helper[2], from_helper[2];

/* A thread created before, which never uses a device, and blocks all signals. */
static void *helper(void *arg)
{
    char c;

    while (read(to_helper[0], &c, 1) == 1) {
        bool is = is_virtual(rdtsc);

        if (write(from_helper[1], is ? "v" : "r", 1) != 1)
            break;
    }
    return NULL;
}

static void start_helper(pthread_t *thread)
{
    sigset_t all, old;

    if (pipe(to_helper) || pipe(from_helper))
        exit(1);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_create(thread, NULL, helper, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void ask_helper(void)
{
    char c = 0;

    if (write(to_helper[1], "?", 1) != 1 || read(from_helper[0], &c, 1) != 1)
        exit(1);
    printf("a thread from before: %s\n", c == 'v' ? "virtual" : "real");
}

static void *thread(void *arg)
{
    say("a thread", rdtsc);
    return NULL;
}

static void on_signal(int sig)
{
    say("a handler with all signals blocked", rdtsc);
}

static void in_handler(void)
{
    struct sigaction act = {.sa_handler = on_signal};

    sigfillset(&act.sa_mask);
    sigaction(SIGUSR1, &act, NULL);
    raise(SIGUSR1);
}

static void in_child(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        say("a child", rdtsc);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

static void in_program(const char *self)
{
    pid_t pid = fork();

    if (pid == 0) {
        execl(self, self, "again", (char *)NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
}

static void in_object(const char *path)
{
    for (int i = 0; i < 2; i++) {
        void *object = dlopen(path, RTLD_NOW);
        const int *constructor = object ? dlsym(object, "constructor_saw") : NULL;
        reader read = object ? (reader)dlsym(object, "object_reads") : NULL;

        if (!read) {
            fprintf(stderr, "%s\n", dlerror());
            exit(1);
        }
        printf("its constructor: %s\n", *constructor ? "virtual" : "real");
        say("what was loaded later", read);
        dlclose(object);
    }
}

/* The program's own faults are its own. */
static sigjmp_buf back;

static void on_fault(int sig)
{
    siglongjmp(back, 1);
}

static void own_fault(void)
{
    struct sigaction act = {.sa_handler = on_fault}, old;
    volatile int *volatile nowhere = (int *)64; /* a sanitizer would stop at NULL */

    sigaction(SIGSEGV, &act, &old);
    if (!sigsetjmp(back, 1))
        *nowhere = 1;
    else
        puts("a fault of its own: handled");
    sigaction(SIGSEGV, &old, NULL);
}

static void all(const char *self, const char *object)
{
    pthread_t helping, other;

    start_helper(&helping);
    printf("before a device is used: %s\n", is_virtual(rdtsc) ? "virtual" : "real");
    use_device();
    say("rdtsc", rdtsc);
    say("rdtscp", rdtscp);
    say("with a prefix", with_prefix);
    printf("a constant: %s\n", constant() == 0x310f ? "whole" : "damaged");
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    ask_helper();
    in_handler();
    in_child();
    in_object(object);
    own_fault();
    say("rdtsc", rdtsc);
    in_program(self);
    close(to_helper[1]);
    pthread_join(helping, NULL);
}

/* ---- all at once ---------------------------------------------------------------------------------------------------
 */

#define ROUNDS 40

static uint64_t mhz;
static unsigned readings, wrong;

static uint64_t mono_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Virtual, if equal to the clock. */
static void compare(reader read)
{
    uint64_t before = mono_ns() * mhz / 1000, tsc = read(), after = mono_ns() * mhz / 1000;

    __atomic_fetch_add(&readings, 1, __ATOMIC_RELAXED);
    if (tsc < before || tsc > after)
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static void *loader(void *path)
{
    for (int i = 0; i < ROUNDS; i++) {
        void *object = dlopen(path, RTLD_NOW);

        if (!object)
            exit(1);
        compare((reader)dlsym(object, "object_reads"));
        dlclose(object);
    }
    return NULL;
}

static void *forker(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        pid_t pid = fork();
        int status = 1;

        if (pid == 0) {
            wrong = 0;
            compare(rdtsc);
            _exit(wrong != 0);
        }
        waitpid(pid, &status, 0);
        __atomic_fetch_add(&wrong, status != 0, __ATOMIC_RELAXED);
        compare(rdtscp);
    }
    return NULL;
}

static void storm(char **paths, int n)
{
    pthread_t threads[n + 1];

    use_device();
    mhz = (rdtsc() / 1000 + mono_ns() / 2000000) / (mono_ns() / 1000000);
    for (int i = 0; i < n; i++)
        pthread_create(&threads[i], NULL, loader, paths[i]);
    pthread_create(&threads[n], NULL, forker, NULL);
    for (int i = 0; i < ROUNDS; i++)
        compare(with_prefix);
    for (int i = 0; i <= n; i++)
        pthread_join(threads[i], NULL);
    printf("%u readings, %u wrong\n", readings, wrong);
}

int main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "storm")) {
        storm(argv + 2, argc - 2);
        return 0;
    }
    if (argc == 3 && !strcmp(argv[1], "all")) {
        all(argv[0], argv[2]);
        return 0;
    }
    if (argc == 2 && !strcmp(argv[1], "again"))
        printf("another program, before a device is used: %s\n", is_virtual(rdtsc) ? "virtual" : "real");
    use_device();
    say(argc == 2 ? "and after" : "the counter", rdtsc);
    return 0;
}
