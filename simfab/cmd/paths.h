/* SPDX-License-Identifier: BSD-3-Clause */
/* Places of files. The caller has the memory of a result; false: not found, and complained. */
#ifndef SIMFAB_CMD_PATHS_H
#define SIMFAB_CMD_PATHS_H

#include <limits.h>
#include <stdbool.h>

bool find_own_dir(char dir[PATH_MAX]); /* the directory of this program */
bool find_engine(char path[PATH_MAX]);
bool find_preload(char path[PATH_MAX]);
bool find_opensm(char path[PATH_MAX]);
/* kind is "topologies" or "models", suffix ".net" or ".yaml"; name a path or the bare name of an installed file. */
bool find_data(const char *kind, const char *suffix, const char *name, char path[PATH_MAX]);
/* $SIMFAB_DIR, or NULL and a complaint that tells how to get inside a fabric. */
const char *fabric_dir(void);

#endif
