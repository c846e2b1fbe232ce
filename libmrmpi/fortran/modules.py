# SPDX-License-Identifier: BSD-3-Clause
"""The Fortran side: mpif.h and the modules. The modules are interfaces, compiled with -fsyntax-only: data.c has the
code of the procedures that stand here with a body, and the data, under the names that gfortran gives them."""
from bodies import BUFFERS, f08_versions
from description import HANDLES

LICENCE = '! SPDX-License-Identifier: BSD-3-Clause'
MADE = '! Made from functions.txt and mpi.h.'
KINDS = {'MPI_ADDRESS_KIND': 8, 'MPI_OFFSET_KIND': 8, 'MPI_COUNT_KIND': 8, 'MPI_INTEGER_KIND': 4}
STATUS = {'MPI_SOURCE': 3, 'MPI_TAG': 4, 'MPI_ERROR': 5, 'MPI_STATUS_SIZE': 5}
ADDRESS, COUNT, OFFSET = (f'integer(kind=MPI_{k}_KIND)' for k in ('ADDRESS', 'COUNT', 'OFFSET'))
# Fortran types of integers: of a function, of its large twin
INTEGERS = {'count': ('integer', COUNT), 'disp': ('integer', ADDRESS), 'aintcount': (ADDRESS, COUNT),
            'aint': ADDRESS, 'attr': ADDRESS, 'extra': ADDRESS, 'bigcount': COUNT, 'offset': OFFSET,
            'logical': 'logical'}
# lengths of strings that the standard's interfaces have
LENGTHS = ('MPI_MAX_PROCESSOR_NAME', 'MPI_MAX_LIBRARY_VERSION_STRING', 'MPI_MAX_ERROR_STRING', 'MPI_MAX_OBJECT_NAME',
           'MPI_MAX_PORT_NAME', 'valuelen')
FUNCTIONS = ('DUP_FN', 'NULL_COPY_FN', 'NULL_DELETE_FN')


def wrapped(line):
    """A line cut at blanks, for compilers that read 132 columns."""
    out, indent = [], ' ' * (len(line) - len(line.lstrip()))
    while len(line) > 118:
        cut = line.rfind(' ', 0, 116)
        out.append(line[:cut] + ' &')
        line = indent + '    ' + line[cut + 1:]
    return out + [line]


def integer_type(a, large=False):
    t = INTEGERS.get(a.kind, 'integer')
    return t[large] if isinstance(t, tuple) else t


# ---- mpif.h


def mpif(functions, constants):
    """For fixed and for free form: nothing before column 7 or behind column 72, no line goes on in the next."""
    out = [LICENCE, '! The constants of MPI for programs that include this file.', MADE]

    def constant(name, value, kind='INTEGER'):
        out.append(f'       {kind} {name}')
        out.append(f'       PARAMETER ({name}={value})')

    for name, value in {**STATUS, **KINDS}.items():
        constant(name, value)
    for name, (kind, value) in constants.items():
        constant(name, value, 'INTEGER*8' if kind == 'offset' else 'INTEGER')
    constant('MPI_SUBARRAYS_SUPPORTED', '.FALSE.', 'LOGICAL')
    constant('MPI_ASYNC_PROTECTS_NONBLOCKING', '.FALSE.', 'LOGICAL')
    out += ['       ' + line for line in commons()]
    for o in ('', 'COMM_', 'TYPE_', 'WIN_'):
        out += [f'       EXTERNAL MPI_{o}{fn}' for fn in FUNCTIONS]
    out += ['       EXTERNAL MPI_CONVERSION_FN_NULL']
    for f in ('MPI_WTIME', 'MPI_WTICK', 'PMPI_WTIME', 'PMPI_WTICK'):
        out += [f'       EXTERNAL {f}', f'       DOUBLE PRECISION {f}']
    return out


