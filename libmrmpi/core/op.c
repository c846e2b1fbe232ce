/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduction operations. A built-in one is a row of a table by number kind (core/basic.h): op_loops.h.
 */
#include "libmrmpi/core/op_loops.h"

#include <stdlib.h>

static const uint8_t number_of[MR_NUM_BASICS] = {
#define X(id, ctype, num) [MR_BASIC_##id] = MR_NUM_##num,
    MR_BASICS(X)
#undef X
#define X(id, ...) [MR_BASIC_##id] = MR_NUM_##id,
        MR_PAIRS(X)
#undef X
};

#define BUILTIN(op) [MR_OP_##op] = {.refs = 1, .id = MR_OP_##op, .commutative = true}
struct mr_op mr_op_builtin[MR_OP_COUNT] = {
    BUILTIN(MAX),
    BUILTIN(MIN),
    BUILTIN(SUM),
    BUILTIN(PROD),
    BUILTIN(LAND),
    BUILTIN(BAND),
    BUILTIN(LOR),
    BUILTIN(BOR),
    BUILTIN(LXOR),
    BUILTIN(BXOR),
    BUILTIN(MINLOC),
    BUILTIN(MAXLOC),
    [MR_OP_REPLACE] = {.refs = 1, .id = MR_OP_REPLACE},
    [MR_OP_NO_OP] = {.refs = 1, .id = MR_OP_NO_OP},
};

struct mr_op *mr_op_new(void)
{
    struct mr_op *op = calloc(1, sizeof(*op));
    if (op)
        *op = (struct mr_op){.refs = 1, .id = MR_OP_USER};
    return op;
}

struct mr_op *mr_op_get(struct mr_op *op)
{
    if (op->id == MR_OP_USER)
        op->refs++;
    return op;
}

void mr_op_put(struct mr_op *op)
{
    if (op->id == MR_OP_USER && --op->refs == 0)
        free(op);
}

/* A property of the machine, so asked once. */
static const struct mr_op_loops *fastest_op_loops(void)
{
    static const struct mr_op_loops *found;
    if (unlikely(!found))
        found = mr_op_loops_at(mr_vectors());
    return found;
}

bool mr_op_allows(const struct mr_op *op, const struct mr_type *type)
{
    if (op->id == MR_OP_USER)
        return true;
    return type->builtin && mr_op_loops_base.of[number_of[type->basic]][op->id];
}

bool mr_op_alike(uint8_t a, uint8_t b)
{
    return a < MR_NUM_BASICS && b < MR_NUM_BASICS && number_of[a] == number_of[b];
}

const char *mr_op_name(const struct mr_op *op)
{
    static const char *const names[MR_OP_COUNT + 1] = {
        "MPI_MAX",  "MPI_MIN",  "MPI_SUM",    "MPI_PROD",   "MPI_LAND",    "MPI_BAND",  "MPI_LOR",          "MPI_BOR",
        "MPI_LXOR", "MPI_BXOR", "MPI_MINLOC", "MPI_MAXLOC", "MPI_REPLACE", "MPI_NO_OP", "user's operation",
    };
    return names[op->id];
}

void mr_op_apply(const struct mr_op *op, const void *in, void *inout, size_t count, struct mr_type *type)
{
    if (count == 0)
        return;
    if (op->id == MR_OP_USER)
        op->invoke(op, in, inout, count, type);
    else
        fastest_op_loops()->of[number_of[type->basic]][op->id](in, inout, count);
}
