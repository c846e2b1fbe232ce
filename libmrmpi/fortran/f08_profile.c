/* SPDX-License-Identifier: BSD-3-Clause */
/* f08.c a second time: what pmpi_f08 names. */
#define F08(name)  pmpir_##name##_
#define F08X(name) pmpixr_##name##_
#define C(name)    PMPI_##name
#define CX(name)   PMPIX_##name
#define PROFILED   true
#include "libmrmpi/fortran/f08.c"
