/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between mrrun and its agents: frames on a byte stream, and their contents. Pure. A frame is a header of
 * WIRE_HEADER bytes (little endian: length of the body, host, kind, 0, argument) and a body. Texts in bodies end with a
 * NUL byte. Every reader checks lengths and ends; an invalid frame ends the connection.
 *
 * The first frame to an agent is WIRE_START. Its header and the version, the first number of its body, are the same in
 * all versions. The agent answers with a line of text (WIRE_MARK, the secret of WIRE_START, its version), because a
 * login shell may have printed before; frames follow.
 */
#ifndef MRRUN_WIRE_H
#define MRRUN_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    WIRE_VERSION = 2,
    WIRE_HEADER = 12,
    WIRE_DATA_MAX = 32768,
    WIRE_BODY_MAX = 4 << 20, /* an environment, a list of hosts */
    WIRE_SECRET = 32,        /* digits */
    WIRE_HOSTS_MAX = 4096,
    WIRE_ALL = 0xffff, /* as the host: all */
};
#define WIRE_MARK "mrrun-agent "

enum wire_kind {
    /* between neighbours, both ways */
    WIRE_PING = 1, /* I am alive */
    /* from mrrun to agents */
    WIRE_START,    /* body: struct wire_start */
    WIRE_PART,     /* arg: number; body: struct wire_part */
    WIRE_RANK,     /* arg: rank; body: struct wire_rank */
    WIRE_RUN,      /* start the ranks; body: struct wire_run */
    WIRE_SIGNAL,   /* arg: signal; body: the rank, or none: all */
    WIRE_KILL_ALL, /* the ranks' descendants, too */
    WIRE_PAUSE,    /* arg 1: expect no pings, send none; 0: do again */
    WIRE_ASK,      /* arg: the number of the inquiry */
    WIRE_ENDED,    /* arg: a rank of the job; note its end for the ranks of the host */
    WIRE_LOOK,     /* asks for ends under way; arg: the number of the question */
    WIRE_STRANGE,  /* look for programs of other MPIs; body: ranks */
    WIRE_FETCH,    /* arg: rank; its record is to come as a channel */
    WIRE_LEAVE,    /* clear away, and end */
    /* from agents to mrrun */
    WIRE_READY,   /* the agent of this host is up */
    WIRE_LOST,    /* the agent of this host is not, or no longer; body: why */
    WIRE_STARTED, /* arg: rank; body: pid, binding */
    WIRE_UNABLE,  /* arg: rank; its program was not started; body: errno, why */
    WIRE_EXIT,    /* arg: rank; body: its wait status */
    WIRE_ANSWER,  /* arg: rank; body: its answer to an inquiry */
    WIRE_STATE,   /* arg: rank; body: the state letter of its process */
    WIRE_ENDINGS, /* arg: the number of the question; body: pairs of rank and enum ending; others: ENDING_NOT */
    WIRE_FOUND,   /* arg: rank; body: struct stranger's pid, program, library, MPI */
    WIRE_SAY,     /* body: a line for mrrun's standard error */
    /* channels, both ways; arg: the channel */
    WIRE_DATA,
    WIRE_TAKEN, /* body: number of bytes passed on */
    WIRE_END,   /* nothing comes any more, and nothing is wanted */
    WIRE_KINDS,
};

/* Channels of a host: those of ranks, and connections to the PMIx server. */
enum wire_channel { WIRE_IN, WIRE_OUT, WIRE_ERR, WIRE_RECORD };
#define WIRE_CHANNEL(rank, which) ((uint32_t)(rank)*4 + (uint32_t)(which))
#define WIRE_PMIX                 0x80000000u /* and the number of the connection */
enum { WIRE_PMIX_MAX = 16384 };

struct wire_frame {
    enum wire_kind kind;
    unsigned host; /* the destination or source; WIRE_ALL */
    uint32_t arg;
    const char *body;
    size_t len;
};

void wire_header(const struct wire_frame *f, unsigned char out[WIRE_HEADER]);
/* Length of the first frame in the bytes; 0: incomplete, *need bytes are wanted; -1: invalid. */
ssize_t wire_decode(const void *bytes, size_t len, struct wire_frame *f, size_t *need);

/* ---- bodies ---- */

struct wire_text {
    char *bytes; /* free() */
    size_t len, room;
};

void wire_put(struct wire_text *t, const void *bytes, size_t len);
void wire_put_number(struct wire_text *t, uint32_t number);
void wire_put_string(struct wire_text *t, const char *text);
/* Their number, then each. */
void wire_put_strings(struct wire_text *t, char *const *list, size_t count);

struct wire_reader {
    const char *at;
    size_t left;
    bool bad;
};

struct wire_reader wire_read(const struct wire_frame *f);
uint32_t wire_get_number(struct wire_reader *r);
/* Inside of the body; "" if there is none. */
const char *wire_get_string(struct wire_reader *r);
/* NULL-terminated, free(); the strings are inside of the body. NULL: bad, or no memory. */
char **wire_get_strings(struct wire_reader *r, size_t most, size_t *count);
/* All has been read, and nothing was wrong. */
bool wire_whole(const struct wire_reader *r);

/* An agent's configuration, also for starting others. Strings and lists are inside the frame's body. */
struct wire_start {
    uint32_t version;
    const char *secret;  /* WIRE_SECRET characters */
    const char *scratch; /* mrrun's directory: in the values of variables the agent's own stands for it */
    const char *job_id;
    const char *nspace; /* of PMIx */
    uint32_t window;    /* of each channel */
    char **launcher;    /* words */
    const char *mrrun;  /* path of the program, on all hosts */
    char **host;        /* the agent's own, then those below */
    uint32_t *number;   /* of each */
    size_t num_hosts;
};

struct wire_part {
    const char *dir, *program; /* program: as named by the user */
    uint32_t mpi;              /* enum program_mpi, by mrrun's look */
    char **args, **env;
};

struct wire_rank {
    uint32_t part, reads; /* reads: has standard input */
    char **env;           /* of its own, NAME=VALUE, and NAME: not set */
};

struct wire_run {
    uint32_t ranks; /* of the job, on all hosts */
    uint32_t pmix_port;
    uint32_t bind_to, bind_units, bind_map; /* struct binding_wish */
    const char *simfab;                     /* path of the command if hosts are simulated, or "" */
};

void wire_put_start(struct wire_text *t, const struct wire_start *s);
/* These return false for an invalid body. Results with lists must be cleared after true. */
bool wire_get_start(const struct wire_frame *f, struct wire_start *s);
void wire_clear_start(struct wire_start *s);
void wire_put_part(struct wire_text *t, const struct wire_part *p);
bool wire_get_part(const struct wire_frame *f, struct wire_part *p);
void wire_clear_part(struct wire_part *p);
void wire_put_rank(struct wire_text *t, const struct wire_rank *k);
bool wire_get_rank(const struct wire_frame *f, struct wire_rank *k);
void wire_clear_rank(struct wire_rank *k);
void wire_put_run(struct wire_text *t, const struct wire_run *r);
bool wire_get_run(const struct wire_frame *f, struct wire_run *r);

#endif
