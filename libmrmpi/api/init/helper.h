/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that looks at the network while the program is not in an MPI function (MRMPI_ASYNC_PROGRESS). It only ever
 * tries the library's lock, so it may be stopped by its holder, and who holds the lock looks anyway.
 */
#ifndef MRMPI_INIT_HELPER_H
#define MRMPI_INIT_HELPER_H

/* If the settings say so; mr_threaded is set then. 0 or negative errno, with a detail text. */
int mr_helper_start(void);
void mr_helper_stop(void);

#endif
