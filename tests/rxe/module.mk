# The same library on the kernel's own verbs, in a virtual machine
RXE_TESTS += tests/rxe/netpipe.sh tests/rxe/mpi1.sh tests/rxe/mpi2.sh tests/rxe/verbs.sh
