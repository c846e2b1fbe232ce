! SPDX-License-Identifier: BSD-3-Clause
! A Fortran 77 program with mpif.h: functions of MPI-1, all kinds of
! arguments. Silent if all is well.
      program mpif
      implicit none
      include 'mpif.h'
      integer ierr, rank, ranks, wrong, parent
      common /state/ rank, ranks, wrong
      wrong = 0
      call MPI_INIT(ierr)
      call MPI_COMM_GET_PARENT(parent, ierr)
      if (parent .ne. MPI_COMM_NULL) then
        call child(parent)
        call MPI_FINALIZE(ierr)
        stop
      end if
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierr)
      call buffers
      call keys
      call oldtypes
      call strings
      call logicals
      call handles
      call weights
      call windows
      call spawn
      call sizes
      call MPI_FINALIZE(ierr)
      if (wrong .ne. 0) stop 1
      end

      subroutine check(ok, what)
      implicit none
      logical ok
      character*(*) what
      integer rank, ranks, wrong
      common /state/ rank, ranks, wrong
      if (ok) return
      wrong = wrong + 1
      print *, 'rank', rank, ': ', what
      end

! any type, any rank of array, a scalar; statuses that are not wanted
      subroutine buffers
      implicit none
      include 'mpif.h'
      integer rank, ranks, wrong, ierr, i, n, to, from
      integer status(MPI_STATUS_SIZE)
      common /state/ rank, ranks, wrong
      real a(3,2), b(3,2)
      complex c, d
      character*7 s, t
      external twice
      integer op, x
      to = mod(rank + 1, ranks)
      from = mod(rank + ranks - 1, ranks)
      do i = 1, 3
         a(i,1) = rank + i
         a(i,2) = rank - i
      end do
      call MPI_SENDRECV(a, 6, MPI_REAL, to, 1, b, 6, MPI_REAL, from, 1,
     &                  MPI_COMM_WORLD, status, ierr)
      call check(b(3,2) .eq. from - 3, 'an array')
      call check(status(MPI_SOURCE) .eq. from, 'its source')
      call check(status(MPI_TAG) .eq. 1, 'its tag')
      call MPI_GET_COUNT(status, MPI_REAL, n, ierr)
      call check(n .eq. 6, 'its count')
      c = cmplx(rank, -1)
      call MPI_SENDRECV(c, 1, MPI_COMPLEX, to, 2, d, 1, MPI_COMPLEX,
     &                  from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE,
     &                  ierr)
      call check(d .eq. cmplx(from, -1), 'a scalar')
      s = 'letters'
      t = ' '
      call MPI_SENDRECV(s, 7, MPI_CHARACTER, to, 3, t, 7,
     &                  MPI_CHARACTER, from, 3, MPI_COMM_WORLD, status,
     &                  ierr)
      call check(s .eq. t, 'characters')
      call MPI_OP_CREATE(twice, .true., op, ierr)
      x = 1
      call MPI_ALLREDUCE(MPI_IN_PLACE, x, 1, MPI_INTEGER, op,
     &                   MPI_COMM_WORLD, ierr)
      call check(x .eq. ranks, 'an operation of our own, in place')
      call MPI_OP_FREE(op, ierr)
      call check(op .eq. MPI_OP_NULL, 'a freed operation is null')
      end

      subroutine twice(in, inout, n, type)
      implicit none
      integer n, type, in(n), inout(n), i
      do i = 1, n
         inout(i) = in(i) + inout(i)
      end do
      end

