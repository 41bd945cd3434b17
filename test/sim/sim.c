/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The clock, the events in order of time, and the loop that polls the nodes.
 */

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "sim_priv.h"

void *sim_alloc(size_t len)
{
	void *p = calloc(1, len);

	if (!p) {
		fprintf(stderr, "sim: out of memory\n");
		exit(1);
	}
	return p;
}

struct sim *sim_create(uint64_t seed)
{
	struct sim *sim = sim_alloc(sizeof(*sim));

	sim_eal_init();
	sim_nonces_forget();
	sim->seed = seed;
	sim->rng = sim_rng_make(seed, 1);
	sim->hash = sim_mix64(seed);
	sim->busy_ns = 500;
	sim->idle_ns = 100 * SIM_US;
	TAILQ_INIT(&sim->hosts);
	return sim;
}

/* ---- events --------------------------------------------------------------------------------- */

void sim_event_add(struct sim *sim, uint64_t when, enum sim_event_kind kind, void *at, void *p,
		   void (*fn)(void *arg))
{
	struct sim_event ev = {{when > sim->now ? when : sim->now, sim->number++}, kind, at, p, fn};

	if (sim->heap_len == sim->heap_max) {
		sim->heap_max = sim->heap_max ? 2 * sim->heap_max : 256;
		sim->heap = realloc(sim->heap, sim->heap_max * sizeof(*sim->heap));
		if (!sim->heap)
			abort();
	}
	sim_heap_add(sim->heap, &sim->heap_len, &ev, sizeof(ev));
}

static struct sim_event event_take(struct sim *sim)
{
	struct sim_event first;

	sim_heap_take(sim->heap, &sim->heap_len, &first, sizeof(first));
	return first;
}

static bool handle_due(struct sim *sim)
{
	bool any = false;
	struct sim_event ev;

	while (sim->heap_len && sim->heap[0].due.when <= sim->now) {
		ev = event_take(sim);
		any = true;
		if (ev.kind == SIM_EV_CALL)
			ev.fn(ev.p);
		else
			sim_net_event(sim, &ev);
	}
	return any;
}

void sim_at(struct sim *sim, uint64_t when, void (*fn)(void *arg), void *arg)
{
	sim_event_add(sim, when, SIM_EV_CALL, NULL, arg, fn);
}

void sim_destroy(struct sim *sim)
{
	struct sim_event ev;
	unsigned int i;

	if (!sim)
		return;
	sim_hosts_free(sim);
	while (sim->heap_len) {
		ev = event_take(sim);
		if (ev.kind == SIM_EV_TX)
			free(((struct sim_tx *)ev.p)->frame);
		if (ev.kind != SIM_EV_CALL)
			free(ev.p);
	}
	for (i = 0; i < sim->num_ports; i++) {
		sim_port_drain(sim->ports[i]);
		sim_queues_free(sim->ports[i]);
	}
	for (i = 0; i < sim->num_ports; i++) {
		weft_arp_table_fini(&sim->ports[i]->arp);
		free(sim->ports[i]);
	}
	sim_fabric_free(sim);
	sim_pcap_close(sim->pcap);
	free(sim->heap);
	free(sim);
}

/* ---- loop ----------------------------------------------------------------------------------- */

bool sim_run(struct sim *sim, uint64_t max_ns, sim_done_cb done, void *arg)
{
	uint64_t end = sim->now + max_ns, step = sim->busy_ns, next;
	bool busy;

	for (;;) {
		busy = handle_due(sim);
		busy |= sim_hosts_poll(sim) > 0;
		if (done && done(arg))
			return true;
		if (sim->now >= end)
			return !done;
		if (busy)
			step = sim->busy_ns;
		else if (step < sim->idle_ns)
			step = step * 2 < sim->idle_ns ? step * 2 : sim->idle_ns;
		next = sim->now + step;
		/*
		 * A frame that comes earlier wakes an idle host; a busy one sees it at its next
		 * poll.
		 */
		if (!busy && sim->heap_len && sim->heap[0].due.when < next)
			next = sim->heap[0].due.when > sim->now ? sim->heap[0].due.when
								: sim->now + 1;
		sim->now = next < end ? next : end;
	}
}

/* ---- small things --------------------------------------------------------------------------- */

uint64_t sim_now(const struct sim *sim)
{
	return sim->now;
}

uint64_t sim_seed(const struct sim *sim)
{
	return sim->seed;
}

uint64_t sim_hash(const struct sim *sim)
{
	return sim->hash;
}

struct sim_rng sim_stream(const struct sim *sim, uint64_t purpose)
{
	return sim_rng_make(sim->seed, purpose + (1ull << 32));
}

void sim_set_poll(struct sim *sim, uint64_t busy_ns, uint64_t idle_ns)
{
	sim->busy_ns = busy_ns ? busy_ns : 1;
	sim->idle_ns = idle_ns > sim->busy_ns ? idle_ns : sim->busy_ns;
}

int sim_capture(struct sim *sim, const char *path)
{
	sim_pcap_close(sim->pcap);
	sim->pcap = sim_pcap_open(path);
	return sim->pcap ? 0 : -errno;
}

static uint64_t hash_word(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9fb21c651e98df25ull;
	return hash ^ (hash >> 29);
}

void sim_hash_frame(struct sim *sim, unsigned int what, const struct sim_port *port,
		    const uint8_t *data, size_t len)
{
	uint64_t hash = hash_word(sim->hash, sim->now), word;
	size_t n;

	hash = hash_word(hash, (uint64_t)what << 56 | (uint64_t)port->index << 32 | len);
	for (; len; data += n, len -= n) {
		n = len < 8 ? len : 8;
		word = 0;
		memcpy(&word, data, n);
		hash = hash_word(hash, word);
	}
	sim->hash = hash;
}

/* ---- figures -------------------------------------------------------------------------------- */

size_t sim_heap_used(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

int sim_by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}
