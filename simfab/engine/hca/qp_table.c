/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of the queue pair's state machine and of coded attributes. */
#include "simfab/engine/hca/qp_table.h"

#include <infiniband/verbs.h>
#include <stddef.h>

enum { RC, UC, UD, TYPES };

struct transition {
    uint8_t from, to;
    struct {
        int required, optional;
    } of[TYPES];
};

#define NEVER       (1 << 30) /* no attribute: queue pairs of this type do not come here */
#define ADDRESSED   (IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define PATH        (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define MIGRATION   (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)
#define RESPONDER   (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define PERSISTENCE (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

/* Attributes allowed in every change into RTS, and within RTS. */
#define RUNNING_RC (IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | MIGRATION | IBV_QP_MIN_RNR_TIMER)
#define RUNNING_UC (IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | MIGRATION)
#define RUNNING_UD (IBV_QP_CUR_STATE | IBV_QP_QKEY)

/* Besides these, every state but RESET may go to ERR, and every state to RESET, without any attribute. */
static const struct transition transitions[] = {
    {IBV_QPS_RESET,
     IBV_QPS_INIT,
     {[RC] = {ADDRESSED | IBV_QP_ACCESS_FLAGS, 0},
      [UC] = {ADDRESSED | IBV_QP_ACCESS_FLAGS, 0},
      [UD] = {ADDRESSED | IBV_QP_QKEY, 0}}},
    {IBV_QPS_INIT,
     IBV_QPS_INIT,
     {[RC] = {0, ADDRESSED | IBV_QP_ACCESS_FLAGS},
      [UC] = {0, ADDRESSED | IBV_QP_ACCESS_FLAGS},
      [UD] = {0, ADDRESSED | IBV_QP_QKEY}}},
    {IBV_QPS_INIT,
     IBV_QPS_RTR,
     {[RC] = {PATH | RESPONDER, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
      [UC] = {PATH, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
      [UD] = {0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}}},
    {IBV_QPS_RTR,
     IBV_QPS_RTS,
     {[RC] = {IBV_QP_SQ_PSN | PERSISTENCE, RUNNING_RC},
      [UC] = {IBV_QP_SQ_PSN, RUNNING_UC},
      [UD] = {IBV_QP_SQ_PSN, RUNNING_UD}}},
    {IBV_QPS_RTS, IBV_QPS_RTS, {[RC] = {0, RUNNING_RC}, [UC] = {0, RUNNING_UC}, [UD] = {0, RUNNING_UD}}},
    {IBV_QPS_RTS,
     IBV_QPS_SQD,
     {[RC] = {0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
      [UC] = {0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
      [UD] = {0, IBV_QP_EN_SQD_ASYNC_NOTIFY}}},
    {IBV_QPS_SQD, IBV_QPS_RTS, {[RC] = {0, RUNNING_RC}, [UC] = {0, RUNNING_UC}, [UD] = {0, RUNNING_UD}}},
    {IBV_QPS_SQD,
     IBV_QPS_SQD,
     {[RC] = {0, ADDRESSED | IBV_QP_AV | PERSISTENCE | RESPONDER | MIGRATION | IBV_QP_ACCESS_FLAGS},
      [UC] = {0, IBV_QP_PKEY_INDEX | IBV_QP_AV | MIGRATION | IBV_QP_ACCESS_FLAGS},
      [UD] = {0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY}}},
    {IBV_QPS_SQE,
     IBV_QPS_RTS,
     {[RC] = {NEVER, 0}, [UC] = {0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS}, [UD] = {0, RUNNING_UD}}},
};

static const struct transition *find_transition(enum ibv_qp_state from, enum ibv_qp_state to)
{
    for (size_t i = 0; i < sizeof transitions / sizeof *transitions; i++)
        if (transitions[i].from == from && transitions[i].to == to)
            return &transitions[i];
    return NULL;
}

bool qp_transition_allowed(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
    unsigned t = type == IBV_QPT_RC ? RC : type == IBV_QPT_UC ? UC : UD;
    int given = mask & ~IBV_QP_STATE;
    const struct transition *row;

    if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
        return !given;
    row = find_transition(from, to);
    if (!row || row->of[t].required == NEVER)
        return false;
    return (given & row->of[t].required) == row->of[t].required &&
           !(given & ~(row->of[t].required | row->of[t].optional));
}

int64_t qp_static_rate_bps(unsigned code)
{
    /* data rate of a link at that signalling rate: 8 of 10 bits up to QDR, 64 of 66 after */
    static const int mbps[] = {
        [IBV_RATE_MAX] = 0,
        [1] = -1,
        [IBV_RATE_2_5_GBPS] = 2000,
        [IBV_RATE_5_GBPS] = 4000,
        [IBV_RATE_10_GBPS] = 8000,
        [IBV_RATE_20_GBPS] = 16000,
        [IBV_RATE_30_GBPS] = 24000,
        [IBV_RATE_40_GBPS] = 32000,
        [IBV_RATE_60_GBPS] = 48000,
        [IBV_RATE_80_GBPS] = 64000,
        [IBV_RATE_120_GBPS] = 96000,
        [IBV_RATE_14_GBPS] = 13636,
        [IBV_RATE_28_GBPS] = 27272,
        [IBV_RATE_56_GBPS] = 54545,
        [IBV_RATE_112_GBPS] = 109090,
        [IBV_RATE_168_GBPS] = 163636,
        [IBV_RATE_25_GBPS] = 25000,
        [IBV_RATE_50_GBPS] = 50000,
        [IBV_RATE_100_GBPS] = 100000,
        [IBV_RATE_200_GBPS] = 200000,
        [IBV_RATE_300_GBPS] = 300000,
        [IBV_RATE_400_GBPS] = 400000,
        [IBV_RATE_600_GBPS] = 600000,
        [IBV_RATE_800_GBPS] = 800000,
        [IBV_RATE_1200_GBPS] = 1200000,
    };

    if (code >= sizeof mbps / sizeof *mbps || mbps[code] < 0)
        return -1;
    return mbps[code] * (int64_t)1000000;
}

uint64_t qp_rnr_delay_ps(unsigned code)
{
    /* in units of 10 us; two codes for each power of two from 0.04 ms on */
    static const uint32_t units[32] = {65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                       48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                       2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

    return units[code & 31] * 10000000ull;
}
