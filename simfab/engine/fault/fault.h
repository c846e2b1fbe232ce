/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults: what goes wrong with links, nodes and hosts, from the model's list or live (`simfab fault`). A fault writes
 * the state that both planes share (struct port, node, host, link_dir) and is thereafter nothing but that state; only
 * faults that are due later are kept here. Those do not move time: they happen when time gets there.
 *
 * After a fault that changes links virtual time stands still until the subnet manager, if there is one, has dealt with
 * it: its work takes no virtual time, whatever it takes in the real world.
 */
#ifndef SIMFAB_FAULT_H
#define SIMFAB_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/text.h"
#include "simfab/engine/base/words.h"
#include "simfab/engine/fabric/fabric.h"

#define FAULT_DROPS_MAX 8 /* packets that can be named */

enum fault_verb { FAULT_SET, FAULT_LIST, FAULT_CLEAR, FAULT_ALIVE };
enum fault_target { FAULT_LINK, FAULT_NODE, FAULT_HOST };

/* What a command sets; each bit of has names fields of struct fault_cmd. */
enum fault_setting {
    FAULT_UP = 1, /* up, revive */
    FAULT_DOWN = 2,
    FAULT_LOSS = 4,
    FAULT_CORRUPT = 8,
    FAULT_WIDTH = 16,
    FAULT_SPEED = 32,
    FAULT_SLOW = 64,
    FAULT_AT = 128,
    FAULT_AFTER = 256,
    FAULT_FOR = 512,
    FAULT_NOWAIT = 1024,
    FAULT_OVERRUN = 2048,
    FAULT_FC = 4096,
    FAULT_DROP = 8192,
    FAULT_LOSS_OUT = 16384,
};

struct fault_cmd {
    enum fault_verb verb;
    enum fault_target target;
    char name[WORD_MAX]; /* may be a pattern */
    uint32_t port;       /* links; 0: all */
    uint32_t has;        /* enum fault_setting */
    double loss, loss_out, corrupt, overrun, slow;
    uint32_t drop[FAULT_DROPS_MAX]; /* the nth packets that leave the named port from now on; 0 behind the last */
    bool fc_off;                    /* no flow control */
    uint8_t width_denied, speed_denied, ext_speed_denied;
    uint64_t when_ps, for_ps;
};

/* fault_parse.c: pure. False: not a command; t says what is wrong with it. */
bool fault_parse(const char *line, struct fault_cmd *cmd, struct text *t);
/* The words for it again, for lists: "link h1 mlx5_0 1 down". */
void fault_print(const struct fault_cmd *cmd, struct text *t);
/* "1" .. "12" and "SDR" .. "NDR" for what is denied; NULL: nothing is. */
const char *fault_width_name(uint8_t denied);
const char *fault_speed_name(uint8_t denied, uint8_t ext_denied);

/* Those that are due later: fault.c's. */
struct fault_pending {
    uint64_t id, at_ps;
    bool repair; /* the end of a fault that lasts for a time */
    struct fault_cmd cmd;
};

struct faults {
    struct fault_pending *pending; /* in no order: the event queue has it */
    uint32_t num, cap;
    uint64_t next_id;
    uint64_t hold_since_ns; /* real time */
};

/* Is anybody meant by the command, and can it be done? t says what exists if not. */
bool fault_check(const struct sim *s, const struct fault_cmd *c, struct text *t);
/* Now, or when its time has come. c was checked. */
void fault_apply_in_time(struct sim *s, const struct fault_cmd *c);

/* fault_list.c */
void faults_list(const struct sim *s, struct text *t);
/* The fabric ends: notices of the faults for which time has not come far enough. */
void faults_tell_missed(const struct sim *s);

/* fault_model.c: the model's list. -1 with err filled when an item makes no sense in this fabric. */
int faults_init(struct sim *s, struct parse_error *err);
void faults_fini(struct sim *s);

/* Do what the line says. The answer is in t; false: it was refused, and t says why. */
bool fault_command(struct sim *s, const char *line, struct text *t);

/* While the subnet manager deals with the last fault: true, and nobody may move time. */
bool faults_hold_time(struct sim *s);

/* fault_host.c: kill whoever is on the host, at once and without notice. */
void fault_kill_processes(struct sim *s, const struct host *h);

#endif
