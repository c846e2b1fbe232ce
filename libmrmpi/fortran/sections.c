/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Array sections as buffers: copies without holes, for the time of a call or of a request, or datatypes that describe
 * the holes.
 */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/fortran/fortran.h"

/* The section's dimensions, those that continue each other as one. libmpi.so.12 has the same struct (mr_section). */
struct shape {
    size_t elem;  /* bytes of an element */
    size_t total; /* elements */
    int dims;     /* 0: contiguous */
    struct {
        ptrdiff_t extent, stride; /* elements, bytes */
    } dim[15];
};

void *fort_base(const struct fort_array *array)
{
    return fort_address(array->base);
}

/* flang's descriptor, as ISO_Fortran_binding.h has it: strides count bytes. */
struct c_array {
    void *base;
    size_t elem_len;
    int version; /* a date */
    unsigned char rank;
    signed char type;
    unsigned char attribute, extra;
    struct {
        ptrdiff_t lower, extent, stride;
    } dim[15];
};
_Static_assert(sizeof(struct c_array) <= sizeof(struct fort_array), "a descriptor of either compiler");

/*
 * Descriptors of other compilers have other things where gfortran's have size, version and rank: the version of the C
 * descriptor, rank and type (flang), zero and flags (Intel). gfortran's version is 0, or 1 for an array that came from
 * C.
 */
static bool is_flangs(const struct fort_array *array)
{
    const struct c_array *a = (const void *)array;
    return a->version >= 20180000 && a->version < 21000000 && a->rank <= 15 && a->type != 0;
}

static bool is_gfortrans(const struct fort_array *array)
{
    const size_t length = array->dtype.elem_len;
    return array->dtype.rank >= 0 && array->dtype.rank <= 15 && length >> 32 == 0 &&
           (array->dtype.version == 0 || (array->dtype.version == 1 && length > 0));
}

static bool is_known(const struct fort_array *array)
{
    return is_gfortrans(array) || is_flangs(array);
}

static struct shape shape_of(const struct fort_array *array)
{
    const struct c_array *c = is_gfortrans(array) ? NULL : (const void *)array;
    struct shape s = {.elem = c ? c->elem_len : array->dtype.elem_len, .total = 1};
    const ptrdiff_t span = array->span ? array->span : (ptrdiff_t)s.elem;
    ptrdiff_t packed = (ptrdiff_t)s.elem;
    bool holes = false;

    for (int d = 0; d < (c ? c->rank : array->dtype.rank); d++) {
        const ptrdiff_t extent = c ? c->dim[d].extent : array->dim[d].upper - array->dim[d].lower + 1;
        const ptrdiff_t stride = c ? c->dim[d].stride : array->dim[d].stride * span;
        if (extent < 1) /* no element; or the last dimension of an array of unknown size, which has no holes */
            return (struct shape){.elem = s.elem};
        s.total *= (size_t)extent;
        if (extent == 1)
            continue;
        holes |= stride != packed;
        packed *= extent;
        if (s.dims && stride == s.dim[s.dims - 1].extent * s.dim[s.dims - 1].stride) {
            s.dim[s.dims - 1].extent *= extent;
        } else {
            s.dim[s.dims].extent = extent;
            s.dim[s.dims++].stride = stride;
        }
    }
    if (!holes)
        s.dims = 0;
    return s;
}

/* The place of the next element. index: of this element, in each dimension. */
static char *next_element(const struct shape *s, ptrdiff_t *index, char *at)
{
    for (int d = 0; d < s->dims; d++) {
        at += s->dim[d].stride;
        if (++index[d] < s->dim[d].extent)
            break;
        at -= index[d] * s->dim[d].stride;
        index[d] = 0;
    }
    return at;
}

/* Moves the elements between the section and memory without holes. */
static void move_section(const struct shape *s, char *section, char *packed, bool to_section)
{
    ptrdiff_t index[15] = {0};
    char *at = section;

    for (size_t n = 0; n < s->total; n++) {
        memcpy(to_section ? at : packed, to_section ? packed : at, s->elem);
        packed += s->elem;
        at = next_element(s, index, at);
    }
}

