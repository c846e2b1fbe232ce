/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failed processes, for the files of p2p/: the one list of them, agreements among the living, and the packets of
 * revocations. Other subsystems use p2p.h.
 */
#ifndef MRMPI_P2P_FAULT_H
#define MRMPI_P2P_FAULT_H

#include "libmrmpi/p2p/p2p.h"

struct mr_vc;
struct mr_hdr;

/* ---- lost.c ---- */
void mr_lost_init(void); /* the launcher's news of ends are taken by polls */
void mr_lost_free(void);
bool mr_lost_note(int world_rank); /* at the end of the list. False: no memory */
void mr_lost_forget(int number);   /* a guest that no communicator names */
/* Members of c, and of the other group of an intercommunicator, by rank or by world rank; refers to it. NULL: no memory
 */
struct mr_group *mr_comm_everybody(const struct mr_comm *c);
/* A communicator's name in packets beside its context, which other groups may have had before. */
uint64_t mr_group_name(const struct mr_group *g);

/* ---- agree.c ---- */
void mr_agree_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
void mr_agree_lost(int world_rank);
void mr_agree_forget(int number);
void mr_agree_free(void);

/* ---- flood.c ---- */
/* Sends REVOKE to some of the members, who pass it on: all living members get one. */
void mr_flood(const struct mr_comm *c);

#endif
