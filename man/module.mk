# SPDX-License-Identifier: BSD-3-Clause
# Man pages: one line per page (or let the folder that owns the program append its own).
MANPAGES += man/mrrun.1
MANPAGES += man/mrcc.1
MANPAGES += man/libmrmpi.7
