/* SPDX-License-Identifier: BSD-3-Clause */
/* Error codes that the program has added (errcode.c), for attributes. */
#ifndef MRMPI_API_ERRCODE_H
#define MRMPI_API_ERRCODE_H

#include "libmrmpi/core/core.h"

int api_last_used_code(void); /* MPI_LASTUSEDCODE */
/* The result of an attribute function of the program: the failing MPI function returns an added code. */
void api_note_callback_code(int code);

/* The program takes back what it has added. */
enum mr_err api_remove_class(int class);
enum mr_err api_remove_code(int code);
enum mr_err api_remove_string(int code);

#endif
