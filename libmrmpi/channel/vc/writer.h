/* SPDX-License-Identifier: BSD-3-Clause */
/* Short writes to a peer's window over its virtual channel. */
#ifndef MRMPI_VC_WRITER_H
#define MRMPI_VC_WRITER_H

#include "libmrmpi/base/idioms.h"
#include "libmrmpi/channel/writer.h"

struct mr_vc;

/*
 * For short writes to memory that the peer has advertised as a window's (MR_VC_WINDOW, MR_VC_ATTACHED). They have been
 * copied on return, and are posted as lists: at once if nothing of this writer is under way, when a list is full, by
 * mr_vc_writer_post, and by the next mr_vc_poll(). What is adjacent may become one write. NULL: the channel has none.
 * Until it is closed the caller sees to it that w->open stays small. Then what is under way goes on, and nobody hears
 * of it.
 */
struct mr_vc_writer *mr_vc_writer_open(struct mr_vc *vc, const struct mr_remote *remote);
/* At byte `at` of the memory, in which it fits. 0 < len <= w->most. Negative errno: it has to go another way. */
static inline int mr_vc_write_short(struct mr_vc_writer *w, uint64_t at, const void *data, size_t len)
{
    return __builtin_expect(mr_vc_writer_add(w, at, data, len), 1) ? 0 : w->ops->write(w, at, data, len);
}
/* To other memory of the peer's from now on, which the owner calls serial. False: not there; all is as it was. */
static inline bool mr_vc_writer_aim(struct mr_vc_writer *w, const struct mr_remote *remote, uint32_t serial)
{
    return w->ops->aim(w, remote, serial);
}
static inline void mr_vc_writer_post(struct mr_vc_writer *w) /* what is collected, without waiting for more */
{
    w->ops->post(w);
}
static inline void mr_vc_writer_close(struct mr_vc_writer *w)
{
    w->ops->close(w);
}

#endif