! attributes of MPI-1: integers of the usual size, negative ones too
      subroutine keys
      implicit none
      include 'mpif.h'
      integer rank, ranks, wrong, ierr, key, comm, value
      integer copies, deletes
      common /state/ rank, ranks, wrong
      common /calls/ copies, deletes
      logical found
      external copyit, deleteit
      copies = 0
      deletes = 0
      call MPI_ATTR_GET(MPI_COMM_WORLD, MPI_TAG_UB, value, found, ierr)
      call check(found .and. value .ge. 32767, 'the largest tag')
      call MPI_KEYVAL_CREATE(copyit, deleteit, key, 10, ierr)
      call MPI_ATTR_PUT(MPI_COMM_WORLD, key, -5, ierr)
      call MPI_COMM_DUP(MPI_COMM_WORLD, comm, ierr)
      call MPI_ATTR_GET(comm, key, value, found, ierr)
      call check(found .and. value .eq. -15, 'a copied attribute')
      call MPI_COMM_FREE(comm, ierr)
      call check(copies .eq. 1 .and. deletes .eq. -15,
     &           'callbacks of attributes')
      call MPI_ATTR_DELETE(MPI_COMM_WORLD, key, ierr)
      call MPI_KEYVAL_FREE(key, ierr)
      call check(key .eq. MPI_KEYVAL_INVALID, 'a freed key')
      call MPI_KEYVAL_CREATE(MPI_DUP_FN, MPI_NULL_DELETE_FN, key, 0,
     &                       ierr)
      call MPI_ATTR_PUT(MPI_COMM_WORLD, key, -7, ierr)
      call MPI_COMM_DUP(MPI_COMM_WORLD, comm, ierr)
      call MPI_ATTR_GET(comm, key, value, found, ierr)
      call check(found .and. value .eq. -7, 'MPI_DUP_FN')
      call MPI_COMM_FREE(comm, ierr)
      call MPI_ATTR_DELETE(MPI_COMM_WORLD, key, ierr)
      call MPI_KEYVAL_FREE(key, ierr)
      call MPI_KEYVAL_CREATE(MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN, key,
     &                       0, ierr)
      call MPI_ATTR_PUT(MPI_COMM_WORLD, key, 1, ierr)
      call MPI_COMM_DUP(MPI_COMM_WORLD, comm, ierr)
      call MPI_ATTR_GET(comm, key, value, found, ierr)
      call check(.not. found, 'MPI_NULL_COPY_FN')
      call MPI_COMM_FREE(comm, ierr)
      call MPI_ATTR_DELETE(MPI_COMM_WORLD, key, ierr)
      call MPI_KEYVAL_FREE(key, ierr)
      end

      subroutine copyit(comm, key, extra, in, out, flag, ierr)
      implicit none
      include 'mpif.h'
      integer comm, key, extra, in, out, ierr, copies, deletes
      common /calls/ copies, deletes
      logical flag
      copies = copies + 1
      out = in - extra
      flag = .true.
      ierr = MPI_SUCCESS
      end

      subroutine deleteit(comm, key, value, extra, ierr)
      implicit none
      include 'mpif.h'
      integer comm, key, value, extra, ierr, copies, deletes
      common /calls/ copies, deletes
      deletes = value
      ierr = MPI_SUCCESS
      end

