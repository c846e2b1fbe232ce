/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of the tool information interface (MPI-4.0 section 15.3.8). The library has none, which the standard allows:
 * their number and the number of their sources is 0, so every index, name and handle of a tool is invalid.
 */
#include "libmrmpi/api/mpi_t.h"

#define NUMBER(name, what)                                                                                             \
    MPI_FN(int, name, (int *what))                                                                                     \
    {                                                                                                                  \
        T_ENTER();                                                                                                     \
        T_CHECK(what, INVALID);                                                                                        \
        *what = 0;                                                                                                     \
        T_LEAVE();                                                                                                     \
    }
NUMBER(T_event_get_num, num_events)
NUMBER(T_source_get_num, num_sources)

/* The arguments cannot name anything. */
#define NOTHING(name, error, ...)                                                                                      \
    MPI_FN(int, name, (__VA_ARGS__))                                                                                   \
    {                                                                                                                  \
        T_ENTER();                                                                                                     \
        code = MPI_T_ERR_##error;                                                                                      \
        T_LEAVE();                                                                                                     \
    }
NOTHING(T_event_get_index, INVALID_NAME, const char *name, int *event_index)
NOTHING(T_event_get_info, INVALID_INDEX, int event_index, char *name, int *name_len, int *verbosity,
        MPI_Datatype datatypes[], MPI_Aint displacements[], int *num_elements, MPI_T_enum *enumtype, MPI_Info *info,
        char *desc, int *desc_len, int *bind)
NOTHING(T_event_handle_alloc, INVALID_INDEX, int event_index, void *obj_handle, MPI_Info info,
        MPI_T_event_registration *event_registration)
NOTHING(T_event_handle_get_info, INVALID_HANDLE, MPI_T_event_registration event_registration, MPI_Info *info_used)
NOTHING(T_event_handle_set_info, INVALID_HANDLE, MPI_T_event_registration event_registration, MPI_Info info)
NOTHING(T_event_handle_free, INVALID_HANDLE, MPI_T_event_registration event_registration, void *user_data,
        MPI_T_event_free_cb_function free_cb_function)
NOTHING(T_event_register_callback, INVALID_HANDLE, MPI_T_event_registration event_registration,
        MPI_T_cb_safety cb_safety, MPI_Info info, void *user_data, MPI_T_event_cb_function event_cb_function)
NOTHING(T_event_callback_get_info, INVALID_HANDLE, MPI_T_event_registration event_registration,
        MPI_T_cb_safety cb_safety, MPI_Info *info_used)
NOTHING(T_event_callback_set_info, INVALID_HANDLE, MPI_T_event_registration event_registration,
        MPI_T_cb_safety cb_safety, MPI_Info info)
NOTHING(T_event_set_dropped_handler, INVALID_HANDLE, MPI_T_event_registration event_registration,
        MPI_T_event_dropped_cb_function dropped_cb_function)
NOTHING(T_event_read, INVALID_HANDLE, MPI_T_event_instance event_instance, int element_index, void *buffer)
NOTHING(T_event_copy, INVALID_HANDLE, MPI_T_event_instance event_instance, void *buffer)
NOTHING(T_event_get_timestamp, INVALID_HANDLE, MPI_T_event_instance event_instance, MPI_Count *event_timestamp)
NOTHING(T_event_get_source, INVALID_HANDLE, MPI_T_event_instance event_instance, int *source_index)
NOTHING(T_source_get_info, INVALID_INDEX, int source_index, char *name, int *name_len, char *desc, int *desc_len,
        MPI_T_source_order *ordering, MPI_Count *ticks_per_second, MPI_Count *max_ticks, MPI_Info *info)
NOTHING(T_source_get_timestamp, INVALID_INDEX, int source_index, MPI_Count *timestamp)
