/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts as files for readers of netlists and models: written to a temporary file, read, and removed. Messages call the
 * file "F".
 */
#ifndef TESTS_SIMFAB_INPUT_H
#define TESTS_SIMFAB_INPUT_H

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"

#define INPUT_PATH "/tmp/simfab-input-XXXXXX"

/* path: INPUT_PATH before, the file's after. */
static inline void input_write(const char *text, char path[sizeof INPUT_PATH])
{
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static inline void input_remove(const char *path, struct parse_error *err)
{
    char *at = strstr(err->text, path);

    unlink(path);
    if (!at)
        return;
    memmove(at + 1, at + strlen(path), strlen(at + strlen(path)) + 1);
    *at = 'F';
}

/* NULL with err filled for a refused text. */
static inline struct model *input_model(const char *text, struct parse_error *err)
{
    char path[] = INPUT_PATH;
    struct model *m;

    input_write(text, path);
    m = model_load(path, err);
    input_remove(path, err);
    return m;
}

static inline struct fabric *input_fabric(const char *text, struct model *m, struct parse_error *err)
{
    char path[] = INPUT_PATH;
    struct fabric *f;

    input_write(text, path);
    f = fabric_load(path, m, err);
    input_remove(path, err);
    return f;
}

#endif
