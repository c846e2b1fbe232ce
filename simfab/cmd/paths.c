/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the parts are: beside this program in the build tree or in an installation. */
#include "simfab/cmd/paths.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simfab/cmd/say.h"

__attribute__((format(printf, 3, 4))) static bool try_path(char path[PATH_MAX], int mode, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(path, PATH_MAX, fmt, ap);
    va_end(ap);
    return n < PATH_MAX && access(path, mode) == 0;
}

bool find_own_dir(char dir[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", dir, PATH_MAX - 1);
    char *slash;

    if (n < 0) {
        complain("/proc/self/exe: %s", strerror(errno));
        return false;
    }
    dir[n] = 0;
    slash = strrchr(dir, '/');
    *(slash == dir ? slash + 1 : slash) = 0;
    return true;
}

bool find_engine(char path[PATH_MAX])
{
    char own[PATH_MAX];

    if (!find_own_dir(own))
        return false;
    if (try_path(path, X_OK, "%s/simfab-engine", own))
        return true;
    complain("%s is missing: install or build simfab-engine beside simfab", path);
    return false;
}

bool find_preload(char path[PATH_MAX])
{
    char own[PATH_MAX];

    if (!find_own_dir(own))
        return false;
    /* the link that `make install` makes: LIBDIR may be anywhere */
    if (try_path(path, R_OK, "%s/../libexec/mrmpi/lib/libsimfab.so", own)) {
        char *real = realpath(path, NULL);

        if (real && strlen(real) < PATH_MAX)
            strcpy(path, real);
        free(real);
        if (path[strcspn(path, " :")]) { /* LD_PRELOAD is a list */
            complain("%s: programs cannot be made to load a file whose path has a blank or a colon: move it", path);
            return false;
        }
        return true;
    }
    complain("there is no libsimfab.so in %s/../libexec/mrmpi/lib: run make or make install", own);
    return false;
}

bool find_opensm(char path[PATH_MAX])
{
    const char *dirs = getenv("PATH");

    for (const char *p = dirs ? dirs : ""; *p;) {
        size_t n = strcspn(p, ":");

        if (n && try_path(path, X_OK, "%.*s/opensm", (int)n, p))
            return true;
        p += n + (p[n] == ':');
    }
    if (try_path(path, X_OK, "/usr/sbin/opensm"))
        return true;
    complain("opensm is neither in PATH nor in /usr/sbin: install the package opensm, or use --no-opensm");
    return false;
}

bool find_data(const char *kind, const char *suffix, const char *name, char path[PATH_MAX])
{
    char own[PATH_MAX];

    if (try_path(path, R_OK, "%s", name))
        return true;
    if (strchr(name, '/')) {
        complain("%s: %s", name, strerror(errno));
        return false;
    }
    if (!find_own_dir(own))
        return false;
    for (int with = 0; with < 2; with++) {
        const char *end = with ? suffix : "";

        if (try_path(path, R_OK, "%s/../share/mrmpi/%s/%s%s", own, kind, name, end) ||
            try_path(path, R_OK, "%s/../../etc/%s/%s%s", own, kind, name, end) ||  /* build/bin */
            try_path(path, R_OK, "%s/../../../etc/%s/%s%s", own, kind, name, end)) /* build/NAME/bin */
            return true;
    }
    complain("%s: no such file here, nor among the installed %s (%s/../share/mrmpi/%s, %s/../../etc/%s)", name, kind,
             own, kind, own, kind);
    return false;
}

const char *fabric_dir(void)
{
    const char *dir = getenv("SIMFAB_DIR");

    if (dir && *dir)
        return dir;
    complain("SIMFAB_DIR is not set: this works inside `simfab run --topology FILE -- CMD`");
    return NULL;
}
