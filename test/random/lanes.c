/* SPDX-License-Identifier: BSD-3-Clause */

#include "lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POLL_NS 500u       /* counted for a poll that found something */
#define NAP_MIN 20000u     /* shorter waits are polled away */
#define NAP_MAX 100000u    /* between two polls */
#define ALONE 0.1          /* of the waits are one node's, and the others compute */
#define NO_NODE UINT32_MAX /* all nodes make progress */

struct lanes {
	struct random_net net;
	const struct lanes_conf *conf;
	struct sim_rng rng;
	unsigned int next; /* node that is polled first */
	uint64_t begun;
};

uint64_t lanes_lost, lanes_back;

uint64_t lanes_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static int set_options(struct weft_config *config, char *text)
{
	char *word, *value, *save = NULL;
	int ret = 0;

	for (word = strtok_r(text, " ", &save); word && !ret; word = strtok_r(NULL, " ", &save)) {
		value = strchr(word, '=');
		if (!value)
			return -EINVAL;
		*value++ = '\0';
		ret = weft_config_modify(config, word, value);
	}
	return ret;
}

static int make_context(struct rnode *n, char *options)
{
	struct weft_context_params cp =
		WEFT_INIT(struct weft_context_params,
			  .features = WEFT_FEATURE_TAG | WEFT_FEATURE_AM | WEFT_FEATURE_RMA |
				      WEFT_FEATURE_AMO32 | WEFT_FEATURE_AMO64);
	const char *log = getenv("SIM_LOG");
	struct weft_config *config;
	int ret = weft_config_read(&config);

	if (ret)
		return ret;
	/* What tests provoke is no news, and needs no file of the flight recorder. */
	ret = weft_config_modify(config, "LOG_LEVEL", log ? log : "error");
	if (!ret)
		ret = weft_config_modify(config, "RECORDER", "off");
	if (!ret)
		ret = set_options(config, options);
	cp.config = config;
	if (!ret)
		ret = weft_context_create(&cp, &n->ctx);
	weft_config_release(config);
	return ret;
}

static void open_node(struct rnode *n)
{
	struct world *w = n->w;
	struct lanes *l = w->lanes;
	struct weft_worker_params wp = WEFT_INIT(struct weft_worker_params, .thread_mode = 0);
	char lanes[200], options[400];
	int ret;

	if (!n->index && l->conf->begin)
		l->conf->begin(w);
	random_config(w, options, sizeof(options) / 2);
	wp.flags = random_flags(w);
	l->conf->list(n, lanes, sizeof(lanes), options + strlen(options), sizeof(options) / 2);
	random_trace(w, "%c: %s, %s", 'a' + n->index, lanes, options);
	wp.lanes = lanes;
	if (w->accept) {
		wp.accept_cb = end_accepted;
		wp.accept_arg = n;
	}
	ret = make_context(n, options);
	if (!ret)
		ret = weft_worker_create(n->ctx, &wp, &n->worker);
	if (ret)
		random_fail(w, "a worker with lanes %s: %s", lanes, weft_strerror(ret));
}

/* ---- progress ------------------------------------------------------------------------------- */

static void nap(unsigned int ns)
{
	const struct timespec t = {.tv_nsec = ns};

	nanosleep(&t, NULL);
}

/* Each time beginning with another node. */
static unsigned int poll_nodes(struct world *w, unsigned int alone)
{
	struct lanes *l = w->lanes;
	unsigned int i, work = 0;

	if (l->conf->tick)
		l->conf->tick(w);
	if (alone != NO_NODE)
		return weft_worker_progress(w->node[alone].worker);
	l->next++;
	for (i = 0; i < w->nodes; i++)
		work += weft_worker_progress(w->node[(l->next + i) % w->nodes].worker);
	return work;
}

static void run(struct world *w, uint64_t ns)
{
	struct lanes *l = w->lanes;
	unsigned int alone = NO_NODE, step = POLL_NS;
	uint64_t t;

	if (w->dying && !w->closing)
		ns *= l->conf->slower;
	if (!w->closing && sim_chance(&l->rng, ALONE))
		alone = (unsigned int)sim_below(&l->rng, w->nodes);
	for (t = 0; t < ns; t += step) {
		if (poll_nodes(w, alone)) {
			step = POLL_NS;
			continue;
		}
		step = step < NAP_MAX / 2 ? 2 * step : NAP_MAX;
		if (step >= NAP_MIN)
			nap(step);
	}
}

static void cut(struct world *w)
{
	struct lanes *l = w->lanes;

	l->conf->cut(w);
}

static uint64_t now(const struct world *w)
{
	const struct lanes *l = w->lanes;

	return lanes_now() - l->begun;
}

static void free_lanes(struct world *w)
{
	free(w->lanes);
}

/* ---- life ----------------------------------------------------------------------------------- */

struct world *lanes_world(const struct lanes_conf *conf, uint64_t seed)
{
	struct lanes *l = calloc(1, sizeof(*l));

	if (!l)
		abort();
	*l = (struct lanes){
		.net = {.nodes_max = conf->nodes_max,
			.dying = conf->dying,
			/* A nap is never too short: a machine that is busy makes it longer. */
			.timeout = 20000,
			.open = open_node,
			.cut = cut,
			.run = run,
			.now = now,
			.free = free_lanes},
		.conf = conf,
		.rng = sim_rng_make(seed, 21),
		.begun = lanes_now(),
	};
	return random_world(&l->net, l, seed);
}

static void count(const char *name, uint64_t value, void *arg)
{
	(void)arg;
	if (!strcmp(name, "ep.lanes_lost"))
		lanes_lost += value;
	else if (!strcmp(name, "ep.lanes_back"))
		lanes_back += value;
}

const char *lanes_close(struct world *w)
{
	struct lanes *l = w->lanes;
	struct rmem *m;
	unsigned int i;
	int ret;

	w->closing = w->ending = true;
	for (i = 0; i < w->nodes; i++) {
		if (w->node[i].worker)
			weft_worker_counters(w->node[i].worker, count, NULL);
		weft_worker_destroy(w->node[i].worker);
	}
	/* A run that failed has left its own. */
	for (m = w->mems; m && w->error[0]; m = m->next)
		weft_mem_deregister(m->mem);
	for (i = 0; i < w->nodes; i++) {
		ret = weft_context_destroy(w->node[i].ctx);
		if (ret)
			random_fail(w, "a context is still in use at the end: %s",
				    weft_strerror(ret));
	}
	if (l->conf->end)
		l->conf->end(w);
	return w->error[0] ? w->error : NULL;
}
