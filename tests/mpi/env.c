/* SPDX-License-Identifier: BSD-3-Clause */
/* Beginning and end, versions, names, clocks, memory; an attribute of MPI_COMM_SELF is deleted first thing in
 * MPI_Finalize. */
#include "mt.h"

#include <sys/resource.h>

static int deleted;

static int at_end(MPI_Comm c, int key, void *value, void *extra)
{
    int flag;
    (void)c;
    (void)key;
    (void)value;
    (void)extra;
    MPI_Finalized(&flag);
    CHECK(!flag);
    deleted = 1;
    return MPI_SUCCESS;
}

/* How much address space the process has, in bytes. */
static rlim_t space(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK(f && fscanf(f, "%lu", &pages) == 1);
    fclose(f);
    return (rlim_t)pages * 4096;
}

/* Freed memory can be allocated again: in total more than the process may have. */
static void memory(void)
{
    enum { TIMES = 64, PIECE = 16 << 20 };
    struct rlimit was, now;
    void *p;
    CHECK(!getrlimit(RLIMIT_AS, &was));
    now = was;
    now.rlim_cur = space() + (rlim_t)TIMES * 3 / 4 * PIECE;
    CHECK(!setrlimit(RLIMIT_AS, &now));
    for (int i = 0; i < TIMES; i++) {
        EQ(MPI_Alloc_mem(PIECE, MPI_INFO_NULL, &p), MPI_SUCCESS);
        ((char *)p)[PIECE - 1] = 1;
        MPI_Free_mem(p);
    }
    CHECK(!setrlimit(RLIMIT_AS, &was));
}

int main(int argc, char **argv)
{
    int flag, v, sv, len, provided, key;
    char name[MPI_MAX_PROCESSOR_NAME], *version = malloc(MPI_MAX_LIBRARY_VERSION_STRING);
    MPI_Initialized(&flag);
    CHECK(!flag);
    MPI_Finalized(&flag);
    CHECK(!flag);
    MPI_Get_version(&v, &sv);
    EQ(v, MPI_VERSION);
#ifdef MPICH_NAME
    EQ(v, 4); /* the value expected by programs compiled with MPICH's header */
#endif
    MPI_Get_library_version(version, &len);
    EQ(strlen(version), len);
    CHECK(strstr(version, "mrmpi"));
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    EQ(provided, MPI_THREAD_SERIALIZED);
    provided = -1;
    MPI_Query_thread(&provided);
    EQ(provided, MPI_THREAD_SERIALIZED);
    MPI_Is_thread_main(&flag);
    CHECK(flag);
    MPI_Initialized(&flag);
    CHECK(flag);
    MPI_Get_processor_name(name, &len);
    CHECK(len > 0 && (int)strlen(name) == len);
    double t = MPI_Wtime(), tick = MPI_Wtick();
    CHECK(tick > 0 && tick < 1e-3);
    while (MPI_Wtime() == t)
        ;
    CHECK(MPI_Wtime() > t);
    void *p;
    MPI_Alloc_mem(1000, MPI_INFO_NULL, &p);
    memset(p, 1, 1000);
    MPI_Free_mem(p);
    memory();
    int n, r;
    MPI_Comm_size(MPI_COMM_SELF, &n);
    MPI_Comm_rank(MPI_COMM_SELF, &r);
    CHECK(n == 1 && r == 0);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Comm_free_keyval(&key);
    MPI_Pcontrol(0);
    free(version);
    MPI_Finalize();
    if (!deleted) {
        fprintf(stderr, "rank %d: the attribute was not deleted\n", rank);
        return 1;
    }
    MPI_Finalized(&flag);
    return !flag;
}
