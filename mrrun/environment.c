/* SPDX-License-Identifier: BSD-3-Clause */
/* Environments of ranks are made before the fork: between fork and exec nothing may be allocated. */
#include "mrrun/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char **environment_copy(char *const *from)
{
    size_t n = 0;

    while (from[n])
        n++;
    char **env = calloc(n + 1, sizeof(*env));
    for (size_t i = 0; env && i < n; i++) {
        env[i] = strdup(from[i]);
        if (!env[i]) {
            environment_free(env);
            return NULL;
        }
    }
    return env;
}

void environment_free(char **env)
{
    for (char **e = env; e && *e; e++)
        free(*e);
    free(env);
}

static char **find(char **env, const char *name)
{
    size_t len = strlen(name);

    while (*env && (strncmp(*env, name, len) || (*env)[len] != '='))
        env++;
    return env;
}

const char *environment_get(char *const *env, const char *name)
{
    char **entry = find((char **)env, name);

    return *entry ? *entry + strlen(name) + 1 : NULL;
}

int environment_set(char ***env, const char *name, const char *value)
{
    char *text;

    if (asprintf(&text, "%s=%s", name, value) < 0)
        return -1;
    char **entry = find(*env, name);
    if (*entry) {
        free(*entry);
        *entry = text;
        return 0;
    }
    size_t n = entry - *env;
    char **grown = realloc(*env, (n + 2) * sizeof(*grown));
    if (!grown) {
        free(text);
        return -1;
    }
    grown[n] = text;
    grown[n + 1] = NULL;
    *env = grown;
    return 0;
}

int environment_prepend_path(char ***env, const char *name, const char *path)
{
    const char *old = environment_get(*env, name);
    char *text;

    if (!old || !*old)
        return environment_set(env, name, path);
    if (asprintf(&text, "%s:%s", path, old) < 0)
        return -1;
    int err = environment_set(env, name, text);
    free(text);
    return err;
}
