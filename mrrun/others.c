/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/others.h"

#include <string.h>

#define LAUNCHER "--launcher CMD starts agents on other hosts by CMD HOST PROGRAM ARG, ssh and srun by themselves"
#define COMPONENT                                                                                                      \
    "it chooses Open MPI's components; mrmpi's settings are variables (-x MRMPI_...; --explain lists them)"
#define WHOLE    "the environment is passed on whole; 'env -i' in front of the program empties it"
#define VERBOSE  "-v says where ranks are started and how they end"
#define ADAPTERS "MRMPI_DEVICES names the adapters to use"

static const struct {
    const char *names; /* separated by blanks, with a blank at both ends */
    const char *instead;
} others[] = {
    {" launcher-exec bootstrap bootstrap-exec rmk rsh ssh plm_rsh_agent rsh-agent ", LAUNCHER},
    {" mca gmca am tune ", COMPONENT},
    {" genvnone envnone genvexcl envexcl ", WHOLE},
    {" print-all-exitcodes print-rank-map display display-map display-allocation display-devel-map info report-pid ",
     VERBOSE},
    {" iface netmask ", ADAPTERS},
    {" c ", "it is Open MPI's -n, and srun's number of processors per rank; say -n"},
    {" npersocket rank-by ", "--ppn is the number of ranks per host, --map-by socket deals them out to sockets"},
    {" rankfile rf cpu-set cpu-list binding membind cpus-per-proc cpus-per-rank use-hwthread-cpus ",
     "--host places ranks on hosts, --map-by and --bind-to on processors"},
    {" rr grr order-nodes ", "--map-by node deals ranks out to hosts in turn"},
    {" nolocal skip-launch-node ", "--hosts names the hosts to use; leave this machine out of them"},
    {" gpus-per-proc ", "mrmpi assigns no GPUs; PMI_RANK and MPI_LOCALRANKID tell a wrapper which one to take"},
    {" output-filename ", "-outfile-pattern and -errfile-pattern name files, with %r for the rank"},
    {" prepend-pattern timestamp-output ", "-l puts the rank in front of each line"},
    {" merge-stderr-to-stdout ", "a shell's 2>&1 behind the command does the same"},
    {" ordered-output ", "lines of ranks are whole, and -l puts the rank in front of them"},
    {" q quiet silent-abort ", "mrrun says nothing of a job that ends well"},
    {" forward-signals ", "all signals that mrrun gets are passed on, but for those that ask the job to end"},
    {" do-not-launch ", "--explain starts nothing and says what the job would use"},
    {" debug gdb gdba xterm trace check-mpi ",
     "-n N xterm -e gdb --args PROGRAM debugs ranks, --check finds what MPI programs leave behind"},
    {" personality disable-recovery disable-hostname-propagation localhost ", "mrrun has no need of it; leave it out"},
    {" path ", "-x PATH=... sets where ranks look for programs"},
    {" prefix ", "mrrun finds its library beside itself"},
    {" disable-auto-cleanup enable-recovery continuous ", "a rank that fails ends the job"},
    {" nodes ntasks ntasks-per-node mpi ", "it is srun's; -n is the number of ranks, --ppn that of a host"},
    {" usize universe_size ", "the slots of the hosts (--hosts, --hostfile) are MPI_UNIVERSE_SIZE"},
    {" nameserver ompi-server ", "names are known to the ranks of one mrrun; other jobs are told the name of the port"},
    {" pmi-port pmi-connect ", "ranks get PMIx, which needs no settings"},
};

const char *others_options(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        for (const char *at = others[i].names + 1; *at;) {
            size_t n = strcspn(at, " ");

            if (n == len && !memcmp(at, name, n))
                return others[i].instead;
            at += n + 1;
        }
    }
    return NULL;
}

/* A name that ends with a digit is complete; others are prefixes. */
static const struct {
    const char *name, *whose;
} libraries[] = {
    {"libmpi.so.0", "Open MPI's"},
    {"libmpi.so.1", "Open MPI's"},
    {"libmpi.so.20", "Open MPI's"},
    {"libmpi.so.40", "Open MPI's"},
    {"libmpi.so.80", "Open MPI's"},
    {"libmpi_mpifh.", "Open MPI's"},
    {"libmpi_usempi", "Open MPI's"},
    {"libmpi_cxx.", "Open MPI's"},
    {"libmpi_ibm", "Spectrum MPI's"},
    {"libmpi_cray.", "Cray's"},
    {"libmpi_gnu_", "Cray's"},
    {"libmpi_intel.", "Cray's"},
    {"libmpi_mt.", "Intel's before 2019"},
    {"libmpi_dbg.", "Intel's before 2019"},
    {"libmpich.so.1", "of an MPICH before 3.1"},
    {"libmpich.so.3", "of an MPICH before 3.1"},
    {"libmpich.so.8", "of an MPICH before 3.1"},
    {"libmpich.so.10", "of an MPICH before 3.1"},
};

const char *others_library(const char *name)
{
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        size_t len = strlen(libraries[i].name);
        char last = libraries[i].name[len - 1];
        bool number = last >= '0' && last <= '9';

        if (!strncmp(name, libraries[i].name, len) && (!number || !name[len] || name[len] == '.'))
            return libraries[i].whose;
    }
    return NULL;
}

bool others_has_our_name(const char *name)
{
    static const char *const ours[] = {"libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1"};

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        size_t len = strlen(ours[i]);

        if (!strncmp(name, ours[i], len) && (!name[len] || name[len] == '.'))
            return true;
    }
    return false;
}
