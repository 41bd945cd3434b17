/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file info/lane_options.h
 * `weft-info --lane-options IFNAME`: the options of a lane on this NIC, read while it is
 * bound to the kernel's driver.
 */
#ifndef APP_INFO_LANE_OPTIONS_H
#define APP_INFO_LANE_OPTIONS_H

/** @return exit code */
int info_lane_options(const char *name);

#endif /* APP_INFO_LANE_OPTIONS_H */
