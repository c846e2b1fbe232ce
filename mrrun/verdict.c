/* SPDX-License-Identifier: BSD-3-Clause */
/* Judging how a rank ended. */
#include "mrrun/verdict.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum verdict verdict_of(bool connected, bool finalized, int wait_status)
{
    if (WIFSIGNALED(wait_status))
        return VERDICT_SIGNAL;
    if (finalized)
        return VERDICT_FINE;
    if (WEXITSTATUS(wait_status))
        return connected ? VERDICT_CODE : VERDICT_PLAIN_CODE;
    return connected ? VERDICT_NO_FINALIZE : VERDICT_FINE;
}

int verdict_exit_status(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

const char *verdict_signal_name(int sig, char buf[VERDICT_SIGNAL_NAME_MAX])
{
    const char *abbrev = sigabbrev_np(sig);

    snprintf(buf, VERDICT_SIGNAL_NAME_MAX, "SIG%s", abbrev ? abbrev : "?");
    return buf;
}

void verdict_describe(enum verdict v, int wait_status, char *buf, size_t cap)
{
    char name[VERDICT_SIGNAL_NAME_MAX];

    switch (v) {
    case VERDICT_SIGNAL:
        snprintf(buf, cap, "was killed by signal %d (%s%s)", WTERMSIG(wait_status),
                 verdict_signal_name(WTERMSIG(wait_status), name), WCOREDUMP(wait_status) ? ", core dumped" : "");
        break;
    case VERDICT_CODE:
        snprintf(buf, cap, "exited with code %d before MPI_Finalize", WEXITSTATUS(wait_status));
        break;
    case VERDICT_NO_FINALIZE:
        snprintf(buf, cap, "exited with code 0 after MPI_Init without MPI_Finalize");
        break;
    case VERDICT_PLAIN_CODE:
    case VERDICT_FINE:
        snprintf(buf, cap, "exited with code %d", WEXITSTATUS(wait_status));
        break;
    }
}
