/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi: shared by the parts of the PMI client. pmi.c is the launcher's client; pmi_wire.c is its connection; pmi1.c and
 * pmi2.c are the two protocols. Private to the folder. Functions return 0 or a negative errno; the function that finds
 * a fault describes it with mr_launch_fail() and names the launcher.
 */
#ifndef MRMPI_LAUNCH_PMI_H
#define MRMPI_LAUNCH_PMI_H

#include <stdbool.h>
#include <stddef.h>

#include "libmrmpi/launch/pmi_text.h"

enum {
    MR_PMI_KEY_MAX = 64,     /* with its end, as in PMI-2 */
    MR_PMI_VALUE_MAX = 1024, /* the same */
    MR_PMI_NAME_MAX = 256,   /* of a job */
    MR_PMI_RANKS_MAX = 1 << 24,
};

/* The connection, and facts about the job. */
struct mr_pmi {
    int fd;
    const char *launcher; /* in messages, as "Slurm's srun" */
    const struct mr_pmi_protocol *protocol;
    int pause_ms;    /* the longest that a read waits at a time; 0: no limit */
    bool questioned; /* an open fence also waits for the answer to fence_question */
    size_t have;     /* received and not read yet: in[0 .. have-1] */
    char in[MR_PMI_MESSAGE_MAX + 1];
    char message[MR_PMI_MESSAGE_MAX + 1]; /* the last message read, or the message being written */

    int rank, size;
    int appnum;                /* negative: the launcher does not say */
    char job[MR_PMI_NAME_MAX]; /* PMI-1: the name of its space of keys */
    size_t key_max, value_max; /* with their ends */
};

/* How long to wait for an answer. */
enum mr_pmi_wait {
    MR_PMI_SOON,  /* as MRMPI_LAUNCHER_TIMEOUT_S says */
    MR_PMI_PAUSE, /* -EAGAIN after pause_ms without a byte; a partly received answer is kept */
    MR_PMI_NOW,   /* the same without waiting */
};

/* Messages that may come at an open fence. */
enum { MR_PMI_FENCE_OVER = 0, MR_PMI_FENCE_LIFE = 1 };

struct mr_launch_order;

struct mr_pmi_protocol {
    const char *name;
    int version, subversion;
    int (*begin)(struct mr_pmi *pmi); /* after the versions were agreed on: job, maxima; PMI-2: rank and size too */
    int (*put)(struct mr_pmi *pmi, const char *key, const char *value);
    int (*fence_ask)(struct mr_pmi *pmi);
    int (*fence_question)(struct mr_pmi *pmi);                      /* anything that a live launcher answers at once */
    int (*fence_answer)(struct mr_pmi *pmi, enum mr_pmi_wait wait); /* MR_PMI_FENCE_OVER, or _LIFE: that question's */
    int (*get)(struct mr_pmi *pmi, const char *key, char *value, size_t cap); /* -ENOENT: there is none */
    int (*mapping)(struct mr_pmi *pmi, char *value, size_t cap);              /* -ENOENT: the launcher has none */
    int (*universe)(struct mr_pmi *pmi);                                      /* 0: the launcher does not say */
    int (*start)(struct mr_pmi *pmi, const struct mr_launch_order *order);    /* NULL: the protocol is not used so */
    int (*abort)(struct mr_pmi *pmi, int code, const char *why);
    int (*finish)(struct mr_pmi *pmi);
};

#define MR_PMI_PARENT_KEY "mrmpi-parent"

extern const struct mr_pmi_protocol mr_pmi_protocol1, mr_pmi_protocol2;

/* ---- pmi_wire.c ---- */

/* Connects by PMI_FD or PMI_PORT, agrees on the protocol's version; rank and size are those of the environment. */
int mr_pmi_open(struct mr_pmi *pmi);
void mr_pmi_close(struct mr_pmi *pmi);

int mr_pmi_send(struct mr_pmi *pmi, const char *data, size_t len);
/* Into pmi->message, without its end. */
int mr_pmi_read_line(struct mr_pmi *pmi, enum mr_pmi_wait wait);
int mr_pmi_read_frame(struct mr_pmi *pmi, enum mr_pmi_wait wait);

/* Reports that the launcher gave no answer in time, and returns -ETIMEDOUT. */
int mr_pmi_silent(struct mr_pmi *pmi);

/* Reports that pmi->message is no answer to the question, and returns -EPROTO. */
int mr_pmi_nonsense(struct mr_pmi *pmi, const char *asked);

#endif
