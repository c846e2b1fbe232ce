# SPDX-License-Identifier: BSD-3-Clause
"""The C side: functions with Fortran's names and calling convention, which call C's functions."""
from description import BUFFERS, HANDLES

# fort_NAME in special.c has the body, and gets Fortran's arguments as they are.
SPECIAL_KINDS = {'attr', 'oldattr', 'extra', 'oldextra', 'argv', 'argvs', 'commands'}
SPECIAL_NAMES = {'MPI_Info_get', 'MPI_Info_get_string', 'MPI_Session_get_nth_pset', 'MPI_Type_hindexed',
                 'MPI_Type_struct'}
STRINGS = ('string', 'argv', 'argvs', 'commands')
# leading blanks do not count either (MPI-4.1 sections 10, 11.8.2 and 14.2.1)
STRIPPED = {'key', 'value', 'filename', 'command'}
# what Fortran's integers are in C: of a function, of its large twin
POINTERS = {'count': ('MPI_Fint', 'MPI_Count'), 'disp': ('MPI_Fint', 'MPI_Aint'),
            'aintcount': ('MPI_Aint', 'MPI_Count'), 'aint': 'MPI_Aint', 'attr': 'MPI_Aint', 'extra': 'MPI_Aint',
            'bigcount': 'MPI_Count', 'offset': 'MPI_Offset',
            'status': 'MPI_Status', 'cptr': 'void', 'detached': 'void', 'choice': 'void', 'deferred': 'void'}
# names that MPICH's library has for them
RENAMED = {'MPIX_Delete_error_class', 'MPIX_Delete_error_code', 'MPIX_Delete_error_string'}


def special(f):
    return bool({a.kind for a in f.arguments} & SPECIAL_KINDS) or f.name in SPECIAL_NAMES


def parameter(a, f08, large):
    """Fortran passes everything by reference."""
    if a.is_function:
        return f'fort_fn *{a.name}'
    const = 'const ' if a.is_input and not a.pointer else ''
    if a.kind in STRINGS:
        return f'{const}char *{a.name}'
    if a.kind in BUFFERS and f08:
        return f'const struct fort_array *{a.name}'
    base = POINTERS.get(a.kind, 'MPI_Fint')
    if isinstance(base, tuple):
        base = base[large]
    return f'{"" if a.kind in BUFFERS else const}{base} *{a.name}'


def parameters(f, f08, large):
    found = [parameter(a, f08, large) for a in f.arguments]
    if not f.returns and (f08 or f.name != 'MPI_Pcontrol'):
        found.append('MPI_Fint *ierror')
    found += [f'size_t {a.name}_len' for a in f.arguments if a.kind in STRINGS]
    return ', '.join(found) or 'void'


def later_use(f, buffer):
    """Of a buffer that MPI uses after the call: its count, its datatype, and how a section may be laid out; or None."""
    after = f.arguments[f.arguments.index(buffer) + 1:]
    datatype = next((a for a in after if a.kind == 'datatype'), None)
    if not datatype or f.name in ('MPI_Compare_and_swap', 'MPI_Fetch_and_op'):
        return None
    count = next(a for a in after if a.kind in ('count', 'bigcount'))
    kinds, names = f.kinds(), {a.name for a in f.arguments}
    if datatype.is_array or ('op' in kinds and 'win' not in kinds):
        return count, datatype, 'FORT_ONE_PIECE'
    if 'partitions' in names or ({'sendbuf', 'recvbuf'} <= names and 'dest' not in names):
        return count, datatype, 'FORT_EVEN'
    return count, datatype, 'FORT_ANY'


