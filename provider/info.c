/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fi_getinfo(): compares hints with what the provider offers. Every libfabric program on the host
 * calls it, so it starts no thread, opens no device, and prints nothing but libfabric's log. With a
 * node or a service it resolves their names.
 */

#include "provider/info.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "provider/av.h"
#include "provider/name.h"
#include "provider/provider.h"

/* Does an attribute request nothing, or at most what is offered? */
#define AT_MOST(requested, there) ((requested) <= (there))
#define NO_MORE_BITS(requested, there) (((requested) & ~(uint64_t)(there)) == 0)

/* ------------------------------------------------------------------ checking the hints */

/* @return the name of an attribute that requests more than is offered; NULL: none */
static const char *tx_lacks(const struct fi_tx_attr *a)
{
	if (!a)
		return NULL;
	if (!NO_MORE_BITS(a->caps, WFI_CAPS))
		return "tx_attr->caps";
	if (!NO_MORE_BITS(a->op_flags, WFI_TX_OP_FLAGS))
		return "tx_attr->op_flags";
	if (!NO_MORE_BITS(a->msg_order, WFI_ORDER | WFI_ORDER_FENCED) ||
	    a->comp_order != WFI_COMP_ORDER)
		return "tx_attr->msg_order or comp_order";
	if (!AT_MOST(a->inject_size, WFI_INJECT_MAX))
		return "tx_attr->inject_size";
	if (!AT_MOST(a->size, WFI_QUEUE_SIZE) || !AT_MOST(a->iov_limit, WFI_IOV_MAX) ||
	    !AT_MOST(a->rma_iov_limit, 1))
		return "tx_attr->size, iov_limit or rma_iov_limit";
	return NULL;
}

static const char *rx_lacks(const struct fi_rx_attr *a)
{
	if (!a)
		return NULL;
	if (!NO_MORE_BITS(a->caps, WFI_CAPS))
		return "rx_attr->caps";
	if (!NO_MORE_BITS(a->op_flags, WFI_RX_OP_FLAGS))
		return "rx_attr->op_flags";
	if (!NO_MORE_BITS(a->msg_order, WFI_ORDER | WFI_ORDER_FENCED) ||
	    a->comp_order != WFI_COMP_ORDER)
		return "rx_attr->msg_order or comp_order";
	if (!AT_MOST(a->size, WFI_QUEUE_SIZE) || !AT_MOST(a->iov_limit, WFI_IOV_MAX))
		return "rx_attr->size or iov_limit";
	return NULL;
}

static uint64_t fenced_orders(const struct fi_info *hints)
{
	uint64_t order = 0;

	if (hints && hints->tx_attr)
		order |= hints->tx_attr->msg_order;
	if (hints && hints->rx_attr)
		order |= hints->rx_attr->msg_order;
	return order & WFI_ORDER_FENCED;
}

/* The message size up to which order is kept; 0 if @p orders contains none of @p these. */
static size_t ordered(uint64_t orders, uint64_t these)
{
	return orders & these ? WFI_MAX_MSG_SIZE : 0;
}

#define ORDERS_RAW (FI_ORDER_RAW | FI_ORDER_RMA_RAW | FI_ORDER_ATOMIC_RAW)
#define ORDERS_WAR (FI_ORDER_WAR | FI_ORDER_RMA_WAR | FI_ORDER_ATOMIC_WAR)
#define ORDERS_WAW (FI_ORDER_WAW | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_WAW)

static bool is_one_context(size_t count)
{
	return count <= 1 || count == FI_SHARED_CONTEXT;
}

static bool is_no_key(const uint8_t *key, size_t size)
{
	return size != 0 && (size != WFI_KEY_LEN || !key);
}

static const char *ep_lacks(const struct fi_ep_attr *a, uint64_t orders)
{
	if (!a)
		return NULL;
	if (a->type != FI_EP_UNSPEC && a->type != FI_EP_RDM)
		return "ep_attr->type: there is FI_EP_RDM";
	if (a->protocol != FI_PROTO_UNSPEC &&
	    (a->protocol != WFI_PROTOCOL || a->protocol_version > WFI_PROTOCOL_VERSION))
		return "ep_attr->protocol";
	if (!AT_MOST(a->max_msg_size, WFI_MAX_MSG_SIZE))
		return "ep_attr->max_msg_size";
	if (!is_one_context(a->tx_ctx_cnt) || !is_one_context(a->rx_ctx_cnt))
		return "ep_attr->tx_ctx_cnt or rx_ctx_cnt: there is one of each";
	if (!AT_MOST(a->max_order_raw_size, ordered(orders, ORDERS_RAW)) ||
	    !AT_MOST(a->max_order_war_size, ordered(orders, ORDERS_WAR)) ||
	    !AT_MOST(a->max_order_waw_size, ordered(orders, ORDERS_WAW)))
		return "ep_attr->max_order_..._size: more than tx_attr->msg_order requests";
	return is_no_key(a->auth_key, a->auth_key_size)
		       ? "ep_attr->auth_key_size: a job key has 32 bytes"
		       : NULL;
}

