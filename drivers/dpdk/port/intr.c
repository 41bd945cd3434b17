/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RX interrupts: a queue pair whose PMD has a descriptor for them wakes its owner.
 *
 * The descriptor is an eventfd (VFIO, virtio_user), an epoll set (vhost) or a completion channel
 * (mlx5). Each is emptied in another way, and some cannot be emptied. So the descriptor is
 * edge-triggered in an epoll set of the port, which is the result of wait_fd(): one epoll_wait()
 * takes the edge, whatever its source is. (rte_eth_dev_rx_intr_ctl_q() would do the same for
 * rte_epoll_wait(), whose events carry DPDK's own callbacks; an application's epoll_wait() calls
 * none.)
 *
 * arm() enables the interrupt and then polls for frames, since a PMD raises none for earlier
 * frames. Frames that it finds are kept for the next rx_burst(), by another table of operations:
 * normal polling needs no test for them.
 *
 * No PMD reports whether its interrupts arrive. Until one has arrived with frames, an owner sleeps
 * no longer than without interrupts. It never sleeps longer than LONG, which limits the cost of a
 * lost interrupt.
 */

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_spinlock.h>

#include "frame/port_counters.h"
#include "port/priv.h"

#define BLIND_FIRST 50000u
#define BLIND_MOST 1000000u
#define LONG 100000000u
/*
 * Interrupts with frames that must arrive before interrupts are trusted again, after a sleep that
 * ran out although a frame had arrived.
 */
#define MISTRUST 8

/* ---- is it to be requested? ----------------------------------------------------------------- */

/* From PCI's configuration space. */
#define PCI_CAPABILITIES 0x34
#define PCI_CAP_MSIX 0x11
#define PCI_CONFIG 256

/*
 * MSI-X vectors; 0: there are none, or they are not visible (only root can read more than 64
 * bytes).
 */
static unsigned int msix_vectors(const char *path)
{
	uint8_t c[PCI_CONFIG];
	unsigned int at, hops;
	size_t got = 0;
	FILE *f = fopen(path, "re");

	if (f) {
		got = fread(c, 1, sizeof(c), f);
		fclose(f);
	}
	if (got < sizeof(c))
		return 0;
	for (at = c[PCI_CAPABILITIES], hops = 0; at >= 64 && at <= PCI_CONFIG - 4 && hops < 48;
	     at = c[at + 1], hops++)
		if (c[at] == PCI_CAP_MSIX)
			return 1 + (c[at + 2] | (c[at + 3] & 7u) << 8);
	return 0;
}

unsigned int weft_port_intr_vectors(const char *sysfs, const char *device)
{
	char path[PATH_MAX], driver[PATH_MAX];
	const char *name;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s/driver", sysfs, device);
	n = readlink(path, driver, sizeof(driver) - 1);
	if (n < 0)
		return UINT_MAX;
	driver[n] = '\0';
	name = strrchr(driver, '/') ? strrchr(driver, '/') + 1 : driver;
	/* One, which link events use. */
	if (!strncmp(name, "uio", 3) || !strcmp(name, "igb_uio"))
		return 1;
	if (strcmp(name, "vfio-pci") != 0)
		return UINT_MAX;
	snprintf(path, sizeof(path), "%s/%s/config", sysfs, device);
	return msix_vectors(path);
}

/*
 * PMDs of DPDK 22.11 that wake by their source, and that poll at the same speed when interrupts are
 * requested but disabled. Not em: its PMD assigns no MSI-X vector to the queue, and INTx has one
 * interrupt in 16 ms. Not i40e, iavf, ice: with interrupts they change how descriptors are written
 * back.
 */
