/* SPDX-License-Identifier: BSD-3-Clause */
/* The meaning of a rank's end for the job. Pure. */
#ifndef MRRUN_VERDICT_H
#define MRRUN_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

enum verdict {
    VERDICT_FINE,        /* the job goes on */
    VERDICT_SIGNAL,      /* killed by a signal */
    VERDICT_CODE,        /* exited with a nonzero code before MPI_Finalize */
    VERDICT_PLAIN_CODE,  /* exited with a nonzero code and never called MPI_Init */
    VERDICT_NO_FINALIZE, /* called MPI_Init, exited with 0 without MPI_Finalize */
};

enum verdict verdict_of(bool connected, bool finalized, int wait_status);

/* As a shell would have it: the exit code, or 128 + signal. */
int verdict_exit_status(int wait_status);

/* "was killed by signal 11 (SIGSEGV, core dumped)" and the like. */
void verdict_describe(enum verdict v, int wait_status, char *buf, size_t cap);

/* "SIGINT"; "SIG?" for unnamed signals. Returns buf. */
enum { VERDICT_SIGNAL_NAME_MAX = 16 };
const char *verdict_signal_name(int sig, char buf[VERDICT_SIGNAL_NAME_MAX]);

#endif
