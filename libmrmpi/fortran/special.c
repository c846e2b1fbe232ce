/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions whose arguments differ from C's by more than a conversion of each. */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/fortran/fortran.h"

#define CALL(name) (profiled ? PMPI_##name : MPI_##name)

int fort_raise(enum fort_object kind, MPI_Fint handle, int code)
{
    switch (kind) {
    case FORT_COMM:
        PMPI_Comm_call_errhandler(handle, code);
        break;
    case FORT_WIN:
        PMPI_Win_call_errhandler(handle, code);
        break;
    case FORT_FILE:
        PMPI_File_call_errhandler(PMPI_File_f2c(handle), code);
        break;
    default:
        PMPI_Comm_call_errhandler(MPI_COMM_SELF, code);
    }
    return code;
}

static int no_memory(void)
{
    return fort_raise(FORT_NONE, 0, MPI_ERR_NO_MEM);
}

/* ---- info, sessions: lengths that count C's last byte in C only ---- */

int fort_Info_get(bool profiled, const MPI_Fint *info, const char *key, const MPI_Fint *valuelen, char *value,
                  MPI_Fint *flag, size_t key_len, size_t value_len)
{
    char found[MPI_MAX_INFO_VAL], *k = fort_string(key, key_len, true);
    if (!k)
        return no_memory();
    const int most = *valuelen < MPI_MAX_INFO_VAL ? *valuelen : MPI_MAX_INFO_VAL - 1;
    int code = CALL(Info_get)(*info, k, most, found, flag);
    if (!code && *flag)
        fort_pad(value, value_len, found);
    free(k);
    return code;
}

int fort_Info_get_string(bool profiled, const MPI_Fint *info, const char *key, MPI_Fint *buflen, char *value,
                         MPI_Fint *flag, size_t key_len, size_t value_len)
{
    char found[MPI_MAX_INFO_VAL], *k = fort_string(key, key_len, true);
    if (!k)
        return no_memory();
    int room = *buflen < 1 ? 0 : *buflen < MPI_MAX_INFO_VAL ? *buflen + 1 : MPI_MAX_INFO_VAL;
    const bool wanted = room > 0;
    int code = CALL(Info_get_string)(*info, k, &room, found, flag);
    if (!code && *flag) {
        *buflen = room - 1;
        if (wanted)
            fort_pad(value, value_len, found);
    }
    free(k);
    return code;
}

int fort_Session_get_nth_pset(bool profiled, const MPI_Fint *session, const MPI_Fint *info, const MPI_Fint *n,
                              MPI_Fint *pset_len, char *pset_name, size_t pset_name_len)
{
    char name[MPI_MAX_PSET_NAME_LEN];
    int room = *pset_len < 1 ? 0 : *pset_len < MPI_MAX_PSET_NAME_LEN ? *pset_len + 1 : MPI_MAX_PSET_NAME_LEN;
    const bool wanted = room > 0;
    int code = CALL(Session_get_nth_pset)(*session, *info, *n, &room, name);
    if (!code) {
        *pset_len = room - 1;
        if (wanted)
            fort_pad(pset_name, pset_name_len, name);
    }
    return code;
}

/* ---- new processes: arrays of strings ---- */

static bool ends_list(const char *string, size_t length)
{
    while (length && string[length - 1] == ' ')
        length--;
    return length == 0;
}

static void free_strings(char **list)
{
    for (char **s = list; s && *s; s++)
        free(*s);
    free(list);
}

/* Strings that stand a stride apart: count of them, or all before the first blank string. Ends with NULL. */
static char **string_list(const char *from, size_t length, size_t stride, int count)
{
    size_t n = 0;
    while (count >= 0 ? n < (size_t)count : !ends_list(from + n * stride, length))
        n++;
    char **list = calloc(n + 1, sizeof(*list));
    for (size_t i = 0; list && i < n; i++) {
        list[i] = fort_string(from + i * stride, length, count >= 0);
        if (!list[i]) {
            free_strings(list);
            return NULL;
        }
    }
    return list;
}

