/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cases of zero_sizes.c, compiled twice: F(MPI_Send) is MPI_Send or MPI_Send_c, C(name) a name of each, and cnt,
 * dsp and wide are the types of counts, displacements and sizes of external32. A case moves nothing from shape a to
 * shape b.
 */

static void C(p2p)(const struct shape *a, const struct shape *b)
{
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Request q[2];
    MPI_Status st;
    MPI_Message m;
    WORKS(F(MPI_Irecv)(IN(b), left, 1, comm, &q[0]));
    WORKS(F(MPI_Send)(OUT(a), right, 1, comm));
    WORKS(MPI_Wait(&q[0], &st));
    nothing(&st, left, 1, b);
    WORKS(F(MPI_Irecv)(IN(b), left, 2, comm, &q[0]));
    WORKS(F(MPI_Ssend)(OUT(a), right, 2, comm));
    WORKS(MPI_Wait(&q[0], &st));
    nothing(&st, left, 2, b);
    WORKS(F(MPI_Bsend)(OUT(a), right, 3, comm));
    WORKS(F(MPI_Recv)(IN(b), left, 3, comm, &st));
    nothing(&st, left, 3, b);
    WORKS(F(MPI_Irecv)(IN(b), left, 4, comm, &q[0]));
    WORKS(MPI_Barrier(comm));
    WORKS(F(MPI_Rsend)(OUT(a), right, 4, comm));
    WORKS(MPI_Wait(&q[0], &st));
    nothing(&st, left, 4, b);
    WORKS(F(MPI_Sendrecv)(OUT(a), right, 5, IN(b), left, 5, comm, &st));
    nothing(&st, left, 5, b);
    WORKS(F(MPI_Sendrecv_replace)(IN(a), right, 6, left, 6, comm, &st));
    nothing(&st, left, 6, a);
    WORKS(F(MPI_Isendrecv)(OUT(a), right, 7, IN(b), left, 7, comm, &q[0]));
    WORKS(MPI_Wait(&q[0], &st));
    nothing(&st, left, 7, b);
    WORKS(F(MPI_Isendrecv_replace)(IN(a), right, 8, left, 8, comm, &q[0]));
    WORKS(MPI_Wait(&q[0], &st));
    nothing(&st, left, 8, a);
    int (*const begin[])(const void *, cnt, MPI_Datatype, int, int, MPI_Comm,
                         MPI_Request *) = {F(MPI_Isend), F(MPI_Issend), F(MPI_Ibsend)};
    for (int k = 0; k < 3; k++) {
        WORKS(begin[k](OUT(a), right, 9, comm, &q[0]));
        WORKS(MPI_Mprobe(left, 9, comm, &m, &st));
        nothing(&st, left, 9, b);
        if (k)
            WORKS(F(MPI_Mrecv)(IN(b), &m, &st));
        else
            WORKS(F(MPI_Imrecv)(IN(b), &m, &q[1]));
        if (!k)
            WORKS(MPI_Wait(&q[1], &st));
        nothing(&st, left, 9, b);
        WORKS(MPI_Wait(&q[0], MPI_STATUS_IGNORE));
    }
    int (*const make[])(const void *, cnt, MPI_Datatype, int, int, MPI_Comm,
                        MPI_Request *) = {F(MPI_Send_init), F(MPI_Ssend_init), F(MPI_Bsend_init), F(MPI_Rsend_init)};
    for (int k = 0; k < 4; k++) {
        WORKS(F(MPI_Recv_init)(IN(b), left, 10, comm, &q[0]));
        WORKS(make[k](OUT(a), right, 10, comm, &q[1]));
        for (int again = 0; again < 2; again++) {
            WORKS(MPI_Start(&q[0]));
            WORKS(MPI_Barrier(comm));
            WORKS(MPI_Start(&q[1]));
            WORKS(MPI_Wait(&q[0], &st));
            nothing(&st, left, 10, b);
            WORKS(MPI_Wait(&q[1], MPI_STATUS_IGNORE));
        }
        WORKS(MPI_Request_free(&q[0]));
        WORKS(MPI_Request_free(&q[1]));
    }
    /* no process: the amounts say nothing */
    WORKS(F(MPI_Send)(OUT(a), MPI_PROC_NULL, 0, comm));
    WORKS(F(MPI_Recv)(IN(b), MPI_PROC_NULL, 0, comm, &st));
    nothing(&st, MPI_PROC_NULL, MPI_ANY_TAG, b);
    WORKS(F(MPI_Sendrecv_replace)(IN(a), MPI_PROC_NULL, 6, MPI_PROC_NULL, 6, comm, &st));
    WORKS(MPI_Mprobe(MPI_PROC_NULL, 0, comm, &m, &st));
    WORKS(F(MPI_Mrecv)(IN(b), &m, &st));
    WORKS(F(MPI_Irecv)(IN(b), MPI_PROC_NULL, 0, comm, &q[0]));
    WORKS(F(MPI_Issend)(OUT(a), MPI_PROC_NULL, 0, comm, &q[1]));
    WORKS(MPI_Waitall(2, q, MPI_STATUSES_IGNORE));
}

