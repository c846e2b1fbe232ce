/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules of management classes. Pure. */
#ifndef SIMFAB_MAD_CLASS_H
#define SIMFAB_MAD_CLASS_H

#include <stdbool.h>
#include <stdint.h>

bool mad_is_response(const uint8_t *mad);
unsigned mad_header_bytes(uint8_t mgmt_class); /* where a class's data begins: 24, 56 (SA), 64, 40 */
bool mad_class_has_rmpp(uint8_t mgmt_class);

#endif
