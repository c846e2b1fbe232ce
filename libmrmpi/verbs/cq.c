/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions: taken in batches and handed to whoever posted the work. The rails are looked at in turn, and the first
 * that has something ends the look: what was found should be acted on before an idle queue is asked again. The next
 * look begins there, STREAK times: often all that goes on goes on over one rail.
 */
#include "libmrmpi/verbs/internal.h"

#include <errno.h>

#include "libmrmpi/base/base.h"

#define BATCH  16
#define STREAK 8

static int status_errno(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_WR_FLUSH_ERR:
        return -ECANCELED;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
        return -EHOSTUNREACH;
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return -ENOBUFS;
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_LOC_PROT_ERR:
        return -EFAULT;
    case IBV_WC_LOC_LEN_ERR:
        return -EMSGSIZE;
    default:
        return -EIO;
    }
}

static __attribute__((noinline)) void translate_error(const struct ibv_wc *in, struct mr_wc *out)
{
    out->error = status_errno(in->status);
    out->flushed = in->status == IBV_WC_WR_FLUSH_ERR;
    out->status = ibv_wc_status_str(in->status);
}

static inline void completion_translate(const struct ibv_wc *in, struct mr_wc *out)
{
    *out = (struct mr_wc){.kind = in->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? MR_WC_LANDED
                                  : in->opcode & IBV_WC_RECV              ? MR_WC_RECEIVED
                                                                          : MR_WC_SENT,
                          .has_imm = in->wc_flags & IBV_WC_WITH_IMM,
                          .imm = be32toh(in->imm_data),
                          .len = in->byte_len};
    if (__builtin_expect(in->status != IBV_WC_SUCCESS, 0))
        translate_error(in, out);
}

static void completion_dispatch(const struct ibv_wc *in)
{
    struct mr_wc wc;
    struct mr_wr *wr;

    completion_translate(in, &wc);
    wr = (struct mr_wr *)(uintptr_t)in->wr_id;
    wr->done(wr, &wc);
}

static inline __attribute__((always_inline)) int poll_rail(struct mr_rail *rail)
{
    struct ibv_wc wc[BATCH];
    int n = ibv_poll_cq(rail->cq, BATCH, wc);

    if (__builtin_expect(n < 0, 0)) {
        mr_log(MR_LOG_ERROR, "rail %u: %s does not answer any more", rail->index, rail->dev->name);
        mr_device_lost(rail->dev);
        return 0;
    }
    for (int i = 0; i < n; i++)
        completion_dispatch(&wc[i]);
    return n;
}

/* What is done may ask for more, or take others back: the list is looked at from its beginning after each. */
static int poll_later(void)
{
    struct mr_later *l = mr_verbs.later;
    int n = 0;

    while (l) {
        if (!l->done(l)) {
            l = l->next;
            continue;
        }
        n++;
        l = mr_verbs.later;
    }
    return n;
}

static inline void next_rail(void)
{
    mr_verbs.poll_streak = 0;
    if (++mr_verbs.next_poll >= mr_verbs.num_rails)
        mr_verbs.next_poll = 0;
}

int mr_verbs_poll(void)
{
    int done;

    if (__builtin_expect(mr_verbs.later != NULL, 0) && (done = poll_later()))
        return done;
    if (__builtin_expect(mr_verbs.rx_due != NULL, 0) && mr_verbs.answered)
        mr_rx_repost();
    for (unsigned k = mr_verbs.num_rails; k; k--) {
        struct mr_rail *rail = &mr_verbs.rail[mr_verbs.next_poll];

        if (__builtin_expect(!rail->dev->fatal, 1) && (done = poll_rail(rail))) {
            if (++mr_verbs.poll_streak == STREAK)
                next_rail();
            return done;
        }
        next_rail();
    }
    if (__builtin_expect(mr_verbs.rx_due != NULL, 0))
        mr_rx_repost();
    return 0;
}
