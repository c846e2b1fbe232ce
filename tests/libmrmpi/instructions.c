/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linked to a program of bench/, counts the instructions of libmrmpi and libmpi that rank 0 executes in its calls, one
 * by one. Instructions of libraries called below (verbs, here the simulator's, and the C library) are left out.
 *
 *   COUNT_CALLS     functions, of those at the end of this file: "MPI_Send MPI_Recv"
 *   COUNT_FILE      a line for each call, in order: "MPI_Send INSTRUCTIONS ENTERED", or "MPI_Send" alone for each of
 *                   the first 16 calls, left uncounted; nothing, but why on standard error and status 77, on
 *                   machines that do not report single steps
 *   COUNT_FUNCTION  ENTERED is how often this function of the library was entered
 *
 * The processor's trap flag makes a signal of each instruction. The flag is the thread's own, so neither a debugger nor
 * its privileges are needed, and the thread never stops, which simfab would notice. The first calls connect: thousands
 * of instructions. With a signal each they take longer than simfab lets a thread compute before time goes on.
 */
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100u

enum { RANGES = 8, TRIAL = 100, FIRST = 16, SKIPPED = 77 };

/*
 * A function of TRIAL instructions, and the return addresses of the library's callees, which are not stepped through.
 */
void count_trial(void);
extern const char count_returned[];
__asm__(".pushsection .text\n"
        "count_trial: .rept 99\n nop\n .endr\n ret\n"
        "count_returned: int3\n"
        ".popsection");

static struct {
    uintptr_t from, to;
} range[RANGES];
static int ranges;

static struct {
    uint64_t instructions, entered;
    uintptr_t last, back; /* the instruction before; the return address that count_returned stands for */
    bool inside;          /* the instruction before was counted */
} now;

static uintptr_t function;
static const char *wanted = "";
static FILE *file;          /* NULL: this rank counts nothing */
static int calls;           /* wanted, so far */
static char lines[1 << 20]; /* its buffer: no system call between the calls that are counted */

static bool is_counted(uintptr_t ip)
{
    for (int i = 0; i < ranges; i++)
        if (ip >= range[i].from && ip < range[i].to)
            return true;
    return false;
}

/* Called before each instruction. A repeated instruction (rep movs) comes each time, and counts once. */
static void step(int sig, siginfo_t *info, void *context)
{
    greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t ip = (uintptr_t)reg[REG_RIP], *top = (uintptr_t *)reg[REG_RSP];

    if (ip == (uintptr_t)count_returned + 1) {
        ip = now.back;
        reg[REG_RIP] = (greg_t)ip;
        reg[REG_EFL] |= TRAP_FLAG;
    }
    if (is_counted(ip)) {
        now.instructions += ip != now.last;
        now.entered += ip == function;
    } else if (now.inside && is_counted(*top)) { /* a callee of the library: on to its return at full speed */
        now.back = *top;
        *top = (uintptr_t)count_returned;
        reg[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    }
    now.inside = is_counted(ip);
    now.last = ip;
}

static void set_trap_flag(bool on)
{
    unsigned long long flags = __builtin_ia32_readeflags_u64();

    __builtin_ia32_writeeflags_u64(on ? flags | TRAP_FLAG : flags & ~(unsigned long long)TRAP_FLAG);
}

static bool start(const char *name)
{
    const char *at = strstr(wanted, name);

    if (!file || !at || !strchr(" ", at[strlen(name)]))
        return false;
    if (calls++ < FIRST) {
        fprintf(file, "%s\n", name);
        return false;
    }
    memset(&now, 0, sizeof now);
    return true;
}

static void stop(const char *name)
{
    fprintf(file, "%s %llu %llu\n", name, (unsigned long long)now.instructions, (unsigned long long)now.entered);
}

/* Everything between start and stop is stepped through: no call of ours there, which would be counted, too. */
#define COUNT(name, call)                                                                                              \
    do {                                                                                                               \
        bool counts = start(name);                                                                                     \
        int rc;                                                                                                        \
                                                                                                                       \
        if (counts)                                                                                                    \
            set_trap_flag(true);                                                                                       \
        rc = call;                                                                                                     \
        if (counts) {                                                                                                  \
            set_trap_flag(false);                                                                                      \
            stop(name);                                                                                                \
        }                                                                                                              \
        return rc;                                                                                                     \
    } while (0)

static void add_range(uintptr_t from, size_t size)
{
    if (ranges < RANGES) {
        range[ranges].from = from;
        range[ranges++].to = from + size;
    }
}

static int add_library(struct dl_phdr_info *info, size_t size, void *unused)
{
    if (!strstr(info->dlpi_name, "/libmrmpi.so") && !strstr(info->dlpi_name, "/libmpi.so") &&
        !strstr(info->dlpi_name, "/libmpi_abi.so"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X)
            add_range(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, info->dlpi_phdr[i].p_memsz);
    return 0;
}

/* Are single steps reported here, each once? */
static bool can_count(void)
{
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};

    if (sigaction(SIGTRAP, &action, NULL))
        return false;
    add_range((uintptr_t)count_trial, TRIAL);
    set_trap_flag(true);
    count_trial();
    set_trap_flag(false);
    ranges = 0;
    return now.instructions == TRIAL;
}

static void begin(void)
{
    const char *path = getenv("COUNT_FILE"), *names = getenv("COUNT_CALLS"), *entered = getenv("COUNT_FUNCTION");
    int rank;

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 0 || !path || !names)
        return;
    wanted = names;
    function = entered ? (uintptr_t)dlsym(RTLD_DEFAULT, entered) : 0;
    dl_iterate_phdr(add_library, NULL);
    file = fopen(path, "w");
    if (!file || setvbuf(file, lines, _IOFBF, sizeof lines) || !ranges || (entered && !function)) {
        fprintf(stderr, "cannot count: %s, %d parts of the library, %s\n", path, ranges, entered ? entered : "");
        exit(1);
    }
}

int MPI_Init(int *argc, char ***argv)
{
    int rc;

    if (!can_count()) {
        fprintf(stderr, "cannot count: single steps are not reported as they should be\n");
        exit(SKIPPED);
    }
    rc = PMPI_Init(argc, argv);
    begin();
    return rc;
}

int MPI_Finalize(void)
{
    if (file && fclose(file)) {
        perror("cannot count");
        exit(1);
    }
    file = NULL;
    return PMPI_Finalize();
}

int MPI_Send(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    COUNT("MPI_Send", PMPI_Send(buf, count, type, to, tag, comm));
}

int MPI_Recv(void *buf, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    COUNT("MPI_Recv", PMPI_Recv(buf, count, type, from, tag, comm, status));
}

int MPI_Isend(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *req)
{
    COUNT("MPI_Isend", PMPI_Isend(buf, count, type, to, tag, comm, req));
}

int MPI_Irecv(void *buf, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *req)
{
    COUNT("MPI_Irecv", PMPI_Irecv(buf, count, type, from, tag, comm, req));
}

int MPI_Wait(MPI_Request *req, MPI_Status *status)
{
    COUNT("MPI_Wait", PMPI_Wait(req, status));
}

int MPI_Put(const void *buf, int count, MPI_Datatype type, int to, MPI_Aint at, int to_count, MPI_Datatype to_type,
            MPI_Win win)
{
    COUNT("MPI_Put", PMPI_Put(buf, count, type, to, at, to_count, to_type, win));
}
