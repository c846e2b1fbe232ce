# libsimfab-tsc.so: loaded by libsimfab.so where the kernel's trap of the time stamp counter does not work
LIBRARIES += libsimfab-tsc.so
libsimfab-tsc.so_SRCS := $(wildcard simfab/tsc/*.c)
libsimfab-tsc.so_LDLIBS := -lZydis
