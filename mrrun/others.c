/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/others.h"

#include <string.h>

#define HERE "mrrun starts ranks on this machine or on simulated hosts; a scheduler's launcher does elsewhere"
#define COMPONENT                                                                                                      \
    "it chooses Open MPI's components; mrmpi's settings are variables (-x MRMPI_...; --explain lists them)"
#define WHOLE    "the environment is passed on whole; 'env -i' in front of the program empties it"
#define VERBOSE  "-v says where ranks are started and how they end"
#define ADAPTERS "MRMPI_DEVICES names the adapters to use"

static const struct {
    const char *names; /* separated by blanks, with a blank at both ends */
    const char *instead;
} others[] = {
    {" launcher launcher-exec bootstrap bootstrap-exec rmk rsh ssh plm_rsh_agent agent rsh-agent ", HERE},
    {" mca gmca am tune ", COMPONENT},
    {" genvnone envnone genvexcl envexcl ", WHOLE},
    {" print-all-exitcodes display-map display-allocation display-devel-map info report-pid ", VERBOSE},
    {" iface netmask ", ADAPTERS},
    {" c ", "it is Open MPI's -n, and srun's number of processors per rank; say -n"},
    {" npersocket ", "--ppn is the number of ranks per host"},
    {" rankfile rf ", "--hosts and --host place ranks on hosts"},
    {" output-filename ", "a shell in front of the program can redirect its output"},
    {" path ", "-x PATH=... sets where ranks look for programs"},
    {" prefix ", "mrrun finds its library beside itself"},
    {" disable-auto-cleanup enable-recovery continuous ", "a rank that fails ends the job"},
    {" nodes ntasks ntasks-per-node mpi ", "it is srun's; -n is the number of ranks, --ppn that of a host"},
    {" usize universe_size pmi-port pmi-connect nameserver ompi-server ",
     "mrmpi starts no ranks while a job runs (MPI_Comm_spawn)"},
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