/* Check attributes that libfabric has since 1.20. */
static const char *later_lacks(const struct fi_domain_attr *a)
{
	const struct wfi_domain_attr_1_20 *later = wfi_version_domain_attr(a);

	return later && (later->max_ep_auth_key || later->max_group_id)
		       ? "domain_attr->max_ep_auth_key or max_group_id"
		       : NULL;
}

static const char *domain_lacks(const struct fi_domain_attr *a, enum wfi_progress_choice progress)
{
	if (!a)
		return NULL;
	if (a->name && strcmp(a->name, WFI_NAME) != 0)
		return "domain_attr->name";
	if (a->data_progress == FI_PROGRESS_AUTO && progress == WFI_PROGRESS_MANUAL)
		return "domain_attr->data_progress: FI_WEFT_PROGRESS is manual";
	if (a->threading > FI_THREAD_ENDPOINT || a->av_type > FI_AV_TABLE)
		return "domain_attr->threading or av_type";
	if (!AT_MOST(a->cq_data_size, WFI_CQ_DATA_SIZE))
		return "domain_attr->cq_data_size";
	if (!AT_MOST(a->max_ep_tx_ctx, 1) || !AT_MOST(a->max_ep_rx_ctx, 1) ||
	    !AT_MOST(a->max_ep_stx_ctx, WFI_ENDPOINTS) ||
	    !AT_MOST(a->max_ep_srx_ctx, WFI_ENDPOINTS))
		return "domain_attr->max_ep_..._ctx";
	if (!NO_MORE_BITS(a->caps, WFI_CAPS_DOMAIN))
		return "domain_attr->caps";
	return is_no_key(a->auth_key, a->auth_key_size)
		       ? "domain_attr->auth_key_size: a job key has 32 bytes"
		       : later_lacks(a);
}

static bool wants_virtual_addresses(const struct fi_info *hints)
{
	return hints && hints->domain_attr && hints->domain_attr->mr_mode == WFI_MR_BASIC;
}

/* ------------------------------------------------------------------ addresses of a request */

/* The addresses of a request, in struct wfi_addr whatever their format in the request is. */
struct addresses {
	uint32_t format; /* addr_format of the hints: FI_FORMAT_UNSPEC or FI_ADDR_STR */
	bool has_dest;
	struct wfi_addr source, dest;
};

/*
 * Is this the placeholder that fi_getinfo() returns as source address? An endpoint gets its address
 * when it is enabled.
 */
static bool is_unmade(const struct wfi_addr *addr)
{
	struct wfi_addr unmade;

	wfi_addr_unmade(&unmade);
	return memcmp(addr, &unmade, sizeof(unmade)) == 0;
}

static bool is_peer(const struct wfi_addr *addr)
{
	uint64_t id;

	return wfi_name_is(addr, sizeof(*addr)) || wfi_addr_check(addr, &id) == 0;
}

static const char *hinted_source(const struct fi_info *hints, uint64_t flags, struct addresses *a)
{
	struct wfi_addr source;
	bool is =
		wfi_address_read(hints->addr_format, hints->src_addr, hints->src_addrlen, &source);

	if (is && wfi_name_is(&source, sizeof(source)))
		a->source = source;
	else if (!(flags & FI_SOURCE) && (!is || !is_unmade(&source)))
		return "src_addr: it is no address of fi_getinfo()";
	return NULL;
}

static const char *hinted_addresses(const struct fi_info *hints, uint64_t flags,
				    struct addresses *a)
{
	const char *what = NULL;

	*a = (struct addresses){.format = hints ? hints->addr_format : FI_FORMAT_UNSPEC};
	wfi_addr_unmade(&a->source);
	if (a->format != FI_FORMAT_UNSPEC && a->format != FI_ADDR_STR)
		return "addr_format: there are FI_FORMAT_UNSPEC and FI_ADDR_STR";
	if (hints && hints->src_addr)
		what = hinted_source(hints, flags, a);
	if (what || !hints || !hints->dest_addr)
		return what;
	a->has_dest = wfi_address_read(a->format, hints->dest_addr, hints->dest_addrlen, &a->dest);
	return a->has_dest && is_peer(&a->dest) ? NULL
						: "dest_addr: it is no address of fi_getname()";
}

