/* SPDX-License-Identifier: BSD-3-Clause */
/* RX interrupts of fake ports: an eventfd for each queue, as VFIO has them for MSI-X. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake/fake_ethdev_priv.h"

void fake_eth_intr_make(struct fake_eth_port *p)
{
	struct fake_eth_rxq *q;

	if (!p->conf.intr_conf.rxq || !p->t.rx_intr)
		return;
	for (q = p->rxq; q < p->rxq + p->nb_rx; q++) {
		q->intr_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		q->intr_made = q->intr_fd >= 0;
		q->intr_on = true; /* as some PMDs begin */
	}
}

void fake_eth_intr_drop(struct fake_eth_port *p)
{
	struct fake_eth_rxq *q;

	for (q = p->rxq; q < p->rxq + FAKE_ETH_QUEUES; q++) {
		if (q->intr_made)
			close(q->intr_fd);
		q->intr_made = q->intr_on = false;
	}
}

static void ring(const struct fake_eth_rxq *q)
{
	if (!q->intr_made || eventfd_write(q->intr_fd, 1) == 0)
		return;
	perror("eventfd");
	abort();
}

void fake_eth_intr_raise(struct fake_eth_rxq *q)
{
	if (!q->intr_on)
		return;
	q->intr_on = false;
	if (!q->port->t.rx_intr_dead)
		ring(q);
}

void fake_eth_interrupt(struct fake_eth_port *p, uint16_t queue)
{
	ring(&p->rxq[queue]);
}

bool fake_eth_intr_is_on(const struct fake_eth_port *p, uint16_t queue)
{
	return p->rxq[queue].intr_on;
}

int rte_eth_dev_rx_intr_ctl_q_get_fd(uint16_t port_id, uint16_t queue)
{
	const struct fake_eth_port *p = fake_eth_port(port_id);

	return p && queue < p->nb_rx && p->rxq[queue].intr_made ? p->rxq[queue].intr_fd : -1;
}

static int set(uint16_t port_id, uint16_t queue, bool on)
{
	struct fake_eth_port *p = fake_eth_port(port_id);

	if (!p)
		return -ENODEV;
	p->count.intr_on += on;
	p->count.intr_off += !on;
	if (p->removed || p->broken)
		return -EIO;
	if (queue >= p->nb_rx || !p->rxq[queue].intr_made)
		return -ENOTSUP;
	if (on && p->t.rx_intr_enable_error)
		return p->t.rx_intr_enable_error;
	p->rxq[queue].intr_on = on;
	return 0;
}

int rte_eth_dev_rx_intr_enable(uint16_t port_id, uint16_t queue)
{
	return set(port_id, queue, true);
}

int rte_eth_dev_rx_intr_disable(uint16_t port_id, uint16_t queue)
{
	return set(port_id, queue, false);
}
