/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that polls the network while the program is not in an MPI function (MRMPI_ASYNC_PROGRESS). The thread only
 * tries the library's lock, so the holder may stop the thread, and a holder polls anyway.
 */
#ifndef MRMPI_INIT_HELPER_H
#define MRMPI_INIT_HELPER_H

/* If the settings say so; mr_threaded is set then. 0 or negative errno, with a detail text. */
int mr_helper_start(void);
void mr_helper_stop(void);

#endif
