#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# slurmd's Epilog for Weft: root runs it on each node when a job has ended. It removes the key.
rm -f "/run/weft/jobs/${SLURM_JOB_ID:?}.key"
