/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random calls (random.h) over two memif lanes that die and come back, and over these beside shared
 * memory. Both ends of each memif connection are in this process.
 *
 * A lane dies because frames vanish behind the port, one way or both, or because the control
 * connection breaks, as when a peer's process ends: both PMDs then lose their link, and the client
 * connects again.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "lanes.h"

#define NODES 2
#define LANES 2
#define PORTS (NODES * LANES) /* lane L of node N: port NODES * L + N */

#define DEATHS 6
#define FIRST_MAX (20 * RANDOM_MS)
#define GAP_MAX (300 * RANDOM_MS) /* a lane that died is tried again each 100 to 500 ms */
#define DEATH_MAX (200 * RANDOM_MS)
#define LOSS 0.01

/* What a port receives. */
struct port {
	uint16_t id;
	bool dead, lossy;
	struct sim_rng rng;
	uint64_t frames, dropped;
};

static struct port port[PORTS];
static char dir[80];
static bool beside; /* shared memory, of the world that runs */

/* The one under way. */
static struct {
	struct sim_rng rng;
	enum death { DIES_ONE_WAY, DIES_BOTH_WAYS, DIES_LINK, DEATH_KINDS } kind;
	unsigned int left, lane;
	bool out;
	uint64_t next; /* when it dies or comes back; 0 = never */
	unsigned int mtu[LANES];
	bool delay; /* WEFT_CC */
} death;

/* ---- ports ---------------------------------------------------------------------------------- */

static void path_of(unsigned int lane, char *path, size_t size)
{
	snprintf(path, size, "%s/s%u", dir, lane);
}

static void start_eal(char *program)
{
	static char words[][32] = {"--no-huge",   "--no-pci",       "--no-telemetry",
				   "--no-shconf", "--iova-mode=va", "--log-level=error",
				   "--lcores=0",  "-m256"};
	static char vdev[PORTS][160];
	char *argv[1 + RTE_DIM(words) + PORTS + 1] = {program}, path[96];
	cpu_set_t cpus;
	unsigned int i;
	int argc = 1;

	for (i = 0; i < RTE_DIM(words); i++)
		argv[argc++] = words[i];
	for (i = 0; i < PORTS; i++) {
		path_of(i / NODES, path, sizeof(path));
		snprintf(vdev[i], sizeof(vdev[i]),
			 "--vdev=net_memif%u,role=%s,id=0,socket-abstract=no,socket=%s,rsize=9,"
			 "bsize=9216",
			 i, i % NODES ? "client" : "server", path);
		argv[argc++] = vdev[i];
	}
	/* The EAL binds this thread to a core. */
	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (rte_eal_init(argc, argv) < 0) {
		printf("the EAL does not start with memif ports\n");
		exit(77);
	}
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static void find_ports(void)
{
	char name[32];

	for (unsigned int i = 0; i < PORTS; i++) {
		snprintf(name, sizeof(name), "net_memif%u", i);
		if (rte_eth_dev_get_port_by_name(name, &port[i].id)) {
			printf("this DPDK has no memif ports\n");
			exit(77);
		}
	}
}

static uint16_t receive(uint16_t id, uint16_t queue, struct rte_mbuf **pkts, uint16_t num,
			uint16_t max, void *arg)
{
	struct port *p = arg;
	uint16_t kept = 0;

	(void)id;
	(void)queue;
	(void)max;
	for (uint16_t i = 0; i < num; i++) {
		if (p->dead || (p->lossy && sim_chance(&p->rng, LOSS)))
			rte_pktmbuf_free(pkts[i]);
		else
			pkts[kept++] = pkts[i];
	}
	p->frames += num;
	p->dropped += (uint64_t)(num - kept);
	return kept;
}

/* When all ports are configured. A port that is opened again keeps it. */
static void watch(struct world *w)
{
	static bool watched;

	for (unsigned int i = 0; i < PORTS && !watched; i++)
		if (!rte_eth_add_rx_callback(port[i].id, 0, receive, &port[i]))
			random_fail(w, "port %u: its frames can't be watched", port[i].id);
	watched = true;
}

/* ---- death ---------------------------------------------------------------------------------- */

static bool is_connection(int fd, const char *path)
{
	struct sockaddr_un a = {0};
	socklen_t len = sizeof(a);
	int listens = 0;
	socklen_t listens_len = sizeof(listens);

	return !getsockname(fd, (struct sockaddr *)&a, &len) && a.sun_family == AF_UNIX &&
	       !strcmp(a.sun_path, path) &&
	       !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_len) && !listens;
}

/* The server's end of the control connection. */
static void disconnect(unsigned int lane)
{
	char path[96];
	int fd;

	path_of(lane, path, sizeof(path));
	for (fd = 3; fd < 1024; fd++)
		if (is_connection(fd, path))
			shutdown(fd, SHUT_RDWR);
}

