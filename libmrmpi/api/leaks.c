/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects that the program has not freed, for MRMPI_LEAKS: the handles and the memory of MPI_Alloc_mem at the library's
 * end; info objects, error handlers and sessions, which may be freed later, at the process's exit. p2p/ reports
 * messages without a receiver; net/stripe/, verbs/link/ and verbs/ report registered memory, packets, queue pairs and
 * room in completion queues.
 */
#include "libmrmpi/api/api.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libmrmpi/api/life.h"

enum { TELL_MAX = 16 }; /* lines for each kind at most */

static __attribute__((format(printf, 2, 3))) void tell_leak(int *told, const char *fmt, ...)
{
    char what[256];
    va_list ap;
    if (++*told > TELL_MAX)
        return;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    mr_log_print(MR_LOG_WARN, "leak: %s", what);
}

static void tell_rest(int told, const char *what)
{
    if (told > TELL_MAX)
        mr_log_print(MR_LOG_WARN, "leak: and %d more %s", told - TELL_MAX, what);
}

static const struct {
    const char *one, *many;
    bool at_exit; /* may be freed after MPI_Finalize */
} kinds[ABI_KINDS] = {
    [ABI_COMM] = {"communicator", "communicators", false},
    [ABI_GROUP] = {"group", "groups", false},
    [ABI_TYPE] = {"datatype", "datatypes", false},
    [ABI_MESSAGE] = {"message of a matched probe", "messages of matched probes", false},
    [ABI_ERRHANDLER] = {"error handler", "error handlers", true},
    [ABI_OP] = {"operation", "operations", false},
    [ABI_INFO] = {"info object", "info objects", true},
    [ABI_KEYVAL] = {"attribute key", "attribute keys", false},
    [ABI_WIN] = {"window", "windows", false},
    [ABI_FILE] = {"file", "files", false},
    [ABI_REQUEST] = {"request", "requests", false},
    [ABI_SESSION] = {"session", "sessions", true},
};

static const char *name_of_object(enum abi_kind kind, const void *object)
{
    switch (kind) {
    case ABI_COMM:
        return ((const struct mr_comm *)object)->name;
    case ABI_WIN:
        return ((const struct mr_win *)object)->name;
    case ABI_FILE:
        return ((const struct mr_file *)object)->name;
    default:
        return kind == ABI_TYPE ? mr_type_name(object) : "";
    }
}

/* The datatypes of MPI_Type_create_f90_* belong to MPI. */
static bool of_program(enum abi_kind kind, const void *object)
{
    const struct mr_recipe *r = kind == ABI_TYPE ? ((const struct mr_type *)object)->recipe : NULL;
    return !r || (r->combiner != MR_COMBINER_F90_REAL && r->combiner != MR_COMBINER_F90_COMPLEX &&
                  r->combiner != MR_COMBINER_F90_INTEGER);
}

static void tell_kind(enum abi_kind kind)
{
    const struct api_table *t = &api_tables[kind];
    int told = 0;
    for (uint32_t i = 1; i < t->used && t->live; i++) {
        const struct api_slot *s = &t->chunks[i >> API_CHUNK_BITS][i & (API_CHUNK - 1)];
        if (!s->object || !of_program(kind, s->object))
            continue;
        const char *name = name_of_object(kind, s->object);
        tell_leak(&told, "%s 0x%08x%s%s was not freed", kinds[kind].one, (unsigned)s->handle, *name ? ", " : "", name);
    }
    tell_rest(told, kinds[kind].many);
}

static void tell_kinds(bool at_exit)
{
    for (int k = 0; k < ABI_KINDS; k++)
        if (kinds[k].one && kinds[k].at_exit == at_exit)
            tell_kind((enum abi_kind)k);
}

static void tell_block(const void *start, size_t bytes, void *arg)
{
    tell_leak(arg, "%zu bytes of MPI_Alloc_mem at %p", bytes, start);
}

void api_leaks_at_end(void)
{
    int told = 0;
    if (!mr_config.leaks)
        return;
    tell_kinds(false);
    api_alloc_each(tell_block, &told);
    tell_rest(told, "blocks of memory");
}

/* ---- in one line ------------------------------------------------------------------------------------------------- */

static struct {
    char text[512];
    size_t len;
} left;

static void add_left(unsigned count, const char *one, const char *many, const char *name)
{
    int n = !count ? 0
                   : snprintf(left.text + left.len, sizeof(left.text) - left.len, "%s%u %s%s%s%s", left.len ? ", " : "",
                              count, count == 1 ? one : many, *name ? " (" : "", name, *name ? ")" : "");

    left.len += (size_t)n < sizeof(left.text) - left.len ? (size_t)n : 0;
    left.text[left.len] = '\0';
}

/* its children have not made these objects */
static void count_kind(enum abi_kind kind)
{
    const struct api_table *t = &api_tables[kind];
    const char *name = "";
    unsigned count = 0;

    for (uint32_t i = 1; i < t->used && t->live; i++) {
        const struct api_slot *s = &t->chunks[i >> API_CHUNK_BITS][i & (API_CHUNK - 1)];
        if (!s->object || !of_program(kind, s->object))
            continue;
        count++;
        name = *name ? name : name_of_object(kind, s->object);
    }
    add_left(count, kinds[kind].one, kinds[kind].many, name);
}

struct blocks_left {
    unsigned count;
    size_t bytes;
};

static void count_block(const void *start, size_t bytes, void *arg)
{
    struct blocks_left *sum = arg;
    sum->count++;
    sum->bytes += bytes;
}

void api_leaks_count(void)
{
    struct blocks_left blocks = {0};
    char bytes[32];

    left.len = 0;
    if (!mr_config.check)
        return;
    for (int k = 0; k < ABI_KINDS; k++)
        if (kinds[k].one && !kinds[k].at_exit)
            count_kind((enum abi_kind)k);
    api_alloc_each(count_block, &blocks);
    snprintf(bytes, sizeof(bytes), "%zu bytes", blocks.bytes);
    add_left(blocks.count, "block of MPI_Alloc_mem", "blocks of MPI_Alloc_mem", bytes);
}

void api_leaks_sum_up(void)
{
    struct mr_unreceived m = mr_pt2pt_unreceived();
    char first[64];

    if (!mr_config.check)
        return;
    snprintf(first, sizeof(first), "from rank %d, tag %d", m.peer, m.tag);
    add_left(m.count, "message that nobody received", "messages that nobody received", first);
    if (left.len)
        mr_log_print(MR_LOG_WARN, "left at MPI_Finalize: %s%s", left.text,
                     mr_config.leaks ? "" : "; MRMPI_LEAKS=yes lists each");
}

/* ---- at exit ----------------------------------------------------------------------------------------------------- */

static pid_t watching; /* its children have not made what they see */

static void report_leaks_at_exit(void)
{
    if (mr_config.leaks && watching == getpid())
        tell_kinds(true);
}

void api_leaks_watch(void)
{
    if (watching != getpid() && atexit(report_leaks_at_exit) == 0)
        watching = getpid();
}
