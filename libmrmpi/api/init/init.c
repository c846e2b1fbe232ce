/* SPDX-License-Identifier: BSD-3-Clause */
/* Bringing the rooms up in order, and down again: see init.h. */
#include "libmrmpi/api/init/init.h"

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/copy.h"
#include "libmrmpi/base/lock.h"
#include "libmrmpi/base/model.h"
#include "libmrmpi/coll/coll.h"
#include "libmrmpi/conn/conn.h"
#include "libmrmpi/core/core.h"
#include "libmrmpi/p2p/p2p.h"
#include "libmrmpi/api/init/helper.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/io/io.h"
#include "libmrmpi/rma/rma.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/net/net.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

_Atomic enum mr_state mr_state;

static void tell_identity(const struct mr_launch *launch)
{
    char host[256] = "";
    if (launch->node_name[0])
        strncpy(host, launch->node_name, sizeof(host) - 1);
    else
        gethostname(host, sizeof(host) - 1);
    mr_log_identity(launch->rank, launch->local_rank, host);
    if (launch->rank == 0)
        mr_config_complain();
}

static int init_failed(const char *what, int err)
{
    mr_error_detail("%s: %s", what, strerror(-err));
    return err;
}

/* The launcher's client knows more of it. */
static int launch_failed(const char *what, int err)
{
    mr_error_detail("%s: %s", what, mr_launch_why(err));
    return err;
}

static int model_failed(const char *why, int err)
{
    mr_error_detail("reading MRMPI_MODEL: %s", why);
    return err;
}

int mr_init(int thread_level)
{
    enum { THREAD_MULTIPLE = 3 };
    const struct mr_launch *launch;
    char why[256];
    int err = mr_config_init();
    if (err)
        return init_failed("reading the settings", err);
    mr_copy_init();
    if ((err = mr_model_init(why, sizeof why)))
        return model_failed(why, err);
    if ((err = mr_launch_init(&launch)))
        return launch_failed("asking the launcher who this process is", err);
    tell_identity(launch);
    if (mr_comm_init(launch))
        return init_failed("making MPI_COMM_WORLD", -ENOMEM);
    if ((err = mr_pt2pt_init()))
        return init_failed("opening the channels", err);
    mr_view_open(launch);
    if ((err = mr_launch_fence()))
        return launch_failed("meeting the other ranks at the launcher's fence", err);
    if (mr_config.recover && (err = mr_launch_put("mrmpi.met", "", 1))) /* from now on a death ends no job */
        return launch_failed("telling the launcher that all ranks have met", err);
    if ((err = mr_shm_ready()))
        return init_failed("attaching to the peers of this node", err);
    if ((err = mr_coll_init()))
        return init_failed("reading the file of MRMPI_COLL_TABLE", err);
    mr_rma_init();
    if (mr_comm_meet_parent()) /* the detail says why */
        return -ECONNREFUSED;
    mr_threaded = thread_level == THREAD_MULTIPLE;
    if ((err = mr_helper_start()))
        return init_failed("starting the thread of MRMPI_ASYNC_PROGRESS", err);
    mr_state = MR_STATE_RUNNING;
    return 0;
}

/* All ranks have come, or no peer needs this one any more. */
static bool may_leave(void *arg)
{
    int *err = arg;

    if (!mr_net_lingers())
        return true;
    *err = mr_launch_fence_done();
    return *err != -EAGAIN;
}

/* Peers may still need answers of this rank until all have come: links that lose packets ask for confirmation. */
static void leave_together(void)
{
    int err;

    if (mr_config.recover) /* no fence without the dead; and others hear from the launcher that we have left */
        return;
    err = mr_launch_fence_begin();
    if (err)
        return;
    err = -EAGAIN;
    mr_progress_until(may_leave, &err);
    if (err == -EAGAIN)
        mr_launch_fence_end();
}

void mr_finalize(void)
{
    mr_helper_stop();
    mr_pt2pt_end_together();
    mr_io_finalize();
    mr_rma_finalize();
    mr_derived_finalize();
    mr_pt2pt_finalize();
    leave_together();
    mr_view_close();
    mr_vc_finalize();
    mr_fabric_names_close();
    mr_coll_finalize();
    mr_comm_finalize();
    mr_making_finalize();
    mr_type_f90_finalize();
    mr_launch_started_end();
    mr_launch_finalize();
}