static void set_dead(bool dead)
{
	struct port *p = &port[NODES * death.lane];
	unsigned int node = (unsigned int)sim_below(&death.rng, NODES);

	if (dead && death.kind == DIES_LINK)
		disconnect(death.lane);
	else if (dead && death.kind == DIES_ONE_WAY)
		p[node].dead = true;
	else
		p[0].dead = p[1].dead = dead;
}

static void tick(struct world *w)
{
	static const char *const name[] = {"one way", "both ways", "its link"};
	uint64_t now = death.next ? lanes_now() : 0;

	watch(w);
	if (now < death.next || !death.next)
		return;
	death.out = !death.out;
	if (death.out) {
		death.kind = (enum death)sim_below(&death.rng, DEATH_KINDS);
		death.lane = (unsigned int)sim_below(&death.rng, LANES);
		random_trace(w, "lane %u dies: %s", death.lane, name[death.kind]);
	} else {
		random_trace(w, "lane %u comes back", death.lane);
	}
	set_dead(death.out);
	if (death.out)
		death.next = now + sim_below(&death.rng, DEATH_MAX);
	else
		death.next = --death.left ? now + sim_below(&death.rng, GAP_MAX) : 0;
}

static void cut(struct world *w)
{
	(void)w;
	death.left = DEATHS;
	death.next = lanes_now() + sim_below(&death.rng, FIRST_MAX);
}

/* ---- worlds --------------------------------------------------------------------------------- */

static void begin(struct world *w)
{
	memset(&death, 0, sizeof(death));
	death.rng = sim_rng_make(w->seed, 22);
	for (unsigned int i = 0; i < PORTS; i++) {
		port[i].lossy = w->faulty;
		port[i].rng = sim_rng_make(w->seed, 23 + i);
	}
	for (unsigned int l = 0; l < LANES; l++)
		death.mtu[l] = sim_chance(&death.rng, 0.5) ? 9000 : 1500;
	death.delay = sim_chance(&death.rng, 0.5);
	beside = false;
}

static void begin_beside(struct world *w)
{
	begin(w);
	beside = true;
}

static void list(const struct rnode *n, char *lanes, size_t size, char *options,
		 size_t options_size)
{
	int len = snprintf(lanes, size, "%s", beside ? "shm:host,mix;" : "");

	for (unsigned int l = 0; l < LANES; l++)
		len += snprintf(lanes + len, size - (size_t)len,
				"%sdpdk:%u,ip=10.9.%u.%u/24,mtu=%u", l ? ";" : "",
				port[NODES * l + n->index].id, l, n->index + 1, death.mtu[l]);
	snprintf(options, options_size, "%s", death.delay ? " CC=delay" : "");
}

static void end(struct world *w)
{
	(void)w;
	for (unsigned int i = 0; i < PORTS; i++)
		port[i].dead = false;
}

static const struct lanes_conf memif = {
	.nodes_max = NODES,
	.dying = 1,
	.slower = 8,
	.begin = begin,
	.list = list,
	.cut = cut,
	.tick = tick,
	.end = end,
};

static const struct lanes_conf both = {
	.nodes_max = NODES,
	.dying = 0.7,
	.slower = 8,
	.begin = begin_beside,
	.list = list,
	.cut = cut,
	.tick = tick,
	.end = end,
};

static const struct lanes_case cases[] = {
	{"random_calls_over_two_memif_lanes_that_die", &memif, 25},
	{"random_calls_over_memif_and_shared_memory", &both, 25},
};

static void print_counters(void)
{
	uint64_t frames = 0, dropped = 0;

	for (unsigned int i = 0; i < PORTS; i++) {
		frames += port[i].frames;
		dropped += port[i].dropped;
	}
	printf("# %llu frames came, of which %llu were dropped\n", (unsigned long long)frames,
	       (unsigned long long)dropped);
}

static void remove_dir(void)
{
	char path[96];

	for (unsigned int l = 0; l < LANES; l++) {
		path_of(l, path, sizeof(path));
		unlink(path);
	}
	rmdir(dir);
}

int main(int argc, char **argv)
{
	const char *tmp = getenv("TMPDIR");
	int ret;

	if (snprintf(dir, sizeof(dir), "%s/weft-random.XXXXXX", tmp ? tmp : "/tmp") >=
		    (int)sizeof(dir) ||
	    !mkdtemp(dir)) {
		printf("no folder for sockets can be made\n");
		return 77;
	}
	atexit(remove_dir);
	start_eal(argv[0]);
	find_ports();
	ret = lanes_test_main(argc, argv, "random_memif", cases, sizeof(cases) / sizeof(cases[0]));
	print_counters();
	return ret;
}
