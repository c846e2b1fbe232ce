/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * opensm's partition file (partitions.conf) with the partitions whose members the policy decides. fabricd owns a
 * section between two marks, with a line for each member's port and its node's description. All other lines are the
 * administrator's and are kept. Pure.
 *
 * Without a file, opensm gives all ports full membership of the default partition. A file without this partition makes
 * the ports limited members. A section that begins a file therefore defines the default partition, and notes that the
 * file goes away with the section.
 */
#ifndef FABRICD_FABRIC_PARTITIONS_H
#define FABRICD_FABRIC_PARTITIONS_H

#include "fabricd/policy/policy.h"

#define PARTITIONS_MAX (16u << 20) /* bytes of a file */

/* A file; absent: no file, which differs from an empty file. */
struct partition_file {
    bool there;
    struct text text;
};
void partition_file_free(struct partition_file *f);
void partition_file_copy(struct partition_file *to, const struct partition_file *from);
bool partition_file_equal(const struct partition_file *a, const struct partition_file *b);

/*
 * The file for p, and for the hosts of running jobs. adapters: the known ports, a line "0xGUID DESCRIPTION" each, as
 * those of a section are, too. Members known from before that are down now stay. Merging twice gives the same as once.
 */
void partitions_merge(const struct partition_file *old, const struct policy *p, const struct host_keys *jobs,
                      const char *adapters, struct partition_file *out);
/* The file with the section of another; from NULL or without one: with none. */
void partitions_take_section(const struct partition_file *old, const struct partition_file *from,
                             struct partition_file *out);
/* False: the administrator has a partition with the key of one of the policy's: why names the line. */
bool partitions_free(const struct partition_file *f, const struct policy *p, const char *name, struct text *why);

#endif
