# SPDX-License-Identifier: BSD-3-Clause
"""functions.txt and the constants of mpi.h, read."""
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))

HANDLES = {'comm': 'MPI_Comm', 'group': 'MPI_Group', 'datatype': 'MPI_Datatype', 'op': 'MPI_Op',
           'errhandler': 'MPI_Errhandler', 'request': 'MPI_Request', 'message': 'MPI_Message', 'info': 'MPI_Info',
           'win': 'MPI_Win', 'file': 'MPI_File', 'session': 'MPI_Session'}
# C types: of a function, of its large twin
LARGE = {'count': ('int', 'MPI_Count'), 'disp': ('int', 'MPI_Aint'), 'aintcount': ('MPI_Aint', 'MPI_Count'),
         'user_function': ('MPI_User_function', 'MPI_User_function_c'),
         'datarep_conversion_function': ('MPI_Datarep_conversion_function', 'MPI_Datarep_conversion_function_c')}
PLAIN = {'int': 'int', 'index': 'int', 'logical': 'int', 'weights': 'int', 'errcodes': 'int', 'aint': 'MPI_Aint',
         'oldaint': 'MPI_Aint', 'bigcount': 'MPI_Count', 'offset': 'MPI_Offset', 'status': 'MPI_Status', **HANDLES}
ADDRESSES = ('choice', 'deferred', 'cptr', 'detached', 'extra', 'attr', 'oldextra', 'oldattr')
BUFFERS = ('choice', 'deferred')


class Argument:
    def __init__(self, text):
        m = re.fullmatch(r'(in|out|inout|c) (\w+)(&?)(?:\[(.*)\])?(?: (\w+))?', text)
        if not m:
            raise SystemExit(f'functions.txt: not an argument: {text}')
        self.direction, self.kind, self.pointer, self.length, self.name = m.groups()
        if not (self.kind in LARGE or self.kind in PLAIN or self.kind in ADDRESSES or self.is_function
                or self.kind in ('string', 'range', 'argv', 'argvs', 'commands', 'varargs')):
            raise SystemExit(f'functions.txt: no such kind: {text}')
        self.is_array = self.length is not None and self.kind != 'string'

    @property
    def is_function(self):
        return self.kind.endswith('_function')

    @property
    def is_input(self):
        return self.direction == 'in'

    def c_base(self, large):
        return LARGE[self.kind][large] if self.kind in LARGE else PLAIN.get(self.kind)

    def c_declaration(self, large):
        """The argument in a C prototype."""
        name, kind = self.name, self.kind
        const = 'const ' if self.is_input and not self.pointer else ''
        if kind == 'varargs':
            return '...'
        if self.is_function:
            return (LARGE[kind][large] if kind in LARGE else f'MPI_{kind[0].upper()}{kind[1:]}') + f' *{name}'
        if kind in ADDRESSES:
            return f'{const if kind in BUFFERS else ""}void *{name}'
        if kind == 'string':
            return f'{const}char *{name}'
        if kind == 'range':
            return f'int {name}[][3]'
        if kind in ('argv', 'commands'):
            return f'char **{"*" if self.pointer else ""}{name}'
        if kind == 'argvs':
            return f'char ***{name}'
        base = self.c_base(large)
        if self.is_array:
            return f'{const}{base} {name}[]'
        if kind == 'status':
            return f'{const}MPI_Status *{name}'
        return f'{base} {name}' if self.direction in ('in', 'c') and not self.pointer else f'{base} *{name}'


class Function:
    def __init__(self, text):
        m = re.fullmatch(r'(?:(double|MPI_Aint) )?(MPIX?_\w+)\((.*)\)( old)?', text)
        if not m:
            raise SystemExit(f'functions.txt: not a function: {text}')
        self.returns, self.name, arguments, old = m.groups()
        self.old = bool(old)
        self.all_arguments = [Argument(a) for a in arguments.split(', ')] if arguments else []
        self.arguments = [a for a in self.all_arguments if a.direction != 'c']
        self.has_large_twin = any(a.kind in LARGE for a in self.all_arguments)
        # Fortran 2008 tells the twins apart by the kinds of their integers, which MPI_Aint and MPI_Count share
        self.has_overload = any(a.kind in ('count', 'disp') for a in self.arguments)

    def c_prototype(self, prefix, large):
        name = prefix + self.name + ('_c' if large else '')
        arguments = ', '.join(a.c_declaration(large) for a in self.all_arguments)
        return f'{self.returns or "int"} {name}({arguments or "void"});'

    def kinds(self):
        return {a.kind for a in self.all_arguments}


def functions():
    lines = []
    with open(os.path.join(HERE, 'functions.txt'), encoding='utf-8') as file:
        for line in file:
            line = line.rstrip('\n')
            if not line or line.startswith('#'):
                continue
            if line.startswith(' '):
                lines[-1] += ' ' + line.strip()
            else:
                lines.append(line)
    return [Function(line) for line in lines]


# names of mpi.h that are no constants of Fortran: addresses and functions, the tool interface, C's own
NOT_FORTRAN = re.compile(r'MPI_(T|F|F08|AINT_FMT|INCLUDED)(_|$)|MPICH|MPIR_|MPI_INCLUDED|\w*_FN(_NULL(_C)?)?$')
SHORTER = re.compile(r'MPI_MAX_\w+')  # lengths of strings: without C's last byte
KEYS = re.compile(r'MPI_(TAG_UB|HOST|IO|WTIME_IS_GLOBAL|UNIVERSE_SIZE|LASTUSEDCODE|APPNUM|'
                  r'WIN_(BASE|SIZE|DISP_UNIT|CREATE_FLAVOR|MODEL))')  # Fortran's keys are one higher


def constants():
    """Name -> (kind of handle or 'int' or 'offset', value in Fortran), as mpi.h has them."""
    with open(os.path.join(HERE, '../include/mpi.h'), encoding='utf-8') as file:
        text = re.sub(r'/\*.*?\*/', '', file.read(), flags=re.S)
    kind_of = {c: kind for kind, c in HANDLES.items()}
    found = {}
    for name, value in re.findall(r'^(?:#define +| +)(MPIX?_[A-Z0-9_]+)(?: = | +)([^\n]*?),?$', text, flags=re.M) + \
            re.findall(r'\b(MPIX?_[A-Z0-9_]+) = (\d+)', text):
        if NOT_FORTRAN.match(name) or name in found:
            continue
        m = re.fullmatch(r'\(\((\w+)\)(.*)\)', value)
        cast, number = m.groups() if m else (None, value)
        number = number.strip('()')
        if cast and cast not in kind_of:
            continue
        if number in found:
            found[name] = found[number]
            continue
        if not re.fullmatch(r'-?(0x[0-9a-fA-F]+|\d+)', number):
            continue
        n = int(number, 0)
        n = n - (1 << 32) if n >= 1 << 31 else n
        n += bool(KEYS.fullmatch(name)) - bool(SHORTER.fullmatch(name))
        found[name] = (kind_of.get(cast, 'offset' if name == 'MPI_DISPLACEMENT_CURRENT' else 'int'), n)
    return found
