# simfab: the command that brings fabrics up, runs programs on their hosts and takes them down
PROGRAMS += simfab
simfab_SRCS := $(wildcard simfab/cmd/*.c)
CFLAGS.simfab/cmd := -DINSTALLED_LIBDIR='"$(LIBDIR)"' -DINSTALLED_SHARE='"$(PREFIX)/share/mrmpi"'
MANPAGES += man/simfab.1