def commons():
    return ['INTEGER MPI_BOTTOM, MPI_IN_PLACE',
            'INTEGER MPI_STATUS_IGNORE(MPI_STATUS_SIZE)',
            'INTEGER MPI_STATUSES_IGNORE(MPI_STATUS_SIZE,1)',
            'INTEGER MPI_ERRCODES_IGNORE(1)',
            'INTEGER MPI_UNWEIGHTED, MPI_WEIGHTS_EMPTY',
            'INTEGER MPI_BUFFER_AUTOMATIC',
            'CHARACTER*1 MPI_ARGVS_NULL(1,1), MPI_ARGV_NULL(1)',
            'COMMON /MPIPRIV1/ MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE',
            'COMMON /MPIPRIV2/ MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE',
            'COMMON /MPIPRIVC/ MPI_ARGVS_NULL, MPI_ARGV_NULL',
            'COMMON /MPIFCMB5/ MPI_UNWEIGHTED',
            'COMMON /MPIFCMB9/ MPI_WEIGHTS_EMPTY',
            'COMMON /MPIFCMBA/ MPI_BUFFER_AUTOMATIC',
            'SAVE /MPIPRIV1/, /MPIPRIV2/, /MPIPRIVC/',
            'SAVE /MPIFCMB5/, /MPIFCMB9/, /MPIFCMBA/']


# ---- handles as types: both modules compare them


def comparison(name, left, right, equal):
    def value(x, t):
        return f'{x}%MPI_VAL' if t.startswith('type') else x
    return [f'  elemental function {name}(a, b) result(answer)', f'    {left}, intent(in) :: a',
            f'    {right}, intent(in) :: b', '    logical :: answer',
            f'    answer = {value("a", left)} {"==" if equal else "/="} {value("b", right)}', '  end function']


def handle_types():
    out = []
    for c in HANDLES.values():
        out += [f'  type, bind(C) :: {c}', '    integer :: MPI_VAL', '  end type']
    return out


def comparisons(names):
    """names: kind of handle, type -> [(name of a function, left, right, whether ==)]"""
    interfaces, code = [], []
    for equal, operator in ((True, '=='), (False, '/=')):
        found = [n for kind, c in HANDLES.items() for n in names(kind, c, equal)]
        interfaces += [f'  interface operator({operator})']
        interfaces += [f'    module procedure {name}' for name, left, right in found] + ['  end interface']
        for name, left, right in found:
            code += comparison(name, left, right, equal)
    return interfaces, code


def sizeofs(names, ierror):
    interfaces = ['  interface MPI_Sizeof', *(f'    module procedure MPI_Sizeof_{n}' for n in names), '  end interface']
    code = []
    for n, (t, size) in names.items():
        code += [f'  subroutine MPI_Sizeof_{n}(x, size, ierror)', f'    {t}, dimension(..) :: x',
                 '    integer, intent(out) :: size',
                 f'    integer, {ierror}intent(out) :: ierror', f'    size = {size}']
        code += ['    if (present(ierror)) ierror = 0' if ierror else '    ierror = 0', '  end subroutine']
    return interfaces, code


# ---- module mpi


def interface(name, f, declarations):
    """An interface body."""
    arguments = ', '.join([a for a, _ in declarations])
    what = 'function' if f.returns else 'subroutine'
    out = wrapped(f'    {what} {name}({arguments})') + ['      import']
    for _, lines in declarations:
        out += [line for text in lines for line in wrapped('      ' + text)]
    if f.returns:
        out.append(f'      {"double precision" if f.returns == "double" else ADDRESS} :: {name}')
    return out + [f'    end {what}']


