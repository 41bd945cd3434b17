/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hosts: a clock and dice of their own, polled by the loop, paused, closed, killed.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim_priv.h"

int sim_config(const char *text, struct weft_config **config)
{
	char *copy, *word, *save = NULL, *value;
	int ret = weft_config_read(config);

	/* What tests provoke is no news. SIM_LOG=debug shows all. */
	if (!ret)
		ret = weft_config_modify(*config, "LOG_LEVEL",
					 getenv("SIM_LOG") ? getenv("SIM_LOG") : "error");
	if (ret || !text)
		return ret;
	copy = strdup(text);
	for (word = strtok_r(copy, " ", &save); word && !ret; word = strtok_r(NULL, " ", &save)) {
		value = strchr(word, '=');
		if (!value) {
			ret = -EINVAL;
			break;
		}
		*value++ = '\0';
		ret = weft_config_modify(*config, word, value);
		if (ret)
			fprintf(stderr, "sim: %s=%s: %s\n", word, value, weft_strerror(ret));
	}
	free(copy);
	if (ret)
		weft_config_release(*config);
	return ret;
}

/* Hosts' clocks have nothing in common but their pace, and that only nearly. */
static uint64_t host_now(void *arg)
{
	struct sim_host *host = arg;
	int64_t drift = (int64_t)(host->sim->now / 1000000) * host->clock_ppm;

	/* A host that closes its devices waits for them by the clock. */
	if (!host->alive && host->pump) {
		host->late += 10 * SIM_US;
		host->pump(host->sim->now + host->late);
	}
	return host->clock_offset + host->sim->now + host->late + (uint64_t)drift;
}

static int host_random(void *arg, void *buf, size_t len)
{
	struct sim_host *host = arg;

	sim_fill(&host->rng, buf, len);
	return 0;
}

void sim_host_share_clock(struct sim_host *host, const struct sim_host *other)
{
	host->clock_offset = other->clock_offset;
	host->clock_ppm = other->clock_ppm;
}

/* A node with a queue of another node's port runs on the same machine. */
static void share_clock(struct sim_host *host, const struct sim_port *port)
{
	const struct sim_host *other;
	unsigned int i;

	TAILQ_FOREACH(other, &host->sim->hosts, entry) {
		for (i = 0; i < other->num_ports; i++) {
			if (other->ports[i] == port)
				sim_host_share_clock(host, other);
		}
	}
}

void sim_host_add(struct sim *sim, struct sim_host *host, const char *name,
		  struct sim_port *const *ports, unsigned int n)
{
	host->sim = sim;
	host->index = sim->num_hosts++;
	/* A host that comes back is another one: the index, and so the dice, are new. */
	host->rng = sim_rng_make(sim->seed, 100000 + host->index);
	host->clock_offset = SIM_S + sim_below(&host->rng, 1000000 * SIM_S);
	host->clock_ppm = (int64_t)sim_below(&host->rng, 101) - 50;
	if (n > 0 && ports[0]->params.queue_of)
		share_clock(host, ports[0]->params.queue_of);
	host->platform =
		(struct weft_platform){.now = host_now, .random = host_random, .arg = host};
	if (name)
		snprintf(host->name, sizeof(host->name), "%s", name);
	else
		snprintf(host->name, sizeof(host->name), "n%u", host->index);
	for (host->num_ports = 0; host->num_ports < n && host->num_ports < SIM_HOST_PORTS;
	     host->num_ports++)
		host->ports[host->num_ports] = ports[host->num_ports];
	host->alive = true;
	TAILQ_INSERT_TAIL(&sim->hosts, host, entry);
}

struct sim_port *sim_host_port(const struct sim_host *host, const char *name)
{
	unsigned int i;

	for (i = 0; i < host->num_ports; i++)
		if (!strcmp(host->ports[i]->name, name))
			return host->ports[i];
	return NULL;
}

void sim_host_stop(struct sim_host *host, bool mute)
{
	unsigned int i;

	if (!host->alive)
		return;
	host->alive = false;
	for (i = 0; i < host->num_ports; i++)
		host->ports[i]->mute = mute;
	host->stop(host);
	for (i = 0; i < host->num_ports; i++)
		host->ports[i]->mute = false;
}

static unsigned int poll_range(struct sim *sim, unsigned int from, unsigned int to)
{
	unsigned int events = 0, i = 0;
	struct sim_host *host;

	TAILQ_FOREACH(host, &sim->hosts, entry) {
		if (i >= from && i < to && host->alive && host->paused_until <= sim->now) {
			events += host->progress(host);
			host->paused_until = sim->now + host->slow_ns;
		}
		i++;
	}
	return events;
}

/* Beginning with another one each time: no node is always first. */
unsigned int sim_hosts_poll(struct sim *sim)
{
	unsigned int first = (unsigned int)sim_below(&sim->rng, sim->num_hosts), events;

	events = poll_range(sim, first, sim->num_hosts);
	return events + poll_range(sim, 0, first);
}

void sim_close_nodes(struct sim *sim)
{
	struct sim_host *host;

	TAILQ_FOREACH(host, &sim->hosts, entry)
		sim_host_stop(host, false);
}

void sim_hosts_free(struct sim *sim)
{
	struct sim_host *host;

	while ((host = TAILQ_FIRST(&sim->hosts))) {
		sim_host_stop(host, true);
		TAILQ_REMOVE(&sim->hosts, host, entry);
		free(host);
	}
}
