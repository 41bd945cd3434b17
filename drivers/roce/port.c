/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Shared by both drivers, RC and UD: the device's port, its GID and path MTU, and the address made
 * of them.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "roce.h"

static uint8_t mtu_code(unsigned int bytes)
{
	uint8_t code = 5;

	while (code > 1 && (128u << code) > bytes)
		code--;
	return code;
}

static int pick_gid(struct roce_port_info *info, char *why, size_t why_len)
{
	struct weft_roce_gid table[256];
	int num = roce_dev_gids(info->dev, info->port, table, 256);
	char reason[320];
	int i;

	i = weft_roce_gid_pick(table, num, info->opts.gid, &info->opts.subnet, reason,
			       sizeof(reason));
	if (i < 0) {
		snprintf(why, why_len, "%s", reason);
		return i;
	}
	info->gid = table[i];
	snprintf(info->why, sizeof(info->why), "%s", reason);
	roce_dev_netdev(info->dev, info->port, info->gid.index, info->netdev);
	return 0;
}

static int check_port(struct roce_port_info *info, char *why, size_t why_len)
{
	if (info->port > info->dev->attr.phys_port_cnt ||
	    ibv_query_port(info->dev->ctx, (uint8_t)info->port, &info->attr) != 0) {
		snprintf(why, why_len, "it has no port %u (there are %u)", info->port,
			 info->dev->attr.phys_port_cnt);
		return -ENODEV;
	}
	if (info->attr.link_layer != IBV_LINK_LAYER_ETHERNET) {
		snprintf(why, why_len, "its port is InfiniBand: Weft drives Ethernet only");
		return -ENODEV;
	}
	info->mtu = (uint8_t)info->attr.active_mtu;
	if (info->opts.mtu && mtu_code(info->opts.mtu) < info->mtu)
		info->mtu = mtu_code(info->opts.mtu);
	return 0;
}

int roce_port_open(const struct weft_lane_open *params, struct roce_port_info *info, char *why,
		   size_t why_len)
{
	char device[64];
	int rc;

	memset(info, 0, sizeof(*info));
	rc = weft_roce_opts_parse(params->options, &info->opts, why, why_len);
	if (rc < 0)
		return rc;
	if (weft_roce_resource_parse(params->resource, device, sizeof(device), &info->port) < 0) {
		snprintf(why, why_len, "'%s' is not of the form DEVICE or DEVICE:PORT",
			 params->resource);
		return -EINVAL;
	}
	info->dev = roce_dev_get(device, &rc, why, why_len);
	if (!info->dev)
		return rc;
	rc = check_port(info, why, why_len);
	if (rc == 0)
		rc = pick_gid(info, why, why_len);
	if (rc < 0)
		roce_dev_put(info->dev);
	return rc;
}

void roce_addr_fill(struct weft_roce_addr *addr, enum weft_roce_kind kind, const uint8_t gid[16],
		    uint8_t mtu, uint32_t seg)
{
	*addr = (struct weft_roce_addr){
		.version = WEFT_ROCE_VERSION,
		.kind = (uint8_t)kind,
		.mtu = mtu,
		.seg = weft_put32(seg),
	};
	memcpy(addr->gid, gid, 16);
}

int roce_reachable(const struct weft_roce_gid *own, bool gone, const char *netdev,
		   enum weft_roce_kind kind, const void *addr, size_t len, char *why,
		   size_t why_len)
{
	struct weft_roce_addr a;
	int rc = weft_roce_addr_check(addr, len, kind, why, why_len);

	if (rc < 0)
		return rc;
	memcpy(&a, addr, sizeof(a));
	if (gone) {
		roce_gid_gone_text(own, why, why_len);
		return -EADDRNOTAVAIL;
	}
	/* RoCE v1 and v2 are incompatible: they have different Ethernet types and headers. */
	if (a.v1 == own->v2) {
		snprintf(why, why_len,
			 "the peer speaks RoCE v%u and this lane v%u: choose entries of the same "
			 "version with gid=N",
			 a.v1 ? 1 : 2, own->v2 ? 2 : 1);
		return -EPROTONOSUPPORT;
	}
	return roce_route(netdev, own->gid, a.gid, why, why_len);
}

void roce_print_address(const void *addr, size_t len, char *buf, size_t size)
{
	struct weft_roce_addr a;
	char gid[48];

	if (len != sizeof(a)) {
		snprintf(buf, size, "damaged RoCE address");
		return;
	}
	memcpy(&a, addr, sizeof(a));
	weft_roce_gid_print(a.gid, gid, sizeof(gid));
	if (a.kind == WEFT_ROCE_UD)
		snprintf(buf, size, "%s queue pair %u", gid, weft_get32(a.qpn));
	else
		snprintf(buf, size, "%s", gid);
}
