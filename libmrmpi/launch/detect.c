/* SPDX-License-Identifier: BSD-3-Clause */
/* Detects the launcher of this process. */
#include "libmrmpi/launch/detect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/pmi_text.h"

/* ---- launchers and their variables ---- */

/*
 * By the variables of a rank. A process of several ranks (or of an unknown number) without a client is refused. Slurm's
 * are those of a step: the script of a batch job and the shell of an allocation have SLURM_NTASKS and SLURM_PROCID too,
 * and are no ranks.
 */
static const struct {
    const char *rank, *size, *name, *remedy;
} launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun",
     "an mpirun with PMIx, or mrrun or mpiexec.hydra"},
    {"PMI_RANK", "PMI_SIZE", "A PMI launcher (PMI_RANK is set without PMI_FD and PMI_PORT)",
     "mpiexec.hydra, srun --mpi=pmi2 or mrrun"},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", "Flux", "flux run -o pmi=simple"},
    {"PALS_RANKID", NULL, "PALS (HPE's mpiexec)", "mpiexec.hydra or, under Slurm, srun --mpi=pmi2"},
    {"ALPS_APP_PE", NULL, "ALPS (Cray's aprun)", "mpiexec.hydra or, under Slurm, srun --mpi=pmi2"},
    {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM (IBM's jsrun)", "jsrun with PMIx, or mpiexec.hydra"},
    {"MPIRUN_RANK", "MPIRUN_NPROCS", "MVAPICH's mpirun_rsh", "mpiexec.hydra"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MVAPICH's launcher", "mpiexec.hydra"},
    {"MP_CHILD", "MP_PROCS", "IBM's poe", "mpiexec.hydra"},
    {"SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "Slurm's srun",
     "srun --mpi=pmix or srun --mpi=pmi2 (srun --mpi=list shows what is installed)"},
};
enum { LAUNCHERS = sizeof(launchers) / sizeof(launchers[0]) };

static bool has_several_ranks(int i)
{
    const char *size = launchers[i].size ? mr_config_foreign(launchers[i].size) : NULL;
    long long n;

    return mr_config_foreign(launchers[i].rank) && !(size && mr_pmi_number(size, 0, 1, &n));
}

static int refuse_unserved(void)
{
    for (int i = 0; i < LAUNCHERS; i++)
        if (has_several_ranks(i))
            return mr_launch_fail(-EOPNOTSUPP,
                                  "%s started this process as one of several, but offers neither PMIx nor PMI to it; "
                                  "use %s, or MRMPI_LAUNCHER=none to run it as a single process",
                                  launchers[i].name, launchers[i].remedy);
    return 0;
}

const char *mr_detect_pmi_launcher(void)
{
    if (mr_config_foreign("PMI_JOBID") && mr_config_foreign("SLURM_STEP_ID"))
        return "Slurm's srun";
    if (mr_config_foreign("HYDI_CONTROL_FD"))
        return "Hydra's mpiexec";
    return mr_config_foreign("FLUX_TASK_RANK") ? "Flux" : "the PMI launcher";
}

bool mr_detect_pmi_starts_jobs(void)
{
    return mr_config_foreign("HYDI_CONTROL_FD");
}

bool mr_detect_pmi_answers_at_fences(int version)
{
    if (mr_config_foreign("PMI_JOBID") && mr_config_foreign("SLURM_STEP_ID"))
        return version == 2;
    return mr_config_foreign("HYDI_CONTROL_FD") || mr_config_foreign("FLUX_TASK_RANK");
}

const char *mr_detect_pmix_launcher(void)
{
    static const char *const jobs[][2] = {{"slurm.pmix.", "Slurm's srun"}, {"mrrun", "mrrun"}};
    const char *job = mr_config_foreign("PMIX_NAMESPACE");

    for (size_t i = 0; job && i < sizeof(jobs) / sizeof(jobs[0]); i++)
        if (!strncmp(job, jobs[i][0], strlen(jobs[i][0])))
            return jobs[i][1];
    return mr_config_foreign("OMPI_COMM_WORLD_RANK") ? "Open MPI's mpirun" : "the PMIx launcher";
}

bool mr_detect_one_server(void)
{
    return !strcmp(mr_detect_pmix_launcher(), "mrrun");
}

/* ---- clients ---- */

static bool pmi_is_named(void)
{
    return mr_config_foreign("PMI_FD") || (mr_config_foreign("PMI_PORT") && mr_config_foreign("PMI_ID"));
}

/* Only a process started by the launcher itself (or by a wrapper that keeps descriptors) has the socket. */
static bool pmi_is_open(void)
{
    const char *fd = mr_config_foreign("PMI_FD");
    struct sockaddr_storage any;
    socklen_t len = sizeof(any);
    long long n;

    if (!fd)
        return pmi_is_named();
    return mr_pmi_number(fd, 0, 1 << 24, &n) && !getsockname((int)n, (struct sockaddr *)&any, &len);
}

static bool pmix_is_named(void)
{
    return mr_config_foreign("PMIX_NAMESPACE") && mr_config_foreign("PMIX_RANK");
}

/* All PMI launchers speak PMI-1; those that speak PMI-2 set PMI_JOBID. */
static const struct mr_launch_backend *pmi_client(void)
{
    return mr_config_foreign("PMI_JOBID") ? &mr_launch_pmi2 : &mr_launch_pmi1;
}

static int detect_from_environment(const struct mr_launch_backend **out)
{
    if (pmi_is_open())
        *out = pmi_client();
    else if (pmix_is_named())
        *out = &mr_launch_pmix;
    else if (pmi_is_named())
        *out = pmi_client(); /* reports its error */
    else
        *out = &mr_launch_singleton;
    return *out == &mr_launch_singleton ? refuse_unserved() : 0;
}

int mr_detect(const struct mr_launch_backend **out)
{
    static const struct mr_launch_backend *const clients[] = {&mr_launch_pmix, &mr_launch_pmi2, &mr_launch_pmi1,
                                                              &mr_launch_singleton};
    const char *wanted = mr_config.launcher;

    if (!wanted || !*wanted || !strcmp(wanted, "auto"))
        return detect_from_environment(out);
    for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++)
        if (!strcmp(wanted, clients[i]->name)) {
            *out = clients[i];
            return 0;
        }
    return mr_launch_fail(-EINVAL, "MRMPI_LAUNCHER=%.40s: it must be auto, pmix, pmi2, pmi1 or none", wanted);
}

/* ---- nodes ---- */

const char *mr_detect_node_name(void)
{
    const char *name = mr_config_foreign("SLURM_STEP_ID") ? mr_config_foreign("SLURMD_NODENAME") : NULL;

    if (!name)
        name = mr_config_foreign("MPIR_CVAR_CH3_INTERFACE_HOSTNAME"); /* Hydra's word for the host */
    return name ? name : "";
}

/* Ranks share memory through /proc, so the machine is the same where the kernel and the namespace of processes are. */
static int identify_machine(char out[MR_DETECT_NODE_MAX])
{
    char boot[64] = "";
    struct stat st;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, boot, sizeof(boot) - 1);

    if (fd >= 0)
        close(fd);
    if (n <= 1 || stat("/proc/self/ns/pid", &st))
        return mr_launch_fail(-ENOENT, "the launcher does not say which ranks share a node (PMI_process_mapping), and "
                                       "/proc does not tell this machine from others");
    boot[strcspn(boot, "\n")] = '\0';
    snprintf(out, MR_DETECT_NODE_MAX, "machine %s %llu", boot, (unsigned long long)st.st_ino);
    return 0;
}

int mr_detect_node(char out[MR_DETECT_NODE_MAX])
{
    static const char *const numbers[][2] = {{"SLURM_STEP_ID", "SLURM_NODEID"}, {"PALS_RANKID", "PALS_NODEID"}};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        const char *node = mr_config_foreign(numbers[i][1]);
        if (!node || !mr_config_foreign(numbers[i][0]))
            continue;
        snprintf(out, MR_DETECT_NODE_MAX, "node %.100s", node);
        return 0;
    }
    return identify_machine(out);
}
