/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mapping: PMI_process_mapping, the launcher's list of the ranks that share a node. Pure.
 *
 * "(vector,(first,nodes,ranks),...)": each of the nodes first, first+1, ... takes the given number of ranks, block
 * after block; remaining ranks begin again with the first block.
 */
#ifndef MRMPI_LAUNCH_MAPPING_H
#define MRMPI_LAUNCH_MAPPING_H

#include <stdint.h>

/* Fills node_of[size]. 0, or -EPROTO: text is no such mapping. */
int mr_mapping_parse(const char *text, int size, uint32_t *node_of);

#endif
