/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment (MPI-3.1 chapter 8): starting, ending, names, clocks, memory. */
#include "libmrmpi/api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libmrmpi/api/life.h"
#include "libmrmpi/launch/launch.h"

static int thread_level;
static pthread_t main_thread;

static int init(int required, const char *function)
{
    if (mr_state != MR_STATE_BEFORE) {
        char why[128];
        snprintf(why, sizeof(why), "%s was called %s", function,
                 mr_state == MR_STATE_RUNNING ? "a second time" : "after MPI_Finalize");
        mr_launch_abort(1, why);
    }
    if (mr_init(required)) {
        char why[512];
        snprintf(why, sizeof(why), "%s failed: %s", function, mr_error_take_detail());
        mr_launch_abort(1, why);
    }
    thread_level = required;
    main_thread = pthread_self();
    abi_init();
    return MPI_SUCCESS;
}

MPI_FN(int, Init, (int *argc, char ***argv))
{
    return init(MPI_THREAD_SINGLE, "MPI_Init");
}

MPI_FN(int, Init_thread, (int *argc, char ***argv, int required, int *provided))
{
    if (required < MPI_THREAD_SINGLE)
        required = MPI_THREAD_SINGLE;
    if (required > MPI_THREAD_MULTIPLE)
        required = MPI_THREAD_MULTIPLE;
    *provided = required;
    return init(required, "MPI_Init_thread");
}

MPI_FN(int, Initialized, (int *flag))
{
    *flag = mr_state != MR_STATE_BEFORE;
    return MPI_SUCCESS;
}

MPI_FN(int, Finalized, (int *flag))
{
    *flag = mr_state == MR_STATE_FINALIZED;
    return MPI_SUCCESS;
}

MPI_FN(int, Finalize, (void))
{
    API_ENTER();
    /* attributes of MPI_COMM_SELF go first: programs hang their own clean-up there */
    int user_error;
    api_in_callback++;
    mr_attr_delete_all(&mr_comm_self->attrs, mr_comm_self, &user_error);
    mr_attr_delete_all(&mr_comm_world->attrs, mr_comm_world, &user_error);
    api_in_callback--;
    api_comm_finalize();
    mr_finalize();
    mr_state = MR_STATE_FINALIZED;
    api_handles_finalize();
    api_errors_finalize();
    (void)err;
    api_unlock();
    mr_threaded = false;
    return MPI_SUCCESS;
}

MPI_FN(int, Abort, (MPI_Comm comm, int errorcode))
{
    char why[128];
    snprintf(why, sizeof(why), "MPI_Abort was called with %d", errorcode);
    mr_launch_abort(errorcode, why);
}

MPI_FN(int, Query_thread, (int *provided))
{
    *provided = thread_level;
    return MPI_SUCCESS;
}

MPI_FN(int, Is_thread_main, (int *flag))
{
    *flag = pthread_equal(pthread_self(), main_thread) != 0;
    return MPI_SUCCESS;
}

MPI_FN(int, Get_version, (int *version, int *subversion))
{
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return MPI_SUCCESS;
}

MPI_FN(int, Get_library_version, (char *version, int *resultlen))
{
    api_string(version, MPI_MAX_LIBRARY_VERSION_STRING, "mrmpi " MRMPI_VERSION " (MPI 3.1, MPICH binary interface)",
               resultlen);
    return MPI_SUCCESS;
}

MPI_FN(int, Get_processor_name, (char *name, int *resultlen))
{
    char host[256] = "localhost";
    API_ENTER();
    const struct mr_launch *l = mr_core_launch();
    if (!l->node_name[0])
        gethostname(host, sizeof(host) - 1);
    api_string(name, MPI_MAX_PROCESSOR_NAME, l->node_name[0] ? l->node_name : host, resultlen);
    API_LEAVE(NULL);
}

/* Divided, not multiplied by 1e-9, which is no number of a double: so it is rounded once, wherever the clock stands. */
MPI_FN(double, Wtime, (void))
{
    return (double)mr_clock_ns() / 1e9;
}

MPI_FN(double, Wtick, (void))
{
    return 1e-9;
}

/* For profiling libraries, which provide their own. */
MPI_FN(int, Pcontrol, (const int level, ...))
{
    return MPI_SUCCESS;
}

MPI_FN(int, Alloc_mem, (MPI_Aint size, MPI_Info info, void *baseptr))
{
    API_ENTER();
    NOT_NULL(baseptr);
    if (size < 0)
        CHECK(mr_fail(MR_ERR_ARG, "size is %ld", size));
    void *p = NULL;
    if (size && posix_memalign(&p, 64, (size_t)size))
        CHECK(mr_fail(MR_ERR_NO_MEM, "no memory for %ld bytes", size));
    memcpy(baseptr, &p, sizeof(p));
    API_LEAVE(NULL);
}

MPI_FN(int, Free_mem, (void *base))
{
    API_ENTER();
    free(base);
    API_LEAVE(NULL);
}
