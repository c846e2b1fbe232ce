/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * detect: which launcher started this process, from what it left in the environment. Private to the room.
 *
 * Launchers nest, and children inherit variables. A connection that is open in this process speaks for itself; mrrun
 * takes the variables of outer launchers away. A process that a launcher counts as one of several, and that no client
 * can serve, must not run alone: it would be one of many copies of the program.
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

/* Does one PMIx server serve all ranks, whichever node they are on? mrrun's does; others have one for each node. */
bool mr_detect_one_server(void);

/* This node as the launcher names it; "" if it does not. */
const char *mr_detect_node_name(void);
/* What processes of one node have in common, where the launcher has no map: its number of the node, else the machine's
 * identity. Never the host's name. */
int mr_detect_node(char out[MR_DETECT_NODE_MAX]);

#endif