static bool is_known(const char *driver, uint16_t queues)
{
	/*
	 * ixgbe enables the vector of the previous queue, and its VF driver that of the first
	 * queue.
	 */
	static const struct {
		const char *driver;
		uint16_t queues;
	} list[] = {
		{"net_virtio", UINT16_MAX}, {"net_virtio_user", UINT16_MAX},
		{"net_vhost", UINT16_MAX},  {"net_vmxnet3", UINT16_MAX},
		{"net_ena", UINT16_MAX},    {"net_e1000_igb", UINT16_MAX},
		{"net_ixgbe", 1},           {"net_ixgbe_vf", 1},
		{"mlx5_pci", UINT16_MAX},   {"net_mana", UINT16_MAX},
	};
	size_t i;

	for (i = 0; driver && i < RTE_DIM(list); i++)
		if (!strcmp(driver, list[i].driver))
			return queues <= list[i].queues;
	return false;
}

bool weft_port_intr_wanted(const struct weft_port_dev *d, enum weft_rx_intr mode)
{
	if (mode == WEFT_RX_INTR_NO || !d->limits.set_mtu)
		return false;
	if (mode == WEFT_RX_INTR_YES)
		return true;
	/* Link events first: they need one vector more than the queues. */
	return is_known(d->info.driver_name, d->num_queues) &&
	       (!d->info.device ||
		weft_port_intr_vectors("/sys/bus/pci/devices", rte_dev_name(d->info.device)) >
			d->num_queues);
}

/* ---- on and off ----------------------------------------------------------------------------- */

/*
 * By port number. PMDs keep one word for all queues, which workers in several threads change
 * (ixgbe). vhost's device is freed by a thread that reports the loss of the link first.
 */
static rte_spinlock_t locks[RTE_MAX_ETHPORTS];

void weft_port_intr_pass(uint16_t id)
{
	rte_spinlock_lock(&locks[id]);
	rte_spinlock_unlock(&locks[id]);
}

static int turn_on(const struct weft_port *p)
{
	int rc;

	rte_spinlock_lock(&locks[p->port_id]);
	/*
	 * Under the lock: a thread that ends the port has set the event before, and waits for the
	 * lock.
	 */
	rc = weft_port_has_ended(p->dev) ? -EIO : rte_eth_dev_rx_intr_enable(p->port_id, p->queue);
	rte_spinlock_unlock(&locks[p->port_id]);
	return rc;
}

static void turn_off(const struct weft_port *p)
{
	rte_spinlock_lock(&locks[p->port_id]);
	if (!weft_port_has_ended(p->dev))
		rte_eth_dev_rx_intr_disable(p->port_id, p->queue);
	rte_spinlock_unlock(&locks[p->port_id]);
}

/* ---- opening and closing -------------------------------------------------------------------- */

static int epoll_set_new(int fd)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	int set = epoll_create1(EPOLL_CLOEXEC);

	if (set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev) == 0)
		return set;
	if (set >= 0)
		close(set);
	return -1;
}

void weft_port_intr_open(struct weft_port *p, const struct weft_port_intr_modes *modes)
{
	struct weft_port_intr *in;
	int fd;

	if (!p->dev->rx_intr)
		return;
	fd = rte_eth_dev_rx_intr_ctl_q_get_fd(p->port_id, p->queue);
	in = fd >= 0 ? calloc(1, sizeof(*in)) : NULL;
	if (!in) {
		snprintf(p->dev->no_intr, sizeof(p->dev->no_intr),
			 "%s has no descriptor for queue %u", p->dev->info.driver_name, p->queue);
		return;
	}
	in->epoll = epoll_set_new(fd);
	in->blind = BLIND_FIRST;
	in->modes = *modes;
	if (in->epoll < 0) {
		free(in);
		return;
	}
	/* Some PMDs start with interrupts enabled. */
	turn_off(p);
	p->intr = in;
	p->fp.ops = in->modes.ops;
}

void weft_port_intr_text(struct weft_frame_port *fp, char *text, size_t size)
{
	const char *why = weft_port_of(fp)->dev->no_intr;

	snprintf(text, size, "%s%s", why[0] != '\0' ? "no RX interrupts: " : "", why);
}

static void intr_off(struct weft_port *p)
{
	if (p->intr->on)
		turn_off(p);
	p->intr->on = false;
}

