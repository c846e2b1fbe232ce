/* SPDX-License-Identifier: BSD-3-Clause */
/* A process environment as data: a malloc'd, NULL-terminated array of malloc'd NAME=VALUE strings, owned by whoever
 * made it. */
#ifndef MRRUN_ENVIRONMENT_H
#define MRRUN_ENVIRONMENT_H

char **environment_copy(char *const *from);
void environment_free(char **env);
const char *environment_get(char *const *env, const char *name);
/* 0 or -1 (out of memory). */
int environment_set(char ***env, const char *name, const char *value);
/* Put a path in front of a list separated by colons. */
int environment_prepend_path(char ***env, const char *name, const char *path);

#endif
