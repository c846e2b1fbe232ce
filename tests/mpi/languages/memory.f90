! SPDX-License-Identifier: BSD-3-Clause
! Large arrays between two ranks, that are sent twice, given back to the system, and allocated again, mostly at the same
! place. Silent if every value arrives.
program memory
  use mpi
  implicit none
  integer, parameter :: n = 5000000 ! 40 MB: a mapping of its own
  integer :: ierr, rank, i, j, wrong = 0
  double precision, allocatable :: x(:)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  do i = 1, 4
    allocate(x(n))
    do j = 1, 2
      x = 10 * i + j + rank
      if (rank == 0) call MPI_Send(x, n, MPI_DOUBLE_PRECISION, 1, 0, MPI_COMM_WORLD, ierr)
      if (rank == 1) call MPI_Recv(x, n, MPI_DOUBLE_PRECISION, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      if (rank < 2 .and. any(x /= 10 * i + j)) wrong = wrong + 1
    end do
    deallocate(x)
  end do
  call MPI_Finalize(ierr)
  if (wrong /= 0) print *, 'rank', rank, ':', wrong, 'messages with wrong values'
  if (wrong /= 0) stop 1
end program
