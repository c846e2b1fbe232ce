/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams fill places of memory in the order in which they arrive. After one that was lost or overtaken, all others
 * lie in wrong places. The repair is a list of moves, each of one datagram's length, that brings every datagram to its
 * place and overwrites none that is still to be moved. Pure.
 */
#ifndef MRMPI_REPAIR_H
#define MRMPI_REPAIR_H

#include <stdint.h>

#define MR_REPAIR_NONE  0xffffu /* nothing of use lies there */
#define MR_REPAIR_ASIDE 0xfffeu /* a place beside, for one datagram */
#define MR_REPAIR_MAX   0xfffeu /* places */

struct mr_move {
    uint16_t from, to;
};

/*
 * lies[i]: which of the n datagrams lies in place i, counted as the places are. Writes the moves, n + n / 2 at most, in
 * their order, and returns how many there are. Afterwards lies[i] is what the moves make of it: i, or MR_REPAIR_NONE if
 * datagram i is missing. Of one that lies in two places the better one counts. work: n entries.
 */
unsigned mr_repair_plan(uint16_t *lies, unsigned n, uint16_t *work, struct mr_move *out);

/* What travels with each datagram: which it is, and the turn of the queue pair that it is for. */
static inline uint32_t mr_place_imm(uint16_t turn, unsigned number)
{
    return (uint32_t)turn << 16 | number;
}
static inline uint16_t mr_place_turn(uint32_t imm)
{
    return (uint16_t)(imm >> 16);
}
static inline unsigned mr_place_number(uint32_t imm)
{
    return imm & 0xffff;
}

#endif
