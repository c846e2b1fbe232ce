/* SPDX-License-Identifier: BSD-3-Clause */
/* Around a fork, no request is under way: hold them back; go on, in the parent; begin anew, in the child. */
#ifndef SIMFAB_PRELOAD_CALL_H
#define SIMFAB_PRELOAD_CALL_H

void sfp_calls_hold(void);
void sfp_calls_release(void);
void sfp_calls_renew(void);

#endif
