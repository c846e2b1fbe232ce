/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of api/ do for each other at the beginning and the end. */
#ifndef MRMPI_API_LIFE_H
#define MRMPI_API_LIFE_H

void api_errors_finalize(void);
void api_comm_finalize(void);
int api_last_used_code(void);

#endif