/* Moves the elements that have changed since they were the same as those at before, which follow them. */
static void move_changes(const struct shape *s, char *section, const char *packed, char *before)
{
    ptrdiff_t index[15] = {0};
    char *at = section;

    for (size_t n = 0; n < s->total; n++) {
        if (memcmp(packed, before, s->elem)) {
            memcpy(at, packed, s->elem);
            memcpy(before, packed, s->elem);
        }
        packed += s->elem;
        before += s->elem;
        at = next_element(s, index, at);
    }
}

struct fort_copy fort_copy_in(const struct fort_array *array)
{
    if (!is_known(array))
        return (struct fort_copy){.error = MPI_ERR_BUFFER};
    struct fort_copy c = {.address = fort_base(array)};
    const struct shape s = shape_of(array);
    if (!s.dims)
        return c;
    c.address = malloc(s.total * s.elem);
    if (!c.address) {
        c.error = MPI_ERR_NO_MEM;
        return c;
    }
    c.copied = array;
    move_section(&s, array->base, c.address, false);
    return c;
}

void fort_copy_out(struct fort_copy *c, bool changed)
{
    if (!c->copied)
        return;
    if (changed) {
        const struct shape s = shape_of(c->copied);
        move_section(&s, c->copied->base, c->address, true);
    }
    free(c->address);
}

