/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * opensm's partition file (partitions.conf) with the partitions of classes that have members. fabricd owns a section
 * between two marks, in which each member's port stands on a line of its own with its node's description; all other
 * lines are the administrator's and are kept. Pure.
 *
 * Where there was no file, opensm gave all ports full membership of the default partition. A file that says nothing of
 * it makes them limited members, so a section that begins a file says so, and that the file goes with the section.
 */
#ifndef FABRICD_FABRIC_PARTITIONS_H
#define FABRICD_FABRIC_PARTITIONS_H

#include "fabricd/policy/policy.h"

#define PARTITIONS_MAX (16u << 20) /* bytes of a file */

/* A file; not there: no file, which is not the same as an empty one. */
struct partition_file {
    bool there;
    struct text text;
};
void partition_file_free(struct partition_file *f);
void partition_file_copy(struct partition_file *to, const struct partition_file *from);
bool partition_file_equal(const struct partition_file *a, const struct partition_file *b);

/*
 * The file that p wants. adapters: the ports that were seen, a line "0xGUID DESCRIPTION" each. Members that were seen
 * before and are down now stay. Merging twice gives the same as once.
 */
void partitions_merge(const struct partition_file *old, const struct policy *p, const char *adapters,
                      struct partition_file *out);
/* The file with the section of another; from NULL or without one: with none. */
void partitions_take_section(const struct partition_file *old, const struct partition_file *from,
                             struct partition_file *out);
/* False: the administrator has a partition with the key of a class that has members: why names the line. */
bool partitions_free(const struct partition_file *f, const struct policy *p, const char *name, struct text *why);

#endif