/* The node and the service are a source with FI_SOURCE, else a destination. Resolves names. */
static const char *named_address(const char *node, const char *service, uint64_t flags,
				 struct addresses *a)
{
	bool source = flags & FI_SOURCE, numeric = flags & FI_NUMERICHOST;
	struct wfi_addr *addr = source ? &a->source : &a->dest;

	if (!node && !service)
		return NULL;
	if (!node && !source)
		return "a service without a node to connect to";
	a->has_dest |= !source;
	if (!node || !wfi_text_is(node))
		return wfi_name_make(node, service, source, numeric, addr)
			       ? NULL
			       : "a node or service without an address";
	if (service || !wfi_text_read(node, WFI_TEXT_MAX, !numeric, addr) ||
	    (source ? !wfi_name_is(addr, sizeof(*addr)) : !is_peer(addr)))
		return "node: it is no address of the form fi_weft://..., or has a service";
	return NULL;
}

/* ------------------------------------------------------------------ checking the rest */

static const char *caps_lack(uint64_t caps)
{
	uint64_t more = caps & ~(uint64_t)WFI_CAPS;

	if (more & FI_HMEM)
		return "FI_HMEM: buffers must be in host memory, and hints without FI_HMEM";
	if (more)
		return fi_tostr(&more, FI_TYPE_CAPS);
	/* libfabric's FI_FENCE also waits for earlier messages; weft_ep_fence() does not. */
	if (caps & FI_FENCE && caps & (FI_MSG | FI_TAGGED))
		return "FI_FENCE together with FI_MSG or FI_TAGGED";
	if (caps & FI_RMA_EVENT && !(caps & WFI_CAPS_MEMORY))
		return "FI_RMA_EVENT without FI_RMA or FI_ATOMIC";
	if (caps & FI_SOURCE_ERR && !(caps & FI_SOURCE))
		return "FI_SOURCE_ERR without FI_SOURCE";
	return NULL;
}

static const char *lacks(const struct fi_info *hints, enum wfi_progress_choice progress)
{
	const char *what;

	if (!hints)
		return NULL;
	what = caps_lack(hints->caps);
	if (what)
		return what;
	if (hints->fabric_attr && hints->fabric_attr->name &&
	    strcmp(hints->fabric_attr->name, WFI_NAME) != 0)
		return "fabric_attr->name";
	if (hints->caps & (WFI_CAPS_MEMORY | FI_FENCE) && wants_virtual_addresses(hints))
		return "FI_MR_BASIC with FI_RMA, FI_ATOMIC or FI_FENCE";
	what = tx_lacks(hints->tx_attr);
	if (!what)
		what = rx_lacks(hints->rx_attr);
	if (!what)
		what = ep_lacks(hints->ep_attr, fenced_orders(hints));
	return what ? what : domain_lacks(hints->domain_attr, progress);
}

int wfi_info_key(const struct fi_info *info, const uint8_t **key)
{
	const struct fi_domain_attr *d = info->domain_attr;
	const struct fi_ep_attr *e = info->ep_attr;
	const uint8_t *of_domain = d && d->auth_key_size ? d->auth_key : NULL;
	const uint8_t *of_ep = e && e->auth_key_size ? e->auth_key : NULL;

	if ((d && is_no_key(d->auth_key, d->auth_key_size)) ||
	    (e && is_no_key(e->auth_key, e->auth_key_size)) ||
	    (of_domain && of_ep && memcmp(of_domain, of_ep, WFI_KEY_LEN) != 0)) {
		FI_WARN(&wfi_provider, FI_LOG_CORE,
			"auth_key is the job key: it has %d bytes, the same for domain and "
			"endpoint\n",
			WFI_KEY_LEN);
		return -FI_EINVAL;
	}
	*key = of_domain ? of_domain : of_ep;
	return 0;
}

/* ------------------------------------------------------------------ the offer */

/*
 * The requested capabilities, and those without cost. If none was requested, FI_SOURCE and
 * FI_DIRECTED_RECV are added. If no primary one was requested, all primary ones are added: with
 * FI_MR_BASIC all but remote memory, with FI_FENCE only remote memory. Messages without a requested
 * direction get FI_SEND and FI_RECV; remote memory without one gets all four of WFI_CAPS_RMA.
 */
