// SPDX-License-Identifier: BSD-3-Clause
// A program of the C++ bindings (MPI-2), through MPICH's own library of them. Silent if all is well.
#include <mpi.h>

#include <cstdio>
#include <cstring>

static int rank, ranks, wrong, copied, deleted, handled;

static void check(bool ok, const char *what)
{
    if (!ok) {
        wrong++;
        std::printf("rank %d: %s\n", rank, what);
    }
}

static void add_twice(const void *in, void *inout, int n, const MPI::Datatype &type)
{
    check(type == MPI::INT, "an operation gets the type");
    for (int i = 0; i < n; i++)
        static_cast<int *>(inout)[i] += 2 * static_cast<const int *>(in)[i];
}

static int copy_attr(const MPI::Comm &from, int, void *extra, void *value, void *out, bool &flag)
{
    copied += from.Get_size() == ranks && extra == &copied;
    *static_cast<void **>(out) = static_cast<char *>(value) + 1;
    flag = true;
    return MPI_SUCCESS;
}

static int delete_attr(MPI::Comm &, int, void *, void *extra)
{
    deleted += extra == &copied;
    return MPI_SUCCESS;
}

static void on_error(MPI::Comm &comm, int *code, ...)
{
    handled += comm.Get_size() == ranks && *code != MPI_SUCCESS;
}

static void messages()
{
    int got = -1, to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    MPI::Status st;
    MPI::Request req = MPI::COMM_WORLD.Isend(&rank, 1, MPI::INT, to, 4);
    MPI::COMM_WORLD.Recv(&got, 1, MPI::INT, MPI::ANY_SOURCE, 4, st);
    req.Wait();
    check(got == from && st.Get_source() == from && st.Get_count(MPI::INT) == 1, "a ring");
}

static void collectives()
{
    int sum = 0, x = 1;
    MPI::COMM_WORLD.Allreduce(&rank, &sum, 1, MPI::INT, MPI::SUM);
    check(sum == ranks * (ranks - 1) / 2, "sum of the ranks");
    MPI::Op op;
    op.Init(add_twice, false);
    op.Reduce_local(&rank, &x, 1, MPI::INT);
    check(x == 1 + 2 * rank, "an operation of our own");
    op.Free();
}

static void attributes()
{
    char place[2];
    void *value = nullptr;
    int key = MPI::Comm::Create_keyval(copy_attr, delete_attr, &copied), *tag_ub;
    check(MPI::COMM_WORLD.Get_attr(MPI::TAG_UB, &tag_ub) && *tag_ub >= 32767, "the largest tag");
    MPI::COMM_WORLD.Set_attr(key, place);
    MPI::Intracomm dup = MPI::COMM_WORLD.Dup();
    check(dup.Get_attr(key, &value) && value == place + 1, "the copy has what the callback made");
    dup.Free();
    check(copied == 1 && deleted == 1, "callbacks are called");
    MPI::COMM_WORLD.Delete_attr(key);
    MPI::Comm::Free_keyval(key);
}

static void errors()
{
    MPI::Errhandler handler = MPI::Comm::Create_errhandler(on_error);
    MPI::COMM_WORLD.Set_errhandler(handler);
    MPI::COMM_WORLD.Send(&rank, 1, MPI::INT, ranks, 0);
    check(handled >= 1, "the error handler is called");
    handler.Free();
    MPI::COMM_WORLD.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
    int caught = 0;
    try {
        MPI::COMM_WORLD.Send(&rank, 1, MPI::INT, ranks, 0);
    } catch (MPI::Exception &e) {
        caught = e.Get_error_class();
    }
    check(caught == MPI::ERR_RANK, "an exception with its class");
    check(MPI::COMM_WORLD.Get_errhandler() == MPI::ERRORS_THROW_EXCEPTIONS, "the handler that throws is what it was");
}

static void objects()
{
    bool periods[] = {true};
    MPI::Cartcomm ring = MPI::COMM_WORLD.Create_cart(1, &ranks, periods, false);
    int from, to, v[4] = {1, 2, 3, 4};
    ring.Shift(0, 1, from, to);
    check(to == (rank + 1) % ranks, "a ring's neighbours");
    ring.Free();
    MPI::Datatype t = MPI::INT.Create_vector(2, 1, 2);
    t.Commit();
    if (rank)
        std::memset(v, 0, sizeof v);
    MPI::COMM_WORLD.Bcast(v, 1, t, 0);
    check(v[0] == 1 && v[2] == 3 && (!rank || !v[1]), "a vector type");
    t.Free();
}

int main(int argc, char **argv)
{
    MPI::Init(argc, argv);
    rank = MPI::COMM_WORLD.Get_rank();
    ranks = MPI::COMM_WORLD.Get_size();
    messages();
    collectives();
    attributes();
    errors();
    objects();
    MPI::Finalize();
    return wrong != 0;
}
