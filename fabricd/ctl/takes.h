/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of fabricctl, and the options of each command; refusals of command lines. An option that a command would
 * ignore is refused: the user meant something else.
 */
#ifndef FABRICD_TAKES_H
#define FABRICD_TAKES_H

#include <getopt.h>
#include <stdbool.h>

#define TAKES_OPTIONS_MAX 32

extern const struct option takes_options[]; /* for getopt_long(), which returns the letters here */

/*
 * command: "job set"; given: letters, each once. False: an option is not for this command, and the error was printed.
 */
bool takes_all(const char *command, bool cluster, const char *given);

/*
 * Refuses words that are no command, with the command that was meant or those that there are. names: all commands, a
 * noun or a noun and a verb each, in the order of nouns, and NULL. known: the command, if only the number of words is
 * wrong. Returns the exit status.
 */
int takes_refuse(const char *const *names, unsigned num, char *const *word, const char *known);

#endif
