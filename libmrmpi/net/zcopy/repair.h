/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams fill places of memory in the order of arrival. After a lost or overtaken datagram, all others lie in wrong
 * places. The repair is a list of moves, each of one datagram's length, that brings every datagram to its place and
 * overwrites none that is still to be moved. Pure.
 */
#ifndef MRMPI_REPAIR_H
#define MRMPI_REPAIR_H

#include <stdint.h>

#define MR_REPAIR_NONE  0xffffu /* nothing of use lies there */
#define MR_REPAIR_ASIDE 0xfffeu /* a spare place, for one datagram */
#define MR_REPAIR_MAX   0xfffeu /* places */

struct mr_move {
    uint16_t from, to;
};

/*
 * lies[i]: the datagram, of n, in place i, with the numbers of the places. Writes the moves, n + n / 2 at most, in
 * their order, and returns their number. Afterwards lies[i] is the result of the moves: i, or MR_REPAIR_NONE if
 * datagram i is missing. Of a datagram in two places the better place counts. work: n entries.
 */
unsigned mr_repair_plan(uint16_t *lies, unsigned n, uint16_t *work, struct mr_move *out);

/* The immediate data of each datagram: its number, and the turn of its queue pair. */
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
