/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fortran's interface as MPICH and gfortran have it: functions with Fortran's names, all arguments by reference, which
 * call C's functions. Nothing here knows the library's inside: mpi.h, and the few MPII_ functions below, are all.
 */
#ifndef MRMPI_FORTRAN_H
#define MRMPI_FORTRAN_H

#include <stdbool.h>
#include <stddef.h>

#include "libmrmpi/include/mpi.h"

/* A procedure of the program. */
typedef void fort_fn(void);

/* The common blocks of mpif.h: their addresses, in the program or here, stand for MPI_BOTTOM and so on. */
extern struct fort_common1 {
    MPI_Fint bottom, in_place, status_ignore[MPI_F_STATUS_SIZE];
} mpipriv1_;
extern struct fort_common2 {
    MPI_Fint statuses_ignore[MPI_F_STATUS_SIZE], errcodes_ignore[1];
} mpipriv2_;
extern struct fort_common_c {
    char argvs_null, argv_null;
} mpiprivc_;
extern MPI_Fint mpifcmb5_, mpifcmb9_; /* MPI_UNWEIGHTED, MPI_WEIGHTS_EMPTY */
extern MPI_Fint mpifcmba_;            /* MPI_BUFFER_AUTOMATIC */

/* The same of mpi_f08, beside those in mpi.h */
#define FORT_LINKED(name) __asm__("__mpi_f08_link_constants_MOD_" #name)
extern MPI_Fint fort_unweighted[1] FORT_LINKED(mpi_unweighted), fort_weights_empty[1] FORT_LINKED(mpi_weights_empty);
extern MPI_Fint fort_errcodes_ignore[1] FORT_LINKED(mpi_errcodes_ignore);
extern char fort_argv_null[1] FORT_LINKED(mpi_argv_null), fort_argvs_null[1] FORT_LINKED(mpi_argvs_null);

static inline void *fort_address(void *buffer)
{
    if (buffer == &mpipriv1_.bottom || buffer == &MPIR_F08_MPI_BOTTOM)
        return MPI_BOTTOM;
    if (buffer == &mpipriv1_.in_place || buffer == &MPIR_F08_MPI_IN_PLACE)
        return MPI_IN_PLACE;
    if (buffer == &mpifcmba_)
        return MPI_BUFFER_AUTOMATIC;
    return buffer;
}

/* An address that MPI gives back: what stands for it in Fortran. */
static inline void fort_detached(void *address)
{
    if (*(void **)address == MPI_BUFFER_AUTOMATIC)
        *(void **)address = &mpifcmba_;
}

static inline MPI_Status *fort_status(MPI_Status *status)
{
    if ((void *)status == mpipriv1_.status_ignore || (void *)status == &MPIR_F08_MPI_STATUS_IGNORE_OBJ)
        return MPI_STATUS_IGNORE;
    return status;
}

static inline MPI_Status *fort_statuses(MPI_Status *statuses)
{
    if ((void *)statuses == mpipriv2_.statuses_ignore || (void *)statuses == MPIR_F08_MPI_STATUSES_IGNORE_OBJ)
        return MPI_STATUSES_IGNORE;
    return statuses;
}

static inline int *fort_weights(const MPI_Fint *weights)
{
    if (weights == &mpifcmb5_ || weights == fort_unweighted)
        return MPI_UNWEIGHTED;
    if (weights == &mpifcmb9_ || weights == fort_weights_empty)
        return MPI_WEIGHTS_EMPTY;
    return (int *)weights;
}

static inline int *fort_errcodes(MPI_Fint *codes)
{
    return codes == mpipriv2_.errcodes_ignore || codes == fort_errcodes_ignore ? MPI_ERRCODES_IGNORE : codes;
}

/* C's indices, or MPI_UNDEFINED, to Fortran's. */
static inline void fort_count_from_one(MPI_Fint *indices, int count)
{
    for (int i = 0; i < count; i++)
        indices[i] += indices[i] >= 0;
}

/* In Fortran 2008 the argument may be absent. */
static inline void fort_return(MPI_Fint *ierror, int code)
{
    if (ierror)
        *ierror = code;
}

/* An error that only this side can see: the error handler of the object decides. Returns the code. */
enum fort_object { FORT_NONE, FORT_COMM, FORT_WIN, FORT_FILE };
int fort_raise(enum fort_object kind, MPI_Fint handle, int code);

/* ---- strings.c ---- */

/* A copy as C has strings, without blanks at the end, and at the start if strip; the caller frees; NULL: no memory. */
char *fort_string(const char *string, size_t length, bool strip);
/* Copies C's string, cut or padded with blanks to the length. */
void fort_pad(char *string, size_t length, const char *from);

