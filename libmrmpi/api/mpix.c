/* SPDX-License-Identifier: BSD-3-Clause */
/* Extensions of MPICH that programs use. The functions for going on after failures are in fault.c. */
#include <stdlib.h>

#include "libmrmpi/api/errcode.h"
#include "libmrmpi/api/grequest.h"

/* ---- names from before MPI-4.1 ---- */

#define DELETE(name, what, remove)                                                                                     \
    MPIX_FN(int, name, (int what))                                                                                     \
    {                                                                                                                  \
        API_ENTER_ANY();                                                                                               \
        err = remove(what);                                                                                            \
        API_LEAVE_ANY();                                                                                               \
    }
DELETE(Delete_error_class, errorclass, api_remove_class)
DELETE(Delete_error_code, errorcode, api_remove_code)
DELETE(Delete_error_string, errorcode, api_remove_string)

/* ---- generalized requests with poll and wait functions ---- */

/* Classes live as long as the program: no function frees a class. */
static struct {
    struct api_grequest_calls *list;
    int num, cap;
} classes;

MPIX_FN(int, Grequest_start,
        (MPI_Grequest_query_function * query_fn, MPI_Grequest_free_function *free_fn,
         MPI_Grequest_cancel_function *cancel_fn, MPIX_Grequest_poll_function *poll_fn,
         MPIX_Grequest_wait_function *wait_fn, void *extra_state, MPI_Request *request))
{
    API_ENTER();
    NOT_NULL(request);
    err = api_grequest_start(&(struct api_grequest_calls){query_fn, free_fn, cancel_fn, poll_fn, wait_fn}, extra_state,
                             request);
    API_LEAVE(NULL);
}

MPIX_FN(int, Grequest_class_create,
        (MPI_Grequest_query_function * query_fn, MPI_Grequest_free_function *free_fn,
         MPI_Grequest_cancel_function *cancel_fn, MPIX_Grequest_poll_function *poll_fn,
         MPIX_Grequest_wait_function *wait_fn, MPIX_Grequest_class *greq_class))
{
    API_ENTER();
    NOT_NULL(greq_class);
    if (classes.num == classes.cap) {
        int cap = classes.cap ? 2 * classes.cap : 8;
        struct api_grequest_calls *list = realloc(classes.list, (size_t)cap * sizeof(*list));
        if (!list)
            CHECK(mr_fail(MR_ERR_NO_MEM, "no memory for a class of generalized requests"));
        classes.list = list;
        classes.cap = cap;
    }
    classes.list[classes.num++] = (struct api_grequest_calls){query_fn, free_fn, cancel_fn, poll_fn, wait_fn};
    *greq_class = classes.num; /* 0 is none */
    API_LEAVE(NULL);
}

MPIX_FN(int, Grequest_class_allocate, (MPIX_Grequest_class greq_class, void *extra_state, MPI_Request *request))
{
    API_ENTER();
    NOT_NULL(request);
    if (greq_class < 1 || greq_class > classes.num)
        CHECK(mr_fail(MR_ERR_ARG, "greq_class is %d, there is no such class", greq_class));
    err = api_grequest_start(&classes.list[greq_class - 1], extra_state, request);
    API_LEAVE(NULL);
}

/* ---- memory of accelerators: none can be sent from ---- */

MPIX_FN(int, GPU_query_support, (int gpu_type, int *is_supported))
{
    API_ENTER_ANY();
    NOT_NULL(is_supported);
    if (gpu_type < MPIX_GPU_SUPPORT_CUDA || gpu_type > MPIX_GPU_SUPPORT_HIP)
        CHECK(mr_fail(MR_ERR_ARG, "gpu_type is %d", gpu_type));
    *is_supported = 0;
    API_LEAVE_ANY();
}

MPIX_FN(int, Query_cuda_support, (void))
{
    return 0;
}

MPIX_FN(int, Query_ze_support, (void))
{
    return 0;
}

MPIX_FN(int, Query_hip_support, (void))
{
    return 0;
}