static uint64_t caps_for(const struct fi_info *hints)
{
	uint64_t primary = WFI_CAPS_PRIMARY, caps = hints ? hints->caps : 0;

	if (wants_virtual_addresses(hints))
		primary &= ~(uint64_t)WFI_CAPS_MEMORY;
	if (caps & FI_FENCE)
		primary &= WFI_CAPS_MEMORY;
	if (caps == 0)
		caps = WFI_CAPS_FREE | FI_SOURCE | FI_DIRECTED_RECV;
	if (!(caps & WFI_CAPS_PRIMARY))
		caps |= primary;
	if (caps & (FI_MSG | FI_TAGGED) && !(caps & (FI_SEND | FI_RECV)))
		caps |= FI_SEND | FI_RECV;
	if (caps & WFI_CAPS_MEMORY && !(caps & WFI_CAPS_RMA))
		caps |= WFI_CAPS_RMA;
	return caps | WFI_CAPS_FREE;
}

static void fill_tx(struct fi_tx_attr *a, const struct fi_tx_attr *requested, uint64_t caps,
		    uint64_t orders)
{
	a->caps = caps & ~(uint64_t)(FI_RECV | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE |
				     FI_SOURCE_ERR | FI_REMOTE_READ | FI_REMOTE_WRITE |
				     FI_RMA_EVENT | WFI_CAPS_DOMAIN);
	/*
	 * By default a send completes when its buffer is free. The peer may not have the message
	 * yet, unless flags request a later completion.
	 */
	a->op_flags = requested && requested->op_flags ? requested->op_flags : FI_INJECT_COMPLETE;
	a->msg_order = WFI_ORDER | orders;
	a->comp_order = WFI_COMP_ORDER;
	a->inject_size = requested && requested->inject_size > WFI_INJECT_SIZE
				 ? requested->inject_size
				 : WFI_INJECT_SIZE;
	a->size = requested && requested->size ? requested->size : WFI_QUEUE_SIZE;
	a->iov_limit = WFI_IOV_MAX;
	a->rma_iov_limit = 1;
}

static void fill_rx(struct fi_rx_attr *a, const struct fi_rx_attr *requested, uint64_t caps,
		    uint64_t orders)
{
	a->caps = caps & ~(uint64_t)(FI_SEND | FI_READ | FI_WRITE | FI_FENCE | WFI_CAPS_DOMAIN);
	a->op_flags = requested ? requested->op_flags : 0;
	a->msg_order = WFI_ORDER | orders;
	a->comp_order = WFI_COMP_ORDER;
	a->size = requested && requested->size ? requested->size : WFI_QUEUE_SIZE;
	a->iov_limit = WFI_IOV_MAX;
}

static size_t contexts(size_t requested)
{
	return requested == FI_SHARED_CONTEXT ? requested : 1;
}

static void fill_ep(struct fi_ep_attr *a, const struct fi_ep_attr *requested, uint64_t orders)
{
	a->type = FI_EP_RDM;
	a->protocol = WFI_PROTOCOL;
	a->protocol_version = WFI_PROTOCOL_VERSION;
	a->max_msg_size = WFI_MAX_MSG_SIZE;
	a->max_order_raw_size = ordered(orders, ORDERS_RAW);
	a->max_order_war_size = ordered(orders, ORDERS_WAR);
	a->max_order_waw_size = ordered(orders, ORDERS_WAW);
	a->mem_tag_format = WFI_TAG_FORMAT;
	a->tx_ctx_cnt = requested ? contexts(requested->tx_ctx_cnt) : 1;
	a->rx_ctx_cnt = requested ? contexts(requested->rx_ctx_cnt) : 1;
}

/* Before libfabric 1.5 mr_mode was an enum, whose value 0 left the choice to the provider. */
static int mr_mode(uint32_t version, const struct fi_domain_attr *requested)
{
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		return WFI_MR_SCALABLE;
	return requested ? requested->mr_mode & (WFI_MR_MODE | WFI_MR_SCALABLE) : WFI_MR_MODE;
}

static int fill_domain(uint32_t version, struct fi_domain_attr *a,
		       const struct fi_domain_attr *requested, uint64_t caps,
		       enum wfi_progress_choice progress)
{
	a->threading = requested && requested->threading ? requested->threading : FI_THREAD_SAFE;
	a->control_progress = requested && requested->control_progress ? requested->control_progress
								       : FI_PROGRESS_MANUAL;
	a->data_progress = requested && requested->data_progress ? requested->data_progress
								 : FI_PROGRESS_MANUAL;
	if (progress == WFI_PROGRESS_AUTO)
		a->data_progress = FI_PROGRESS_AUTO;
	a->resource_mgmt = FI_RM_ENABLED;
	a->av_type = requested && requested->av_type ? requested->av_type : FI_AV_TABLE;
	if (caps & WFI_CAPS_MEMORY)
		a->mr_mode = mr_mode(version, requested);
	a->mr_key_size = sizeof(uint64_t);
	a->cq_data_size = WFI_CQ_DATA_SIZE;
	a->cq_cnt = 1 << 16;
	a->cntr_cnt = 1 << 16;
	a->ep_cnt = WFI_ENDPOINTS;
	a->tx_ctx_cnt = WFI_ENDPOINTS;
	a->rx_ctx_cnt = WFI_ENDPOINTS;
	a->max_ep_tx_ctx = 1;
	a->max_ep_rx_ctx = 1;
	a->max_ep_stx_ctx = WFI_ENDPOINTS;
	a->max_ep_srx_ctx = WFI_ENDPOINTS;
	a->mr_iov_limit = 1;
	a->mr_cnt = 1 << 16;
	a->caps = WFI_CAPS_DOMAIN;
	a->name = strdup(WFI_NAME);
	return a->name ? 0 : -FI_ENOMEM;
}

