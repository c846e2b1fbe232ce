! SPDX-License-Identifier: BSD-3-Clause
! A Fortran program with the module mpi, through MPICH's own binding: values, logicals, strings, callbacks, sentinels.
! Silent if all is well.
module callbacks
  use mpi
  implicit none
  integer :: copied = 0, deleted = 0, handled = 0, queried = 0, freed = 0, cancelled = 0, failed_file
contains
  subroutine add_twice(in, inout, n, type)
    integer :: n, type, in(n), inout(n)
    if (type /= MPI_INTEGER) call MPI_Abort(MPI_COMM_WORLD, 3, type)
    inout = inout + 2 * in
  end subroutine
  subroutine copy_attr(comm, key, extra, value, new, flag, ierr)
    integer :: comm, key, ierr
    integer(kind=MPI_ADDRESS_KIND) :: extra, value, new
    logical :: flag
    copied = copied + 1
    new = value + extra
    flag = .true.
    ierr = MPI_SUCCESS
  end subroutine
  subroutine delete_attr(comm, key, value, extra, ierr)
    integer :: comm, key, ierr
    integer(kind=MPI_ADDRESS_KIND) :: value, extra
    deleted = deleted + int(value)
    ierr = MPI_SUCCESS
  end subroutine
  subroutine on_error(comm, code)
    integer :: comm, code
    handled = handled + 1
    code = MPI_ERR_QUOTA
  end subroutine
  subroutine on_file_error(file, code)
    integer :: file, code
    failed_file = file
    code = MPI_ERR_OTHER
  end subroutine
  subroutine query(extra, status, ierr)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    integer :: status(MPI_STATUS_SIZE), ierr
    queried = queried + int(extra)
    status(MPI_SOURCE) = 5
    call MPI_Status_set_elements(status, MPI_INTEGER, 3, ierr)
    call MPI_Status_set_cancelled(status, .false., ierr)
  end subroutine
  subroutine free_it(extra, ierr)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    integer :: ierr
    freed = freed + int(extra)
    ierr = MPI_SUCCESS
  end subroutine
  subroutine cancel_it(extra, complete, ierr)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: ierr
    if (.not. complete) cancelled = cancelled + int(extra)
    ierr = MPI_SUCCESS
  end subroutine
end module