/* Blocking, with a request, and persistent. */
#define ALL_FORMS(name, iname, ...)                                                                                    \
    do {                                                                                                               \
        MPI_Request q_;                                                                                                \
        WORKS(F(MPI_##name)(__VA_ARGS__));                                                                             \
        WORKS(F(MPI_##iname)(__VA_ARGS__, &q_));                                                                       \
        WORKS(MPI_Wait(&q_, MPI_STATUS_IGNORE));                                                                       \
        WORKS(F(MPI_##name##_init)(__VA_ARGS__, MPI_INFO_NULL, &q_));                                                  \
        WORKS(MPI_Start(&q_));                                                                                         \
        WORKS(MPI_Wait(&q_, MPI_STATUS_IGNORE));                                                                       \
        WORKS(MPI_Request_free(&q_));                                                                                  \
    } while (0)

static void C(collectives)(const struct shape *a, const struct shape *b)
{
    cnt *an = room(sizeof(cnt) * (size_t)size), *bn = room(sizeof(cnt) * (size_t)size);
    dsp *at = room(sizeof(dsp) * (size_t)size);
    MPI_Datatype *ta = room(sizeof(MPI_Datatype) * (size_t)size), *tb = room(sizeof(MPI_Datatype) * (size_t)size);
    const int root = size - 1;
    for (int r = 0; r < size; r++) {
        an[r] = a->count;
        bn[r] = b->count;
        at[r] = 17 * r; /* nobody goes there */
        ta[r] = r % 2 ? a->type : b->type;
        tb[r] = b->type;
        an[r] = r % 2 ? a->count : b->count;
    }
    cnt *as = room(sizeof(cnt) * (size_t)size);
    for (int r = 0; r < size; r++)
        as[r] = a->count;
    ALL_FORMS(Bcast, Ibcast, rank == root ? a->buf : b->buf, rank == root ? a->count : b->count,
              rank == root ? a->type : b->type, root, comm);
    ALL_FORMS(Gather, Igather, OUT(a), IN(b), root, comm);
    ALL_FORMS(Gatherv, Igatherv, OUT(a), b->buf, bn, at, b->type, root, comm);
    ALL_FORMS(Scatter, Iscatter, OUT(a), IN(b), root, comm);
    ALL_FORMS(Scatterv, Iscatterv, a->buf, as, at, a->type, IN(b), root, comm);
    ALL_FORMS(Allgather, Iallgather, OUT(a), IN(b), comm);
    ALL_FORMS(Allgatherv, Iallgatherv, OUT(a), b->buf, bn, at, b->type, comm);
    ALL_FORMS(Alltoall, Ialltoall, OUT(a), IN(b), comm);
    ALL_FORMS(Alltoallv, Ialltoallv, a->buf, as, at, a->type, b->buf, bn, at, b->type, comm);
    ALL_FORMS(Alltoallw, Ialltoallw, a->buf, an, at, ta, b->buf, bn, at, tb, comm);
    ALL_FORMS(Allgather, Iallgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, IN(b), comm);
    ALL_FORMS(Alltoall, Ialltoall, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, IN(b), comm);
    free(an);
    free(as);
    free(bn);
    free(at);
    free(ta);
    free(tb);
}

/* Without elements a reduction of types of the program's has nothing to call its operation for. */
static void C(reductions)(const struct shape *a, const struct shape *b)
{
    /* MPI's operations are for MPI's types; the program's own for all */
    const bool basic = a->type == MPI_INT || a->type == MPI_DOUBLE_INT;
    const MPI_Op op = !basic ? own_op : a->type == MPI_INT ? MPI_SUM : MPI_MAXLOC;
    const int root = size - 1;
    void *to = b->buf;
    cnt *n = room(sizeof(cnt) * (size_t)size);
    for (int r = 0; r < size; r++)
        n[r] = a->count;
    ALL_FORMS(Reduce, Ireduce, a->buf, to, a->count, a->type, op, root, comm);
    ALL_FORMS(Allreduce, Iallreduce, a->buf, to, a->count, a->type, op, comm);
    ALL_FORMS(Allreduce, Iallreduce, MPI_IN_PLACE, to, a->count, a->type, op, comm);
    ALL_FORMS(Scan, Iscan, a->buf, to, a->count, a->type, op, comm);
    ALL_FORMS(Exscan, Iexscan, a->buf, to, a->count, a->type, op, comm);
    ALL_FORMS(Reduce_scatter, Ireduce_scatter, a->buf, to, n, a->type, op, comm);
    ALL_FORMS(Reduce_scatter_block, Ireduce_scatter_block, a->buf, to, a->count, a->type, op, comm);
    WORKS(F(MPI_Reduce_local)(a->buf, to, a->count, a->type, op));
    free(n);
}

static void C(neighbours)(const struct shape *a, const struct shape *b)
{
    for (int k = 0; k < 2; k++) { /* a ring, and no neighbours at all */
        const MPI_Comm c = k ? lonely : ring;
        cnt an[2] = {a->count, a->count}, bn[2] = {b->count, b->count};
        dsp at[2] = {3, 4};
        MPI_Aint far[2] = {3, 4};
        MPI_Datatype ta[2] = {a->type, a->type}, tb[2] = {b->type, b->type};
        ALL_FORMS(Neighbor_allgather, Ineighbor_allgather, OUT(a), IN(b), c);
        ALL_FORMS(Neighbor_allgatherv, Ineighbor_allgatherv, OUT(a), b->buf, k ? NULL : bn, k ? NULL : at, b->type, c);
        ALL_FORMS(Neighbor_alltoall, Ineighbor_alltoall, OUT(a), IN(b), c);
        ALL_FORMS(Neighbor_alltoallv, Ineighbor_alltoallv, a->buf, k ? NULL : an, k ? NULL : at, a->type, b->buf,
                  k ? NULL : bn, k ? NULL : at, b->type, c);
        ALL_FORMS(Neighbor_alltoallw, Ineighbor_alltoallw, a->buf, k ? NULL : an, k ? NULL : far, k ? NULL : ta, b->buf,
                  k ? NULL : bn, k ? NULL : far, k ? NULL : tb, c);
    }
}

/* Operations without a request, at a place of a target. */
static void C(operations)(const struct shape *a, const struct shape *b, int target, MPI_Aint at, MPI_Win w)
{
    static const MPI_Op ops[] = {MPI_SUM, MPI_REPLACE, MPI_MAXLOC, MPI_BXOR};
    WORKS(F(MPI_Put)(OUT(a), target, at, b->count, b->type, w));
    WORKS(F(MPI_Get)(IN(a), target, at, b->count, b->type, w));
    for (int k = 0; k < 4; k++) {
        WORKS(F(MPI_Accumulate)(OUT(a), target, at, b->count, b->type, ops[k], w));
        WORKS(F(MPI_Get_accumulate)(OUT(a), IN(b), target, at, a->count, a->type, ops[k], w));
    }
    WORKS(F(MPI_Get_accumulate)(NULL, 0, MPI_DATATYPE_NULL, IN(b), target, at, a->count, a->type, MPI_NO_OP, w));
}

static void C(requests)(const struct shape *a, const struct shape *b, int target, MPI_Aint at, MPI_Win w)
{
    MPI_Request q[4];
    WORKS(F(MPI_Rput)(OUT(a), target, at, b->count, b->type, w, &q[0]));
    WORKS(F(MPI_Rget)(IN(a), target, at, b->count, b->type, w, &q[1]));
    WORKS(F(MPI_Raccumulate)(OUT(a), target, at, b->count, b->type, MPI_SUM, w, &q[2]));
    WORKS(F(MPI_Rget_accumulate)(OUT(a), IN(b), target, at, a->count, a->type, MPI_PROD, w, &q[3]));
    WORKS(MPI_Waitall(4, q, MPI_STATUSES_IGNORE));
}

static void C(windows)(const struct shape *a, const struct shape *b)
{
    const int right = (rank + 1) % size;
    for (int k = 0; k < NUM_WINDOWS; k++) {
        const MPI_Win w = window[k];
        WORKS(MPI_Win_fence(0, w));
        C(operations)(a, b, right, 0, w);
        C(operations)(a, b, MPI_PROC_NULL, -5, w);
        WORKS(MPI_Win_fence(0, w));
        WORKS(MPI_Win_lock_all(0, w));
        C(operations)(a, b, right, 0, w);
        C(operations)(a, b, rank, 0, w);
        C(requests)(a, b, right, 0, w);
        C(requests)(a, b, MPI_PROC_NULL, 0, w);
        WORKS(MPI_Win_unlock_all(w));
        WORKS(MPI_Barrier(comm)); /* no epoch of all begins while somebody's lock is held */
    }
}

static void C(packing)(const struct shape *a, const struct shape *b)
{
    cnt n = -1, at = 0;
    wide x = -1, xat = 0;
    char packed[8] = "before";
    WORKS(F(MPI_Pack_size)(a->count, a->type, comm, &n));
    EQ(n, 0);
    WORKS(F(MPI_Pack)(OUT(a), NULL, 0, &at, comm));
    WORKS(F(MPI_Pack)(OUT(a), packed, 0, &at, comm));
    WORKS(F(MPI_Unpack)(NULL, 0, &at, IN(b), comm));
    at = 3;
    WORKS(F(MPI_Pack)(OUT(a), packed, 3, &at, comm));
    WORKS(F(MPI_Unpack)(packed, 3, &at, IN(b), comm));
    EQ(at, 3);
    WORKS(F(MPI_Pack_external_size)("external32", a->count, a->type, &x));
    EQ(x, 0);
    WORKS(F(MPI_Pack_external)("external32", OUT(a), NULL, 0, &xat));
    WORKS(F(MPI_Unpack_external)("external32", NULL, 0, &xat, IN(b)));
    EQ(xat, 0);
    CHECK(!strcmp(packed, "before"));
}

static void C(files)(const struct shape *a, const struct shape *b)
{
    MPI_Status st;
    MPI_Request q;
    MPI_Offset before, after;
    for (int k = 0; k < NUM_FILES; k++) {
        const MPI_File f = file[k];
        WORKS(MPI_File_get_position(f, &before));
#define MOVES(call)                                                                                                    \
    do {                                                                                                               \
        WORKS(call);                                                                                                   \
        none_of(&st, a);                                                                                               \
    } while (0)
        MOVES(F(MPI_File_write)(f, OUT(a), &st));
        MOVES(F(MPI_File_read)(f, IN(b), &st));
        MOVES(F(MPI_File_write_at)(f, 5, OUT(a), &st));
        MOVES(F(MPI_File_read_at)(f, 5, IN(b), &st));
        MOVES(F(MPI_File_write_all)(f, OUT(a), &st));
        MOVES(F(MPI_File_read_all)(f, IN(b), &st));
        MOVES(F(MPI_File_write_at_all)(f, 5, OUT(a), &st));
        MOVES(F(MPI_File_read_at_all)(f, 5, IN(b), &st));
        MOVES(F(MPI_File_write_shared)(f, OUT(a), &st));
        MOVES(F(MPI_File_read_shared)(f, IN(b), &st));
        MOVES(F(MPI_File_write_ordered)(f, OUT(a), &st));
        MOVES(F(MPI_File_read_ordered)(f, IN(b), &st));
#define BEGUN(call)                                                                                                    \
    do {                                                                                                               \
        WORKS(call);                                                                                                   \
        WORKS(MPI_Wait(&q, &st));                                                                                      \
        none_of(&st, a);                                                                                               \
    } while (0)
        BEGUN(F(MPI_File_iwrite)(f, OUT(a), &q));
        BEGUN(F(MPI_File_iread)(f, IN(b), &q));
        BEGUN(F(MPI_File_iwrite_at)(f, 5, OUT(a), &q));
        BEGUN(F(MPI_File_iread_at)(f, 5, IN(b), &q));
        BEGUN(F(MPI_File_iwrite_all)(f, OUT(a), &q));
        BEGUN(F(MPI_File_iread_all)(f, IN(b), &q));
        BEGUN(F(MPI_File_iwrite_at_all)(f, 5, OUT(a), &q));
        BEGUN(F(MPI_File_iread_at_all)(f, 5, IN(b), &q));
        BEGUN(F(MPI_File_iwrite_shared)(f, OUT(a), &q));
        BEGUN(F(MPI_File_iread_shared)(f, IN(b), &q));
        WORKS(F(MPI_File_write_all_begin)(f, OUT(a)));
        MOVES(MPI_File_write_all_end(f, a->buf, &st));
        WORKS(F(MPI_File_read_all_begin)(f, IN(b)));
        MOVES(MPI_File_read_all_end(f, b->buf, &st));
        WORKS(F(MPI_File_write_at_all_begin)(f, 5, OUT(a)));
        MOVES(MPI_File_write_at_all_end(f, a->buf, &st));
        WORKS(F(MPI_File_read_at_all_begin)(f, 5, IN(b)));
        MOVES(MPI_File_read_at_all_end(f, b->buf, &st));
        WORKS(F(MPI_File_write_ordered_begin)(f, OUT(a)));
        MOVES(MPI_File_write_ordered_end(f, a->buf, &st));
        WORKS(F(MPI_File_read_ordered_begin)(f, IN(b)));
        MOVES(MPI_File_read_ordered_end(f, b->buf, &st));
        WORKS(MPI_File_get_position(f, &after));
        EQ(after, before);
        WORKS(MPI_File_get_position_shared(f, &after));
        EQ(after, 0);
        WORKS(MPI_File_get_size(f, &after));
        EQ(after, 0);
    }
#undef MOVES
#undef BEGUN
}

#undef ALL_FORMS
#undef F
#undef C
