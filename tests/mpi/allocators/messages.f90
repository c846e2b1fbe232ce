! SPDX-License-Identifier: BSD-3-Clause
! Arrays that are allocated and freed between messages, at two ranks; every element is looked at.
program messages
  use mpi
  implicit none
  integer :: rank, ierr, r, n, i, from
  integer, allocatable :: a(:)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  do r = 1, 24
    n = 1000 * 3 ** mod(r, 8)
    allocate(a(n))
    do i = 0, 3
      from = mod(i, 2)
      if (rank == from) then
        a = r + i
        call MPI_Send(a, n, MPI_INTEGER, 1 - from, 1, MPI_COMM_WORLD, ierr)
      else
        a = 0
        call MPI_Recv(a, n, MPI_INTEGER, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      end if
      if (any(a /= r + i)) then
        print *, 'wrong: round', r, 'message', i
        call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
      end if
    end do
    deallocate(a)
  end do
  call MPI_Finalize(ierr)
end program messages
