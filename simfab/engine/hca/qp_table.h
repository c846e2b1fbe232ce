/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allowed changes of a queue pair's state, with required and optional attributes (specification 10.3.1 and the modify
 * queue pair tables of 11.2.5). Pure: states and masks in, yes or no out.
 */
#ifndef SIMFAB_QP_TABLE_H
#define SIMFAB_QP_TABLE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* mask: attributes of the call, as enum ibv_qp_attr_mask. Without IBV_QP_STATE, `to` is the present state. */
bool qp_transition_allowed(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask);

/* Bits per second of a static rate; 0 for IBV_RATE_MAX, -1 for an unknown code. */
int64_t qp_static_rate_bps(unsigned code);

/* The delay of a receiver-not-ready timer code (specification, table 45). Codes have 5 bits. */
uint64_t qp_rnr_delay_ps(unsigned code);

#endif