program fortran
  use mpi
  use callbacks
  implicit none
  integer :: ierr, rank, ranks, wrong = 0
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call messages
  call collectives
  call attributes
  call errors
  call requests
  call types
  call names
  call topologies
  call files
  call MPI_Finalize(ierr)
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
    integer :: st(MPI_STATUS_SIZE), sts(MPI_STATUS_SIZE, 2), req(2), got, n, right, left
    double precision :: x(100000), y(100000)
    logical :: flag
    right = mod(rank + 1, ranks)
    left = mod(rank + ranks - 1, ranks)
    x = rank
    call MPI_Irecv(y, size(y), MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, req(1), ierr)
    call MPI_Isend(x, size(x), MPI_DOUBLE_PRECISION, right, 7, MPI_COMM_WORLD, req(2), ierr)
    call MPI_Waitall(2, req, sts, ierr)
    call check(all(y == left), 'a long message')
    call check(sts(MPI_SOURCE, 1) == left .and. sts(MPI_TAG, 1) == 7, 'its status')
    call check(all(req == MPI_REQUEST_NULL), 'requests are null afterwards')
    call MPI_Get_count(sts(:, 1), MPI_DOUBLE_PRECISION, n, ierr)
    call check(n == size(y), 'its count')
    call MPI_Sendrecv(rank, 1, MPI_INTEGER, left, 1, got, 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, st, ierr)
    call check(got == right, 'sendrecv')
    call MPI_Isend(rank, 1, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD, req(1), ierr)
    call MPI_Wait(req(1), MPI_STATUS_IGNORE, ierr)
    call MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, flag, st, ierr)
    call check(.not. flag, 'there is nothing to probe')
    call MPI_Recv(got, 1, MPI_INTEGER, MPI_PROC_NULL, 1, MPI_COMM_WORLD, st, ierr)
    call check(st(MPI_SOURCE) == MPI_PROC_NULL, 'from nobody')
  end subroutine

  subroutine collectives
    integer :: op, sum, i, v(3), all_ranks(ranks), counts(ranks), displs(ranks)
    call MPI_Allreduce(rank, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(sum == ranks * (ranks - 1) / 2, 'sum of the ranks')
    v = [rank, rank + 1, rank + 2]
    call MPI_Allreduce(MPI_IN_PLACE, v, 3, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
    call check(all(v == [ranks - 1, ranks, ranks + 1]), 'maximum in place')
    call MPI_Op_create(add_twice, .false., op, ierr)
    sum = 1
    call MPI_Reduce_local(rank, sum, 1, MPI_INTEGER, op, ierr)
    call check(sum == 1 + 2 * rank, 'an operation of our own')
    call MPI_Op_free(op, ierr)
    counts = 1
    displs = [(ranks - i, i = 1, ranks)]
    call MPI_Allgatherv(rank, 1, MPI_INTEGER, all_ranks, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call check(all(all_ranks == [(ranks - i, i = 1, ranks)]), 'allgatherv backwards')
    sum = -1
    if (rank == 0) sum = 42
    call MPI_Bcast(sum, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
    call check(sum == 42, 'broadcast')
  end subroutine

  subroutine attributes
    integer :: key, comm
    integer(kind=MPI_ADDRESS_KIND) :: value
    logical :: found
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, found, ierr)
    call check(found .and. value >= 32767, 'the largest tag')
    call MPI_Comm_create_keyval(copy_attr, delete_attr, key, 10_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, key, value, found, ierr)
    call check(.not. found, 'no attribute yet')
    call MPI_Comm_set_attr(MPI_COMM_WORLD, key, 5000000000_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
    call MPI_Comm_get_attr(comm, key, value, found, ierr)
    call check(found .and. value == 5000000010_MPI_ADDRESS_KIND, 'the copy has what the callback made')
    call MPI_Comm_set_attr(comm, key, 3_MPI_ADDRESS_KIND, ierr)
    deleted = 0
    call MPI_Comm_free(comm, ierr)
    call check(copied == 1 .and. deleted == 3, 'callbacks were called with the values')
    call MPI_Comm_delete_attr(MPI_COMM_WORLD, key, ierr)
    call MPI_Comm_free_keyval(key, ierr)
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, key, 77_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
    call MPI_Comm_get_attr(comm, key, value, found, ierr)
    call check(found .and. value == 77, 'a duplicated attribute')
    call MPI_Comm_free(comm, ierr)
    call MPI_Comm_free_keyval(key, ierr)
  end subroutine

  subroutine errors
    integer :: handler, code, class, n
    character(MPI_MAX_ERROR_STRING) :: text
    call MPI_Comm_create_errhandler(on_error, handler, ierr)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler, ierr)
    call MPI_Send(rank, 1, MPI_INTEGER, ranks, 0, MPI_COMM_WORLD, code)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
    call check(handled == 1, 'the error handler is called')
    call check(code == MPI_ERR_QUOTA, 'the code that it leaves is returned')
    call MPI_Bcast(rank, 1, MPI_INTEGER, -1, MPI_COMM_WORLD, code)
    call MPI_Error_class(code, class, ierr)
    call check(class == MPI_ERR_ROOT, 'the class of an error that is returned')
    call MPI_Error_string(code, text, n, ierr)
    call check(n > 5 .and. len_trim(text) == n, 'its text')
    call MPI_Errhandler_free(handler, ierr)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, ierr)
  end subroutine

  subroutine requests
    integer :: req, st(MPI_STATUS_SIZE), n
    logical :: flag
    call MPI_Grequest_start(query, free_it, cancel_it, 4_MPI_ADDRESS_KIND, req, ierr)
    call MPI_Cancel(req, ierr)
    call check(cancelled == 4, 'cancel of a generalized request')
    call MPI_Test(req, flag, st, ierr)
    call check(.not. flag, 'which is not complete yet')
    call MPI_Grequest_complete(req, ierr)
    call MPI_Wait(req, st, ierr)
    call MPI_Get_count(st, MPI_INTEGER, n, ierr)
    call check(n == 3 .and. st(MPI_SOURCE) == 5, 'its status')
    call check(queried == 4 .and. freed == 4, 'its callbacks')
  end subroutine

  subroutine types
    integer :: t, bytes, real_type, pos, at
    integer(kind=MPI_ADDRESS_KIND) :: disp(2)
    integer :: i, j
    real(kind=8) :: x
    character(64) :: buffer
    i = rank + 1
    x = rank + 0.5d0
    call MPI_Get_address(i, disp(1), ierr)
    call MPI_Get_address(x, disp(2), ierr)
    call MPI_Type_create_struct(2, [1, 1], disp, [MPI_INTEGER, MPI_DOUBLE_PRECISION], t, ierr)
    call MPI_Type_commit(t, ierr)
    call MPI_Bcast(MPI_BOTTOM, 1, t, ranks - 1, MPI_COMM_WORLD, ierr)
    call MPI_Type_free(t, ierr)
    call check(i == ranks .and. x == ranks - 0.5d0, 'absolute addresses')
    call MPI_Type_create_f90_real(15, 300, real_type, ierr)
    call MPI_Type_size(real_type, bytes, ierr)
    call check(bytes == 8, 'a real of 15 digits')
    pos = 0
    call MPI_Pack(rank, 1, MPI_INTEGER, buffer, len(buffer), pos, MPI_COMM_WORLD, ierr)
    call MPI_Pack(.true., 1, MPI_LOGICAL, buffer, len(buffer), pos, MPI_COMM_WORLD, ierr)
    at = 0
    call MPI_Unpack(buffer, len(buffer), at, j, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call check(pos == 8 .and. j == rank, 'pack and unpack')
  end subroutine

  subroutine names
    character(MPI_MAX_OBJECT_NAME) :: name
    character(20) :: value
    integer :: n, info
    logical :: found
    call MPI_Comm_set_name(MPI_COMM_SELF, '  mine  ', ierr)
    call MPI_Comm_get_name(MPI_COMM_SELF, name, n, ierr)
    call check(trim(adjustl(name(1:n))) == 'mine', 'blanks around a name')
    call MPI_Info_create(info, ierr)
    call MPI_Info_set(info, ' key ', ' a value ', ierr)
    call MPI_Info_get(info, 'key', len(value), value, found, ierr)
    call check(found .and. value == 'a value', 'blanks around keys and values')
    call MPI_Info_get(info, 'other', len(value), value, found, ierr)
    call check(.not. found, 'a key that is not there')
    call MPI_Info_free(info, ierr)
  end subroutine

  subroutine topologies
    integer :: cart, dims(1), coords(1), from, to
    logical :: periods(1)
    call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., cart, ierr)
    call MPI_Cart_get(cart, 1, dims, periods, coords, ierr)
    call check(dims(1) == ranks .and. periods(1) .and. coords(1) == rank, 'a ring')
    call MPI_Cart_shift(cart, 0, 1, from, to, ierr)
    call check(to == mod(rank + 1, ranks), 'its neighbours')
    call MPI_Comm_free(cart, ierr)
  end subroutine

  subroutine files
    integer :: file, handler, request, status(MPI_STATUS_SIZE), mine(10), found(10), n, i
    integer(kind=MPI_OFFSET_KIND) :: at
    character(64) :: name
    write (name, '(a, i0)') '/tmp/mrmpi-fortran-', getpid()
    call MPI_Bcast(name, len(name), MPI_CHARACTER, 0, MPI_COMM_WORLD, ierr)
    call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, &
                       MPI_INFO_NULL, file, ierr)
    call check(ierr == MPI_SUCCESS .and. file /= MPI_FILE_NULL, 'a file')
    at = 8
    call MPI_File_set_view(file, at, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierr)
    mine = [(100 * rank + i, i = 1, 10)]
    at = 10 * rank
    call MPI_File_write_at_all(file, at, mine, 10, MPI_INTEGER, status, ierr)
    call MPI_Get_count(status, MPI_INTEGER, n, ierr)
    call check(n == 10, 'what was written')
    call MPI_File_iread_at(file, at, found, 10, MPI_INTEGER, request, ierr)
    call MPI_Wait(request, status, ierr)
    call check(all(found == mine), 'what is read')
    call MPI_File_create_errhandler(on_file_error, handler, ierr)
    call MPI_File_set_errhandler(file, handler, ierr)
    failed_file = MPI_FILE_NULL
    at = -1
    call MPI_File_read_at(file, at, found, 10, MPI_INTEGER, status, ierr)
    call check(failed_file == file, 'an error, with the handle of its file')
    call check(ierr == MPI_ERR_OTHER, 'the code that the handler of a file leaves')
    call MPI_Errhandler_free(handler, ierr)
    call MPI_File_close(file, ierr)
    call check(ierr == MPI_SUCCESS .and. file == MPI_FILE_NULL, 'closed')
  end subroutine
end program
