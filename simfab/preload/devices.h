/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by sysfs.c (paths) and umad.c (descriptors). A path of the host's InfiniBand devices, as used by the program,
 * is "virtual" (/sys/class/infiniband/mlx5_0/...). Its "shadow" is the same path below $SIMFAB_DIR/tree/HOST, where
 * directories are real and files are empty. The entries of directories never change; the contents of files are asked
 * from the engine at each opening.
 */
#ifndef SIMFAB_PRELOAD_DEVICES_H
#define SIMFAB_PRELOAD_DEVICES_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Open /dev/infiniband/umadN or issmN; flags as for open(2). A descriptor or -1 with errno. */
int sfp_umad_open(unsigned n, int flags);
int sfp_issm_open(unsigned n, int flags);

/*
 * True if the path is simulated; virtual gets the normalised path. A relative path is simulated if its directory is in
 * the shadow.
 */
bool sfp_path_is_ours(int dirfd, const char *path, char virtual[PATH_MAX]);

/* The shadow of a virtual path, made now if need be. False with errno: there is no such thing, or no engine. */
bool sfp_path_shadow(const char *virtual, char shadow[PATH_MAX]);

/* The inode number for programs: each simulated path has its own number, though all may be names of one file. */
uint64_t sfp_path_number(const char *virtual);

/*
 * A directory of the shadow just opened (or NULL): from now on readdir() gives its entries in the order of their names.
 */
DIR *sfp_dir_sorted(DIR *dir);

/* Prefix of the memfd name of an open file; the virtual path follows. */
#define SFP_CONTENT_NAME "simfab-sysfs:"

/* open(2) of a virtual path. */
int sfp_path_open(const char *virtual, int flags);

#endif
