/* SPDX-License-Identifier: BSD-3-Clause */
/* fi_getinfo(): what it claims, and that it refuses what it does not. One process. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#define VERSION FI_VERSION(1, 17)

static struct fi_info *get_info(struct fi_info *hints, int *rc)
{
	struct fi_info *info = NULL;

	*rc = fi_getinfo(VERSION, NULL, NULL, 0, hints, &info);
	return info;
}

static struct fi_info *new_hints(void)
{
	struct fi_info *hints = fi_allocinfo();

	hints->fabric_attr->prov_name = strdup("weft");
	return hints;
}

static int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void claims(void **state)
{
	struct fi_info *hints = new_hints(), *info;
	int rc, before = threads();

	info = get_info(hints, &rc);
	assert_int_equal(rc, 0);
	assert_null(info->next);
	assert_string_equal(info->fabric_attr->prov_name, "weft");
	assert_int_equal(info->ep_attr->type, FI_EP_RDM);
	assert_true(info->caps & FI_TAGGED);
	assert_true(info->caps & FI_MSG);
	assert_true(info->caps & FI_MULTI_RECV);
	assert_int_equal(info->domain_attr->cq_data_size, 8);
	assert_true(info->caps & FI_DIRECTED_RECV);
	assert_true(info->tx_attr->msg_order & FI_ORDER_SAS);
	assert_int_equal(info->mode, 0);
	assert_int_equal(info->domain_attr->resource_mgmt, FI_RM_ENABLED);
	/* Nothing has been started for it. */
	assert_int_equal(threads(), before);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* What was asked for comes back, and no more than costs nothing. */
