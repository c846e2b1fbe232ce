/* SPDX-License-Identifier: BSD-3-Clause */
/* Agents of programs: registrations, requests under way. */
#ifndef SIMFAB_AGENT_H
#define SIMFAB_AGENT_H

#include <rdma/ib_user_mad.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mad_packet;
struct port;
struct umad_file;

/* Each returns 0 or an errno. */
int agent_register(struct umad_file *u, const struct ib_user_mad_reg_req2 *req, uint32_t *id);
int agent_unregister(struct umad_file *u, uint32_t id);
int agent_write(struct umad_file *u, const uint8_t *buf, size_t bytes);

void agents_free(struct umad_file *u);

/* Delivers a datagram to its agent; false: there is none. */
bool agent_deliver(struct port *at, const struct mad_packet *pkt);

#endif
