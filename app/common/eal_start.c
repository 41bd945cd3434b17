/* SPDX-License-Identifier: BSD-3-Clause */

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include "common/cli.h"
#include "common/eal_start.h"
#include "drivers/dpdk/port/eal.h"
#include "drivers/dpdk/port/ports.h"
#include "weft.h"

static bool chooses_cores(int count, char *const *words)
{
	static const char *const options[] = {"-l", "-c", "-s", "-S", "--lcores", "--main-lcore"};

	for (int i = 0; i < count; i++)
		for (size_t k = 0; k < sizeof(options) / sizeof(options[0]); k++)
			if (strncmp(words[i], options[k], strlen(options[k])) == 0)
				return true;
	return false;
}

/* One lcore on all cores that the process may use: the EAL would pin one thread to each core. */
static void floating_lcore(char *buf, size_t len)
{
	size_t at = (size_t)snprintf(buf, len, "--lcores=0@(");
	cpu_set_t mine;

	if (sched_getaffinity(0, sizeof(mine), &mine)) {
		buf[0] = '\0';
		return;
	}
	for (int cpu = 0; cpu < CPU_SETSIZE && at + 8 < len; cpu++)
		if (CPU_ISSET(cpu, &mine))
			at += (size_t)snprintf(buf + at, len - at, "%d,", cpu);
	buf[at - 1] = ')';
}

static int start_words(int count, char *const *words, const struct weft_config *config)
{
	char floating[6 * CPU_SETSIZE] = "", note[512], why[1024], ports[1024];
	char **all = calloc((size_t)count + 1, sizeof(*all)), dumpcap[8];
	struct weft_eal_conf conf = {.ports = ports};
	int extra = 0, ret;

	if (!all)
		return -ENOMEM;
	if (weft_config_get(config, "PORTS", ports, sizeof(ports)) >= (int)sizeof(ports)) {
		cli_error("WEFT_PORTS is longer than %zu bytes", sizeof(ports) - 1);
		free(all);
		return -EINVAL;
	}
	weft_config_get(config, "DUMPCAP", dumpcap, sizeof(dumpcap));
	conf.dumpcap = !strcmp(dumpcap, "y");
	if (!chooses_cores(count, words))
		floating_lcore(floating, sizeof(floating));
	if (floating[0])
		all[extra++] = floating;
	for (int i = 0; i < count; i++)
		all[extra + i] = words[i];
	ret = weft_eal_start_words(extra + count, all, &conf, note, sizeof(note), why, sizeof(why));
	free(all);
	if (ret)
		cli_error("%s", why);
	return ret;
}

/* @param[out] udp  a lane is over UDP, which needs the EAL's memory */
static bool need_no_port(const struct weft_config *config, bool *udp)
{
	static const char *const without[] = {"shm", "self", "udp"};
	const size_t num = sizeof(without) / sizeof(without[0]);
	char lanes[1024], *item, *rest = lanes;
	bool any = false;
	size_t i, n;

	*udp = false;
	if (weft_config_get(config, "LANES", lanes, sizeof(lanes)) >= (int)sizeof(lanes))
		return false;
	while ((item = strsep(&rest, ";"))) {
		item += strspn(item, " \t");
		n = strcspn(item, ":, \t");
		if (n == 0)
			continue;
		any = true;
		for (i = 0; i < num; i++)
			if (strlen(without[i]) == n && strncmp(item, without[i], n) == 0)
				break;
		if (i == num)
			return false;
		*udp = *udp || strcmp(without[i], "udp") == 0;
	}
	return any;
}

/*
 * Programs read the time by the EAL's clock. Where no lane needs the EAL, it starts without
 * hugepages, devices and files. So ordinary users may start it, and next to any other process.
 */
static const char small[] = "--no-huge -m 16 --no-pci --no-shconf --no-telemetry --log-level=error";

/* UDP lanes use the EAL's buffers, and weft-info finds a process by the EAL's telemetry socket. */
static const char for_udp[] = "--no-huge -m 512 --no-pci";

