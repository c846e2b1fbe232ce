/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory for the program (MPI-4.0 section 9.2). Blocks are remembered, so MPI_Free_mem detects other addresses, and the
 * library's end detects unreturned blocks.
 */
#include "libmrmpi/api/api.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/api/life.h"

struct block {
    void *start; /* first: the key of comparisons */
    size_t bytes;
};
static void *blocks; /* a tree, see tsearch(3) */

static int by_start(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const struct block *)a)->start, y = (uintptr_t)((const struct block *)b)->start;
    return (x > y) - (x < y);
}

static enum mr_err remember(void *start, size_t bytes)
{
    struct block *b = malloc(sizeof(*b));
    if (b) {
        *b = (struct block){start, bytes};
        if (tsearch(b, &blocks, by_start))
            return MR_SUCCESS;
    }
    free(b);
    free(start);
    return mr_fail(MR_ERR_NO_MEM, "no memory to remember a block with");
}

MPI_FN(int, Alloc_mem, (MPI_Aint size, MPI_Info info, void *baseptr))
{
    API_ENTER();
    NOT_NULL(baseptr);
    CHECK(api_hints(info));
    if (size < 0)
        CHECK(mr_fail(MR_ERR_ARG, "size is %ld", size));
    void *p = NULL;
    if (size && posix_memalign(&p, 64, (size_t)size))
        CHECK(mr_fail(MR_ERR_NO_MEM, "no memory for %ld bytes", size));
    if (size)
        CHECK(remember(p, (size_t)size));
    memcpy(baseptr, &p, sizeof(p));
    API_LEAVE(NULL);
}

/* MPI_Alloc_mem returns a null pointer for no bytes. */
MPI_FN(int, Free_mem, (void *base))
{
    API_ENTER();
    struct block **at = tfind(&(struct block){.start = base}, &blocks, by_start);
    if (!at && base)
        CHECK(
            mr_fail(MR_ERR_BASE, "base is %p, which MPI_Alloc_mem has not given or MPI_Free_mem has taken back", base));
    if (at) {
        struct block *b = *at;
        tdelete(b, &blocks, by_start);
        free(b);
        free(base);
    }
    API_LEAVE(NULL);
}

struct visitor {
    void (*see)(const void *start, size_t bytes, void *arg);
    void *arg;
};

static void visit_block(const void *node, VISIT visit, void *visitor)
{
    const struct block *b = *(struct block *const *)node;
    const struct visitor *v = visitor;
    if (visit == postorder || visit == leaf)
        v->see(b->start, b->bytes, v->arg);
}

void api_alloc_each(void (*see)(const void *start, size_t bytes, void *arg), void *arg)
{
    twalk_r(blocks, visit_block, &(struct visitor){see, arg});
}
