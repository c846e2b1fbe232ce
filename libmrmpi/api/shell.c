/* SPDX-License-Identifier: BSD-3-Clause */
/* The library tells libmrmpi.so its name when it is loaded: there is one shell in a process. */
#include "libmrmpi/api/interface.h"

static void __attribute__((constructor)) announce_shell(void)
{
    mr_shell_loaded(abi_library);
}
