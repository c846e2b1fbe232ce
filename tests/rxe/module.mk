# The same library on the kernel's own verbs, in a virtual machine
RXE_TESTS += tests/rxe/netpipe.sh tests/rxe/rates.sh tests/rxe/mpi1.sh tests/rxe/mpi2.sh tests/rxe/verbs.sh

# What rates.sh measures with: the program of bench/rxe.sh
TESTPROGS += tests/rxe/pair
tests/rxe/pair_SRCS := bench/pair.c
tests/rxe/pair_CFLAGS := -Ilibmrmpi/include
tests/rxe/pair_DEPS := libmpi.so.12
