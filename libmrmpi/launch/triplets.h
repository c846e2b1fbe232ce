/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets of numbers as MPI writes them for the info key "soft" (MPI-4.1 section 11.8.4): triplets A, A:B and A:B:STEP,
 * separated by commas. Pure; mrrun is linked with this file, too.
 */
#ifndef MRMPI_LAUNCH_TRIPLETS_H
#define MRMPI_LAUNCH_TRIPLETS_H

#include <stdbool.h>

/* The least and the largest member from 1 to max; 0: there is none. False: the text is no such set. */
bool mr_triplets_read(const char *text, int max, int *least, int *largest);

#endif