void weft_port_intr_close(struct weft_port *p)
{
	struct weft_port_intr *in = p->intr;

	if (!in)
		return;
	intr_off(p);
	while (in->given < in->kept)
		rte_pktmbuf_free(in->keep[in->given++]);
	close(in->epoll);
	free(in);
	p->intr = NULL;
}

void weft_port_intr_counters(const struct weft_port *p, weft_frame_port_counter_cb cb, void *arg)
{
	const struct weft_port_intr *in = p->intr;

	if (!in)
		return;
#define REPORT(field, name, help) cb(name, in->field, arg);
	WEFT_PORT_INTR_COUNTERS(REPORT)
#undef REPORT
}

/* ---- sleeping ------------------------------------------------------------------------------- */

int weft_port_intr_fd(struct weft_frame_port *fp)
{
	return weft_port_of(fp)->intr->epoll;
}

/* Takes the edge. @return true: there was one */
static bool take_edge(const struct weft_port_intr *in)
{
	struct epoll_event ev;

	return epoll_wait(in->epoll, &ev, 1, 0) > 0;
}

int weft_port_intr_arm(struct weft_frame_port *fp, uint64_t *within)
{
	struct weft_port *p = weft_port_of(fp);
	struct weft_port_intr *in = p->intr;

	if (in->given < in->kept)
		return -EBUSY;
	in->on = !weft_port_halted(p);
	if (in->on && turn_on(p) != 0) {
		in->on = false;
		in->refused++;
	}
	if (in->on) {
		/* Vhost stores without a barrier: its peer must see the store before the poll. */
		atomic_thread_fence(memory_order_seq_cst);
		in->given = 0;
		in->kept = rte_eth_rx_burst(p->port_id, p->queue, in->keep, WEFT_PORT_KEEP);
		if (in->kept > 0) {
			intr_off(p);
			take_edge(in);
			in->late++;
			fp->ops = in->modes.first;
			return -EBUSY;
		}
	}
	/*
	 * The next peer of vhost finds interrupts disabled: without a frame since the last event,
	 * interrupts are not trusted.
	 */
	in->most = in->on && in->trust > 0 && in->life == weft_port_life(p->dev) ? LONG : in->blind;
	in->begin_tsc = rte_rdtsc();
	*within = RTE_MIN(*within, in->most);
	return 0;
}

void weft_port_intr_disarm(struct weft_frame_port *fp)
{
	struct weft_port *p = weft_port_of(fp);
	struct weft_port_intr *in = p->intr;
	double slept = (double)(rte_rdtsc() - in->begin_tsc) / (double)rte_get_tsc_hz() * 1e9;

	in->was_on = in->on;
	intr_off(p);
	in->readable = take_edge(in);
	in->ran_out = slept >= (double)in->most;
	fp->ops = in->modes.first;
}

static void judge_trust(struct weft_port_intr *in, bool frames, uint32_t life)
{
	if (frames)
		in->life = life;
	if (in->was_on && in->readable) {
		in->wakes += frames;
		in->empty += !frames;
		if (frames && in->trust <= 0)
			in->trust++;
	} else if (in->was_on && in->ran_out && frames) {
		in->missed++;
		in->trust = -MISTRUST;
	}
	if (frames)
		in->blind = BLIND_FIRST;
	else if (in->ran_out)
		in->blind = RTE_MIN(in->blind * 2, (uint64_t)BLIND_MOST);
}

uint16_t weft_port_intr_rx(struct weft_frame_port *fp, struct rte_mbuf **pkts, uint16_t n)
{
	struct weft_port_intr *in = weft_port_of(fp)->intr;
	uint16_t got;

	if (in->given < in->kept) {
		got = RTE_MIN(n, (uint16_t)(in->kept - in->given));
		memcpy(pkts, &in->keep[in->given], got * sizeof(*pkts));
		in->given += got;
		if (in->given == in->kept)
			fp->ops = in->modes.ops;
		return got;
	}
	fp->ops = in->modes.ops;
	got = fp->ops->rx_burst(fp, pkts, n);
	judge_trust(in, got > 0, weft_port_life(weft_port_of(fp)->dev));
	return got;
}
