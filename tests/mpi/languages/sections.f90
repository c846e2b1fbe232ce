! SPDX-License-Identifier: BSD-3-Clause
! Array sections as buffers of mpi_f08: copied for calls that end their use, described by datatypes or kept as a copy
! for calls that do not. And callbacks, large counts, sizes and strings of that module. Silent if all is well.
module calls
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: deleted = 0, handled = 0, converted = 0
  integer(kind=MPI_ADDRESS_KIND) :: state = 0
contains
  subroutine add_twice(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    if (datatype /= MPI_INTEGER) call MPI_Abort(MPI_COMM_WORLD, 3)
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    b = b + 2 * a
  end subroutine
  subroutine copy_attr(oldcomm, keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    attribute_val_out = attribute_val_in + extra_state
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine
  subroutine delete_attr(comm, keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: attribute_val, extra_state
    deleted = deleted + int(attribute_val)
    ierror = MPI_SUCCESS
  end subroutine
  subroutine on_error(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    handled = handled + 1
    if (comm /= MPI_COMM_SELF) handled = -100
  end subroutine
  subroutine query(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    call MPI_Status_set_elements(status, MPI_BYTE, 9)
    call MPI_Status_set_cancelled(status, .false.)
    status%MPI_TAG = int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine
  subroutine free_it(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    extra_state = extra_state + 1
    ierror = MPI_SUCCESS
  end subroutine
  subroutine cancel_it(extra_state, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine
  subroutine extent_of(datatype, extent, extra_state, ierror)
    type(MPI_Datatype) :: datatype
    integer(kind=MPI_ADDRESS_KIND) :: extent, extra_state
    integer :: ierror
    extent = 4
    ierror = MPI_SUCCESS
  end subroutine
  subroutine negated(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: user(:), file(:)
    call c_f_pointer(userbuf, user, [int(position) + count])
    call c_f_pointer(filebuf, file, [count])
    user(position + 1:position + count) = -file
    converted = converted + int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine
end module

program sections
  use calls
  implicit none
  type point
    integer :: x, y
    double precision :: weight
  end type
  integer :: rank, ranks, to, from, wrong = 0, i, j, k
  call MPI_Init
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  to = mod(rank + 1, ranks)
  from = mod(rank + ranks - 1, ranks)
  call blocking
  call nonblocking
  call collectives
  call kept_memory
  call partitions
  call derived_types
  call windows
  call errors
  call callbacks
  call large_counts
  call the_rest
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

  integer function cell(r, i, j)
    integer, intent(in) :: r, i, j
    cell = 10000 * r + 100 * i + j
  end function

  subroutine blocking
    integer :: a(10, 10), b(10, 10), line(9)
    type(point) :: p(8), q(8)
    character(3) :: words(6), read(3)
    type(MPI_Status) :: status
    a = reshape([((cell(rank, i, j), i = 1, 10), j = 1, 10)], [10, 10])
    b = -1
    call MPI_Sendrecv(a(2:8:3, 1:9:4), 9, MPI_INTEGER, to, 1, b(5:3:-1, 2:4), 9, MPI_INTEGER, from, 1, MPI_COMM_WORLD, &
                      status)
    call check(all(b(5:3:-1, 2:4) == reshape([((cell(from, i, j), i = 2, 8, 3), j = 1, 9, 4)], [3, 3])), 'two dimensions')
    call check(count(b == -1) == 91, 'nothing else is written')
    line = 0
    call MPI_Sendrecv(a(10:2:-1, 7), 9, MPI_INTEGER, to, 1, line, 9, MPI_INTEGER, from, 1, MPI_COMM_WORLD, status)
    call check(all(line == [(cell(from, i, 7), i = 10, 2, -1)]), 'backwards')
    ! fewer elements arrive than the section has: the rest stays
    b = -1
    call MPI_Sendrecv(a(1:5:2, 1), 3, MPI_INTEGER, to, 1, b(1:9:2, 1), 5, MPI_INTEGER, from, 1, MPI_COMM_WORLD, status)
    call check(b(5, 1) == cell(from, 5, 1) .and. b(7, 1) == -1 .and. b(9, 1) == -1, 'a short message')
    call MPI_Get_count(status, MPI_INTEGER, i)
    call check(i == 3, 'its count')
    p%x = [(rank + i, i = 1, 8)]
    p%y = -p%x
    p%weight = 0.5d0
    q = p
    call MPI_Sendrecv(p(2:8:2)%x, 4, MPI_INTEGER, to, 2, q(1:4)%y, 4, MPI_INTEGER, from, 2, MPI_COMM_WORLD, status)
    call check(all(q(1:4)%y == [(from + i, i = 2, 8, 2)]), 'components of a derived type')
    call check(all(q%x == p%x) .and. all(q(5:)%y == p(5:)%y) .and. all(q%weight == 0.5d0), 'and no other component')
    words = ['one', 'two', 'thr', 'fou', 'fiv', 'six']
    call MPI_Sendrecv(words(2:6:2), 9, MPI_CHARACTER, to, 3, read, 9, MPI_CHARACTER, from, 3, MPI_COMM_WORLD, status)
    call check(all(read == ['two', 'fou', 'six']), 'strings')
    call assumed(a(:, 3:4), b(:, 3:4))
    b = -1
    call forwarded(a(:, 3:4), b(:, 3:4), b(1:9:2, 1))
    call check(b(10, 4) == cell(from, 10, 4), 'arrays of assumed type')
    call check(b(9, 1) == cell(from, 5, 3) .and. b(8, 1) == -1, 'a section of assumed type')
  end subroutine

  subroutine assumed(x, y)
    integer :: x(*), y(:, :)
    call MPI_Sendrecv(x, 20, MPI_INTEGER, to, 4, y, 20, MPI_INTEGER, from, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(y(10, 2) == cell(from, 10, 4), 'arrays of assumed size and shape')
  end subroutine

  subroutine forwarded(x, y, z)
    type(*), dimension(..) :: x, y, z
    call MPI_Sendrecv(x, 20, MPI_INTEGER, to, 4, y, 20, MPI_INTEGER, from, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(x, 5, MPI_INTEGER, to, 4, z, 5, MPI_INTEGER, from, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine

  subroutine nonblocking
    integer, asynchronous :: a(6, 6, 6), b(6, 6, 6), c(6, 6, 6)
    complex(kind=8), asynchronous :: z(10), w(10)
    type(MPI_Request) :: r(2)
    do i = 1, 6
      do j = 1, 6
        a(:, i, j) = [(cell(rank, 6 * i + j, k), k = 1, 6)]
      end do
    end do
    b = -1
    call MPI_Irecv(b(1:5:2, 2:4, 1:6:5), 18, MPI_INTEGER, from, 5, MPI_COMM_WORLD, r(1))
    call MPI_Isend(a(6:2:-2, 1:3, 2:6:4), 18, MPI_INTEGER, to, 5, MPI_COMM_WORLD, r(2))
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
    c = a - 10000 * rank + 10000 * from
    call check(all(b(1:5:2, 2:4, 1:6:5) == c(6:2:-2, 1:3, 2:6:4)), 'three dimensions')
    call check(count(b == -1) == 216 - 18, 'nothing else is written')
    b = -1
    ! 7 of 18 elements: two lines and a part of one
    call MPI_Irecv(b(1:5:2, 2:4, 1:6:5), 7, MPI_INTEGER, from, 5, MPI_COMM_WORLD, r(1))
    call MPI_Isend(a(6:2:-2, 1:3, 2:6:4), 7, MPI_INTEGER, to, 5, MPI_COMM_WORLD, r(2))
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
    call check(count(b /= -1) == 7 .and. b(1, 4, 1) == c(6, 3, 2), 'part of a section')
    z = [(cmplx(rank, i, 8), i = 1, 10)]
    w = 0
    ! two reals an element
    call MPI_Irecv(w(10:1:-3), 8, MPI_DOUBLE_PRECISION, from, 6, MPI_COMM_WORLD, r(1))
    call MPI_Isend(z(1:10:3), 8, MPI_DOUBLE_PRECISION, to, 6, MPI_COMM_WORLD, r(2))
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
    call check(all(w(10:1:-3) == [(cmplx(from, i, 8), i = 1, 10, 3)]) .and. w(2) == 0, 'complex as reals')
    b = -1
    call MPI_Recv_init(b(:, 2, 1:5:2), 18, MPI_INTEGER, from, 7, MPI_COMM_WORLD, r(1))
    call MPI_Send_init(a(:, 5, 2:6:2), 18, MPI_INTEGER, to, 7, MPI_COMM_WORLD, r(2))
    do i = 1, 3
      a(1, 5, 2) = i
      call MPI_Startall(2, r)
      call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
      call check(b(1, 2, 1) == i .and. b(6, 2, 5) == c(6, 5, 6), 'persistent requests')
    end do
    call MPI_Request_free(r(1))
    call MPI_Request_free(r(2))
    call MPI_F_sync_reg(b)
  end subroutine

  subroutine collectives
    integer, asynchronous :: a(20), all_of(2 * ranks, 2), sum(3, 3)
    type(MPI_Request) :: r
    a = [(100 * rank + i, i = 1, 20)]
    all_of = -1
    call MPI_Gather(a(3:20:5), 2, MPI_INTEGER, all_of(2 * ranks:1:-1, 2), 2, MPI_INTEGER, 0, MPI_COMM_WORLD)
    if (rank == 0) call check(all(all_of(2 * ranks:1:-1, 2) == [((100 * j + i, i = 3, 8, 5), j = 0, ranks - 1)]), 'gather')
    call MPI_Bcast(a(20:1:-3), 7, MPI_INTEGER, 0, MPI_COMM_WORLD)
    call check(all(a(20:1:-3) == [(i, i = 20, 1, -3)]) .and. a(1) == 100 * rank + 1, 'broadcast')
    sum = 1
    call MPI_Allreduce(MPI_IN_PLACE, sum(1:3:2, 1:3:2), 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(all(sum(1:3:2, 1:3:2) == ranks) .and. all(sum(2, :) == 1), 'a sum in place')
    ! blocks at equal distances: the datatype stretches over the holes
    all_of = -1
    call MPI_Iallgather(a(3:20:5), 1, MPI_INTEGER, all_of(1:2 * ranks:2, 1), 1, MPI_INTEGER, MPI_COMM_WORLD, r)
    call MPI_Wait(r, MPI_STATUS_IGNORE)
    call check(all(all_of(1:2 * ranks:2, 1) == [(100 * j + 3, j = 0, ranks - 1)]) .and. all(all_of(2::2, 1) == -1), &
               'iallgather')
    call MPI_Ibcast(a(2:20:2), 10, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, r)
    call MPI_Wait(r, MPI_STATUS_IGNORE)
    call check(a(4) == 100 * (ranks - 1) + 4 .and. a(3) == 100 * rank + 3, 'ibcast')
  end subroutine

  ! No datatype can describe the elements: requests keep memory without holes.
  subroutine kept_memory
    integer, asynchronous :: a(4, 4), b(4, 4), c(3, 4 * ranks), d(3, 2, 2 * ranks)
    type(MPI_Request) :: r(4)
    type(MPI_Datatype) :: types(ranks), pair
    integer :: ones(ranks), places(ranks), sum_of_ranks
    sum_of_ranks = ranks * (ranks - 1) / 2
    a = reshape([((cell(rank, i, j), i = 1, 4), j = 1, 4)], [4, 4])
    b = -1
    call MPI_Iallreduce(a(4:1:-2, 1), b(2, 1:3:2), 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r(1))
    call MPI_Iscan(a(1:3:2, 2:4:2), b(1:3:2, 2:4:2), 4, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, r(2))
    call MPI_Ireduce_scatter_block(c(1:3:2, :), b(4, 1:4:2), 2, MPI_INTEGER, MPI_MAX, MPI_COMM_SELF, r(3))
    call MPI_Waitall(3, r, MPI_STATUSES_IGNORE)
    call check(all(b(2, 1:3:2) == 10000 * sum_of_ranks + ranks * [401, 201]), 'a sum')
    call check(all(b(1:3:2, 2:4:2) == a(1:3:2, 2:4:2)), 'a scan')
    call check(b(4, 1) == c(1, 1) .and. b(4, 3) == c(3, 1), 'a sum, scattered')
    call check(all(b(2, 2:4:2) == -1) .and. all(b(4, 2:4:2) == -1) .and. all(b([1, 3], 1) == -1), 'nothing else is written')
    b = 1
    call MPI_Iallreduce(MPI_IN_PLACE, b(1:3:2, 1:3:2), 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r(1))
    call MPI_Wait(r(1), MPI_STATUS_IGNORE)
    call check(all(b(1:3:2, 1:3:2) == ranks) .and. count(b == 1) == merge(16, 12, ranks == 1), 'a sum in place, later')
    ! only the root receives: elsewhere the buffer means nothing, and stays in use
    b = -1
    call MPI_Ireduce(a(1:4:3, 1), b(1, 1:4:3), 2, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, r(1))
    if (rank /= 0) b = 5
    call MPI_Wait(r(1), MPI_STATUS_IGNORE)
    if (rank == 0) call check(all(b(1, 1:4:3) == 10000 * sum_of_ranks + ranks * [101, 401]), 'a sum for the root')
    if (rank /= 0) call check(all(b == 5), 'and for nobody else')
    ! blocks of a section whose elements have different distances
    c = rank
    c(1:3:2, :) = reshape([((cell(rank, i, j), i = 1, 2), j = 1, 4 * ranks)], [2, 4 * ranks])
    d = -1
    call MPI_Ialltoall(c(1:3:2, 1:4 * ranks:2), 4, MPI_INTEGER, d(1:3:2, :, 1:2 * ranks:2), 4, MPI_INTEGER, MPI_COMM_WORLD, &
                       r(1))
    call MPI_Wait(r(1), MPI_STATUS_IGNORE)
    do i = 1, ranks
      j = 4 * rank + 1
      call check(all([d(1:3:2, :, 2 * i - 1)] == [cell(i - 1, 1, j), cell(i - 1, 2, j), cell(i - 1, 1, j + 2), &
                                                  cell(i - 1, 2, j + 2)]), 'blocks')
    end do
    call check(all(d(2, :, :) == -1) .and. all(d(:, :, 2::2) == -1), 'and nothing else')
    ones = 1
    places = [(16 * (i - 1), i = 1, ranks)]
    call MPI_Type_vector(2, 1, 3, MPI_INTEGER, pair)
    call MPI_Type_commit(pair)
    types = pair
    d = -1
    call MPI_Ialltoallw(c(1:3:2, 1:4 * ranks:2), ones, places, types, d(1:3:2, :, 1:2 * ranks:2), ones, places, types, &
                        MPI_COMM_WORLD, r(1))
    call MPI_Wait(r(1), MPI_STATUS_IGNORE)
    do i = 1, ranks
      j = 4 * rank + 1
      call check(all([d(1:3:2, :, 2 * i - 1)] == [cell(i - 1, 1, j), -1, -1, cell(i - 1, 2, j + 2)]), 'types')
    end do
    ! a datatype of the program's, of elements of a section
    d = -1
    call MPI_Iallgather(c(3:1:-2, 1:3:2), 1, pair, d(1:3:2, :, 1:2 * ranks:2), 2, MPI_INTEGER, MPI_COMM_WORLD, r(1))
    call MPI_Wait(r(1), MPI_STATUS_IGNORE)
    call check(d(1, 1, 1) == cell(0, 2, 1) .and. d(3, 1, 1) == cell(0, 1, 3), 'a datatype with holes')
    call MPI_Type_free(pair)
    ! each start sends other data
    b = -1
    call MPI_Allreduce_init(a(1:4:3, 1:4:3), b(4:1:-3, 1:4:3), 4, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, r(1))
    call MPI_Reduce_init(a(2:4:2, 2), b(2, 1:3:2), 2, MPI_INTEGER, MPI_MIN, ranks - 1, MPI_COMM_WORLD, MPI_INFO_NULL, r(2))
    do k = 1, 3
      a(1, 1) = k * (rank + 1)
      a(2, 2) = -a(1, 1)
      call MPI_Startall(2, r)
      call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
      call check(b(4, 1) == k * ranks .and. b(1, 4) == cell(ranks - 1, 4, 4), 'a persistent sum')
      call check(b(2, 1) == merge(-k * ranks, -1, rank == ranks - 1), 'a persistent sum for a root')
      b(3, :) = k
    end do
    call check(all(b(3, :) == 3), 'the program writes between the elements')
    call MPI_Request_free(r(1))
    call MPI_Request_free(r(2))
    call MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, r(1))
    call MPI_Request_free(r(1))
    call MPI_F_sync_reg(b)
    call MPI_F_sync_reg(d)
  end subroutine

  subroutine partitions
    integer, parameter :: columns = 1024 ! smaller partitions share a message, and arrive together
    integer, asynchronous :: a(4, 2 * columns), b(4, 2 * columns)
    type(MPI_Request) :: r(2)
    logical :: arrived
    b = -1
    call MPI_Precv_init(b(1:3:2, :), 2, 2048_MPI_COUNT_KIND, MPI_INTEGER, from, 9, MPI_COMM_WORLD, MPI_INFO_NULL, r(1))
    call MPI_Psend_init(a(4:2:-2, :), 2, 2048_MPI_COUNT_KIND, MPI_INTEGER, to, 9, MPI_COMM_WORLD, MPI_INFO_NULL, r(2))
    do k = 1, 2
      a = 0
      call MPI_Startall(2, r)
      a(:, columns + 1:) = k * (rank + 1)
      call MPI_Pready(1, r(2))
      arrived = .false.
      do while (.not. arrived)
        call MPI_Parrived(r(1), 1, arrived)
      end do
      call check(all(b(1:3:2, columns + 1:) == k * (from + 1)), 'a partition that has arrived')
      b(1, columns + 1) = -7
      a(:, :columns) = k * (rank + 2)
      call MPI_Pready_range(0, 0, r(2))
      call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
      call check(all(b(1:3:2, :columns) == k * (from + 2)) .and. b(1, columns + 1) == -7 .and. &
                 b(3, 2 * columns) == k * (from + 1), 'all partitions')
    end do
    call check(all(b(2:4:2, :) == -1), 'and nothing else')
    call MPI_Request_free(r(1))
    call MPI_Request_free(r(2))
    call MPI_F_sync_reg(b)
  end subroutine

  ! Datatypes with holes, or longer than an element, lie in a section as they would in an array without holes.
  subroutine derived_types
    integer, asynchronous :: a(9, 9), b(9, 9), flat(81), line(81), want(81)
    type(point), asynchronous :: p(8), q(8)
    integer, pointer :: mine(:)
    type(c_ptr) :: memory
    type(MPI_Datatype) :: every_other, triple, of_point
    type(MPI_Request) :: r(2)
    type(MPI_File) :: file
    type(MPI_Win) :: win
    character(64) :: name
    integer(kind=MPI_ADDRESS_KIND) :: at(2)
    call MPI_Type_vector(3, 1, 2, MPI_INTEGER, every_other)
    call MPI_Type_commit(every_other)
    call MPI_Type_contiguous(3, MPI_INTEGER, triple)
    call MPI_Type_commit(triple)
    a = reshape([((cell(rank, i, j), i = 1, 9), j = 1, 9)], [9, 9])
    flat(:25) = [((cell(from, i, j), i = 1, 9, 2), j = 9, 1, -2)] ! a(1:9:2, 9:1:-2) of that rank
    b = -1
    ! elements 1, 3, 5, 6, 8 and 10 of either
    want(:25) = -1
    want([1, 3, 5, 6, 8, 10]) = flat([1, 3, 5, 6, 8, 10])
    call MPI_Irecv(b(2:8:2, 1:9:2), 2, every_other, from, 5, MPI_COMM_WORLD, r(1))
    call MPI_Isend(a(1:9:2, 9:1:-2), 2, every_other, to, 5, MPI_COMM_WORLD, r(2))
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
    line(:20) = reshape(b(2:8:2, 1:9:2), [20])
    call check(all(line(:20) == want(:20)) .and. count(b == -1) == 75, 'a datatype with holes')
    b = -1
    call MPI_Irecv(b(8:2:-2, 1:9:2), 3, triple, from, 5, MPI_COMM_WORLD, r(1))
    call MPI_Isend(a(1:9:2, 9:1:-2), 3, triple, to, 5, MPI_COMM_WORLD, r(2))
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
    line(:20) = reshape(b(8:2:-2, 1:9:2), [20])
    call check(all(line(:9) == flat(:9)) .and. count(b == -1) == 72, 'a datatype longer than an element')
    b = -1
    call MPI_Recv_init(b(2:8:2, 1:9:2), 2, every_other, from, 6, MPI_COMM_WORLD, r(1))
    call MPI_Ssend_init(a(1:9:2, 9:1:-2), 2, every_other, to, 6, MPI_COMM_WORLD, r(2))
    do k = 1, 2
      a(1, 9) = k * (rank + 1)
      call MPI_Startall(2, r)
      call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
      call check(b(2, 1) == k * (from + 1) .and. b(6, 1) == flat(3) .and. count(b == -1) == 75, 'a persistent request')
    end do
    call MPI_Request_free(r(1))
    call MPI_Request_free(r(2))
    call MPI_Isendrecv(a(9:1:-4, 2), 1, triple, to, 7, b(1, 9:1:-4), 3, MPI_INTEGER, from, 7, MPI_COMM_WORLD, r(1))
    call MPI_Wait(r(1), MPI_STATUS_IGNORE)
    call check(all(b(1, 9:1:-4) == [(cell(from, i, 2), i = 9, 1, -4)]), 'sent and received')
    call MPI_Ibcast(a(9:1:-4, 3), 1, triple, ranks - 1, MPI_COMM_WORLD, r(1))
    call MPI_Wait(r(1), MPI_STATUS_IGNORE)
    call check(all(a(9:1:-4, 3) == [(cell(ranks - 1, i, 3), i = 9, 1, -4)]) .and. a(4, 3) == cell(rank, 4, 3), 'ibcast')
    ! the weight and x of elements of a derived type
    at = [8, 0]
    call MPI_Type_create_struct(2, [1, 1], at, [MPI_DOUBLE_PRECISION, MPI_INTEGER], of_point)
    call MPI_Type_commit(of_point)
    p%x = [(10 * rank + i, i = 1, 8)]
    p%y = -2
    p%weight = 0.5d0 * p%x
    q%x = -1
    q%y = -1
    q%weight = -1
    call MPI_Irecv(q(8:2:-2), 4, of_point, from, 8, MPI_COMM_WORLD, r(1))
    call MPI_Isend(p(1:7:2), 4, of_point, to, 8, MPI_COMM_WORLD, r(2))
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
    call check(all(q(8:2:-2)%x == [(10 * from + i, i = 1, 7, 2)]) .and. all(q%y == -1) .and. all(q(1:7:2)%x == -1) .and. &
               all(q(2:8:2)%weight == 0.5d0 * q(2:8:2)%x), 'a structure')
    call MPI_Type_free(of_point)
    ! without a request
    call MPI_Win_allocate(40_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, memory, win)
    call c_f_pointer(memory, mine, [10])
    mine = -1
    call MPI_Win_fence(0, win)
    call MPI_Put(a(1:9:2, 1), 1, every_other, to, 0_MPI_ADDRESS_KIND, 3, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check(all(mine(:4) == [cell(from, 1, 1), cell(from, 5, 1), cell(from, 9, 1), -1]), 'put')
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Accumulate(a(1:9:2, 1), 1, every_other, to, 0_MPI_ADDRESS_KIND, 3, MPI_INTEGER, MPI_SUM, win)
    call MPI_Win_fence(0, win)
    call check(all(mine(:3) == 2 * [cell(from, 1, 1), cell(from, 5, 1), cell(from, 9, 1)]), 'accumulate')
    b = -1
    call MPI_Get(b(1, 1:9:2), 1, every_other, to, 0_MPI_ADDRESS_KIND, 3, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check(all(b(1, [1, 5, 9]) == 2 * a([1, 5, 9], 1)) .and. count(b == -1) == 78, 'get')
    call MPI_Win_free(win)
    ! a form of file in which each number changes
    write (name, '(a, i0, a, i0)') '/tmp/mrmpi-sections-', getpid(), '-', rank
    call MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, file)
    call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'external32', MPI_INFO_NULL)
    call MPI_File_write_all_begin(file, a(1:9:2, 1), 1, every_other)
    call MPI_File_write_all_end(file, a(1:9:2, 1), MPI_STATUS_IGNORE)
    call MPI_File_read_at(file, 0_MPI_OFFSET_KIND, line, 3, MPI_INTEGER, MPI_STATUS_IGNORE)
    call check(all(line(:3) == a([1, 5, 9], 1)), 'external32')
    call MPI_File_close(file)
    call MPI_Type_free(every_other)
    call MPI_Type_free(triple)
    call MPI_F_sync_reg(b)
    call MPI_F_sync_reg(q)
  end subroutine

  subroutine windows
    integer, asynchronous :: a(10)
    integer, pointer :: mine(:)
    type(c_ptr) :: memory
    type(MPI_Win) :: win
    call MPI_Win_allocate(40_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, memory, win)
    call c_f_pointer(memory, mine, [10])
    mine = -1
    a = [(100 * rank + i, i = 1, 10)]
    call MPI_Win_fence(0, win)
    call MPI_Put(a(1:9:4), 3, MPI_INTEGER, to, 2_MPI_ADDRESS_KIND, 3, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check(all(mine(3:5) == 100 * from + [1, 5, 9]), 'put')
    call MPI_Get(a(10:6:-2), 3, MPI_INTEGER, to, 2_MPI_ADDRESS_KIND, 3, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check(all(a(10:6:-2) == 100 * rank + [1, 5, 9]) .and. a(7) == 100 * rank + 7, 'get')
    call MPI_Accumulate(a(1:5:2), 3, MPI_INTEGER, to, 2_MPI_ADDRESS_KIND, 3, MPI_INTEGER, MPI_SUM, win)
    call MPI_Win_fence(0, win)
    call check(all(mine(3:5) == 200 * from + [2, 8, 14]), 'accumulate')
    call MPI_Win_free(win)
    call check(win == MPI_WIN_NULL, 'a freed window')
  end subroutine

  ! An error, and not other data.
  subroutine errors
    integer, asynchronous :: a(4, 4)
    type(MPI_Errhandler) :: handler
    type(MPI_Request) :: r
    type(MPI_Datatype) :: t
    integer :: code, class
    a = 1
    call MPI_Comm_create_errhandler(on_error, handler)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, handler)
    call MPI_Isend(a(1:2, 1:2), 5, MPI_INTEGER, 0, 1, MPI_COMM_SELF, r, code)
    call MPI_Error_class(code, class)
    call check(class == MPI_ERR_BUFFER .and. handled == 1, 'more elements than there are')
    call MPI_Type_vector(2, 1, 2, MPI_INTEGER, t)
    call MPI_Type_commit(t)
    call MPI_Isend(a(1:2, 1:2), 2, t, 0, 1, MPI_COMM_SELF, r, code)
    call MPI_Error_class(code, class)
    call check(class == MPI_ERR_BUFFER .and. handled == 2, 'a datatype that is longer than the section')
    call MPI_Type_free(t)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL)
    call MPI_Errhandler_free(handler)
  end subroutine

  subroutine callbacks
    type(MPI_Op) :: op
    type(MPI_Comm) :: comm
    type(MPI_Request) :: r
    type(MPI_Status) :: st
    type(MPI_File) :: file
    type(MPI_Datatype) :: etype, filetype
    integer(kind=MPI_OFFSET_KIND) :: disp
    integer :: key, sum, n, values(4)
    integer(kind=MPI_ADDRESS_KIND) :: value
    logical :: found
    character(64) :: name
    call MPI_Op_create(add_twice, .false., op)
    sum = 1
    call MPI_Reduce_local(rank, sum, 1, MPI_INTEGER, op)
    call check(sum == 1 + 2 * rank, 'an operation of our own')
    call MPI_Op_free(op)
    call MPI_Comm_create_keyval(copy_attr, delete_attr, key, 6000000000_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(MPI_COMM_SELF, key, 7_MPI_ADDRESS_KIND)
    call MPI_Comm_dup(MPI_COMM_SELF, comm)
    call MPI_Comm_get_attr(comm, key, value, found)
    call check(found .and. value == 6000000007_MPI_ADDRESS_KIND, 'a copied attribute')
    call MPI_Comm_free(comm)
    deleted = 0
    call MPI_Comm_delete_attr(MPI_COMM_SELF, key)
    call check(deleted == 7, 'a deleted attribute')
    call MPI_Comm_free_keyval(key)
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(MPI_COMM_SELF, key, -9_MPI_ADDRESS_KIND)
    call MPI_Comm_dup(MPI_COMM_SELF, comm)
    call MPI_Comm_get_attr(comm, key, value, found)
    call check(found .and. value == -9, 'MPI_COMM_DUP_FN')
    call MPI_Comm_free(comm)
    call MPI_Comm_delete_attr(MPI_COMM_SELF, key)
    call MPI_Comm_free_keyval(key)
    state = 11
    call MPI_Grequest_start(query, free_it, cancel_it, state, r)
    call MPI_Grequest_complete(r)
    call MPI_Wait(r, st)
    call MPI_Get_count(st, MPI_BYTE, n)
    call check(n == 9 .and. st%MPI_TAG == 11 .and. state == 12, 'a generalized request')
    call MPI_Register_datarep('negated', negated, MPI_CONVERSION_FN_NULL, extent_of, 5_MPI_ADDRESS_KIND)
    write (name, '(a, i0, a, i0)') '/tmp/mrmpi-sections-', getpid(), '-', rank
    call MPI_File_open(MPI_COMM_SELF, '  ' // name, MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, &
                       MPI_INFO_NULL, file)
    call MPI_File_write(file, [1, 2, 3, 4], 4, MPI_INTEGER, MPI_STATUS_IGNORE)
    call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'negated', MPI_INFO_NULL)
    call MPI_File_read(file, values, 4, MPI_INTEGER, MPI_STATUS_IGNORE)
    call check(all(values == [-1, -2, -3, -4]) .and. converted > 0, 'a representation of data')
    call MPI_File_get_view(file, disp, etype, filetype, name)
    call check(name == 'negated', 'its name')
    call MPI_File_close(file)
  end subroutine

  subroutine large_counts
    integer(kind=MPI_COUNT_KIND) :: n, lb, extent
    integer :: a(4), b(4), size
    type(MPI_Status) :: st
    type(MPI_Datatype) :: t
    a = [1, 2, 3, 4]
    b = 0
    n = 4
    call MPI_Sendrecv(a, n, MPI_INTEGER, to, 1, b, n, MPI_INTEGER, from, 1, MPI_COMM_WORLD, st)
    call MPI_Get_count(st, MPI_INTEGER, n)
    call check(all(a == b) .and. n == 4, 'counts of the large kind')
    n = 3000000000_MPI_COUNT_KIND
    call MPI_Type_contiguous(n, MPI_INTEGER, t)
    call MPI_Type_size(t, n)
    call check(n == 12000000000_MPI_COUNT_KIND, 'a large type')
    call MPI_Type_size(t, size)
    call check(size == MPI_UNDEFINED, 'which has no size of the usual kind')
    call MPI_Type_get_extent(t, lb, extent)
    call check(lb == 0 .and. extent == 12000000000_MPI_COUNT_KIND, 'its extent')
    call MPI_Type_free(t)
    call MPI_Status_set_elements_x(st, MPI_BYTE, 5000000000_MPI_COUNT_KIND)
    call MPI_Get_elements_x(st, MPI_BYTE, n)
    call check(n == 5000000000_MPI_COUNT_KIND, 'elements of a status')
  end subroutine

  subroutine the_rest
    integer :: n, f_status(MPI_STATUS_SIZE)
    type(MPI_Status) :: st
    type(MPI_Session) :: session
    type(MPI_Group) :: group
    character(MPI_MAX_LIBRARY_VERSION_STRING) :: version
    character(40) :: pset
    call MPI_Sizeof(n, n)
    call check(n == 4, 'the size of an integer')
    call MPI_Sizeof([1d0, 2d0], n)
    call check(n == 8, 'of a double')
    call MPI_Sizeof((1d0, 2d0), n)
    call check(n == 16, 'of a complex')
    st%MPI_SOURCE = 3
    st%MPI_TAG = 4
    st%MPI_ERROR = 5
    call MPI_Status_f082f(st, f_status)
    call check(all(f_status(MPI_SOURCE:MPI_ERROR) == [3, 4, 5]), 'a status for mpif.h')
    st%MPI_TAG = 0
    call MPI_Status_f2f08(f_status, st)
    call check(st%MPI_TAG == 4, 'and back')
    call MPI_Get_library_version(version, n)
    call check(index(version, 'mrmpi') > 0 .and. len_trim(version) == n, 'the version')
    call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session)
    call MPI_Session_get_num_psets(session, MPI_INFO_NULL, n)
    call check(n >= 2, 'sets of processes')
    n = 0
    call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, n, pset)
    call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, n, pset)
    call check(n == len_trim(pset) .and. pset(1:6) == 'mpi://', 'the name of a set')
    call MPI_Group_from_session_pset(session, pset, group)
    call check(group /= MPI_GROUP_NULL, 'its group')
    call MPI_Group_free(group)
    call MPI_Session_finalize(session)
    call check(session%MPI_VAL == 939524096, 'handles have a value')
  end subroutine
end program