static int fill_address(uint32_t format, const struct wfi_addr *addr, void **out, size_t *length)
{
	char buf[WFI_TEXT_MAX];
	size_t n = wfi_address_write(format, addr, buf);

	*out = malloc(n);
	if (!*out)
		return -FI_ENOMEM;
	memcpy(*out, buf, n);
	*length = n;
	return 0;
}

static int fill_addresses(struct fi_info *info, const struct addresses *a)
{
	int rc;

	info->addr_format = a->format;
	rc = fill_address(a->format, &a->source, &info->src_addr, &info->src_addrlen);
	if (rc == 0 && a->has_dest)
		rc = fill_address(a->format, &a->dest, &info->dest_addr, &info->dest_addrlen);
	return rc;
}

/* Copy a key; fi_freeinfo() frees the copy. @return 0, also for a key of 0 bytes; or -FI_ENOMEM */
static int copy_key(const uint8_t *requested, size_t size, uint8_t **key, size_t *key_size)
{
	if (size == 0)
		return 0;
	*key = malloc(size);
	if (!*key)
		return -FI_ENOMEM;
	memcpy(*key, requested, size);
	*key_size = size;
	return 0;
}

static int fill_keys(struct fi_info *info, const struct fi_info *hints)
{
	const struct fi_domain_attr *d = hints ? hints->domain_attr : NULL;
	const struct fi_ep_attr *e = hints ? hints->ep_attr : NULL;
	int rc = 0;

	if (d)
		rc = copy_key(d->auth_key, d->auth_key_size, &info->domain_attr->auth_key,
			      &info->domain_attr->auth_key_size);
	if (e && rc == 0)
		rc = copy_key(e->auth_key, e->auth_key_size, &info->ep_attr->auth_key,
			      &info->ep_attr->auth_key_size);
	return rc;
}

static int offer(uint32_t version, const struct fi_info *hints, const struct addresses *addresses,
		 enum wfi_progress_choice progress, struct fi_info **out)
{
	uint64_t orders = fenced_orders(hints);
	struct fi_info *info = fi_allocinfo();
	int rc;

	if (!info)
		return -FI_ENOMEM;
	info->caps = caps_for(hints);
	fill_tx(info->tx_attr, hints ? hints->tx_attr : NULL, info->caps, orders);
	fill_rx(info->rx_attr, hints ? hints->rx_attr : NULL, info->caps, orders);
	fill_ep(info->ep_attr, hints ? hints->ep_attr : NULL, orders);
	rc = fill_domain(version, info->domain_attr, hints ? hints->domain_attr : NULL, info->caps,
			 progress);
	if (rc == 0)
		rc = fill_addresses(info, addresses);
	if (rc == 0)
		rc = fill_keys(info, hints);
	info->fabric_attr->name = strdup(WFI_NAME);
	info->fabric_attr->prov_version = wfi_provider.version;
	if (rc < 0 || !info->fabric_attr->name) {
		fi_freeinfo(info);
		return -FI_ENOMEM;
	}
	*out = info;
	return 0;
}

int wfi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info)
{
	enum wfi_progress_choice progress = wfi_options_progress();
	struct addresses addresses;
	const char *what;

	*info = NULL;
	if (flags & FI_PROV_ATTR_ONLY) {
		hints = NULL;
		node = service = NULL;
	}
	/* Hints are checked first: if they are refused, no name is resolved. */
	what = lacks(hints, progress);
	if (!what)
		what = hinted_addresses(hints, flags, &addresses);
	if (!what)
		what = named_address(node, service, flags, &addresses);
	if (what) {
		FI_INFO(&wfi_provider, FI_LOG_CORE, "not offered: %s\n", what);
		return -FI_ENODATA;
	}
	return offer(version, hints, &addresses, progress, info);
}
