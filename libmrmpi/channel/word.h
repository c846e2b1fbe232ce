/* SPDX-License-Identifier: BSD-3-Clause */
/* Words in a peer's memory that its adapter changes, over its virtual channel. */
#ifndef MRMPI_VC_WORD_H
#define MRMPI_VC_WORD_H

#include <errno.h>

#include "libmrmpi/channel/channel.h"

/*
 * Has the peer's adapter change a word of memory that the peer has advertised for that (MR_VC_WORDS), and looks at what
 * lies there then. The peer is not told. w->move.done follows, out of mr_vc_poll() only, and *w and its result are the
 * channel's until then. A change is made once at most: over a connection that breaks it may have been made or not,
 * which only the peer can see. By the time of done it will not be made any more.
 *
 * 0; -EAGAIN: there is no room now; -EOPNOTSUPP: no way leads there that has atomics, or not the one that is wanted;
 * another negative errno.
 */
static inline int mr_vc_word(struct mr_vc *vc, const struct mr_remote *remote, struct mr_vc_word *w)
{
    if (vc->error)
        return vc->error;
    return vc->ops->word ? vc->ops->word(vc, remote, w) : -EOPNOTSUPP;
}

#endif
