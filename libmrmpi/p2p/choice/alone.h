/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages in new buffers, one at a time. To have their memory registered both sides take a while, one after the
 * other; meanwhile a message that is the only one under way could be copied by both, packet by packet. With others
 * beside it the registrations overlap with transfers. So what is alone is copied up to three times the length
 * (simulated, HDR, copies at 12 GB/s: alone 224 KiB copied 8.8 GB/s, read 5.0; four at a time 10.5 and 13.3). Where
 * messages come the other way, too, each processor would make two copies, unless the program waits for one before the
 * next.
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
    uint64_t received; /* large messages, when the last one was sent */
    bool before;       /* that was alone */
};

/*
 * A large message is to be sent, whose copy takes as long as so many bytes do at the rate that others are judged by. So
 * many transfers are under way, and so many large messages have been received. The program waits for it. Returns the
 * length that its copy is to be judged by: no less than a MR_ALONE_TIMES-th.
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
