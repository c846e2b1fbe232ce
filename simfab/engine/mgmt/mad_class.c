/* SPDX-License-Identifier: BSD-3-Clause */
/* Properties of the classes of datagrams. */
#include "simfab/engine/mgmt/mad_class.h"

#include "simfab/engine/mgmt/mad_wire.h"

bool mad_is_response(const uint8_t *mad)
{
    uint64_t method = wire_get(mad, MAD_METHOD);

    return (method & METHOD_RESPONSE) || method == METHOD_TRAP_REPRESS ||
           (wire_get(mad, MAD_CLASS) == CLASS_BM && (wire_get(mad, MAD_MODIFIER) & 1));
}

bool mad_class_has_rmpp(uint8_t c)
{
    return c == CLASS_SA || c == CLASS_DEV_MGT || c == CLASS_DEV_ADM || c == CLASS_BIS || (c >= 0x30 && c <= 0x4f);
}

unsigned mad_header_bytes(uint8_t c)
{
    if (c == CLASS_SA)
        return 56;
    if (c == CLASS_DEV_MGT || c == CLASS_DEV_ADM || c == CLASS_BIS)
        return 64;
    return c >= 0x30 && c <= 0x4f ? 40 : MAD_HDR;
}
