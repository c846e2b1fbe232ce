# simfab: the command that brings fabrics up, runs programs on their hosts and takes them down
PROGRAMS += simfab
simfab_SRCS := $(wildcard simfab/cmd/*.c) terminal/progress.c
MANPAGES += man/simfab.1