! constructors of MPI-1, with displacements of the usual size
      subroutine oldtypes
      implicit none
      include 'mpif.h'
      integer rank, ranks, wrong, ierr, t, u, n, v(6), w(6), i
      integer lens(2), disps(2), types(2)
      common /state/ rank, ranks, wrong
      lens(1) = 1
      lens(2) = 2
      disps(1) = 0
      disps(2) = 12
      types(1) = MPI_INTEGER
      types(2) = MPI_INTEGER
      call MPI_TYPE_STRUCT(2, lens, disps, types, t, ierr)
      call MPI_TYPE_COMMIT(t, ierr)
      call MPI_TYPE_EXTENT(t, n, ierr)
      call check(n .eq. 20, 'the extent of a struct')
      do i = 1, 6
         v(i) = i
         w(i) = 0
      end do
      call MPI_SENDRECV(v, 1, t, rank, 1, w, 1, t, rank, 1,
     &                  MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      call check(w(1) + w(4) + w(5) .eq. 10, 'what a struct has')
      call check(w(2) + w(3) + w(6) .eq. 0, 'and has not')
      call MPI_TYPE_FREE(t, ierr)
      call MPI_TYPE_HINDEXED(2, lens, disps, MPI_INTEGER, t, ierr)
      call MPI_TYPE_HVECTOR(2, 1, 40, t, u, ierr)
      call MPI_TYPE_UB(u, n, ierr)
      call check(n .eq. 60, 'the end of a vector')
      call MPI_TYPE_LB(u, n, ierr)
      call check(n .eq. 0, 'its start')
      call MPI_TYPE_FREE(t, ierr)
      call MPI_TYPE_FREE(u, ierr)
      end

! strings: cut, padded, with blanks inside
      subroutine strings
      implicit none
      include 'mpif.h'
      integer rank, ranks, wrong, ierr, n, info, code
      common /state/ rank, ranks, wrong
      character*(MPI_MAX_OBJECT_NAME) name
      character*(MPI_MAX_PROCESSOR_NAME) host
      character*4 short
      character*9 value
      logical found
      call MPI_GET_PROCESSOR_NAME(host, n, ierr)
      call check(n .gt. 0 .and. index(host, ' ') .eq. n + 1,
     &           'the name of the host')
      call MPI_COMM_SET_NAME(MPI_COMM_SELF, 'one self  ', ierr)
      name = '???'
      call MPI_COMM_GET_NAME(MPI_COMM_SELF, name, n, ierr)
      call check(n .eq. 8 .and. name .eq. 'one self', 'a name')
      call MPI_COMM_GET_NAME(MPI_COMM_SELF, short, n, ierr)
      call check(short .eq. 'one ', 'a name that is cut')
      call MPI_INFO_CREATE(info, ierr)
      call MPI_INFO_SET(info, '  a key', 'a value', ierr)
      call MPI_INFO_GET_VALUELEN(info, 'a key ', n, found, ierr)
      call check(found .and. n .eq. 7, 'the length of a value')
      call MPI_INFO_GET(info, 'a key', 9, value, found, ierr)
      call check(found .and. value .eq. 'a value', 'a value')
      value = '???'
      call MPI_INFO_GET(info, 'a key', 3, value, found, ierr)
      call check(found .and. value .eq. 'a v', 'the start of a value')
      n = 0
      value = '???'
      call MPI_INFO_GET_STRING(info, 'a key', n, value, found, ierr)
      call check(found .and. n .eq. 7, 'the room for a value')
      call check(value .eq. '???', 'which is not written then')
      call MPI_INFO_GET_STRING(info, 'a key', n, value, found, ierr)
      call check(found .and. n .eq. 7 .and. value .eq. 'a value',
     &           'a string')
      call MPI_INFO_GET_STRING(info, 'none', n, value, found, ierr)
      call check(.not. found, 'a key that is not there')
      call MPI_INFO_GET_NTHKEY(info, 0, name, ierr)
      call check(name .eq. 'a key', 'a key')
      call MPI_INFO_FREE(info, ierr)
      call MPI_ADD_ERROR_CLASS(code, ierr)
      call MPI_ADD_ERROR_STRING(code, 'own error ', ierr)
      call MPI_ERROR_STRING(code, name, n, ierr)
      call check(name .eq. 'own error', 'the text of an error')
      end

      subroutine logicals
      implicit none
      include 'mpif.h'
      integer rank, ranks, wrong, ierr, cart, row, dims(2), at(2), n
      common /state/ rank, ranks, wrong
      logical period(2), keep(2), flag
      dims(1) = ranks
      dims(2) = 1
      period(1) = .true.
      period(2) = .false.
      call MPI_CART_CREATE(MPI_COMM_WORLD, 2, dims, period, .false.,
     &                     cart, ierr)
      period(1) = .false.
      period(2) = .true.
      call MPI_CART_GET(cart, 2, dims, period, at, ierr)
      call check(period(1) .and. .not. period(2), 'periods of a grid')
      keep(1) = .false.
      keep(2) = .true.
      call MPI_CART_SUB(cart, keep, row, ierr)
      call MPI_COMM_SIZE(row, n, ierr)
      call check(n .eq. 1, 'a row of the grid')
      call MPI_COMM_TEST_INTER(row, flag, ierr)
      call check(.not. flag, 'which is no intercommunicator')
      call MPI_COMM_FREE(row, ierr)
      call MPI_COMM_FREE(cart, ierr)
      call MPI_INITIALIZED(flag, ierr)
      call check(flag, 'initialized')
      call MPI_FINALIZED(flag, ierr)
      call check(.not. flag, 'finalized')
      end

! arrays of handles and of statuses
      subroutine handles
      implicit none
      include 'mpif.h'
      integer rank, ranks, wrong, ierr, r(4), x(4), y(4), i, n, at(4)
      integer sts(MPI_STATUS_SIZE,4), world, self, pair(2), g
      common /state/ rank, ranks, wrong
      do i = 1, 4
         x(i) = 10 * rank + i
         call MPI_IRECV(y(i), 1, MPI_INTEGER, rank, i, MPI_COMM_WORLD,
     &                  r(i), ierr)
      end do
      do i = 1, 4
         call MPI_SEND(x(i), 1, MPI_INTEGER, rank, i, MPI_COMM_WORLD,
     &                 ierr)
      end do
      call MPI_WAITSOME(4, r, n, at, sts, ierr)
      call check(n .ge. 1 .and. sts(MPI_TAG,1) .eq. at(1), 'some')
      call MPI_WAITALL(4, r, MPI_STATUSES_IGNORE, ierr)
      call check(y(4) .eq. x(4), 'all')
      do i = 1, 4
         call check(r(i) .eq. MPI_REQUEST_NULL, 'null requests')
      end do
      call MPI_COMM_GROUP(MPI_COMM_WORLD, world, ierr)
      call MPI_COMM_GROUP(MPI_COMM_SELF, self, ierr)
      pair(1) = 0
      call MPI_GROUP_TRANSLATE_RANKS(self, 1, pair, world, at, ierr)
      call check(at(1) .eq. rank, 'ranks of groups')
      call MPI_GROUP_UNION(world, self, g, ierr)
      call MPI_GROUP_SIZE(g, n, ierr)
      call check(n .eq. ranks, 'a union')
      call MPI_GROUP_FREE(g, ierr)
      call MPI_GROUP_FREE(self, ierr)
      call MPI_GROUP_FREE(world, ierr)
      end

      subroutine weights
      implicit none
      include 'mpif.h'
      integer rank, ranks, wrong, ierr, ring, me(1), one(1), to(1)
      integer in, out
      logical weighted
      common /state/ rank, ranks, wrong
      me(1) = rank
      one(1) = 1
      to(1) = mod(rank + 1, ranks)
      call MPI_DIST_GRAPH_CREATE(MPI_COMM_WORLD, 1, me, one, to,
     &     MPI_UNWEIGHTED, MPI_INFO_NULL, .false., ring, ierr)
      call MPI_DIST_GRAPH_NEIGHBORS_COUNT(ring, in, out, weighted, ierr)
      call check(in .eq. 1 .and. out .eq. 1 .and. .not. weighted,
     &           'a graph without weights')
      call MPI_COMM_FREE(ring, ierr)
      call MPI_DIST_GRAPH_CREATE_ADJACENT(MPI_COMM_WORLD, 0, me,
     &     MPI_WEIGHTS_EMPTY, 0, to, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL,
     &     .false., ring, ierr)
      call MPI_DIST_GRAPH_NEIGHBORS_COUNT(ring, in, out, weighted, ierr)
      call check(in .eq. 0 .and. out .eq. 0 .and. weighted,
     &           'a graph with no weights to give')
      call MPI_COMM_FREE(ring, ierr)
      end

      subroutine windows
      implicit none
      include 'mpif.h'
      integer rank, ranks, wrong, ierr, win, mine
      integer(kind=MPI_ADDRESS_KIND) bytes, disp, value
      logical found
      common /state/ rank, ranks, wrong
      mine = -1
      bytes = 4
      disp = 0
      call MPI_WIN_CREATE(mine, bytes, 4, MPI_INFO_NULL,
     &                    MPI_COMM_WORLD, win, ierr)
      call MPI_WIN_FENCE(0, win, ierr)
      call MPI_PUT(rank, 1, MPI_INTEGER, mod(rank + 1, ranks), disp, 1,
     &             MPI_INTEGER, win, ierr)
      call MPI_WIN_FENCE(0, win, ierr)
      call check(mine .eq. mod(rank + ranks - 1, ranks), 'put')
      call MPI_WIN_GET_ATTR(win, MPI_WIN_SIZE, value, found, ierr)
      call check(found .and. value .eq. 4, 'the size of a window')
      call MPI_WIN_GET_ATTR(win, MPI_WIN_DISP_UNIT, value, found, ierr)
      call check(found .and. value .eq. 4, 'its unit')
      call MPI_WIN_FREE(win, ierr)
      end

! A process of this program that was started by one: tells it how
! many arguments it has, or -1: they are others.
      subroutine child(parent)
      implicit none
      include 'mpif.h'
      integer parent, n, ierr
      character*8 arg
      n = COMMAND_ARGUMENT_COUNT()
      call GET_COMMAND_ARGUMENT(1, arg)
      if (n .eq. 2 .and. arg .ne. 'one') n = -1
      if (n .eq. 1 .and. arg .ne. 'a') n = -1
      call GET_COMMAND_ARGUMENT(2, arg)
      if (n .eq. 2 .and. arg .ne. 'two 2') n = -1
      call MPI_SEND(n, 1, MPI_INTEGER, 0, 1, parent, ierr)
      call MPI_COMM_DISCONNECT(parent, ierr)
      end

! What the processes of a started job say, in order.
      subroutine hear(comm, first, second, what)
      implicit none
      include 'mpif.h'
      integer comm, first, second, says(2), n, i, ierr
      character*(*) what
      says(2) = -2
      call MPI_COMM_REMOTE_SIZE(comm, n, ierr)
      do i = 1, n
        call MPI_RECV(says(i), 1, MPI_INTEGER, i - 1, 1, comm,
     &                MPI_STATUS_IGNORE, ierr)
      end do
      call check(says(1) .eq. first .and. says(2) .eq. second, what)
      call MPI_COMM_DISCONNECT(comm, ierr)
      end

      subroutine spawn
      implicit none
      include 'mpif.h'
      integer rank, ranks, wrong, ierr, comm, most(2), infos(2)
      integer codes(2)
      character*8 args(3), lists(2,2)
      character*1024 self(2)
      common /state/ rank, ranks, wrong
      if (rank .ne. 0) return
      args(1) = 'one'
      args(2) = 'two 2'
      args(3) = ' '
      call GET_COMMAND_ARGUMENT(0, self(1))
      self(2) = self(1)
      lists(1,1) = 'a'
      lists(1,2) = ' '
      lists(2,1) = ' '
      lists(2,2) = 'unread'
      most(1) = 1
      most(2) = 1
      infos(1) = MPI_INFO_NULL
      infos(2) = MPI_INFO_NULL
      codes(1) = -1
      call MPI_COMM_SPAWN(self(1), args, 1, MPI_INFO_NULL, 0,
     &     MPI_COMM_SELF, comm, codes, ierr)
      call check(codes(1) .eq. MPI_SUCCESS, 'codes of a spawn')
      call hear(comm, 2, -2, 'spawn with arguments')
      call MPI_COMM_SPAWN(self(1), MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0,
     &     MPI_COMM_SELF, comm, MPI_ERRCODES_IGNORE, ierr)
      call hear(comm, 0, -2, 'spawn without arguments')
      call MPI_COMM_SPAWN_MULTIPLE(2, self, lists, most, infos, 0,
     &     MPI_COMM_SELF, comm, codes, ierr)
      call hear(comm, 1, 0, 'spawn of two programs')
      call MPI_COMM_SPAWN_MULTIPLE(2, self, MPI_ARGVS_NULL, most,
     &     infos, 0, MPI_COMM_SELF, comm, MPI_ERRCODES_IGNORE, ierr)
      call hear(comm, 0, 0, 'of two without arguments')
      end

      subroutine sizes
      implicit none
      include 'mpif.h'
      integer rank, ranks, wrong, ierr, x, y, bytes
      integer(kind=MPI_ADDRESS_KIND) at
      common /state/ rank, ranks, wrong
      double precision start
      common /pair/ x, y
      start = MPI_WTIME()
      call check(MPI_WTICK() .gt. 0, 'the tick')
      call check(MPI_WTIME() .ge. start, 'the time')
      call MPI_GET_ADDRESS(y, at, ierr)
      call check(at .ne. 0, 'an address')
      call MPI_F_SYNC_REG(x)
      call MPI_TYPE_SIZE(MPI_INTEGER8, bytes, ierr)
      call check(bytes .eq. 8, 'the size of a type')
      call MPI_PCONTROL(1)
      end
