/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A world of forked processes for tests of the rooms below core/: stands for launch/ and for core/'s world
 * communicator. fake_world_run() forks, runs body(rank) in each process with pt2pt initialised, and says whether all
 * returned 0.
 */
#ifndef FAKE_WORLD_H
#define FAKE_WORLD_H

int fake_world_run(int ranks, int (*body)(int rank, int size));

#endif
