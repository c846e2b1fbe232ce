/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults of links, nodes and hosts, from the model's list or live (`simfab fault`). A fault writes the state shared by
 * both planes (struct port, node, host, link_dir), and has no state besides. Only later faults are kept here. They do
 * not move time: they happen when time gets there.
 *
 * After a fault that changes links, virtual time stands still until the subnet manager, if there is one, has handled
 * the change: the manager's work takes no virtual time, whatever its real time.
 */
#ifndef SIMFAB_FAULT_H
#define SIMFAB_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/text.h"
#include "simfab/engine/base/words.h"
#include "simfab/engine/fabric/fabric.h"

#define FAULT_DROPS_MAX 8 /* most packets in a list */

enum fault_verb { FAULT_SET, FAULT_LIST, FAULT_CLEAR, FAULT_ALIVE };
enum fault_target { FAULT_LINK, FAULT_NODE, FAULT_HOST };

/* Settings of a command; each bit of `has` names fields of struct fault_cmd. */
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

/* fault_parse.c: pure. False: not a valid command; t has the error. */
bool fault_parse(const char *line, struct fault_cmd *cmd, struct text *t);
/* The words for it again, for lists: "link h1 mlx5_0 1 down". */
void fault_print(const struct fault_cmd *cmd, struct text *t);
/* "1" .. "12" and "SDR" .. "NDR" for the denied widths and speeds; NULL: none denied. */
const char *fault_width_name(uint8_t denied);
const char *fault_speed_name(uint8_t denied, uint8_t ext_denied);

/* Later faults: fault.c's. */
struct fault_pending {
    uint64_t id, at_ps;
    bool repair; /* the end of a fault that lasts for a time */
    struct fault_cmd cmd;
};

struct faults {
    struct fault_pending *pending; /* unordered: the event queue has the order */
    uint32_t num, cap;
    uint64_t next_id;
    uint64_t hold_since_ns; /* real time */
};

/* Checks that the command has targets and can be done. If not, t lists the existing targets. */
bool fault_check(const struct sim *s, const struct fault_cmd *c, struct text *t);
/* Now, or when its time has come. c was checked. */
void fault_apply_in_time(struct sim *s, const struct fault_cmd *c);

/* fault_list.c */
void faults_list(const struct sim *s, struct text *t);
/* At the end of the fabric: notices of faults whose time was not reached. */
void faults_tell_missed(const struct sim *s);

/* fault_model.c: the model's list. -1 with err filled when an item makes no sense in this fabric. */
int faults_init(struct sim *s, struct parse_error *err);
void faults_fini(struct sim *s);

/* Does the command in the line. The answer is in t; false: refused, with the reason in t. */
bool fault_command(struct sim *s, const char *line, struct text *t);

/* While the subnet manager deals with the last fault: true, and time must not move. */
bool faults_hold_time(struct sim *s);

/* fault_host.c: kill whoever is on the host, at once and without notice. */
void fault_kill_processes(struct sim *s, const struct host *h);

#endif
