/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment (MPI-3.1 chapter 8): starting, ending, names, clocks. */
#include "libmrmpi/api/done.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libmrmpi/api/life.h"
#include "libmrmpi/launch/launch.h"

/* ---- who uses the library ---- */

/* The world model: the answers of MPI_Initialized and MPI_Finalized. */
static volatile enum { WORLD_BEFORE, WORLD_RUNNING, WORLD_FINALIZED } world;
static pthread_t main_thread;
static enum abi_thread_level world_level;

/*
 * The library runs while it has users. Start and end take all processes of the job, while sessions come and go in each
 * process: after the last session the library goes on until the process exits. Users are counted under life_mutex,
 * which is taken before the library's lock.
 */
static pthread_mutex_t life_mutex = PTHREAD_MUTEX_INITIALIZER;
static int users;
static pid_t ends_at_exit; /* the process that ends the library: not its children */

static void end_library(void)
{
    api_parent_finalize();
    api_leaks_at_end();
    api_leaks_count();
    api_comm_finalize();
    api_errhandlers_finalize();
    api_info_finalize();
    mr_finalize();
    api_leaks_sum_up();
    api_inquiry_close();
    api_crash_close();
    mr_state = MR_STATE_FINALIZED;
    api_renew_fast();
    api_handles_finalize();
}

static void end_at_exit(void)
{
    if (users == 0 && mr_state == MR_STATE_RUNNING && ends_at_exit == getpid())
        end_library();
}

enum mr_err api_library_use(enum abi_thread_level level)
{
    pthread_mutex_lock(&life_mutex);
    int err = 0;
    if (mr_state != MR_STATE_RUNNING) { /* the first time, or again after an end */
        err = mr_init((int)level);
        if (!err) {
            abi_init();
            api_done_init(mr_config.leaks);
            api_leaks_watch();
            api_inquiry_open();
            api_crash_open();
        }
    } else if (level == ABI_MULTIPLE && !mr_threaded) { /* otherwise other threads read it at this moment */
        mr_threaded = true;
    }
    api_renew_fast();
    if (!err) {
        users++;
        if (level > api_thread_level)
            api_thread_level = level;
    }
    pthread_mutex_unlock(&life_mutex);
    return err ? MR_ERR_OTHER : MR_SUCCESS;
}

/* Data sent by this process must have left: nobody polls the network until the process is back. */
void api_library_leave(bool at_once)
{
    pthread_mutex_lock(&life_mutex);
    bool last = --users == 0;
    api_lock();
    if (last && at_once) {
        end_library();
    } else {
        mr_pt2pt_quiesce();
        if (last && ends_at_exit != getpid() && atexit(end_at_exit) == 0)
            ends_at_exit = getpid();
    }
    api_unlock();
    if (mr_state != MR_STATE_RUNNING)
        mr_threaded = false;
    pthread_mutex_unlock(&life_mutex);
}

/* ---- the world ---- */

static int init_world(enum abi_thread_level level, const char *function)
{
    char why[512];
    if (world != WORLD_BEFORE) {
        snprintf(why, sizeof(why), "%s was called %s", function,
                 world == WORLD_RUNNING ? "a second time" : "after MPI_Finalize");
        mr_launch_abort(1, why);
    }
    if (api_library_use(level)) {
        snprintf(why, sizeof(why), "%s failed: %s", function, mr_error_take_detail());
        mr_launch_abort(1, why);
    }
    world_level = level;
    main_thread = pthread_self();
    world = WORLD_RUNNING;
    return MPI_SUCCESS;
}

enum abi_thread_level api_thread_level_of(int required)
{
    int level = ABI_MULTIPLE;
    while (level > ABI_SINGLE && required < abi_thread_levels[level])
        level--;
    return (enum abi_thread_level)level;
}

MPI_FN(int, Init, (int *argc, char ***argv))
{
    return init_world(ABI_SINGLE, "MPI_Init");
}

MPI_FN(int, Init_thread, (int *argc, char ***argv, int required, int *provided))
{
    NOT_NULL_EVER(provided);
    const enum abi_thread_level level = api_thread_level_of(required);
    *provided = abi_thread_levels[level];
    return init_world(level, "MPI_Init_thread");
}

MPI_FN(int, Initialized, (int *flag))
{
    NOT_NULL_EVER(flag);
    *flag = world != WORLD_BEFORE;
    return MPI_SUCCESS;
}

MPI_FN(int, Finalized, (int *flag))
{
    NOT_NULL_EVER(flag);
    *flag = world == WORLD_FINALIZED;
    return MPI_SUCCESS;
}

/* Attributes of MPI_COMM_SELF go first: programs hang their own clean-up there. */
static enum mr_err delete_attributes(struct mr_comm *c)
{
    int user_error;
    api_in_callback++;
    enum mr_err err = mr_attr_delete_all(&c->attrs, c, &user_error);
    api_in_callback--;
    return err;
}

MPI_FN(int, Finalize, (void))
{
    if (world != WORLD_RUNNING)
        api_not_running("MPI_Finalize");
    API_ENTER();
    struct mr_comm *c = mr_comm_self;
    CHECK(delete_attributes(c));
    c = mr_comm_world;
    CHECK(delete_attributes(c));
    api_unlock();
    api_library_leave(true);
    world = WORLD_FINALIZED;
    return MPI_SUCCESS;
    API_LEAVE(c);
}

MPI_FN(int, Abort, (MPI_Comm comm, int errorcode))
{
    char why[128];
    snprintf(why, sizeof(why), "MPI_Abort was called with %d", errorcode);
    mr_launch_abort(errorcode, why);
}

MPI_FN(int, Query_thread, (int *provided))
{
    NOT_NULL_EVER(provided);
    *provided = abi_thread_levels[world_level];
    return MPI_SUCCESS;
}

MPI_FN(int, Is_thread_main, (int *flag))
{
    NOT_NULL_EVER(flag);
    *flag = pthread_equal(pthread_self(), main_thread) != 0;
    return MPI_SUCCESS;
}

MPI_FN(int, Get_version, (int *version, int *subversion))
{
    NOT_NULL_EVER(version);
    NOT_NULL_EVER(subversion);
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return MPI_SUCCESS;
}

MPI_FN(int, Get_library_version, (char *version, int *resultlen))
{
    NOT_NULL_EVER(version);
    NOT_NULL_EVER(resultlen);
    api_string(version, MPI_MAX_LIBRARY_VERSION_STRING, abi_description, resultlen);
    return MPI_SUCCESS;
}

MPI_FN(int, Get_processor_name, (char *name, int *resultlen))
{
    char host[256] = "localhost";
    API_ENTER();
    NOT_NULL(name);
    NOT_NULL(resultlen);
    const struct mr_launch *l = mr_launch_info();
    if (!l->node_name[0])
        gethostname(host, sizeof(host) - 1);
    api_string(name, MPI_MAX_PROCESSOR_NAME, l->node_name[0] ? l->node_name : host, resultlen);
    API_LEAVE(NULL);
}

/* Divided, not multiplied by 1e-9, which is no exact double: the result is rounded once, at any time of the clock. */
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