static inline int fort_no_memory(const void *p)
{
    return p ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* ---- sections.c: choice buffers of mpi_f08, which may be array sections ---- */

/* gfortran's descriptor of an array of any rank. Strides count spans; a scalar has rank 0. */
struct fort_array {
    void *base;
    size_t offset;
    struct {
        size_t elem_len;
        int version;
        signed char rank, type;
        short attribute;
    } dtype;
    ptrdiff_t span;
    struct {
        ptrdiff_t stride, lower, upper;
    } dim[15];
};

/* The buffer's first element, or the address that a constant stands for. */
void *fort_base(const struct fort_array *array);

/* A buffer for a call that ends its use: a section with holes is copied, out also after the call. */
struct fort_copy {
    void *address;
    const struct fort_array *copied; /* NULL: address is the program's */
    int error;
};
struct fort_copy fort_copy_in(const struct fort_array *array);
void fort_copy_out(struct fort_copy *copy, bool changed);

/*
 * A buffer that MPI uses later: a section with holes becomes a datatype, or memory without holes, which a request
 * keeps. FORT_ANY: the arguments are one buffer, one count and one datatype, a datatype can describe the section.
 * FORT_EVEN: several blocks of the buffer are meant; a datatype needs equal distances from element to element.
 * FORT_ONE_PIECE: the datatype cannot be replaced. The last two are for calls that make a request, and keep memory if
 * need be.
 */
enum fort_layouts { FORT_ANY, FORT_EVEN, FORT_ONE_PIECE };
struct fort_layout {
    void *address;
    MPI_Count count;
    MPI_Datatype type;
    bool made; /* the type is ours to free */
    struct fort_kept *kept;
    int error;
};
/* input: MPI only reads the buffer. */
struct fort_layout fort_layout(const struct fort_array *array, MPI_Count count, MPI_Datatype type,
                               enum fort_layouts kind, bool input);
/* After the call. */
void fort_layout_free(struct fort_layout *layout);
/* The same of a call that made a request, unless there was an error, and had one buffer, or two. */
void fort_layout_end(int error, const MPI_Fint *request, struct fort_layout *one, struct fort_layout *two);

/*
 * ---- special.c, attributes.c: functions whose arguments C has in another form, as Fortran's code calls them.
 * profiled: the program has called the PMPI name of mpi_f08, a profiling library is not to see the call again ----
 */

int fort_Info_get(bool profiled, const MPI_Fint *info, const char *key, const MPI_Fint *valuelen, char *value,
                  MPI_Fint *flag, size_t key_len, size_t value_len);
int fort_Info_get_string(bool profiled, const MPI_Fint *info, const char *key, MPI_Fint *buflen, char *value,
                         MPI_Fint *flag, size_t key_len, size_t value_len);
int fort_Session_get_nth_pset(bool profiled, const MPI_Fint *session, const MPI_Fint *info, const MPI_Fint *n,
                              MPI_Fint *pset_len, char *pset_name, size_t pset_name_len);
int fort_Comm_spawn(bool profiled, const char *command, const char *argv, const MPI_Fint *maxprocs,
                    const MPI_Fint *info, const MPI_Fint *root, const MPI_Fint *comm, MPI_Fint *intercomm,
                    MPI_Fint *errcodes, size_t command_len, size_t argv_len);
int fort_Comm_spawn_multiple(bool profiled, const MPI_Fint *count, const char *commands, const char *argvs,
                             const MPI_Fint *maxprocs, const MPI_Fint *infos, const MPI_Fint *root,
                             const MPI_Fint *comm, MPI_Fint *intercomm, MPI_Fint *errcodes, size_t commands_len,
                             size_t argvs_len);
int fort_Type_hindexed(bool profiled, const MPI_Fint *count, MPI_Fint *lengths, MPI_Fint *displacements,
                       const MPI_Fint *oldtype, MPI_Fint *newtype);
int fort_Type_struct(bool profiled, const MPI_Fint *count, MPI_Fint *lengths, MPI_Fint *displacements, MPI_Fint *types,
                     MPI_Fint *newtype);
int fort_Grequest_start(bool profiled, fort_fn *query, fort_fn *free_it, fort_fn *cancel, const MPI_Aint *extra,
                        MPI_Fint *request);
int fort_Register_datarep(bool profiled, const char *name, fort_fn *read, fort_fn *write, fort_fn *extent,
                          const MPI_Aint *extra, size_t name_len);
int fort_Register_datarep_c(bool profiled, const char *name, fort_fn *read, fort_fn *write, fort_fn *extent,
                            const MPI_Aint *extra, size_t name_len);

int fort_Comm_create_keyval(bool profiled, fort_fn *copy, fort_fn *del, MPI_Fint *keyval, const MPI_Aint *extra);
int fort_Comm_set_attr(bool profiled, const MPI_Fint *comm, const MPI_Fint *keyval, const MPI_Aint *value);
int fort_Comm_get_attr(bool profiled, const MPI_Fint *comm, const MPI_Fint *keyval, MPI_Aint *value, MPI_Fint *flag);
int fort_Type_create_keyval(bool profiled, fort_fn *copy, fort_fn *del, MPI_Fint *keyval, const MPI_Aint *extra);
int fort_Type_set_attr(bool profiled, const MPI_Fint *type, const MPI_Fint *keyval, const MPI_Aint *value);
int fort_Type_get_attr(bool profiled, const MPI_Fint *type, const MPI_Fint *keyval, MPI_Aint *value, MPI_Fint *flag);
int fort_Win_create_keyval(bool profiled, fort_fn *copy, fort_fn *del, MPI_Fint *keyval, const MPI_Aint *extra);
int fort_Win_set_attr(bool profiled, const MPI_Fint *win, const MPI_Fint *keyval, const MPI_Aint *value);
int fort_Win_get_attr(bool profiled, const MPI_Fint *win, const MPI_Fint *keyval, MPI_Aint *value, MPI_Fint *flag);
int fort_Keyval_create(bool profiled, fort_fn *copy, fort_fn *del, MPI_Fint *keyval, const MPI_Fint *extra);
int fort_Attr_put(bool profiled, const MPI_Fint *comm, const MPI_Fint *keyval, const MPI_Fint *value);
int fort_Attr_get(bool profiled, const MPI_Fint *comm, const MPI_Fint *keyval, MPI_Fint *value, MPI_Fint *flag);

#endif
