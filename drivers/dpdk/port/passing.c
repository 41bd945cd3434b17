/* SPDX-License-Identifier: BSD-3-Clause */

#include "port/passing.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_errno.h>

#include "port/pool.h"
#include "port/priv.h"

#define MTU_LEAST 1280 /* of lanes; a shorter MTU of a program limits its frames, not its ports */

static int find_device(struct weft_port_dev *d, uint16_t port, const struct weft_port_opts *o,
		       char *why, size_t why_len)
{
	int rc;

	d->port_id = port;
	d->num_queues = 1;
	weft_port_name(port, d->name);
	rc = rte_eth_dev_info_get(port, &d->info);
	if (rc)
		return weft_port_fail(rc, why, why_len,
				      "port %u (%s) reports nothing about itself (%s)", port,
				      d->name, rte_strerror(-rc));
	rc = weft_port_limits_find(d, why, why_len);
	return rc ? rc : weft_port_choose_frame(d, o, why, why_len);
}

/* Frames are not Weft's own: no UDP checksum is requested, and no frame is a chain. */
static struct weft_port_opts passing_options(uint16_t mtu, struct rte_mempool *pool)
{
	return (struct weft_port_opts){.mtu = mtu && mtu < MTU_LEAST ? MTU_LEAST : mtu,
				       .raw_ethertype = true,
				       .no_extbuf = true,
				       .rx_intr = WEFT_RX_INTR_NO,
				       .pool = pool};
}

int weft_passing_find(uint16_t port, uint16_t mtu, struct weft_passing_limits *limits, char *why,
		      size_t why_len)
{
	struct weft_port_opts o = passing_options(mtu, NULL);
	struct weft_port_dev d = {0};
	int rc = find_device(&d, port, &o, why, why_len);

	if (rc)
		return rc;
	limits->mtu = (uint16_t)(d.frame_size - weft_port_l2(false));
	limits->room = weft_port_pool_room(&d);
	return 0;
}

static int passing_start(const struct weft_port_dev *d, char *why, size_t why_len)
{
	int rc = rte_eth_dev_start(d->port_id);

	if (rc)
		return weft_port_fail(rc, why, why_len, "port %u (%s) does not start (%s)",
				      d->port_id, d->name, rte_strerror(-rc));
	/* Ports with two ends have no filter to open. */
	rc = rte_eth_promiscuous_enable(d->port_id);
	if (rc && rc != -ENOTSUP)
		return weft_port_fail(rc, why, why_len,
				      "port %u (%s) does not take all frames: it can't be made "
				      "promiscuous (%s)",
				      d->port_id, d->name, rte_strerror(-rc));
	return 0;
}

int weft_passing_open(uint16_t port, uint16_t mtu, uint16_t ring, struct rte_mempool *pool,
		      char *why, size_t why_len)
{
	struct weft_port_opts o = passing_options(mtu, pool);
	struct rte_mempool *pools[1] = {NULL};
	int socks[1] = {-1};
	struct weft_port_dev d = {.pools = pools, .xdp_socks = socks};
	int rc = find_device(&d, port, &o, why, why_len);

	o.ring = ring;
	if (!rc)
		rc = weft_port_configure(&d, &o, why, why_len);
	return rc ? rc : passing_start(&d, why, why_len);
}
