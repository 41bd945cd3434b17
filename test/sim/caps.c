/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Networks that limit each flow by a policer, and networks that only lose frames. The number of
 * paths is not configured.
 */

#include <string.h>

#include "net_stage_priv.h"
#include "sim_priv.h"
#include "sim_test.h"
#include "tcp.h"

#define RATE (SIM_GBIT / 5)
#define CAP (RATE / 5)

static const struct net_conf plain = {
	.rate = RATE,
	.host_rate = SIM_GBIT,
	.rtt_ns = 500 * SIM_US,
	.window = 16,
	.start_ns = 1500 * SIM_MS,
	.run_ns = 2 * SIM_S,
	.config = "CC=delay",
};

struct outcome {
	double share; /* of the link */
	int more;     /* times that paths were added, less the times that they were taken away */
};

static struct outcome outcome_of(uint64_t seed, const struct net_conf *conf,
				 const struct tcp_algorithm *beside)
{
	struct net_stage *s = net_stage_open(seed, conf);
	const struct sim_node *node = s->sender[0].node;
	struct tcp_flow *f = NULL;
	struct outcome out;
	const char *why;

	if (beside)
		f = tcp_flow_create(net_stage_sim(s), beside, net_stage_more(s, false),
				    net_stage_more(s, true));
	net_stage_start(s, false);
	if (f)
		tcp_flow_start(f);
	net_stage_run(s, conf->start_ns);
	net_stage_mark(s);
	net_stage_run(s, conf->run_ns);
	out.share = net_stage_figures(s).bits / RATE;
	out.more = (int)sim_node_counter(node, "path.more") -
		   (int)sim_node_counter(node, "path.fewer");
	if (f)
		tcp_flow_stop(f);
	why = net_stage_close(s);
	if (why)
		fail_msg("seed %llu: %s", (unsigned long long)seed, why);
	tcp_flow_free(f);
	return out;
}

/* A policer adds no delay: losses and the delivered rate decide. One path gets a fifth. */
/* @behaviour R25 */
static void a_policed_flow_takes_further_paths(struct sim_case *c)
{
	struct net_conf conf = plain;
	struct outcome out;

	conf.path = (struct sim_link){.flow_police = CAP, .flow_burst = 60000};
	for (unsigned int i = 0; i < 4; i++) {
		out = outcome_of(c->seed + i, &conf, NULL);
		if (out.share < 0.6 || out.more < 1)
			fail_msg("seed %llu: %.2f of the link, %d times more paths",
				 (unsigned long long)(c->seed + i), out.share, out.more);
	}
}

/* Further paths are tried, and carry no more. */
/* @behaviour R25 */
static void loss_that_all_share_is_no_limit(struct sim_case *c)
{
	struct net_conf conf = plain;
	struct outcome out;

	conf.path = (struct sim_link){.loss = 0.05, .queue_bytes = 40000};
	for (unsigned int i = 0; i < 4; i++) {
		out = outcome_of(c->seed + i, &conf, NULL);
		assert_int_equal(out.more, 0);
	}
}

/* Four paths would take four shares of five. */
/* @behaviour R25 */
static void next_to_tcp_one_path_stays(struct sim_case *c)
{
	struct net_conf conf = plain;
	struct outcome out;

	conf.trunks = 1;
	conf.path = (struct sim_link){.queue_bytes = 40000};
	for (unsigned int i = 0; i < 2; i++) {
		out = outcome_of(c->seed + i, &conf, i ? &tcp_bbr : &tcp_cubic);
		assert_int_equal(out.more, 0);
	}
}

static struct sim_case cases[] = {
	SIM_CASE(a_policed_flow_takes_further_paths),
	SIM_CASE(loss_that_all_share_is_no_limit),
	SIM_CASE(next_to_tcp_one_path_stays),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "caps", cases, sizeof(cases) / sizeof(cases[0]));
}
