# libsimfab.so: preloaded into programs of simulated hosts
LIBRARIES += libsimfab.so
libsimfab.so_SRCS := $(wildcard simfab/preload/*.c)
CFLAGS.simfab/preload := -ftls-model=initial-exec
libsimfab.so_LDLIBS := -ldl -lpthread
