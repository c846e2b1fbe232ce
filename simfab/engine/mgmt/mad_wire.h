/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams on the wire: big-endian fields at bit offsets counted from the first byte's highest bit, as in the
 * specification's tables. A field is written as a pair "offset, width", so a table's line is one macro.
 */
#ifndef SIMFAB_WIRE_H
#define SIMFAB_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define MAD_BYTES 256
#define MAD_HDR   24
#define RMPP_HDR  36 /* MAD header and RMPP header */

/* fields of every MAD */
#define MAD_BASE_VERSION  0, 8
#define MAD_CLASS         8, 8
#define MAD_CLASS_VERSION 16, 8
#define MAD_METHOD        24, 8
#define MAD_STATUS        32, 16
#define MAD_TID           64, 64
#define MAD_ATTR          128, 16
#define MAD_MODIFIER      160, 32

/* directed-route SMPs; SMP_D is the direction bit: 1 on the way back */
#define SMP_D       32, 1
#define SMP_STATUS  33, 15
#define SMP_HOP_PTR 48, 8
#define SMP_HOP_CNT 56, 8
#define SMP_MKEY    192, 64
#define SMP_DR_SLID 256, 16
#define SMP_DR_DLID 272, 16

#define SMP_DATA         64 /* byte offsets */
#define SMP_DATA_BYTES   64
#define SMP_INITIAL_PATH 128
#define SMP_RETURN_PATH  192
#define GMP_DATA         64

/* RMPP header */
#define RMPP_VERSION 192, 8
#define RMPP_TYPE    200, 8
#define RMPP_FLAGS   213, 3
#define RMPP_STATUS  216, 8
#define RMPP_SEGMENT 224, 32
#define RMPP_PAYLEN  256, 32

#define RMPP_ACTIVE 1
#define RMPP_FIRST  2
#define RMPP_LAST   4
#define RMPP_DATA   1

#define CLASS_SMP_LID 0x01
#define CLASS_SMP_DR  0x81
#define CLASS_SA      0x03
#define CLASS_PERF    0x04
#define CLASS_BM      0x05
#define CLASS_DEV_MGT 0x06
#define CLASS_DEV_ADM 0x10
#define CLASS_BIS     0x12

#define METHOD_GET          0x01
#define METHOD_SET          0x02
#define METHOD_TRAP         0x05
#define METHOD_TRAP_REPRESS 0x07
#define METHOD_GET_RESP     0x81
#define METHOD_RESPONSE     0x80

#define STATUS_OK          0x0000
#define STATUS_BUSY        0x0001
#define STATUS_BAD_VERSION 0x0004
#define STATUS_BAD_METHOD  0x0008
#define STATUS_BAD_ATTR    0x000c
#define STATUS_BAD_FIELD   0x001c

#define LID_PERMISSIVE 0xffff

static inline uint64_t wire_get(const uint8_t *data, unsigned bit, unsigned width)
{
    uint64_t v = 0;

    while (width) {
        unsigned in = bit & 7, take = 8 - in < width ? 8 - in : width;

        v = v << take | ((data[bit >> 3] >> (8 - in - take)) & ((1u << take) - 1));
        bit += take;
        width -= take;
    }
    return v;
}

static inline void wire_put(uint8_t *data, unsigned bit, unsigned width, uint64_t v)
{
    while (width) {
        unsigned in = bit & 7, take = 8 - in < width ? 8 - in : width, shift = 8 - in - take;
        uint8_t mask = (uint8_t)(((1u << take) - 1) << shift);

        width -= take;
        data[bit >> 3] = (uint8_t)((data[bit >> 3] & ~mask) | (((v >> width) << shift) & mask));
        bit += take;
    }
}

#endif
