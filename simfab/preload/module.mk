# libsimfab.so: preloaded into programs of simulated hosts
LIBRARIES += libsimfab.so
libsimfab.so_SRCS := $(wildcard simfab/preload/*.c)
CFLAGS.simfab/preload := -ftls-model=initial-exec
# clang would make calls of memcpy and memmove, which this file defines, of those of the functions that it calls instead
CFLAGS.simfab/preload/copy.c := -fno-builtin
libsimfab.so_LDLIBS := -ldl -lpthread
