/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages in new buffers, one at a time. Registering their memory takes time at both sides, one after the other;
 * meanwhile a message without others under way could be copied by both, packet by packet. With other messages beside
 * it, the registrations overlap with transfers. So a single message is copied up to three times the length (simulated,
 * HDR, copies at 12 GB/s: alone 224 KiB copied 8.8 GB/s, read 5.0; four at a time 10.5 and 13.3). If messages come the
 * other way, too, each processor would make two copies, unless the program waits for one message before the next.
 *
 * Pure: one struct for all peers of a process.
 */
#ifndef MRMPI_ALONE_H
#define MRMPI_ALONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_ALONE_TIMES 3

struct mr_alone {
    uint64_t received; /* large messages received, when the last one was sent */
    bool before;       /* the last message was alone */
};

/*
 * A large message is to be sent, whose copy takes as long as copies_as bytes at the standard rate. under_way transfers
 * are under way, and `received` large messages have been received. waited: the program waits for the message. Returns
 * the length by which to judge its copy: at least 1/MR_ALONE_TIMES of it.
 */
static inline size_t mr_alone_weigh(struct mr_alone *a, size_t len, size_t copies_as, unsigned under_way,
                                    uint64_t received, bool waited)
{
    bool alone = !under_way && (waited || received == a->received), again = alone && (a->before || waited);
    size_t least = len / MR_ALONE_TIMES;

    a->received = received;
    a->before = alone;
    return again || copies_as < least ? least : copies_as;
}

#endif
