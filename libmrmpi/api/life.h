/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls between the files of api/ at start and at the end. */
#ifndef MRMPI_API_LIFE_H
#define MRMPI_API_LIFE_H

#include "libmrmpi/api/api.h"

/* env.c: the library runs while anybody uses it: the world (MPI_Init to MPI_Finalize) and each session */
enum mr_err api_library_use(enum abi_thread_level level); /* with the detail of the failure */
void api_library_leave(bool at_once);                     /* at_once: after the last user it ends here, not at exit */
enum abi_thread_level api_thread_level_of(int required);  /* the highest that the program asks for */

void api_comm_finalize(void);
void api_parent_finalize(void); /* before open objects are counted */
void api_errhandlers_finalize(void);
void api_info_finalize(void);

/* leaks.c: objects that the program has not freed, if the settings ask for the report */
void api_leaks_watch(void);  /* the library begins */
void api_leaks_at_end(void); /* at the library's end, before its own objects are freed */
void api_leaks_count(void);  /* at the same time, for the line of MRMPI_CHECK */
void api_leaks_sum_up(void); /* prints the line, when the number of messages that nobody received is known */
/* alloc.c: the blocks of MPI_Alloc_mem, not yet returned */
void api_alloc_each(void (*see)(const void *start, size_t bytes, void *arg), void *arg);

/* inquiry.c: the library begins, and ends */
void api_inquiry_open(void);
void api_inquiry_close(void);

/* crash.c: from here on, and until then, a rank that dies of a signal says where */
void api_crash_open(void);
void api_crash_close(void);

#endif
