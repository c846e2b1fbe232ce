/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls between the files of api/ at start, at the end, and on errors. */
#ifndef MRMPI_API_LIFE_H
#define MRMPI_API_LIFE_H

#include "libmrmpi/api/api.h"

/* env.c: the library runs while anybody uses it: the world (MPI_Init to MPI_Finalize) and each session */
enum mr_err api_library_use(int thread_level); /* with the detail of the failure */
void api_library_leave(bool at_once);          /* at_once: after the last user it ends here, not at exit */
extern int api_thread_level;                   /* the highest level requested so far */
int api_bound_thread_level(int required);

void api_comm_finalize(void);
void api_errhandlers_finalize(void);
void api_info_finalize(void);
int api_last_used_code(void);

/* errcode.c: this thread's last error, for MPI_Error_string and the line that ends a job */
int api_note_error(enum mr_err err, const char *function); /* takes the detail; the code to return */
void api_note_user_error(int code, const char *function);
/*
 * The result of an attribute function of the program: for an error code added by the program, the failing MPI function
 * returns this code.
 */
void api_note_callback_code(int code);
const char *api_last_error(void);

/* leaks.c: objects that the program has not freed, if the settings ask for the report */
void api_leaks_watch(void);  /* the library begins */
void api_leaks_at_end(void); /* at the library's end, before its own objects are freed */
void api_leaks_count(void);  /* at the same time, for the line of MRMPI_CHECK */
void api_leaks_sum_up(void); /* prints the line, when the number of messages that nobody received is known */
void api_leak_tell(int *told, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* told: the number so far */
/* alloc.c: memory of MPI_Alloc_mem */
void api_alloc_tell_leaks(int *told);
struct api_blocks {
    unsigned count;
    size_t bytes;
} api_alloc_left(void);

/* inquiry.c: the library begins, and ends */
void api_inquiry_open(void);
void api_inquiry_close(void);

/* crash.c: from here on, and until then, a rank that dies of a signal says where */
void api_crash_open(void);
void api_crash_close(void);

/* session.c */
int api_session_handle(const void *session);
struct mr_errhandler *api_file_null_handler(void); /* error.c: of MPI_FILE_NULL */

#endif
