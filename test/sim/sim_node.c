/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Nodes: a host with a context and a worker, and the lane driver "sim" that puts the raw-DPDK
 * engine on simulated ports.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"
#include "context.h"
#include "core/worker.h"
#include "engine/engine.h"
#include "sim_priv.h"

struct sim_node {
	struct sim_host host; /* first */
	struct weft_context *ctx;
	struct weft_worker *worker;
	struct weft_mem **mem; /* of sim_node_keep() */
	unsigned int num_mem;
	const struct sim_node_params *params; /* while it is being made */
};

/* ---- driver --------------------------------------------------------------------------------- */

/* query() has no word on which host it is for: the one that is being made. */
static struct sim_node *making;

static int sim_query(const struct weft_lane_conf *conf, weft_lane_resource_cb add, void *arg)
{
	unsigned int i, n = making ? making->host.num_ports : 0;
	int rc = 0;

	(void)conf;
	for (i = 0; i < n && rc == 0; i++)
		rc = add(arg, &(struct weft_lane_resource){.name = making->host.ports[i]->name});
	return rc;
}

static int sim_open(const struct weft_lane_open *open, struct weft_lane_iface **iface, char *why,
		    size_t why_len);

static int bare_open(const struct weft_lane_open *open, struct weft_lane_iface **iface, char *why,
		     size_t why_len);

#define SIM_DRIVER(function)                                                                     \
	{                                                                                        \
		.name = "sim", .abi = WEFT_LANE_ABI, .query = sim_query, .open = function,       \
		.options = "", .captures = true, .seals = true, .boot = &weft_raw_boot_ops,      \
		.mem_register = weft_raw_mem_register, .mem_deregister = weft_raw_mem_deregister \
	}

static const struct weft_lane_driver sim_driver = SIM_DRIVER(sim_open);
static const struct weft_lane_driver bare_driver = SIM_DRIVER(bare_open);

static int bare_open(const struct weft_lane_open *open, struct weft_lane_iface **iface, char *why,
		     size_t why_len)
{
	struct sim_port *port = sim_host_port(open->platform->arg, open->resource);
	struct weft_raw_conf rc;
	int ret;

	if (!port) {
		snprintf(why, why_len, "there is no simulated port %s at this host",
			 open->resource);
		return -ENODEV;
	}
	ret = sim_port_open(port);
	if (ret) {
		snprintf(why, why_len, "simulated port %s: %s", port->name, strerror(-ret));
		return ret;
	}
	sim_port_conf(port, &rc);
	/* The recorder is off unless requested: thousands of hosts fail here in virtual seconds. */
	if (open->conf->capture || open->conf->recorder_file[0])
		rc.tap = weft_tap_open(&port->fp, open->platform, open->worker_id, open->conf);
	ret = weft_raw_iface_open(&port->fp, &rc, open, iface, why, why_len);
	if (ret) {
		weft_tap_close(rc.tap);
		port->fp.ops->close(&port->fp);
		return ret;
	}
	(*iface)->driver = &sim_driver;
	return 0;
}

static int sim_open(const struct weft_lane_open *open, struct weft_lane_iface **iface, char *why,
		    size_t why_len)
{
	if (making && making->params->wrap)
		return making->params->wrap(&bare_driver, open, iface, why, why_len);
	return bare_open(open, iface, why, why_len);
}

extern const struct weft_lane_driver weft_self_driver;

/* The last one: the test's. */
static const struct weft_lane_driver *drivers[] = {&sim_driver, &weft_self_driver, NULL, NULL};

/* ---- life ----------------------------------------------------------------------------------- */

static int node_start(struct sim_node *node, const struct sim_node_params *params)
{
	struct weft_context_params cp =
		WEFT_INIT(struct weft_context_params, .name = node->host.name,
			  .features = WEFT_FEATURE_TAG | WEFT_FEATURE_AM | WEFT_FEATURE_RMA |
				      WEFT_FEATURE_AMO32 | WEFT_FEATURE_AMO64);
	struct weft_worker_params wp =
		WEFT_INIT(struct weft_worker_params, .thread_mode = params->thread_mode,
			  .flags = params->flags, .accept_cb = params->accept_cb,
			  .accept_arg = params->accept_arg);
	struct weft_config *config;
	char lanes[SIM_HOST_PORTS * 40 + 100] = "";
	size_t at = 0;
	unsigned int i;
	int ret;

	ret = sim_config(params->config, &config);
	if (ret)
		return ret;
	cp.config = config;
	cp.job_key = params->job_key;
	drivers[2] = params->driver;
	node->host.pump = params->pump;
	node->params = params;
	making = node;
	ret = weft_context_create_in(&cp, &node->host.platform, drivers, &node->ctx);
	making = NULL;
	weft_config_release(config);
	if (ret)
		return ret;
	for (i = 0; i < node->host.num_ports; i++)
		at += (size_t)snprintf(lanes + at, sizeof(lanes) - at, "%ssim:%s", i ? ";" : "",
				       node->host.ports[i]->name);
	if (params->lanes)
		snprintf(lanes + at, sizeof(lanes) - at, "%s%s", at ? ";" : "", params->lanes);
	wp.lanes = lanes;
	making = node;
	ret = weft_worker_create(node->ctx, &wp, &node->worker);
	making = NULL;
	if (ret)
		weft_context_destroy(node->ctx);
	return ret;
}

