#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# capture-corpus.sh [-r] [-o FOLDER] BUILD [RUNS [KIND...]]: what weft-dump names in captures of
# real runs, or with -r in files of the flight recorder, with nothing configured. Two processes in
# network namespaces have two rails of veth pairs through weft-wire, which puts one fault on the
# first rail; or a process is stopped, killed, or gets a CPU hog. The ground truth of each run has
# what was done when, and the run-queue waits of all processes. Prints a line for each run and a
# table; doc/results/2026-11-29-capture-corpus.md has some. It is for the nightly set: it takes 10
# to 15 s a run, needs root and no port of its own. The exit code is 1 after a false alarm in a run
# without a fault, or when there was no run.

here=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" = 0 ] || { echo "network namespaces need root"; exit 77; }
for program in ip python3 timeout; do
	command -v $program >/dev/null || { echo "$program is not installed"; exit 77; }
done
exec python3 -B "$here/capture_corpus.py" "$@"