static int start_text(const struct weft_config *config)
{
	bool udp;
	char text[4096], **words;
	int count = weft_config_get(config, "EAL_ARGS", text, sizeof(text)), ret;

	if (count < 0 || count >= (int)sizeof(text)) {
		cli_error("WEFT_EAL_ARGS is longer than %zu bytes", sizeof(text) - 1);
		return -EINVAL;
	}
	if (text[0] == '\0' && need_no_port(config, &udp))
		count = snprintf(text, sizeof(text), "%s", udp ? for_udp : small);
	count = weft_eal_words(text, &words);
	if (count == -ENOMEM) {
		cli_error("no memory for the words of WEFT_EAL_ARGS");
		return count;
	}
	if (count < 0) {
		cli_error("WEFT_EAL_ARGS has an open quote or ends with a backslash: %s", text);
		return count;
	}
	ret = start_words(count, words, config);
	free(words);
	return ret;
}

/*
 * Arguments of the EAL load shared objects ("-d") and name devices. When the program has more
 * rights than its user, the user must not choose these arguments.
 */
static bool may_choose_arguments(int count)
{
	if (count <= 0 || !getauxval(AT_SECURE))
		return true;
	cli_error("arguments for the EAL are refused: this program has more rights than its user "
		  "(set-user-id, set-group-id or file capabilities); start it with sudo instead");
	return false;
}

int eal_start(int count, char **words, const struct weft_config *config, int core)
{
	int ret;

	if (!may_choose_arguments(count))
		return APP_FAIL;
	ret = count < 0 ? start_text(config) : start_words(count, words, config);
	if (ret)
		return ret == -EINVAL ? APP_USAGE : APP_FAIL;
	return core >= 0 && sys_pin((unsigned int)core) ? APP_USAGE : APP_OK;
}

/* A NIC with its RDMA driver, or a software RDMA device, needs no DPDK port for its lanes. */
static bool have_rdma(void)
{
	DIR *dir = opendir("/sys/class/infiniband");
	const struct dirent *entry;
	bool found = false;

	if (!dir)
		return false;
	while (!found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.';
	closedir(dir);
	return found;
}

/* Is a switch configured, or running? Then the lanes request a port of it, and log a failure. */
static bool have_switch(const struct weft_config *config)
{
	char path[256];

	return weft_config_get(config, "SWITCH", path, sizeof(path)) > 0 && strcmp(path, "off") &&
	       (path[0] == '/' || access(WEFT_SWITCH_SOCKET, F_OK) == 0);
}

void eal_hint_ports(const struct weft_config *config)
{
	char lanes[1024];

	/* Lanes that WEFT_LANES names log their own errors. */
	if (weft_config_get(config, "LANES", lanes, sizeof(lanes)) > 0 && lanes[0] != '\0')
		return;
	if (rte_eth_dev_count_avail() > 0 || have_rdma() || have_switch(config))
		return;
	fprintf(stderr,
		"%s: there is no DPDK port and no RDMA device: lanes to other hosts are those over "
		"UDP sockets, which need an interface that is up, has an IPv4 address and a route "
		"to the peer ('ip -br addr' and 'ip route get ADDRESS' show them). For a RoCE NIC "
		"load its RDMA driver ('rdma link' lists devices), and do not bind it to DPDK. "
		"Bind another NIC to vfio-pci, or give the EAL a virtual port, e.g. %s "
		"--vdev=net_af_packet0,iface=eth1 -- ...\n",
		cli_program, cli_program);
}

/*
 * A port of net_af_xdp without its queue. After a failed queue set-up, this PMD's close reads
 * memory that the failure has freed, and there is nothing to close.
 */
static bool is_half_open(uint16_t port)
{
	struct rte_eth_rxq_info queue;
	struct rte_eth_dev_info info;

	return rte_eth_dev_info_get(port, &info) == 0 && info.driver_name &&
	       !strcmp(info.driver_name, "net_af_xdp") &&
	       rte_eth_rx_queue_info_get(port, 0, &queue) == -EINVAL;
}

void eal_close_ports(void)
{
	uint16_t port;

	RTE_ETH_FOREACH_DEV(port)
		if (!is_half_open(port))
			rte_eth_dev_close(port);
}

/*
 * Runs on the EAL's interrupt thread, so no interrupt handler of a port runs at the same time. None
 * may run after the ports are closed, so the process ends here. rte_eal_cleanup() would deadlock:
 * it waits for this alarm's callback to return.
 */
static void end_process(void *arg)
{
	eal_close_ports();
	_exit(*(int *)arg);
}

int eal_exit(int code)
{
	static int last;

	if (!weft_eal_is_up())
		return code;
	last = code;
	fflush(NULL);
	if (rte_eal_alarm_set(1, end_process, &last) == 0)
		sleep(2);
	_exit(code);
}
