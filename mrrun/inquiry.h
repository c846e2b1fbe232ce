/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asks the ranks of a job for the calls they wait in (libmrmpi/api/inquiry.h), and puts the answers in words: at
 * SIGQUIT (Ctrl-\), and before --timeout ends a job. Waiting ranks answer within some hundredths of a second. Computing
 * ranks do not answer, and the report describes the state of their processes instead.
 */
#ifndef MRRUN_INQUIRY_H
#define MRRUN_INQUIRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A rank, as presently known to the job. */
struct inquiry_rank {
    pid_t pid;
    bool running, connected, finalized;
    bool far;   /* its host's agent says */
    char state; /* the state letter of its process */
};

struct inquiry {
    const char *directory;          /* the job's scratch directory */
    struct mr_inquiry_board *board; /* in a file there; NULL: it could not be made */
    uint32_t ranks;                 /* of which the ends have room */
    bool simulated;                 /* the ranks' hosts are */
    uint64_t until_ms;              /* time limit for answers; 0: no inquiry */
    bool said;                      /* the report goes to mrrun's standard error */
    bool ends;                      /* the job is to be ended after the report */
};

/* The directory is there, the ranks are not. Without memory or room there are no inquiries. ranks: of the job. */
void inquiry_open(struct inquiry *q, const char *directory, bool simulated, int ranks);
void inquiry_close(struct inquiry *q);
/* The number of the latest inquiry; 0: there was none. */
uint32_t inquiry_number(const struct inquiry *q);
/* Tells the ranks of this host of a rank's end. Each end is told once. */
void inquiry_tell_end(struct inquiry *q, int rank);

/* Asks. False: no rank can answer. */
bool inquiry_ask(struct inquiry *q, const struct inquiry_rank *rank, int ranks, uint64_t now_ms);
/* The time of the next call of inquiry_report; 0: no inquiry. */
uint64_t inquiry_due_ms(const struct inquiry *q, uint64_t now_ms);
/* The report, when all answers are there or the time is up; free(). NULL: not yet, or no inquiry. */
char *inquiry_report(struct inquiry *q, const struct inquiry_rank *rank, int ranks, uint64_t now_ms);

/* ---- for an agent, whose ranks are asked by mrrun ---- */

/* mrrun has asked. False: the ranks cannot be. */
bool inquiry_pass(struct inquiry *q, uint32_t number);
/* Lets the rank check for an inquiry. */
void inquiry_wake(pid_t pid);
/* A rank's answer to the number that is asked now; free(). NULL: there is none. */
char *inquiry_read(const struct inquiry *q, int rank, size_t *len);
/* The state letter of a process; '?' if it cannot be read. */
char inquiry_state(pid_t pid);

#endif
