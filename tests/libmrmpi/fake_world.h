/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A world of forked processes for tests of the rooms below core/: stands for launch/ and for core/'s world
 * communicator. fake_world_run() forks, runs body(rank) in each process with pt2pt initialised, and says whether all
 * returned 0. All ranks are on one node, or, after fake_world_apart(), each on its own, with a channel "net" of the
 * test's.
 */
#ifndef FAKE_WORLD_H
#define FAKE_WORLD_H

int fake_world_run(int ranks, int (*body)(int rank, int size));
void fake_world_apart(void);

#endif