class Body:
    """One function: declarations and checks before the call, the call's arguments, conversions after the call."""

    def __init__(self, f, f08, large, function):
        self.f, self.f08, self.large, self.function = f, f08, large, function
        self.before, self.after, self.always, self.errors = [], [], [], []
        self.layouts = []  # buffers that MPI uses after the call
        self.replaced = {}  # name of an argument -> expression that stands for it
        for a in f.arguments:
            self.convert(a)
        if self.layouts and 'request' in f.kinds():
            ends = ', '.join([f'&{n}_c' for n in self.layouts] + ['NULL'] * (2 - len(self.layouts)))
            self.always.append(f'fort_layout_end(rc, request, {ends});')
        else:
            self.always += [f'fort_layout_free(&{n}_c);' for n in self.layouts]

    def convert(self, a):
        n = a.name
        if a.kind in BUFFERS and self.f08:
            self.convert_array(a)
        elif n in self.replaced:
            pass
        elif a.kind in BUFFERS:
            self.replaced[n] = f'fort_address({n})'
        elif a.kind == 'file':
            if a.is_input:
                self.replaced[n] = f'MPI_File_f2c(*{n})'
            else:
                old = f'MPI_File_f2c(*{n})' if a.direction == 'inout' else 'MPI_FILE_NULL'
                self.before.append(f'MPI_File {n}_c = {old};')
                self.replaced[n] = f'&{n}_c'
                self.after.append(f'*{n} = MPI_File_c2f({n}_c);')
        elif a.kind == 'status':
            if a.direction == 'out':
                self.replaced[n] = f'fort_status{"es" if a.is_array else ""}({n})'
            else:
                self.replaced[n] = n
        elif a.kind in ('weights', 'errcodes'):
            self.replaced[n] = f'fort_{a.kind}({n})'
        elif a.kind == 'string':
            self.convert_string(a)
        elif a.kind == 'logical':
            if a.is_array:
                self.replaced[n] = n
            elif a.is_input:
                self.replaced[n] = f'*{n} != 0'
            else:
                self.replaced[n] = n
                self.after.append(f'*{n} = *{n} != 0;')
        elif a.kind == 'index':
            self.replaced[n] = n
            count = 'outcount' if a.is_array else n
            self.before.append(f'*{count} = MPI_UNDEFINED;')
            self.always.append(f'fort_count_from_one({n}, {"*outcount" if a.is_array else "1"});')
        elif a.kind == 'detached' and not self.f08:
            self.before.append(f'void *{n}_c;')
            self.replaced[n] = f'&{n}_c'
        elif a.kind == 'detached':
            self.replaced[n] = n
            self.after.append(f'fort_detached({n});')
        elif a.kind == 'oldaint' and a.direction == 'out':
            self.before.append(f'MPI_Aint {n}_c;')
            self.replaced[n] = f'&{n}_c'
            self.after.append(f'*{n} = (MPI_Fint){n}_c;')
        elif a.kind == 'range':
            self.replaced[n] = f'(int(*)[3])({n})'
        elif a.is_function:
            self.replaced[n] = f'({a.c_declaration(self.large).rsplit(" ", 1)[0]} *)({n})'
        else:
            self.replaced[n] = f'*{n}' if a.is_input and not a.is_array and not a.pointer else n

    def convert_string(self, a):
        n = a.name
        if a.is_input:
            self.before.append(f'char *{n}_c = fort_string({n}, {n}_len, {"true" if n in STRIPPED else "false"});')
            self.errors.append(f'fort_no_memory({n}_c)')
            self.always.append(f'free({n}_c);')
            self.replaced[n] = f'{n}_c'
        else:
            self.before.append(f'char {n}_c[{a.length}];')
            self.replaced[n] = f'{n}_c'
            self.after.append(f'fort_pad({n}, {n}_len, {n}_c);')

    def convert_array(self, a):
        n = a.name
        if a.kind == 'choice' and any(b.kind == 'datatype' for b in self.f.arguments):
            self.before.append(f'struct fort_copy {n}_c = fort_copy_in({n});')
            self.errors.append(f'{n}_c.error')
            self.always.append(f'fort_copy_out(&{n}_c, {"false" if a.is_input else "true"});')
            self.replaced[n] = f'{n}_c.address'
            return
        use = later_use(self.f, a)
        if not use:
            self.replaced[n] = f'fort_base({n})'
            return
        count, datatype, layout = use
        c = f'*{count.name}' if not count.is_array else '0'
        d = f'*{datatype.name}' if not datatype.is_array else 'MPI_DATATYPE_NULL'
        self.before.append(f'struct fort_layout {n}_c = fort_layout({n}, {c}, {d}, {layout}, '
                           f'{"true" if a.is_input else "false"});')
        self.errors.append(f'{n}_c.error')
        self.layouts.append(n)
        self.replaced[n] = f'{n}_c.address'
        if layout != 'FORT_ONE_PIECE':
            self.replaced[datatype.name] = f'{n}_c.type'
            if layout == 'FORT_ANY':
                self.replaced[count.name] = f'({count.c_base(self.large)}){n}_c.count'

    def lines(self):
        f = self.f
        if special(f):
            arguments = [a.name for a in f.arguments] + [f'{a.name}_len' for a in f.arguments if a.kind in STRINGS]
            call = f'fort_{f.name.split("_", 1)[1]}{"_c" if self.large else ""}(PROFILED, {", ".join(arguments)})'
            return [f'{"return" if f.returns else "int rc ="} {call};'] + self.end()
        arguments = []
        for a in f.all_arguments:
            if a.direction == 'c':
                arguments += [] if a.kind == 'varargs' else ['NULL' if a.kind == 'argv' or a.pointer else '0']
            else:
                arguments.append(self.replaced[a.name])
        call = f'{self.function}({", ".join(arguments)})'
        if f.returns:
            return [f'return {call};']
        lines = list(self.before)
        if self.errors:
            raiser = next((a for a in f.arguments
                           if a.kind in ('comm', 'win', 'file') and a.is_input and not a.is_array), None)
            where = f'FORT_{raiser.kind.upper()}, *{raiser.name}' if raiser else 'FORT_NONE, 0'
            lines.append(f'int rc = {self.first_error()};')
            lines.append(f'rc = rc ? fort_raise({where}, rc) : {call};')
        else:
            lines.append(f'int rc = {call};')
        if self.after:
            lines += ['if (!rc) {'] + ['    ' + line for line in self.after] + ['}']
        return lines + self.always + self.end()

    def first_error(self):
        return ' : '.join([f'{e} ? {e}' for e in self.errors[:-1]] + self.errors[-1:])

    def end(self):
        if self.f.returns:
            return []
        if not self.f08:
            return ['(void)rc;'] if self.f.name == 'MPI_Pcontrol' else ['*ierror = rc;']
        return ['fort_return(ierror, rc);']