int fort_Comm_spawn(bool profiled, const char *command, const char *argv, const MPI_Fint *maxprocs,
                    const MPI_Fint *info, const MPI_Fint *root, const MPI_Fint *comm, MPI_Fint *intercomm,
                    MPI_Fint *errcodes, size_t command_len, size_t argv_len)
{
    const bool none = argv == &mpiprivc_.argv_null || argv == fort_argv_null;
    char *program = fort_string(command, command_len, true);
    char **arguments = none ? MPI_ARGV_NULL : string_list(argv, argv_len, argv_len, -1);
    int code = !program || (!none && !arguments) ? no_memory()
                                                 : CALL(Comm_spawn)(program, arguments, *maxprocs, *info, *root, *comm,
                                                                    intercomm, fort_errcodes(errcodes));
    free(program);
    free_strings(arguments);
    return code;
}

int fort_Comm_spawn_multiple(bool profiled, const MPI_Fint *count, const char *commands, const char *argvs,
                             const MPI_Fint *maxprocs, const MPI_Fint *infos, const MPI_Fint *root,
                             const MPI_Fint *comm, MPI_Fint *intercomm, MPI_Fint *errcodes, size_t commands_len,
                             size_t argvs_len)
{
    const bool none = argvs == &mpiprivc_.argvs_null || argvs == fort_argvs_null;
    const int n = *count > 0 ? *count : 0;
    char **programs = string_list(commands, commands_len, commands_len, n);
    char ***arguments = none ? MPI_ARGVS_NULL : calloc((size_t)n + 1, sizeof(*arguments));
    bool missing = !programs || (!none && !arguments);

    for (int i = 0; arguments && i < n; i++) {
        arguments[i] = string_list(argvs + (size_t)i * argvs_len, argvs_len, (size_t)n * argvs_len, -1);
        missing |= !arguments[i];
    }
    int code = missing ? no_memory()
                       : CALL(Comm_spawn_multiple)(*count, programs, arguments, maxprocs, infos, *root, *comm,
                                                   intercomm, fort_errcodes(errcodes));
    for (int i = 0; arguments && i < n; i++)
        free_strings(arguments[i]);
    free(arguments);
    free_strings(programs);
    return code;
}

/* ---- constructors of MPI-1, whose displacements have the usual size ---- */

static MPI_Aint *widened(const MPI_Fint *from, int count)
{
    MPI_Aint *to = malloc((count > 0 ? (size_t)count : 1) * sizeof(*to));
    for (int i = 0; to && i < count; i++)
        to[i] = from[i];
    return to;
}

int fort_Type_hindexed(bool profiled, const MPI_Fint *count, MPI_Fint *lengths, MPI_Fint *displacements,
                       const MPI_Fint *oldtype, MPI_Fint *newtype)
{
    MPI_Aint *wide = widened(displacements, *count);
    int code = wide ? CALL(Type_hindexed)(*count, lengths, wide, *oldtype, newtype) : no_memory();
    free(wide);
    return code;
}

int fort_Type_struct(bool profiled, const MPI_Fint *count, MPI_Fint *lengths, MPI_Fint *displacements, MPI_Fint *types,
                     MPI_Fint *newtype)
{
    MPI_Aint *wide = widened(displacements, *count);
    int code = wide ? CALL(Type_struct)(*count, lengths, wide, types, newtype) : no_memory();
    free(wide);
    return code;
}

/* ---- generalized requests: the library calls subroutines itself, with the address of the program's state ---- */

void MPII_Grequest_set_lang_f77(MPI_Request request);

int fort_Grequest_start(bool profiled, fort_fn *query, fort_fn *free_it, fort_fn *cancel, const MPI_Aint *extra,
                        MPI_Fint *request)
{
    int code = CALL(Grequest_start)((MPI_Grequest_query_function *)query, (MPI_Grequest_free_function *)free_it,
                                    (MPI_Grequest_cancel_function *)cancel, (void *)extra, request);
    if (!code)
        MPII_Grequest_set_lang_f77(*request);
    return code;
}

/* C programs compare Fortran's status with these. Written here, since data.c would take its own definitions. */
static void __attribute__((constructor)) name_statuses(void)
{
    MPI_F_STATUS_IGNORE = mpipriv1_.status_ignore;
    MPI_F_STATUSES_IGNORE = mpipriv2_.statuses_ignore;
}

