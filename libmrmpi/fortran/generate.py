#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""generate.py FILE...: make files of Fortran's interface from functions.txt and mpi.h. A file's name tells its content:
f77.inc, f08.inc, data.inc (bodies for the sources of this folder), mpif.h, mpi.f90, mpi_f08.f90, prototypes.h."""
import os
import sys

import bodies
import description
import modules

CONTENTS = {'f77.inc': bodies.f77, 'f08.inc': bodies.f08, 'data.inc': bodies.data, 'mpif.h': modules.mpif,
            'mpi.f90': modules.mpi, 'mpi_f08.f90': modules.mpi_f08, 'prototypes.h': bodies.prototypes}


def main():
    functions, constants = description.functions(), description.constants()
    for path in sys.argv[1:]:
        text = '\n'.join(CONTENTS[os.path.basename(path)](functions, constants)) + '\n'
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)


main()
