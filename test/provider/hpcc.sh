# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What hpcc's report must contain, for the scripts that run it.

# hpcc_report_right FILE: hpcc verified each of its results, and found no error.
hpcc_report_right() {
	local failed
	grep -E '^Success=|PASSED|FAILED|Found [0-9]+ errors' "$1"
	failed=$(grep -cE 'FAILED|^Found [1-9][0-9]* errors' "$1")
	grep -q '^Success=1' "$1" && [ "$failed" = 0 ] &&
		[ "$(grep -c 'PASSED' "$1")" -ge 11 ] &&
		[ "$(grep -c '^Found 0 errors' "$1")" -ge 4 ]
}