def declare_f90(a):
    n, kind = a.name, a.kind
    unchecked = f'!GCC$ ATTRIBUTES NO_ARG_CHECK :: {n}'
    if a.is_function:
        return [f'external :: {n}']
    intent = {'in': ', intent(in)', 'out': ', intent(out)', 'inout': ', intent(inout)'}[a.direction]
    if kind in BUFFERS or kind in ('cptr', 'detached'):
        return [unchecked, f'type(*), dimension(*) :: {n}']
    if kind in ('weights', 'errcodes'):
        return [unchecked, f'integer, dimension(*) :: {n}']
    if kind in ('string', 'argv', 'argvs', 'commands'):
        length = {'string': '', 'argv': '(*)', 'commands': '(*)', 'argvs': f'({a.length}, *)'}[kind]
        return [f'character(len=*){intent} :: {n}{length}']
    if kind == 'status':
        return [f'integer{intent if a.is_input else ""} :: {n}(MPI_STATUS_SIZE{", *" if a.is_array else ""})']
    if kind == 'range':
        return [f'integer{intent} :: {n}(3, *)']
    if a.is_array:
        return [f'{integer_type(a)}{intent if a.is_input else ""} :: {n}(*)']
    return [f'{integer_type(a)}{intent} :: {n}']


def mpi(functions, constants):
    out = [LICENCE, '! The module mpi, and the modules of which it is made.', MADE]
    out += ['module mpi_constants', '  implicit none']
    for name, value in {**STATUS, **KINDS}.items():
        out.append(f'  integer, parameter :: {name} = {value}')
    for name, (kind, value) in constants.items():
        out.append(f'  {OFFSET if kind == "offset" else "integer"}, parameter :: {name} = {value}')
    out += ['  logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .false.',
            '  logical, parameter :: MPI_ASYNC_PROTECTS_NONBLOCKING = .false.']
    out += ['  ' + line for line in commons()]
    out += handle_types()
    out += ['  type, bind(C) :: MPI_Status'] + status_fields() + ['  end type']

    def names(kind, c, equal):
        return [(f'{kind}{"eq" if equal else "neq"}', f'type({c})', f'type({c})')]
    interfaces, code = comparisons(names)
    out += interfaces + ['contains'] + code + ['end module', '']

    sizes = {'i': ('integer(kind=4)', 4), 'i1': ('integer(kind=1)', 1), 'i2': ('integer(kind=2)', 2),
             'i8': ('integer(kind=8)', 8), 'l': ('logical', 4), 'r': ('real(kind=4)', 4), 'd': ('real(kind=8)', 8),
             'cx': ('complex(kind=4)', 8), 'z': ('complex(kind=8)', 16), 'ch': ('character(len=*)', 1)}
    interfaces, code = sizeofs(sizes, '')
    out += ['module mpi_sizeofs', '  implicit none'] + interfaces + ['contains'] + code + ['end module', '']

    out += ['module mpi_base', '  use mpi_constants', '  implicit none', '  interface']
    for f in functions:
        if f.name.endswith('_c') or f.name.startswith('MPIX_Delete'):
            continue
        arguments = [(a.name, declare_f90(a)) for a in f.arguments]
        if not f.returns and f.name != 'MPI_Pcontrol':
            arguments.append(('ierror', ['integer, intent(out) :: ierror']))
        for prefix in ('', 'P'):
            out += interface(prefix + f.name, f, arguments)
    for prefix in ('', 'P'):
        out += [f'    subroutine {prefix}MPI_F_sync_reg(buf)', '!GCC$ ATTRIBUTES NO_ARG_CHECK :: buf',
                '      type(*), dimension(*) :: buf', '    end subroutine']
    out += ['  end interface']
    for o in ('', 'Comm_', 'Type_', 'Win_'):
        out += [f'  external :: MPI_{o}{fn}' for fn in FUNCTIONS]
    out += ['  external :: MPI_CONVERSION_FN_NULL', 'end module', '']
    return out + ['module mpi', '  use mpi_constants', '  use mpi_sizeofs', '  use mpi_base', 'end module']


def status_fields():
    return ['    integer :: count_lo', '    integer :: count_hi_and_cancelled', '    integer :: MPI_SOURCE',
            '    integer :: MPI_TAG', '    integer :: MPI_ERROR']


# ---- module mpi_f08


def callback(name, arguments):
    out = [f'    subroutine {name}({", ".join(a for a, _ in arguments)})', '      import']
    return out + [f'      {t} :: {a}' for a, t in arguments] + ['    end subroutine']


