! SPDX-License-Identifier: BSD-3-Clause
! A Fortran program with the module mpi_f08: types for handles, errors left out, sections of arrays. Silent if all is well.
program fortran08
  use mpi_f08
  implicit none
  integer :: rank, ranks, wrong = 0
  logical :: weighted
  call MPI_Init
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call messages
  call sections
  call collectives
  call objects
  call graphs
  call files
  call MPI_Finalize
  if (wrong /= 0) stop 1
contains
  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(*), intent(in) :: what
    if (ok) return
    wrong = wrong + 1
    print *, 'rank', rank, ': ', what
  end subroutine

  subroutine messages
    type(MPI_Status) :: st, sts(2)
    type(MPI_Request) :: req(2)
    integer :: got, n
    call MPI_Irecv(got, 1, MPI_INTEGER, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, req(1))
    call MPI_Isend(rank, 1, MPI_INTEGER, mod(rank + 1, ranks), 3, MPI_COMM_WORLD, req(2))
    call MPI_Waitall(2, req, sts)
    call check(got == mod(rank + ranks - 1, ranks) .and. sts(1)%MPI_SOURCE == got, 'a ring')
    call MPI_Get_count(sts(1), MPI_INTEGER, n)
    call check(n == 1, 'its count')
    call MPI_Sendrecv(rank, 1, MPI_INTEGER, rank, 1, got, 1, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, st)
    call check(got == rank .and. st%MPI_TAG == 1, 'to oneself')
    call MPI_Sendrecv(rank, 1, MPI_INTEGER, rank, 1, got, 1, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Irecv(got, 1, MPI_INTEGER, MPI_PROC_NULL, 3, MPI_COMM_WORLD, req(1))
    req(2) = MPI_REQUEST_NULL
    call MPI_Waitall(2, req, MPI_STATUSES_IGNORE)
  end subroutine

  subroutine sections
    integer :: a(20), b(20), i
    a = [(100 * rank + i, i = 1, 20)]
    b = -1
    call MPI_Sendrecv(a(1:20:2), 10, MPI_INTEGER, mod(rank + 1, ranks), 1, &
                      b(2:20:2), 10, MPI_INTEGER, mod(rank + ranks - 1, ranks), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(all(b(1:20:2) == -1), 'what lies between stays')
    call check(all(b(2:20:2) == [(100 * mod(rank + ranks - 1, ranks) + i, i = 1, 20, 2)]), 'every other element')
  end subroutine

  subroutine collectives
    double precision :: x(5)
    integer :: sum
    x = rank
    call MPI_Allreduce(MPI_IN_PLACE, x, 5, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
    call check(all(x == ranks - 1), 'maximum in place')
    call MPI_Reduce(rank, sum, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
    if (rank == 0) call check(sum == ranks * (ranks - 1) / 2, 'sum of the ranks')
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine

  subroutine objects
    type(MPI_Comm) :: comm
    type(MPI_Datatype) :: t
    type(MPI_Group) :: g
    integer :: n, code, v(4)
    integer(kind=MPI_ADDRESS_KIND) :: value
    logical :: found
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, comm)
    call MPI_Comm_rank(comm, n)
    call check(n == (ranks - 1 - rank) / 2, 'a split in reverse')
    call check(comm /= MPI_COMM_WORLD, 'handles compare')
    call MPI_Comm_group(comm, g)
    call MPI_Group_free(g)
    call MPI_Comm_free(comm)
    call check(comm == MPI_COMM_NULL, 'freed handles are null')
    call MPI_Type_vector(2, 1, 2, MPI_INTEGER, t)
    call MPI_Type_commit(t)
    v = [1, 2, 3, 4]
    if (rank /= 0) v = 0
    call MPI_Bcast(v, 1, t, 0, MPI_COMM_WORLD)
    call check(v(1) == 1 .and. v(3) == 3 .and. (rank == 0 .or. v(2) == 0), 'a vector type')
    call MPI_Type_free(t)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, found)
    call check(found .and. value >= 32767, 'the largest tag')
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPI_Send(n, 1, MPI_INTEGER, ranks, 0, MPI_COMM_WORLD, code)
    call check(code /= MPI_SUCCESS, 'an error is returned where it is asked for')
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL)
  end subroutine

  ! A ring made in every way that there is to say "no weights": the address that stands for it is C's.
  subroutine graphs
    type(MPI_Comm) :: ring
    integer :: left(1), right(1), none(0), in, out, w(1)
    left = mod(rank + ranks - 1, ranks)
    right = mod(rank + 1, ranks)
    call MPI_Dist_graph_create(MPI_COMM_WORLD, 1, [rank], [1], right, MPI_UNWEIGHTED, MPI_INFO_NULL, .false., ring)
    call neighbours(ring, .false., 'without weights')
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, left, MPI_UNWEIGHTED, 1, right, MPI_UNWEIGHTED, &
                                        MPI_INFO_NULL, .false., ring)
    call neighbours(ring, .false., 'adjacent, without weights')
    call MPI_Dist_graph_create(MPI_COMM_WORLD, 1, [rank], [1], right, [rank + 5], MPI_INFO_NULL, .false., ring)
    call neighbours(ring, .true., 'with weights')
    w = left + 5
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, left, w, 1, right, [rank + 5], MPI_INFO_NULL, .false., ring)
    call neighbours(ring, .true., 'adjacent, with weights')
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, none, MPI_WEIGHTS_EMPTY, 0, none, MPI_WEIGHTS_EMPTY, &
                                        MPI_INFO_NULL, .false., ring)
    call MPI_Dist_graph_neighbors_count(ring, in, out, weighted)
    call check(in == 0 .and. out == 0 .and. weighted, 'no edges, but weights')
    call MPI_Comm_free(ring)
  end subroutine

  subroutine neighbours(ring, weights, what)
    type(MPI_Comm), intent(inout) :: ring
    logical, intent(in) :: weights
    character(*), intent(in) :: what
    integer :: in, out, from(1), to(1), from_weight(1), to_weight(1), got
    call MPI_Dist_graph_neighbors_count(ring, in, out, weighted)
    call check(in == 1 .and. out == 1 .and. (weighted .eqv. weights), what)
    if (weights) then
      call MPI_Dist_graph_neighbors(ring, 1, from, from_weight, 1, to, to_weight)
      call check(from_weight(1) == from(1) + 5 .and. to_weight(1) == rank + 5, what // ': weights')
    else
      call MPI_Dist_graph_neighbors(ring, 1, from, MPI_UNWEIGHTED, 1, to, MPI_UNWEIGHTED)
    end if
    call check(from(1) == mod(rank + ranks - 1, ranks) .and. to(1) == mod(rank + 1, ranks), what // ': neighbours')
    call MPI_Neighbor_allgather(rank, 1, MPI_INTEGER, got, 1, MPI_INTEGER, ring)
    call check(got == from(1), what // ': messages')
    call MPI_Comm_free(ring)
  end subroutine

  subroutine files
    type(MPI_File) :: file
    type(MPI_Status) :: status
    integer :: mine(20), found(20), i
    character(64) :: name
    write (name, '(a, i0)') '/tmp/mrmpi-fortran08-', getpid()
    call MPI_Bcast(name, len(name), MPI_CHARACTER, 0, MPI_COMM_WORLD)
    call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, &
                       MPI_INFO_NULL, file)
    call MPI_File_set_view(file, 4_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL)
    mine = [(100 * rank + i, i = 1, 20)]
    found = 0
    call MPI_File_write_ordered(file, mine(1:20:2), 10, MPI_INTEGER, status)
    call MPI_File_read_at(file, int(10 * rank, MPI_OFFSET_KIND), found(2:20:2), 10, MPI_INTEGER, MPI_STATUS_IGNORE)
    call check(all(found(2:20:2) == mine(1:20:2)), 'sections of arrays in a file')
    call MPI_File_close(file)
    call check(file == MPI_FILE_NULL, 'a file is closed')
  end subroutine
end program
