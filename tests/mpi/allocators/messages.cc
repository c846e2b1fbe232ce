// SPDX-License-Identifier: BSD-3-Clause
// Vectors that come, grow and go between messages, at two ranks; every element is looked at.
#include <mpi.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

int main(int argc, char **argv)
{
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::vector<int> grows;
    for (int r = 0; r < 24; r++) {
        size_t n = 1000u << (r % 9);
        std::vector<int> v(n);
        std::unique_ptr<std::string> s(new std::string(n, 'a' + r));

        grows.resize(grows.size() + n);
        for (int from = 0; from < 4; from++)
            for (std::vector<int> *p : {&v, &grows}) {
                if (rank == from % 2) {
                    p->assign(p->size(), r + from);
                    MPI_Send(p->data(), (int)p->size(), MPI_INT, !rank, 1, MPI_COMM_WORLD);
                } else {
                    p->assign(p->size(), -1);
                    MPI_Recv(p->data(), (int)p->size(), MPI_INT, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                }
                for (int e : *p)
                    if (e != r + from) {
                        fprintf(stderr, "wrong: round %d, message %d\n", r, from);
                        MPI_Abort(MPI_COMM_WORLD, 1);
                    }
            }
        if (r % 8 == 7)
            std::vector<int>().swap(grows);
    }
    MPI_Finalize();
    return 0;
}