/* ---- data representations: they live as long as the program, and so do these ---- */

struct datarep {
    fort_fn *read, *write, *extent;
    MPI_Aint extra;
    struct datarep *next;
};
static struct datarep *datareps; /* all of them, for leak checkers */

static void keep_datarep(struct datarep *d)
{
    struct datarep *old = __atomic_load_n(&datareps, __ATOMIC_RELAXED);
    do
        d->next = old;
    while (!__atomic_compare_exchange_n(&datareps, &old, d, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* MPI_CONVERSION_FN_NULL of mpif.h, of mpi_f08, and the forms for large counts; defined in data.c */
extern fort_fn mpi_conversion_fn_null_, mpi_conversion_fn_null_c_;
extern fort_fn f08_no_conversion __asm__("__mpi_f08_callbacks_MOD_mpi_conversion_fn_null");
extern fort_fn f08_no_conversion_c __asm__("__mpi_f08_callbacks_MOD_mpi_conversion_fn_null_c");

static bool is_no_conversion(fort_fn *fn)
{
    return fn == mpi_conversion_fn_null_ || fn == mpi_conversion_fn_null_c_ || fn == f08_no_conversion ||
           fn == f08_no_conversion_c;
}

typedef void convert_subroutine(void *user, MPI_Fint *type, void *count, void *file, MPI_Offset *position,
                                MPI_Aint *extra, MPI_Fint *ierror);
typedef void extent_subroutine(MPI_Fint *type, MPI_Aint *extent, MPI_Aint *extra, MPI_Fint *ierror);

static int convert_through(fort_fn *fn, void *user, MPI_Datatype type, void *count, void *file, MPI_Offset position,
                           struct datarep *d)
{
    MPI_Fint ierror = MPI_SUCCESS;
    ((convert_subroutine *)fn)(user, &type, count, file, &position, &d->extra, &ierror);
    return ierror;
}

#define CONVERT(name, which, integer)                                                                                  \
    static int name(void *user, MPI_Datatype type, integer count, void *file, MPI_Offset position, void *extra)        \
    {                                                                                                                  \
        struct datarep *d = extra;                                                                                     \
        return convert_through(d->which, user, type, &count, file, position, d);                                       \
    }
CONVERT(datarep_read, read, int)
CONVERT(datarep_write, write, int)
CONVERT(datarep_read_large, read, MPI_Count)
CONVERT(datarep_write_large, write, MPI_Count)

static int datarep_extent(MPI_Datatype type, MPI_Aint *extent, void *extra)
{
    struct datarep *d = extra;
    MPI_Fint ierror = MPI_SUCCESS;
    ((extent_subroutine *)d->extent)(&type, extent, &d->extra, &ierror);
    return ierror;
}

#define REGISTER(function, read_fn, write_fn)                                                                          \
    (bool profiled, const char *name, fort_fn *read, fort_fn *write, fort_fn *extent, const MPI_Aint *extra,           \
     size_t name_len)                                                                                                  \
    {                                                                                                                  \
        char *rep = fort_string(name, name_len, false);                                                                \
        struct datarep *d = malloc(sizeof(*d));                                                                        \
        if (!rep || !d) {                                                                                              \
            free(rep);                                                                                                 \
            free(d);                                                                                                   \
            return no_memory();                                                                                        \
        }                                                                                                              \
        *d = (struct datarep){read, write, extent, *extra, NULL};                                                      \
        int code = CALL(function)(rep, is_no_conversion(read) ? NULL : read_fn,                                        \
                                  is_no_conversion(write) ? NULL : write_fn, datarep_extent, d);                       \
        free(rep);                                                                                                     \
        if (code)                                                                                                      \
            free(d);                                                                                                   \
        else                                                                                                           \
            keep_datarep(d);                                                                                           \
        return code;                                                                                                   \
    }
int fort_Register_datarep REGISTER(Register_datarep, datarep_read, datarep_write)
int fort_Register_datarep_c REGISTER(Register_datarep_c, datarep_read_large, datarep_write_large)
