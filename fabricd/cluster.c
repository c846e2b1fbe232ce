/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders through the scheduler: see cluster.h. */
#include "fabricd/cluster.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int cluster_give(const char *job, const char *class_name)
{
    char exe[PATH_MAX], script[PATH_MAX + 32];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    exe[n > 0 ? n : 0] = 0;
    char *slash = strrchr(exe, '/');
    if (slash)
        *slash = 0;
    snprintf(script, sizeof(script), "%s/../lib/fabric-job", exe);
    fflush(stdout);
    if (slash)
        execl(script, script, "cluster", job, class_name, NULL);
    execlp("fabric-job", "fabric-job", "cluster", job, class_name, NULL);
    fprintf(stderr, "fabricctl: fabric-job: %s; it is installed beside the plugin for Slurm\n", strerror(errno));
    return 1;
}
