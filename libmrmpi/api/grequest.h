/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Generalized requests, for request.c: of kind MR_REQ_GENERALIZED, with the program's callbacks in on_complete_arg.
 * Requests of MPIX_Grequest_start are completed by their poll function only: a waiter has to call api_grequest_poll
 * again and again.
 */
#ifndef MRMPI_API_GREQUEST_H
#define MRMPI_API_GREQUEST_H

#include "libmrmpi/api/api.h"

struct api_grequest_calls {
    MPI_Grequest_query_function *query;
    MPI_Grequest_free_function *free;
    MPI_Grequest_cancel_function *cancel;
    int (*poll)(void *extra, MPI_Status *status); /* NULL: completed by a call of the program */
    int (*wait)(int count, void **extra, double timeout, MPI_Status *status);
};
enum mr_err api_grequest_start(const struct api_grequest_calls *call, void *extra, MPI_Request *request);
/* The callbacks are Fortran subroutines. */
void api_grequest_is_fortran(struct mr_request *r);

/* Query and free callbacks: the request is over. Fills the status in. */
enum mr_err api_grequest_end(struct mr_request *r, MPI_Status *status);
enum mr_err api_grequest_query(struct mr_request *r, MPI_Status *status);
enum mr_err api_grequest_cancel(struct mr_request *r);
/* MPI_Request_free: now or at completion. */
enum mr_err api_grequest_free(struct mr_request *r);
/* True if complete. Calls its poll function if there is one. */
bool api_grequest_poll(struct mr_request *r);
/* By its wait function if there is one, else like any request. */
void api_grequest_wait(struct mr_request *r);

#endif