def copy_arguments(handle, old):
    return [(old, f'type(MPI_{handle})'), ('keyval', 'integer'), ('extra_state', ADDRESS),
            ('attribute_val_in', ADDRESS), ('attribute_val_out', ADDRESS), ('flag', 'logical'), ('ierror', 'integer')]


def delete_arguments(handle, name):
    return [(name, f'type(MPI_{handle})'), ('keyval', 'integer'), ('attribute_val', ADDRESS), ('extra_state', ADDRESS),
            ('ierror', 'integer')]


def callbacks():
    out = ['  abstract interface']
    for suffix, count in (('', 'integer'), ('_c', COUNT)):
        out += callback(f'MPI_User_function{suffix}',
                        [('invec', 'type(c_ptr), value'), ('inoutvec', 'type(c_ptr), value'), ('len', count),
                         ('datatype', 'type(MPI_Datatype)')])
        out += callback(f'MPI_Datarep_conversion_function{suffix}',
                        [('userbuf', 'type(c_ptr), value'), ('datatype', 'type(MPI_Datatype)'), ('count', count),
                         ('filebuf', 'type(c_ptr), value'), ('position', OFFSET), ('extra_state', ADDRESS),
                         ('ierror', 'integer')])
    out += callback('MPI_Datarep_extent_function', [('datatype', 'type(MPI_Datatype)'), ('extent', ADDRESS),
                                                    ('extra_state', ADDRESS), ('ierror', 'integer')])
    for o, handle, name in (('Comm', 'Comm', 'comm'), ('Type', 'Datatype', 'datatype'), ('Win', 'Win', 'win')):
        out += callback(f'MPI_{o}_copy_attr_function', copy_arguments(handle, f'old{name}'))
        out += callback(f'MPI_{o}_delete_attr_function', delete_arguments(handle, name))
    for o, name in (('Comm', 'comm'), ('Win', 'win'), ('File', 'file'), ('Session', 'session')):
        out += callback(f'MPI_{o}_errhandler_function', [(name, f'type(MPI_{o})'), ('error_code', 'integer')])
    out += callback('MPI_Grequest_query_function', [('extra_state', ADDRESS), ('status', 'type(MPI_Status)'),
                                                    ('ierror', 'integer')])
    out += callback('MPI_Grequest_free_function', [('extra_state', ADDRESS), ('ierror', 'integer')])
    out += callback('MPI_Grequest_cancel_function', [('extra_state', ADDRESS), ('complete', 'logical'),
                                                     ('ierror', 'integer')])
    return out + ['  end interface']


def procedure(name, arguments, body):
    out = wrapped(f'  subroutine {name}({", ".join(a for a, _ in arguments)})')
    return out + [f'    {t} :: {a}' for a, t in arguments] + ['    ' + b for b in body] + ['  end subroutine']


def callback_procedures():
    out = []
    for o, handle, name in (('Comm', 'Comm', 'comm'), ('Type', 'Datatype', 'datatype'), ('Win', 'Win', 'win')):
        out += procedure(f'MPI_{o}_dup_fn', copy_arguments(handle, f'old{name}'),
                         ['attribute_val_out = attribute_val_in', 'flag = .true.', 'ierror = 0'])
        out += procedure(f'MPI_{o}_null_copy_fn', copy_arguments(handle, f'old{name}'),
                         ['flag = .false.', 'ierror = 0'])
        out += procedure(f'MPI_{o}_null_delete_fn', delete_arguments(handle, name), ['ierror = 0'])
    for suffix, count in (('', 'integer'), ('_c', COUNT)):
        out += procedure(f'MPI_Conversion_fn_null{suffix}',
                         [('userbuf', 'type(c_ptr), value'), ('datatype', 'type(MPI_Datatype)'), ('count', count),
                          ('filebuf', 'type(c_ptr), value'), ('position', OFFSET), ('extra_state', ADDRESS),
                          ('ierror', 'integer')], [])
    return out