static unsigned int node_progress(struct sim_host *host)
{
	if (host->pump)
		host->pump(host->sim->now);
	return weft_worker_progress(((struct sim_node *)host)->worker);
}

static void node_stop(struct sim_host *host)
{
	struct sim_node *node = (struct sim_node *)host;
	int ret;

	weft_worker_destroy(node->worker);
	for (unsigned int i = 0; i < node->num_mem; i++)
		weft_mem_deregister(node->mem[i]);
	free(node->mem);
	node->mem = NULL;
	node->num_mem = 0;
	ret = weft_context_destroy(node->ctx);
	if (ret) {
		fprintf(stderr, "sim: context of host %s: %s\n", host->name, weft_strerror(ret));
		host->sim->stuck_contexts++;
	}
	node->worker = NULL;
	node->ctx = NULL;
}

int sim_node_try(struct sim *sim, const struct sim_node_params *params, struct sim_node **out)
{
	struct sim_node *node = sim_alloc(sizeof(*node));
	int ret;

	node->host.progress = node_progress;
	node->host.stop = node_stop;
	sim_host_add(sim, &node->host, params->name, params->ports, params->num_ports);
	if (params->beside)
		sim_host_share_clock(&node->host, &params->beside->host);
	ret = node_start(node, params);
	/* Kept in the list even when it failed: numbers of hosts are part of a scenario. */
	node->host.alive = !ret;
	*out = node;
	return ret;
}

struct sim_node *sim_node_create(struct sim *sim, const struct sim_node_params *params)
{
	struct sim_node *node;
	int ret = sim_node_try(sim, params, &node);

	if (ret) {
		fprintf(stderr, "sim: host %s does not start: %s\n", node->host.name,
			weft_strerror(ret));
		abort();
	}
	return node;
}

void sim_node_close(struct sim_node *node)
{
	sim_host_stop(&node->host, false);
}

void sim_node_kill(struct sim_node *node)
{
	sim_host_stop(&node->host, true);
}

void sim_node_keep(struct sim_node *node, struct weft_mem *mem)
{
	struct weft_mem **more = realloc(node->mem, (node->num_mem + 1) * sizeof(*more));

	if (!more)
		abort();
	node->mem = more;
	node->mem[node->num_mem++] = mem;
}

void sim_node_pause(struct sim_node *node, uint64_t ns)
{
	node->host.paused_until = node->host.sim->now + ns;
}

void sim_node_slow(struct sim_node *node, uint64_t ns)
{
	node->host.slow_ns = ns;
}

/* ---- questions ------------------------------------------------------------------------------ */

unsigned int sim_stuck_contexts(const struct sim *sim)
{
	return sim->stuck_contexts;
}

uint64_t sim_node_now(const struct sim_node *node)
{
	return node->host.platform.now(node->host.platform.arg);
}

struct weft_worker *sim_worker(const struct sim_node *node)
{
	return node->worker;
}

int sim_ep_create(struct sim_node *from, struct sim_node *to, const struct weft_ep_params *params,
		  struct weft_ep **ep)
{
	struct weft_ep_params p = params ? *params : WEFT_INIT(struct weft_ep_params);
	void *address;
	int rc = weft_worker_get_address(sim_worker(to), &address, &p.address_length);

	if (rc < 0)
		return rc;
	p.address = address;
	rc = weft_ep_create(sim_worker(from), &p, ep);
	weft_worker_release_address(sim_worker(to), address);
	return rc;
}

struct weft_context *sim_context(const struct sim_node *node)
{
	return node->ctx;
}

bool sim_node_alive(const struct sim_node *node)
{
	return node->host.alive;
}

struct counter_sum {
	const char *suffix;
	uint64_t sum;
};

static void add_counter(const char *name, uint64_t value, void *arg)
{
	struct counter_sum *c = arg;
	size_t n = strlen(name), s = strlen(c->suffix);

	if (n >= s && !strcmp(name + n - s, c->suffix))
		c->sum += value;
}

uint64_t sim_node_counter(const struct sim_node *node, const char *suffix)
{
	struct counter_sum c = {suffix, 0};

	weft_worker_counters(node->worker, add_counter, &c);
	return c.sum;
}
