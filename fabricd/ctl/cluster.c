/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders through the scheduler: see cluster.h. */
#include "fabricd/ctl/cluster.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAID_MAX 65536 /* bytes of the script's that are handed on in JSON */

/* Returns if the script cannot be run. */
static void exec_cluster_script(const char *const words[])
{
    char exe[PATH_MAX], script[PATH_MAX + 32];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    exe[n > 0 ? n : 0] = 0;
    char *slash = strrchr(exe, '/');
    if (slash)
        *slash = 0;
    snprintf(script, sizeof(script), "%s/../libexec/mrmpi/fabric-job", exe);
    if (slash)
        execv(script, (char *const *)words);
    execvp("fabric-job", (char *const *)words);
    fprintf(stderr, "fabricctl: fabric-job: %s; it belongs in libexec/mrmpi\n", strerror(errno));
}

/* The script's output and errors are kept for the answer. */
static int run_and_tell(const struct answer_to *to, const char *const words[])
{
    int said[2], status = -1;
    struct text text = {0};
    if (pipe(said))
        return answer_outcome(to, 1, strerror(errno), "", "");
    pid_t pid = fork();
    if (!pid) {
        dup2(said[1], STDOUT_FILENO);
        dup2(said[1], STDERR_FILENO);
        close(said[0]);
        close(said[1]);
        exec_cluster_script(words);
        _exit(1);
    }
    close(said[1]);
    text_read_fd(&text, said[0], SAID_MAX);
    close(said[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    int rc = pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    answer_outcome(to, rc, rc ? "not all of the job's nodes have done it" : NULL, text_str(&text), "");
    text_free(&text);
    return rc;
}

int cluster_give(const struct answer_to *to, const char *job, const char *class_name, const char *small_ratio)
{
    const char *const words[] = {"fabric-job", "cluster", job, class_name, small_ratio, NULL};
    fflush(stdout);
    if (to->json)
        return run_and_tell(to, words);
    exec_cluster_script(words);
    return 1;
}
