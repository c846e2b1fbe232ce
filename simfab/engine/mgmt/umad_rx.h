/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams for programs. */
#ifndef SIMFAB_UMAD_RX_H
#define SIMFAB_UMAD_RX_H

#include <rdma/ib_user_mad.h>
#include <stddef.h>
#include <stdint.h>

struct umad_file;

/* Queues the result of the program's next read. */
void umad_push(struct umad_file *u, const struct ib_user_mad_hdr *hdr, const uint8_t *mad, size_t bytes);
/* Sends datagrams as far as the program's socket has room. */
void umad_flush(struct umad_file *u);
/* The file is closed: free the queue. */
void umad_drop(struct umad_file *u);

#endif
