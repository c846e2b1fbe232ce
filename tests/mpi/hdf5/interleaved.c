/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HDF5 over MPI: a dataset of two dimensions, with columns of the ranks in turn, in one stretch and in chunks, is
 * written and read independently and collectively. Each rank finds its own data, and an attribute the data of all.
 * interleaved FILE
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 256, COLUMNS = 24 };

static int rank, size;

static int once(const char *name, int collective, int chunked)
{
    const hsize_t dims[2] = {ROWS, (hsize_t)size * COLUMNS}, chunk[2] = {32, 16}, mine[2] = {ROWS, COLUMNS};
    const hsize_t start[2] = {0, (hsize_t)rank}, stride[2] = {1, (hsize_t)size};
    static int out[ROWS * COLUMNS], in[ROWS * COLUMNS];
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(2, dims, NULL), memory = H5Screate_simple(2, mine, NULL);
    hid_t xfer = H5Pcreate(H5P_DATASET_XFER), one = H5Screate(H5S_SCALAR);
    hid_t file, data, attr;
    int ranks = 0, bad = 0;

    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    H5Pset_dxpl_mpio(xfer, collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
    if (chunked)
        H5Pset_chunk(create, 2, chunk);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, mine, NULL);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        out[i] = rank * 100000 + i + collective + 2 * chunked;

    file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    data = H5Dcreate2(file, "data", H5T_NATIVE_INT, space, H5P_DEFAULT, create, H5P_DEFAULT);
    attr = H5Acreate2(data, "ranks", H5T_NATIVE_INT, one, H5P_DEFAULT, H5P_DEFAULT);
    bad |= H5Dwrite(data, H5T_NATIVE_INT, memory, space, xfer, out) < 0;
    bad |= H5Awrite(attr, H5T_NATIVE_INT, &size) < 0;
    H5Aclose(attr);
    H5Dclose(data);
    bad |= H5Fclose(file) < 0;

    file = H5Fopen(name, H5F_ACC_RDONLY, access);
    data = H5Dopen2(file, "data", H5P_DEFAULT);
    attr = H5Aopen(data, "ranks", H5P_DEFAULT);
    memset(in, 0, sizeof(in));
    bad |= H5Dread(data, H5T_NATIVE_INT, memory, space, xfer, in) < 0;
    bad |= H5Aread(attr, H5T_NATIVE_INT, &ranks) < 0;
    bad |= memcmp(in, out, sizeof(in)) != 0 || ranks != size;
    H5Aclose(attr);
    H5Dclose(data);
    bad |= H5Fclose(file) < 0;
    H5Sclose(space);
    H5Sclose(memory);
    H5Sclose(one);
    H5Pclose(access);
    H5Pclose(create);
    H5Pclose(xfer);
    return bad;
}

int main(int argc, char **argv)
{
    int bad = argc != 2, all;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 4 && !bad; i++)
        bad = once(argv[1], i & 1, i >> 1);
    MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s\n", all ? "wrong" : "right");
    MPI_Finalize();
    return all;
}
