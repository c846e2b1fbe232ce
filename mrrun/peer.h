/* SPDX-License-Identifier: BSD-3-Clause */
/* The user at the other end of a TCP connection within this machine: the kernel's word, not the peer's. */
#ifndef MRRUN_PEER_H
#define MRRUN_PEER_H

#include <stdbool.h>

/* Is the peer of this connected IPv4 socket a process of this user, or of root? False also if the peer has gone. */
bool peer_is_ours(int fd);

#endif