def definition(returns, name, parameters_, lines):
    return [f'{returns or "void"} {name}({parameters_})', '{'] + ['    ' + line for line in lines] + ['}']


def f77(functions, constants):
    out = ['/* made from functions.txt */']
    for f in functions:
        if f.name in RENAMED or f.name.endswith('_c'):
            continue
        name = f.name.lower()
        out += definition(f.returns, f'p{name}_', parameters(f, False, False), Body(f, False, False, f.name).lines())
        prefix, rest = f.name.split('_', 1)
        out.append(f'FORT_NAMES({prefix.lower()}_{rest.lower()}, {prefix}_{rest.upper()})')
    return out


def f08_versions(f):
    """Name without prefix and final _, and whether of the large twin, for each version of a function."""
    base = f.name.lower().split('_', 1)[1]
    ts = 'f08ts' if f.kinds() & set(BUFFERS) else 'f08'
    if base.endswith('_c'):
        return [(f'{base[:-2]}_{ts}_large', False)]
    found = [(f'{base}_{ts}', False)]
    if f.has_overload:
        found.append((f'{base}_{ts}_large', True))
    elif f.has_large_twin and any(a.is_function for a in f.arguments):
        found.append((f'{base}_c_{ts}', True))
    return found


def f08(functions, constants):
    out = ['/* made from functions.txt */']
    for f in functions:
        if f.old:
            continue
        for name, large in f08_versions(f):
            x = 'X' if f.name.startswith('MPIX') else ''
            called = f'C{x}({f.name.split("_", 1)[1]}{"_c" if large else ""})'
            out += definition(f.returns, f'F08{"" if f.name in RENAMED else x}({name})', parameters(f, True, large),
                              Body(f, True, large, called).lines())
    return out


def data(functions, constants):
    """Constants of handles, which gfortran's modules have at an address, and procedures of the types."""
    out = ['/* made from mpi.h */']
    for name, (kind, value) in sorted(constants.items()):
        if kind in HANDLES:
            out.append(f'FORT_CONSTANT({name.lower()}, {value})')
    for kind, c in HANDLES.items():
        out.append(f'FORT_HANDLE({kind}, {c.lower()})')
    return out


def prototypes(functions, constants):
    """As mpi.h should have them: a second declaration that differs is an error."""
    return [f.c_prototype(p, large) for f in functions for p in ('', 'P')
            for large in ([False, True] if f.has_large_twin else [False])]
