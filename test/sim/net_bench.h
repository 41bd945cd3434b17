/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file net_bench.h
 * sim_net_bench: net_bench.c has scenarios and arguments, net_bench_run.c runs and prints.
 */
#ifndef SIM_NET_BENCH_H
#define SIM_NET_BENCH_H

#include "net_stage.h"
#include "tcp.h"

#define NET_SEEDS 1000

struct net_scenario {
	const char *name, *what;
	struct net_conf conf;
	uint64_t hole_ns; /**< the first trunk loses all from then on; 0 = never */
	const struct tcp_algorithm *beside;  /**< a flow of this beside the senders' */
	const struct tcp_algorithm *instead; /**< a flow of this instead of the senders' */
	bool idle;                           /**< senders send nothing */
};

struct net_run {
	struct net_scenario scenario;
	unsigned int seeds;
	uint64_t seed; /**< the first */
};

/** Networks of all kinds. @return exit code: 1 when more than @p most of them missed a goal */
int net_matrix_all(uint64_t seed, unsigned int most);
/**
 * @p rows rows, one for each seed from @p seed on; 35,280 of them are all combinations.
 * @return 1 when one missed a goal, else 0
 */
int net_matrix_some(uint64_t seed, unsigned int rows);
/** @return exit code: 0, or 1 when a run violated something */
int net_run_all(const struct net_run *r);

#endif /* SIM_NET_BENCH_H */
