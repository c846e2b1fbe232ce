! SPDX-License-Identifier: BSD-3-Clause
! What mrmpi's modules have and MPICH 4.0's have not: functions of MPI-4.1, large forms of functions with callbacks; and
! arguments that few programs use, in both modules. Silent if all is well.
module shared
  implicit none
  integer :: rank, wrong = 0
contains
  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(*), intent(in) :: what
    if (ok) return
    wrong = wrong + 1
    print *, 'rank', rank, ': ', what
  end subroutine
end module

module with_mpi
  use mpi
  use shared
  use, intrinsic :: iso_c_binding
  implicit none
contains
  subroutine all_of_mpi
    integer :: r(3), x(3), ierr, i, n, at(3), st(MPI_STATUS_SIZE), sts(MPI_STATUS_SIZE, 3), buffer(100), info, handles(2)
    logical :: flag
    type(c_ptr) :: memory
    integer, pointer :: values(:)
    integer(kind=MPI_ADDRESS_KIND) :: address
    type(MPI_Comm) :: a, b
    r = MPI_REQUEST_NULL
    call MPI_Waitany(3, r, i, st, ierr)
    call check(i == MPI_UNDEFINED, 'no request to wait for')
    call MPI_Irecv(x(2), 1, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, r(2), ierr)
    call MPI_Testany(3, r, i, flag, st, ierr)
    call check(.not. flag .and. i == MPI_UNDEFINED, 'none complete')
    call MPI_Send(7, 1, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, ierr)
    do
      call MPI_Request_get_status_any(3, r, i, flag, st, ierr)
      if (flag) exit
    end do
    call check(i == 2, 'the index of a request that is complete')
    call MPI_Status_get_tag(st, n, ierr)
    call check(n == 1, 'the tag of a status')
    call MPI_Request_get_status_some(3, r, n, at, sts, ierr)
    call check(n == 1 .and. at(1) == 2, 'indices of requests that are complete')
    call MPI_Request_get_status_all(3, r, flag, MPI_STATUSES_IGNORE, ierr)
    call check(flag, 'all are complete')
    call MPI_Testsome(3, r, n, at, sts, ierr)
    call check(n == 1 .and. at(1) == 2 .and. x(2) == 7, 'testsome')
    call MPI_Testsome(3, r, n, at, sts, ierr)
    call check(n == MPI_UNDEFINED, 'none is left')
    call MPI_Irecv(x(3), 1, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, r(3), ierr)
    call MPI_Send(8, 1, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, ierr)
    call MPI_Waitany(3, r, i, MPI_STATUS_IGNORE, ierr)
    call check(i == 3 .and. x(3) == 8, 'waitany')
    call MPI_Status_set_source(st, 4, ierr)
    call MPI_Status_get_source(st, n, ierr)
    call check(n == 4 .and. st(MPI_SOURCE) == 4, 'the source of a status')
    call MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0, ierr)
    call MPI_Bsend(9, 1, MPI_INTEGER, rank, 2, MPI_COMM_WORLD, ierr)
    call MPI_Buffer_flush(ierr)
    call MPI_Recv(n, 1, MPI_INTEGER, rank, 2, MPI_COMM_WORLD, st, ierr)
    call MPI_Buffer_detach(buffer, n, ierr)
    call MPI_Comm_attach_buffer(MPI_COMM_SELF, buffer, 400, ierr)
    buffer(1) = 5
    call MPI_Comm_detach_buffer(MPI_COMM_SELF, buffer, n, ierr)
    call check(n == 400 .and. buffer(1) == 5, 'a buffer of a communicator')
    call MPI_Alloc_mem(40_MPI_ADDRESS_KIND, MPI_INFO_NULL, memory, ierr)
    call c_f_pointer(memory, values, [10])
    values = 3
    call MPI_Free_mem(values, ierr)
    call MPI_Alloc_mem(40_MPI_ADDRESS_KIND, MPI_INFO_NULL, address, ierr)
    call check(address /= 0, 'memory as a number')
    memory = transfer(address, memory)
    call c_f_pointer(memory, values, [10])
    call MPI_Free_mem(values, ierr)
    call MPI_Get_hw_resource_info(info, ierr)
    call MPI_Info_free(info, ierr)
    handles(1) = MPI_LOGICAL4
    call MPI_Type_get_value_index(MPI_REAL, MPI_INTEGER, handles(1), ierr)
    call check(ierr == MPI_SUCCESS, 'a pair type')
    a%MPI_VAL = MPI_COMM_WORLD
    b%MPI_VAL = MPI_COMM_SELF
    call check(a == a .and. a /= b, 'types of handles compare')
    call MPI_Sizeof(1.0, n, ierr)
    call check(n == 4 .and. ierr == MPI_SUCCESS, 'the size of a real')
    call MPI_Sizeof(values(1:1), n, ierr)
    call check(n == 4, 'of an array')
    call check(MPI_Aint_diff(MPI_Aint_add(address, 8_MPI_ADDRESS_KIND), address) == 8, 'arithmetic of addresses')
  end subroutine
end module