/* The first n elements of the section, in Fortran's order. */
static int section_type(const struct shape *s, size_t n, MPI_Datatype element, MPI_Datatype *made)
{
    const size_t row = (size_t)s->dim[0].extent, rows = n / row, rest = n % row;
    MPI_Datatype part[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
    MPI_Count ones[2] = {1, 1}, place[2] = {0, 0};
    ptrdiff_t index[15] = {0}, at = 0;
    int err;

    MPI_Count *places = malloc((rows + 1) * sizeof(*places));
    if (!places)
        return MPI_ERR_NO_MEM;
    for (size_t r = 0; r <= rows; r++) {
        places[r] = at;
        for (int d = 1; d < s->dims; d++) {
            at += s->dim[d].stride;
            if (++index[d] < s->dim[d].extent)
                break;
            at -= index[d] * s->dim[d].stride;
            index[d] = 0;
        }
    }
    place[1] = places[rows];
    MPI_Datatype line = MPI_DATATYPE_NULL;
    err = PMPI_Type_create_hvector_c((MPI_Count)row, 1, s->dim[0].stride, element, &line);
    if (!err)
        err = PMPI_Type_create_hindexed_block_c((MPI_Count)rows, 1, places, line, &part[0]);
    if (!err)
        err = PMPI_Type_create_hvector_c((MPI_Count)rest, 1, s->dim[0].stride, element, &part[1]);
    if (!err)
        err = PMPI_Type_create_struct_c(2, ones, place, part, made);
    for (int i = 0; i < 2; i++) {
        if (part[i] != MPI_DATATYPE_NULL)
            PMPI_Type_free(&part[i]);
    }
    if (line != MPI_DATATYPE_NULL)
        PMPI_Type_free(&line);
    free(places);
    return err;
}

int MPII_Type_create_section(MPI_Count count, MPI_Datatype type, const struct shape *section, MPI_Datatype *made);

/* Fills in a datatype for the section: of elements, if the program's datatype is a part of one. */
static int describe_section(const struct shape *s, enum fort_layouts kind, struct fort_layout *l)
{
    MPI_Count size, lower, extent;
    MPI_Datatype element;
    int err;

    if (l->type == MPI_DATATYPE_NULL) /* of no meaning at this process */
        return MPI_SUCCESS;
    if ((err = PMPI_Type_size_c(l->type, &size)) || (err = PMPI_Type_get_extent_c(l->type, &lower, &extent)))
        return err;
    if (l->count < 0)
        return MPI_ERR_COUNT;
    const bool plain = size > 0 && lower == 0 && extent == size && s->elem % (size_t)size == 0;
    const MPI_Count each = plain ? (MPI_Count)s->elem / size : 0;
    if (kind == FORT_EVEN) {
        if (s->dims > 1 || each != 1 || s->dim[0].stride < 0)
            return MPI_ERR_BUFFER;
        err = PMPI_Type_create_resized_c(l->type, 0, s->dim[0].stride, &l->type);
    } else if (!plain || l->count % each) {
        if ((err = MPII_Type_create_section(l->count, l->type, s, &l->type)))
            return err;
        l->count = 1;
    } else {
        if ((size_t)(l->count / each) > s->total)
            return MPI_ERR_BUFFER;
        if ((err = PMPI_Type_contiguous_c(each, l->type, &element)))
            return err;
        err = section_type(s, (size_t)(l->count / each), element, &l->type);
        PMPI_Type_free(&element);
        l->count = 1;
    }
    if (err)
        return err;
    l->made = true;
    return PMPI_Type_commit(&l->type);
}

/*
 * Memory that a request keeps in the place of a section. The library calls `event` (MPII_Request_set_copy). Elements
 * that MPI has not written stay as the program has them: at a process that receives nothing, the program may go on
 * using the section.
 */
struct fort_kept {
    void (*event)(struct fort_kept *, int event);
    struct fort_kept *next; /* of the same request */
    struct shape shape;
    char *section;
    bool input; /* MPI only reads the memory. If not, the elements follow a second time, as they were */
    _Alignas(16) char packed[];
};
enum { COPY_IN = 0, COPY_OUT = 1, COPY_FREE = 2 };
void MPII_Request_set_copy(MPI_Request request, struct fort_kept *kept);

static size_t kept_bytes(const struct fort_kept *k)
{
    return k->shape.total * k->shape.elem;
}

static void kept_event(struct fort_kept *k, int event)
{
    for (struct fort_kept *next; k; k = next) {
        next = k->next;
        if (event == COPY_IN) {
            move_section(&k->shape, k->section, k->packed, false);
            if (!k->input)
                memcpy(k->packed + kept_bytes(k), k->packed, kept_bytes(k));
        } else if (event == COPY_OUT && !k->input) {
            move_changes(&k->shape, k->section, k->packed, k->packed + kept_bytes(k));
        } else if (event == COPY_FREE) {
            free(k);
        }
    }
}

static int keep_section(const struct fort_array *array, const struct shape *s, bool input, struct fort_layout *l)
{
    struct fort_kept *k = malloc(sizeof(*k) + s->total * s->elem * (input ? 1 : 2));
    if (!k)
        return MPI_ERR_NO_MEM;
    *k = (struct fort_kept){.event = kept_event, .shape = *s, .section = array->base, .input = input};
    kept_event(k, COPY_IN);
    l->kept = k;
    l->address = k->packed;
    return MPI_SUCCESS;
}

struct fort_layout fort_layout(const struct fort_array *array, MPI_Count count, MPI_Datatype type,
                               enum fort_layouts kind, bool input)
{
    if (!is_known(array))
        return (struct fort_layout){.error = MPI_ERR_BUFFER};
    struct fort_layout l = {.address = fort_base(array), .count = count, .type = type};
    const struct shape s = shape_of(array);
    if (!s.dims || (count == 0 && kind == FORT_ANY))
        return l;
    if (kind != FORT_ONE_PIECE)
        l.error = describe_section(&s, kind, &l);
    if (kind == FORT_ONE_PIECE || (kind == FORT_EVEN && l.error))
        l.error = keep_section(array, &s, input, &l);
    return l;
}

void fort_layout_free(struct fort_layout *l)
{
    if (l->made)
        PMPI_Type_free(&l->type);
    free(l->kept);
}

void fort_layout_end(int error, const MPI_Fint *request, struct fort_layout *one, struct fort_layout *two)
{
    struct fort_kept *first = one->kept;
    if (first && two)
        first->next = two->kept;
    else if (two)
        first = two->kept;
    if (first && !error) {
        MPII_Request_set_copy(*request, first);
        one->kept = NULL;
        if (two)
            two->kept = NULL;
    }
    fort_layout_free(one);
    if (two)
        fort_layout_free(two);
}
