/* SPDX-License-Identifier: BSD-3-Clause */
/* Error codes that the program has added, and codes that its functions return (errcode.c). */
#ifndef MRMPI_API_ERRCODE_H
#define MRMPI_API_ERRCODE_H

#include "libmrmpi/core/core.h"

int api_last_used_code(void); /* MPI_LASTUSEDCODE */
/*
 * The result of a function of the program that has failed, for an attribute or a generalized request: the failing MPI
 * function returns the code, if the code is one of MPI's, or added by the program.
 */
void api_note_callback_code(int code);

/* The program takes back what it has added. */
enum mr_err api_remove_class(int class);
enum mr_err api_remove_code(int code);
enum mr_err api_remove_string(int code);

#endif