module with_f08
  use mpi_f08
  use shared
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: large_calls = 0, handled = 0
contains
  subroutine add_large(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer(kind=MPI_COUNT_KIND) :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    b = a + b
    if (datatype == MPI_INTEGER) large_calls = large_calls + 1
  end subroutine
  subroutine on_file_error(file, error_code)
    type(MPI_File) :: file
    integer :: error_code
    if (file == MPI_FILE_NULL) handled = handled + 1
  end subroutine
  subroutine on_win_error(win, error_code)
    type(MPI_Win) :: win
    integer :: error_code
    if (win /= MPI_WIN_NULL) handled = handled + 10
  end subroutine
  subroutine on_session_error(session, error_code)
    type(MPI_Session) :: session
    integer :: error_code
    if (session /= MPI_SESSION_NULL) handled = handled + 100
  end subroutine

  subroutine all_of_f08
    type(MPI_Op) :: op
    type(MPI_Request) :: r(2)
    type(MPI_Status) :: st
    type(MPI_Datatype) :: t, types(1)
    type(MPI_Errhandler) :: handler
    type(MPI_File) :: file
    type(MPI_Win) :: win
    type(MPI_Session) :: session
    type(MPI_Comm) :: comm
    type(c_ptr) :: memory
    integer, asynchronous :: word(1)
    integer :: n, i, sum, code, unit, combiner, integers(1), class
    integer(kind=MPI_COUNT_KIND) :: large, ni, na, nc, nd, counts(1)
    integer(kind=MPI_ADDRESS_KIND) :: bytes, addresses(1)
    character(8) :: args(2) = ['one', '   ']
    logical :: flag
    call MPI_Op_create_c(add_large, .true., op)
    sum = 1
    call MPI_Reduce_local(rank, sum, 1, MPI_INTEGER, op)
    call check(sum == rank + 1 .and. large_calls == 1, 'an operation with large counts')
    call MPI_Op_free(op)
    r = MPI_REQUEST_NULL
    call MPI_Irecv(n, 1, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, r(2))
    call MPI_Send(5, 1, MPI_INTEGER, rank, 3, MPI_COMM_WORLD)
    call MPI_Waitany(2, r, index=i, status=st)
    call check(i == 2 .and. n == 5, 'the index of a request')
    call MPI_Waitany(2, r, i, MPI_STATUS_IGNORE)
    call check(i == MPI_UNDEFINED, 'no request')
    call MPI_Type_contiguous(3000000000_MPI_COUNT_KIND, MPI_BYTE, t)
    call MPI_Type_get_envelope(t, ni, na, nc, nd, combiner)
    call check(ni + na == 0 .and. nc == 1 .and. nd == 1 .and. combiner == MPI_COMBINER_CONTIGUOUS, 'an envelope')
    call MPI_Type_get_contents(t, ni, na, nc, nd, integers, addresses, counts, types)
    call check(counts(1) == 3000000000_MPI_COUNT_KIND .and. types(1) == MPI_BYTE, 'contents')
    call MPI_Type_free(t)
    call MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0)
    call MPI_Buffer_detach(memory, large)
    call check(c_associated(memory, c_loc(MPI_BUFFER_AUTOMATIC)), 'the automatic buffer is known again')
    call MPI_Comm_attach_buffer(MPI_COMM_SELF, word, 4)
    call MPI_Comm_detach_buffer(MPI_COMM_SELF, memory, n)
    call check(n == 4 .and. transfer(memory, bytes) == address_of(word), 'the address of a buffer')
    call MPI_File_create_errhandler(on_file_error, handler)
    call MPI_File_set_errhandler(MPI_FILE_NULL, handler)
    call MPI_File_open(MPI_COMM_SELF, '/nothing/there', MPI_MODE_RDONLY, MPI_INFO_NULL, file, code)
    call MPI_Error_class(code, class)
    call check(class == MPI_ERR_NO_SUCH_FILE .and. handled == 1, 'the error handler of files')
    call MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN)
    call MPI_Errhandler_free(handler)
    call MPI_Win_allocate_shared(8_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_SELF, memory, win)
    call MPI_Win_shared_query(win, 0, bytes, unit, memory)
    call check(bytes == 8 .and. unit == 4 .and. c_associated(memory), 'shared memory')
    call MPI_Win_create_errhandler(on_win_error, handler)
    call MPI_Win_set_errhandler(win, handler)
    call MPI_Win_call_errhandler(win, MPI_ERR_OTHER)
    call check(handled == 11, 'the error handler of a window')
    call MPI_Errhandler_free(handler)
    call MPI_Win_free(win)
    call MPI_Session_create_errhandler(on_session_error, handler)
    call MPI_Session_init(MPI_INFO_NULL, handler, session)
    call MPI_Session_call_errhandler(session, MPI_ERR_OTHER)
    call check(handled == 111, 'the error handler of a session')
    call MPI_Session_finalize(session)
    call check(session == MPI_SESSION_NULL, 'a session that has ended')
    call MPI_Errhandler_free(handler)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call MPI_Comm_spawn(' ', args, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, comm, MPI_ERRCODES_IGNORE, code)
    call check(code /= MPI_SUCCESS, 'spawn of no program')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL)
    call MPI_Test_cancelled(st, flag)
    call check(.not. flag, 'a message that was not cancelled')
  end subroutine

  integer(kind=MPI_ADDRESS_KIND) function address_of(word)
    integer, asynchronous :: word(1)
    call MPI_Get_address(word, address_of)
  end function
end module

program newer
  use mpi_f08, only : MPI_Init, MPI_Comm_rank, MPI_COMM_WORLD, MPI_Finalize
  use shared
  use with_mpi, only : all_of_mpi
  use with_f08, only : all_of_f08
  implicit none
  call MPI_Init
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call all_of_mpi
  call all_of_f08
  call MPI_Finalize
  if (wrong /= 0) stop 1
end program