def declare_f08(a, large):
    n, kind = a.name, a.kind
    intent = {'in': ', intent(in)', 'out': ', intent(out)', 'inout': ', intent(inout)'}[a.direction]
    if a.is_function:
        name = a.c_declaration(large).split(' ', 1)[0]
        return [f'procedure({name}) :: {n}']
    if kind in BUFFERS:
        return [f'type(*), dimension(..){", intent(in)" if a.is_input else ""}'
                f'{", asynchronous" if kind == "deferred" else ""} :: {n}']
    if kind in ('cptr', 'detached'):
        return [f'type(c_ptr), intent(out) :: {n}']
    if kind == 'string':
        length = a.length if a.length in LENGTHS else '*'
        return [f'character(len={length}){intent} :: {n}']
    if kind in ('argv', 'argvs', 'commands'):
        return [f'character(len=*){intent} :: {n}({a.length + ", " if kind == "argvs" else ""}*)']
    if kind == 'range':
        return [f'integer{intent} :: {n}(3, {a.length})']
    if kind == 'status':
        t, intent = 'type(MPI_Status)', intent if a.direction != 'out' else ''
    elif kind in HANDLES:
        t = f'type({HANDLES[kind]})'
    else:
        t = integer_type(a, large)
    if kind == 'errcodes' or (kind == 'weights' and not a.is_input):
        intent = ''
    return [f'{t}{intent} :: {n}' + (f'({a.length})' if a.is_array else '')]


def f08_interfaces(functions, generic, specific):
    """Interfaces with names of functions for programs and for the linker: MPI_, mpi_ or PMPI_, pmpir_."""
    out, found = [], {}
    for f in functions:
        if f.old:
            continue
        for name, large in f08_versions(f):
            arguments = [(a.name, declare_f08(a, large)) for a in f.arguments]
            if not f.returns:
                arguments.append(('ierror', ['integer, optional, intent(out) :: ierror']))
            x = f.name.startswith('MPIX') and not f.name.startswith('MPIX_Delete')
            linker = (specific[:-1] + 'x_' if specific == 'mpi_' else 'pmpixr_') if x else specific
            overload = f.name[:-2] if f.name.endswith('_c') else f.name
            if large and not f.has_overload:
                overload += '_c'
            types = ['      use, intrinsic :: iso_c_binding, only : c_ptr'] if f.kinds() & {'cptr', 'detached'} else []
            body = interface(linker + name, f, arguments)
            at = body.index('      import')
            found.setdefault(generic + overload[3:], []).append(body[:at] + types + body[at:])
    for overload, bodies in found.items():
        out += [f'  interface {overload}'] + [line for body in bodies for line in body] + ['  end interface']
    out += [f'  interface {generic}_F_sync_reg', f'    subroutine {specific}f_sync_reg_f08ts(buf, ierror)',
            '      type(*), dimension(..), asynchronous :: buf', '      integer, optional, intent(out) :: ierror',
            '    end subroutine', '  end interface']
    return out


