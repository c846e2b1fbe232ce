/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * detect: the launcher of this process, from its traces in the environment. Private to the folder.
 *
 * Launchers nest, and children inherit variables. A connection that is open in this process is decisive; mrrun removes
 * the variables of outer launchers. A process that a launcher counts as one of several, without a usable client, must
 * not run alone, as one of many copies of the program.
 */
#ifndef MRMPI_LAUNCH_DETECT_H
#define MRMPI_LAUNCH_DETECT_H

#include "libmrmpi/launch/backend.h"

enum { MR_DETECT_NODE_MAX = 128 };

/* The client to use: by MRMPI_LAUNCHER, or as found. 0, or a negative errno after mr_launch_fail(). */
int mr_detect(const struct mr_launch_backend **out);

/* For messages: "Slurm's srun". */
const char *mr_detect_pmi_launcher(void);
const char *mr_detect_pmix_launcher(void);

/*
 * True if the PMI launcher is known to answer questions of a rank that waits at a fence. Slurm's pmi2 plugin does in
 * PMI-2, and reads no further message of such a rank in PMI-1.
 */
bool mr_detect_pmi_answers_at_fences(int version);
/* True if the PMI launcher is known to start further jobs for its ranks. */
bool mr_detect_pmi_starts_jobs(void);

/* True if one PMIx server serves all ranks on all nodes, as mrrun's does; others have a server for each node. */
bool mr_detect_one_server(void);

/* The launcher's name of this node; "": none. */
const char *mr_detect_node_name(void);
/*
 * An identity common to the processes of a node, if the launcher has no map: its number of the node, else the machine's
 * identity. Never the host's name.
 */
int mr_detect_node(char out[MR_DETECT_NODE_MAX]);

#endif
