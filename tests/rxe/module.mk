# The same library on the kernel's own verbs, in a virtual machine
SCRIPT_TESTS += tests/rxe/short.sh
LONG_TESTS += tests/rxe/short.sh:--all
RXE_TESTS += $(addprefix tests/rxe/,laboratory.sh addresses.sh netpipe.sh rates.sh faults.sh down.sh mtu.sh mpi1.sh mpi2.sh links.sh verbs.sh)

# What rates.sh measures with: the program of bench/rxe.sh; and a stand-in for fabricd
TESTPROGS += tests/rxe/pair tests/rxe/levels
tests/rxe/pair_SRCS := bench/pair.c
CFLAGS.bench/pair.c := -Ilibmrmpi/include
tests/rxe/pair_DEPS := libmpi.so.12
tests/rxe/levels_SRCS := tests/rxe/levels.c