def mpi_f08(functions, constants):
    out = [LICENCE, '! The module mpi_f08, and the modules of which it is made.', MADE]
    out += ['module mpi_f08_types', '  implicit none']
    out += [f'  integer, parameter :: {name} = {value}' for name, value in STATUS.items()]
    out += handle_types() + ['  type, bind(C) :: MPI_Status'] + status_fields() + ['  end type']

    def names(kind, c, equal):
        word, t = 'eq' if equal else 'neq', f'type({c})'
        return [(f'{c}_{word}', t, t), (f'{c}_f08_{word}_f', t, 'integer'), (f'{c}_f_{word}_f08', 'integer', t)]
    interfaces, code = comparisons(names)
    sizes = {'character': ('character(len=*)', 1), 'logical': ('logical', 4)}
    for bits in (8, 16, 32, 64):
        sizes[f'xint{bits}'] = (f'integer(kind={bits // 8})', bits // 8)
    for bits in (32, 64, 128):
        sizes[f'xreal{bits}'] = (f'real(kind={bits // 8})', bits // 8)
        sizes[f'xcomplex{bits}'] = (f'complex(kind={bits // 8})', bits // 4)
    size_interfaces, size_code = sizeofs(sizes, 'optional, ')
    out += interfaces + size_interfaces + ['contains'] + code + size_code
    for name, old, new in (('f2f08', 'integer', 'type(MPI_Status)'), ('f082f', 'type(MPI_Status)', 'integer')):
        a, b = name.split('2')
        dims = {'integer': '(MPI_STATUS_SIZE)', 'type(MPI_Status)': ''}
        fields = [c.split('::')[1].strip() for c in status_fields()]
        body = [f'    {b}_status%{c} = {a}_status({i + 1})' if a == 'f' else f'    {b}_status({i + 1}) = {a}_status%{c}'
                for i, c in enumerate(fields)]
        out += [f'  subroutine MPI_Status_{name}({a}_status, {b}_status, ierror)',
                f'    {old}, intent(in) :: {a}_status{dims[old]}', f'    {new}, intent(out) :: {b}_status{dims[new]}',
                '    integer, optional, intent(out) :: ierror'] + body
        out += ['    if (present(ierror)) ierror = 0', '  end subroutine']
    out += ['end module', '', 'module mpi_f08_compile_constants', '  use mpi_f08_types', '  implicit none']
    out += [f'  integer, parameter :: {name} = {value}' for name, value in KINDS.items()]
    out += ['  logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .true.',
            '  logical, parameter :: MPI_ASYNC_PROTECTS_NONBLOCKING = .true.']
    for name, (kind, value) in constants.items():
        t = HANDLES.get(kind)
        if t:
            out.append(f'  type({t}), parameter :: {name} = {t}({value})')
        else:
            out.append(f'  {OFFSET if kind == "offset" else "integer"}, parameter :: {name} = {value}')
    out += ['end module', '', 'module mpi_f08_link_constants', '  use mpi_f08_types', '  implicit none']
    for name, symbol in (('MPI_BOTTOM', 'MPIR_F08_MPI_BOTTOM'), ('MPI_IN_PLACE', 'MPIR_F08_MPI_IN_PLACE'),
                         ('MPI_BUFFER_AUTOMATIC', 'mpifcmba_')):
        out.append(f'  integer, bind(C, name="{symbol}"), target :: {name}')
    out += ['  type(MPI_Status), bind(C, name="MPIR_F08_MPI_STATUS_IGNORE_OBJ"), target :: MPI_STATUS_IGNORE',
            '  type(MPI_Status), bind(C, name="MPIR_F08_MPI_STATUSES_IGNORE_OBJ"), target :: MPI_STATUSES_IGNORE(1)',
            '  integer, dimension(1), target :: MPI_ERRCODES_IGNORE, MPI_UNWEIGHTED, MPI_WEIGHTS_EMPTY',
            '  character(len=1), dimension(1), target :: MPI_ARGV_NULL',
            '  character(len=1), dimension(1, 1), target :: MPI_ARGVS_NULL', 'end module', '',
            'module mpi_f08_callbacks', '  use, intrinsic :: iso_c_binding, only : c_ptr', '  use mpi_f08_types',
            '  use mpi_f08_compile_constants', '  implicit none', '  private :: c_ptr']
    out += callbacks() + ['contains'] + callback_procedures() + ['end module', '']
    uses = ['  use mpi_f08_types', '  use mpi_f08_compile_constants', '  use mpi_f08_link_constants',
            '  use mpi_f08_callbacks']
    out += ['module pmpi_f08'] + uses + ['  implicit none'] + f08_interfaces(functions, 'PMPI', 'pmpir_')
    out += ['end module', '', 'module mpi_f08'] + uses + ['  use pmpi_f08', '  implicit none']
    return out + f08_interfaces(functions, 'MPI', 'mpi_') + ['end module']