static void answers(void **state)
{
	struct fi_info *hints = new_hints(), *info;
	int rc;

	hints->caps = FI_TAGGED | FI_SEND;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	hints->domain_attr->av_type = FI_AV_MAP;
	info = get_info(hints, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(info->caps &
				 (FI_TAGGED | FI_SEND | FI_RECV | FI_SOURCE | FI_DIRECTED_RECV),
			 FI_TAGGED | FI_SEND);
	assert_int_equal(info->domain_attr->threading, FI_THREAD_DOMAIN);
	assert_int_equal(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
	assert_int_equal(info->domain_attr->av_type, FI_AV_MAP);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* Keys of regions are the provider's, or the application's where it does not accept these. */
static void remote_keys(void **state)
{
	struct fi_info *hints = new_hints(), *info;
	int rc;

	hints->caps = FI_ATOMIC;
	info = get_info(hints, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(info->domain_attr->mr_mode, 0);
	assert_int_equal(info->domain_attr->mr_key_size, 8);
	fi_freeinfo(info);
	hints->domain_attr->mr_mode = 1; /* FI_MR_BASIC, which needs virtual addresses */
	info = get_info(hints, &rc);
	assert_int_equal(rc, -FI_ENODATA);
	hints->domain_attr->mr_mode = 2; /* FI_MR_SCALABLE */
	info = get_info(hints, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(info->domain_attr->mr_mode, 2);
	fi_freeinfo(info);
	hints->caps = FI_RMA;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY | FI_MR_LOCAL | FI_MR_VIRT_ADDR;
	info = get_info(hints, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(info->domain_attr->mr_mode, FI_MR_PROV_KEY);
	assert_int_equal(info->domain_attr->mr_key_size, 8);
	assert_int_equal(info->caps & (FI_RMA | FI_TAGGED | FI_READ | FI_REMOTE_WRITE),
			 FI_RMA | FI_READ | FI_REMOTE_WRITE);
	fi_freeinfo(info);
	hints->caps = 0;
	hints->domain_attr->mr_mode = 0;
	info = get_info(hints, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(info->caps & (FI_RMA | FI_ATOMIC), FI_RMA | FI_ATOMIC);
	fi_freeinfo(info);
	hints->domain_attr->mr_mode = 1;
	info = get_info(hints, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(info->caps & (FI_RMA | FI_ATOMIC | FI_WRITE), 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* Before 1.5 no mode leaves the choice to the provider, and the answer must be a mode. */
static void remote_keys_of_old_requests(void **state)
{
	struct fi_info *hints = new_hints(), *info;

	hints->caps = FI_RMA;
	hints->domain_attr->mr_mode = 0; /* FI_MR_UNSPEC */
	assert_int_equal(fi_getinfo(FI_VERSION(1, 0), NULL, NULL, 0, hints, &info), 0);
	assert_int_equal(info->domain_attr->mr_mode, 2); /* FI_MR_SCALABLE */
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* Each alone makes the provider unfit: capabilities, */
static const uint64_t unfit_caps[] = {
	FI_MULTICAST,
	FI_TAGGED | FI_COLLECTIVE,
	FI_TAGGED | FI_HMEM,
	FI_TAGGED | 1ull << 48, /* FI_VARIABLE_MSG; in 2.x it has no bit */
	FI_TAGGED | FI_TRIGGER,
	FI_TAGGED | FI_RMA_EVENT, /* there is nothing to count */
	FI_TAGGED | FI_NAMED_RX_CTX,
	FI_TAGGED | FI_RMA_PMEM,
	FI_TAGGED | FI_SOURCE_ERR, /* what it adds to is not requested */
	UINT64_MAX,
};

#define UNFIT_CAPS (sizeof(unfit_caps) / sizeof(unfit_caps[0]))

/* attributes in numbers, */
static const struct {
	int what;
	uint64_t value;
} unfit[] = {
	{0, FI_EP_MSG},
	{0, FI_EP_DGRAM},
	{1, 2},
	{2, FI_SHARED_CONTEXT - 1},
	{3, SIZE_MAX},
	{4, 0x1ff}, /* FI_ORDER_STRICT, deprecated in libfabric 2.x */
	{5, FI_ORDER_SAW},
	{5, FI_ORDER_RAS},
	{6, FI_ORDER_WAS},
	{7, 16385},
	{8, 17},
	{9, FI_COMMIT_COMPLETE},
	{10, 64},
	{11, FI_SOCKADDR_IN},
	{12, 257},
	{13, FI_PROTO_SHM},
};

#define UNFIT (sizeof(unfit) / sizeof(unfit[0]))

static void spoil(struct fi_info *h, int what, uint64_t value)
{
	size_t *const sizes[] = {
		[1] = &h->ep_attr->tx_ctx_cnt,          [2] = &h->ep_attr->rx_ctx_cnt,
		[3] = &h->ep_attr->max_msg_size,        [7] = &h->tx_attr->inject_size,
		[8] = &h->tx_attr->iov_limit,           [10] = &h->domain_attr->cq_data_size,
		[12] = &h->domain_attr->max_ep_stx_ctx,
	};

	switch (what) {
	case 0:
		h->ep_attr->type = (enum fi_ep_type)value;
		break;
	case 4:
		h->tx_attr->comp_order = value;
		break;
	case 5:
		h->tx_attr->msg_order = value;
		break;
	case 6:
		h->rx_attr->msg_order = value;
		break;
	case 9:
		h->tx_attr->op_flags = value;
		break;
	case 11:
		h->addr_format = (uint32_t)value;
		break;
	case 13:
		h->ep_attr->protocol = (uint32_t)value;
		break;
	default:
		*sizes[what] = (size_t)value;
	}
}

/* and names. */
static void refused(struct fi_info *hints, const char *what, size_t i)
{
	struct fi_info *info;
	int rc;

	info = get_info(hints, &rc);
	if (rc != -FI_ENODATA || info)
		fail_msg("%s %zu is answered with %d", what, i, rc);
	fi_freeinfo(hints);
}

static void refuses(void **state)
{
	struct fi_info *hints;

	for (size_t i = 0; i < UNFIT_CAPS; i++) {
		hints = new_hints();
		hints->caps = unfit_caps[i];
		refused(hints, "capability", i);
	}
	for (size_t i = 0; i < UNFIT; i++) {
		hints = new_hints();
		spoil(hints, unfit[i].what, unfit[i].value);
		refused(hints, "attribute", i);
	}
	hints = new_hints();
	hints->domain_attr->name = strdup("eth0");
	refused(hints, "domain", 0);
	hints = new_hints();
	hints->fabric_attr->name = strdup("tcp");
	refused(hints, "fabric", 0);
}

/* FI_FENCE is for endpoints without messages, which fences do not order. */
static void fence(void **state)
{
	struct fi_info *hints = new_hints(), *info;
	int rc;

	hints->domain_attr->mr_mode = FI_MR_PROV_KEY;
	info = get_info(hints, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(info->caps & FI_FENCE, 0); /* for hints that request it */
	fi_freeinfo(info);
	hints->caps = FI_RMA | FI_ATOMIC | FI_FENCE;
	info = get_info(hints, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(info->caps & (FI_FENCE | FI_MSG | FI_TAGGED), FI_FENCE);
	assert_int_equal(info->tx_attr->caps & FI_FENCE, FI_FENCE);
	assert_int_equal(info->rx_attr->caps & FI_FENCE, 0);
	fi_freeinfo(info);
	hints->caps = FI_FENCE;
	info = get_info(hints, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(info->caps & (FI_RMA | FI_ATOMIC | FI_MSG), FI_RMA | FI_ATOMIC);
	fi_freeinfo(info);
	hints->caps = FI_RMA | FI_TAGGED | FI_FENCE;
	assert_null(get_info(hints, &rc));
	assert_int_equal(rc, -FI_ENODATA);
	hints->caps = FI_FENCE;
	hints->domain_attr->mr_mode = 1;
	refused(hints, "fence", 0);
}

/* Orders among reads, writes and atomics, and their sizes, are there when they are requested. */
static void orders(void **state)
{
	struct fi_info *hints = new_hints(), *info;
	int rc;

	info = get_info(hints, &rc);
	assert_int_equal(rc, 0);
	assert_true(info->tx_attr->msg_order == FI_ORDER_SAS);
	assert_int_equal(info->ep_attr->max_order_waw_size, 0);
	fi_freeinfo(info);
	hints->caps = FI_RMA | FI_ATOMIC;
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY;
	hints->tx_attr->msg_order =
		FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_RMA_WAW;
	hints->ep_attr->max_order_waw_size = 1 << 20;
	info = get_info(hints, &rc);
	assert_int_equal(rc, 0);
	assert_true(info->tx_attr->msg_order == hints->tx_attr->msg_order);
	assert_true(info->rx_attr->msg_order == hints->tx_attr->msg_order);
	assert_true(info->ep_attr->max_order_waw_size >= 1 << 20);
	assert_true(info->ep_attr->max_order_raw_size == info->ep_attr->max_order_waw_size);
	assert_int_equal(info->ep_attr->max_order_war_size, 0);
	fi_freeinfo(info);
	hints->ep_attr->max_order_war_size = 1;
	refused(hints, "order", 0);
}

/* More than the ordinary size is injected for hints that request it. */
static void inject_sizes(void **state)
{
	struct fi_info *hints = new_hints(), *info;
	int rc;

	info = get_info(hints, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(info->tx_attr->inject_size, 4096);
	assert_int_equal(info->tx_attr->iov_limit, 16);
	fi_freeinfo(info);
	hints->tx_attr->inject_size = 16384;
	info = get_info(hints, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(info->tx_attr->inject_size, 16384);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* Shared contexts, and sources as addresses, are there for hints that request them. */
static void on_request(void **state)
{
	struct fi_info *hints = new_hints(), *info;
	int rc;

	info = get_info(hints, &rc);
	assert_int_equal(rc, 0);
	assert_true(info->caps & FI_SOURCE);
	assert_false(info->caps & FI_SOURCE_ERR);
	assert_int_equal(info->ep_attr->tx_ctx_cnt, 1);
	assert_int_equal(info->ep_attr->rx_ctx_cnt, 1);
	assert_int_equal(info->domain_attr->max_ep_srx_ctx, 256);
	assert_int_equal(info->domain_attr->max_ep_stx_ctx, 256);
	fi_freeinfo(info);
	hints->caps = FI_TAGGED | FI_SOURCE | FI_SOURCE_ERR;
	hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	info = get_info(hints, &rc);
	assert_int_equal(rc, 0);
	assert_true(info->caps & FI_SOURCE_ERR);
	assert_true(info->rx_attr->caps & FI_SOURCE_ERR);
	assert_false(info->tx_attr->caps & FI_SOURCE_ERR);
	assert_true(info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT);
	assert_true(info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* A node and a service are a destination, or a source; test/provider/names.c connects by them. */
static void nodes(void **state)
{
	static const char *const hosts[] = {"127.0.0.1", "::1", "localhost"};
	struct fi_info *hints = new_hints(), *info = NULL, *again;
	int rc;

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		rc = fi_getinfo(VERSION, hosts[i], "5000", 0, hints, &info);
		assert_int_equal(rc, 0);
		assert_int_equal(info->dest_addrlen, FI_NAME_MAX);
		again = get_info(info, &rc);
		assert_int_equal(rc, 0);
		assert_memory_equal(again->dest_addr, info->dest_addr, FI_NAME_MAX);
		fi_freeinfo(again);
		fi_freeinfo(info);
	}
	info = NULL;
	assert_int_equal(fi_getinfo(VERSION, "no.such.host.invalid", "5000", 0, hints, &info),
			 -FI_ENODATA);
	assert_int_equal(fi_getinfo(VERSION, "localhost", "5000", FI_NUMERICHOST, hints, &info),
			 -FI_ENODATA);
	assert_int_equal(fi_getinfo(VERSION, NULL, "5000", 0, hints, &info), -FI_ENODATA);
	assert_null(info);
	fi_freeinfo(hints);
}

/*
 * A source address comes back and may be requested, whatever service it is for; no peer is reached
 * by it. Another one can't be had, and a destination must be an address.
 */
static void addresses(void **state)
{
	struct fi_info *hints = new_hints(), *info = NULL, *again = NULL;
	int rc;

	assert_int_equal(fi_getinfo(VERSION, NULL, "5000", FI_SOURCE, hints, &info), 0);
	assert_non_null(info->src_addr);
	assert_int_equal(info->src_addrlen, FI_NAME_MAX);
	assert_null(info->dest_addr);
	again = get_info(info, &rc);
	assert_int_equal(rc, 0);
	assert_memory_equal(again->src_addr, info->src_addr, FI_NAME_MAX);
	fi_freeinfo(again);
	((char *)info->src_addr)[FI_NAME_MAX - 1] = 1;
	assert_null(get_info(info, &rc));
	assert_int_equal(rc, -FI_ENODATA);
	/* With FI_SOURCE that of the hints is of no account. */
	assert_int_equal(fi_getinfo(VERSION, NULL, "5000", FI_SOURCE, info, &again), 0);
	fi_freeinfo(again);
	((char *)info->src_addr)[FI_NAME_MAX - 1] = 0;
	fi_freeinfo(info);
	assert_int_equal(fi_getinfo(VERSION, NULL, NULL, 0, hints, &info), 0);
	hints->dest_addr = info->src_addr;
	hints->dest_addrlen = FI_NAME_MAX;
	info->src_addr = NULL;
	fi_freeinfo(info);
	refused(hints, "destination", 0);
}

static int query(const char *node, const char *service, uint64_t flags, struct fi_info *hints)
{
	struct fi_info *info = NULL;
	int rc = fi_getinfo(VERSION, node, service, flags, hints, &info);

	if (info)
		fi_freeinfo(info);
	return rc;
}

/* FI_ADDR_STR: sources and destinations are texts, and texts may be nodes. */
static void texts(void **state)
{
	struct fi_info *hints = new_hints(), *info = NULL, *again;
	int rc;

	assert_int_equal(query("fi_weft://127.0.0.1:5000", NULL, 0, hints), 0);
	hints->addr_format = FI_ADDR_STR;
	rc = fi_getinfo(VERSION, "127.0.0.1", "5000", 0, hints, &info);
	assert_int_equal(rc, 0);
	assert_int_equal(info->addr_format, FI_ADDR_STR);
	assert_string_equal(info->dest_addr, "fi_weft://127.0.0.1:5000");
	assert_int_equal(info->dest_addrlen, sizeof("fi_weft://127.0.0.1:5000"));
	again = get_info(info, &rc);
	assert_int_equal(rc, 0);
	assert_string_equal(again->dest_addr, info->dest_addr);
	assert_string_equal(again->src_addr, info->src_addr);
	fi_freeinfo(again);
	assert_int_equal(query(info->src_addr, NULL, 0, hints), -FI_ENODATA);
	assert_int_equal(query(info->src_addr, NULL, FI_SOURCE, hints), -FI_ENODATA);
	assert_int_equal(query(info->dest_addr, NULL, 0, hints), 0);
	assert_int_equal(query(info->dest_addr, "5000", 0, hints), -FI_ENODATA);
	assert_int_equal(query("fi_weft://localhost:5000", NULL, 0, hints), 0);
	assert_int_equal(query("fi_weft://localhost:5000", NULL, FI_NUMERICHOST, hints),
			 -FI_ENODATA);
	assert_int_equal(query("fi_shm://1", NULL, 0, hints), -FI_ENODATA);
	/* A text that is cut short, and one as bytes. */
	info->dest_addrlen = 12;
	assert_int_equal(query(NULL, NULL, 0, info), -FI_ENODATA);
	info->dest_addrlen = sizeof("fi_weft://127.0.0.1:5000");
	info->addr_format = FI_FORMAT_UNSPEC;
	assert_int_equal(query(NULL, NULL, 0, info), -FI_ENODATA);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* Each direction has capabilities that are for it, and none of the domain's. */
static void directions(void **state)
{
	struct fi_info *hints = new_hints(), *info;
	int rc;

	info = get_info(hints, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(info->tx_attr->caps & (FI_SEND | FI_TAGGED), FI_SEND | FI_TAGGED);
	assert_int_equal(info->tx_attr->caps & (FI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM), 0);
	assert_int_equal(info->rx_attr->caps & (FI_RECV | FI_TAGGED), FI_RECV | FI_TAGGED);
	assert_int_equal(info->rx_attr->caps & (FI_SEND | FI_LOCAL_COMM | FI_REMOTE_COMM), 0);
	assert_int_equal(info->caps & FI_REMOTE_COMM, FI_REMOTE_COMM);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* FI_WEFT_PROGRESS=manual is no offer of a thread. */
static void progress_variable(void **state)
{
	struct fi_info *hints = new_hints(), *info;
	int rc;

	setenv("FI_WEFT_PROGRESS", "manual", 1);
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	info = get_info(hints, &rc);
	assert_int_equal(rc, -FI_ENODATA);
	assert_null(info);
	setenv("FI_WEFT_PROGRESS", "auto", 1);
	hints->domain_attr->data_progress = FI_PROGRESS_UNSPEC;
	info = get_info(hints, &rc);
	assert_int_equal(rc, 0);
	assert_int_equal(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
	unsetenv("FI_WEFT_PROGRESS");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(claims),     cmocka_unit_test(remote_keys),
		cmocka_unit_test(answers),    cmocka_unit_test(refuses),
		cmocka_unit_test(nodes),      cmocka_unit_test(progress_variable),
		cmocka_unit_test(addresses),  cmocka_unit_test(texts),
		cmocka_unit_test(directions), cmocka_unit_test(fence),
		cmocka_unit_test(orders),     cmocka_unit_test(inject_sizes),
		cmocka_unit_test(on_request), cmocka_unit_test(remote_keys_of_old_requests),
	};

	setenv("FI_PROVIDER", "weft", 1);
	return cmocka_run_group_tests_name("provider_info", tests, NULL, NULL);
}
