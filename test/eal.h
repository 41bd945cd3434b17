/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file eal.h
 * DPDK for tests: no hugepages, no devices, no files.
 */
#ifndef TEST_EAL_H
#define TEST_EAL_H

/** Start the EAL with @p mb MiB ("512"), once per process; says why and exits when it can't. */
void test_eal_init(const char *mb);

#endif /* TEST_EAL_H */
