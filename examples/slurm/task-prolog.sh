#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# slurmstepd's TaskProlog for Weft: the job's user runs it before each task, and its output sets
# variables of the task. A job that sets WEFT_SEAL gets the key that prolog.py has made.
if [ "${WEFT_SEAL:-off}" != off ] && [ -z "${WEFT_JOB_KEY:-}" ]; then
	echo "export WEFT_JOB_KEY=/run/weft/jobs/$SLURM_JOB_ID.key"
fi
