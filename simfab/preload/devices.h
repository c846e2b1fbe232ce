/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between sysfs.c (paths) and umad.c (descriptors). A path of the host's InfiniBand devices, as the program says it,
 * is "virtual" (/sys/class/infiniband/mlx5_0/...); its "shadow" is the same path below $SIMFAB_DIR/tree/HOST, where
 * directories are real and files are empty: what directories hold never changes, what files hold is asked afresh.
 */
#ifndef SIMFAB_PRELOAD_DEVICES_H
#define SIMFAB_PRELOAD_DEVICES_H

#include <dirent.h>
#include <limits.h>

#include "simfab/preload/preload.h"

/* Open /dev/infiniband/umadN or issmN; flags as for open(2). A descriptor or -1 with errno. */
int sfp_umad_open(unsigned n, int flags);
int sfp_issm_open(unsigned n, int flags);

/*
 * Is the path one of ours? Then virtual gets it, normalised. A relative path is, if its directory is in the shadow.
 */
bool sfp_path_is_ours(int dirfd, const char *path, char virtual[PATH_MAX]);

/* The shadow of a virtual path, made now if need be. False with errno: there is no such thing, or no engine. */
bool sfp_path_shadow(const char *virtual, char shadow[PATH_MAX]);

/* The inode's number that programs see: each path of ours has its own, though all may be names of one file. */
uint64_t sfp_path_number(const char *virtual);

/*
 * A directory of the shadow just opened (or NULL): from now on readdir() gives its entries in the order of their names.
 */
DIR *sfp_dir_sorted(DIR *dir);

/* The memory that an open file is: its name begins so, and goes on with the virtual path. */
#define SFP_CONTENT_NAME "simfab-sysfs:"

/* open(2) of a virtual path. */
int sfp_path_open(const char *virtual, int flags);

#endif
