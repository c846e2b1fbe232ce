# libsimfab.so: preloaded into programs of simulated hosts
LIBRARIES += libsimfab.so
libsimfab.so_SRCS := $(wildcard simfab/preload/*.c)
libsimfab.so_CFLAGS := -ftls-model=initial-exec
libsimfab.so_LDLIBS := -ldl -lpthread
