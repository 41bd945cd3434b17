/* SPDX-License-Identifier: BSD-3-Clause */

#include "provider/op.h"

#include <stdlib.h>
#include <string.h>

#include "provider/completion.h"
#include "provider/info.h"
#include "provider/message.h"
#include "provider/name.h"
#include "provider/process.h"
#include "provider/rma.h"

#define MIN_MULTI_RECV 4096
/*
 * Maximum times that fi_close() waits for an endpoint's operations to end. After DELIVER_MS it
 * withdraws messages that no receive has matched. Then it waits for CLOSE_MS, unless this is the
 * last enabled endpoint of the process.
 */
#define DELIVER_MS 1000
#define CLOSE_MS 4000

/* A shared transmit context. Sends of all endpoints share the worker anyway, so it has no state. */
struct wfi_stx {
	struct fid_stx stx;
	struct wfi_domain *domain;
	unsigned int refs; /* endpoints that are bound to it */
};

static struct wfi_ep *ep_of_fid(struct fid *fid)
{
	return container_of(fid, struct wfi_ep, ep.fid);
}

/* ------------------------------------------------------------------ binding */

static int bind_cq(struct wfi_ep *ep, struct wfi_cq *cq, uint64_t flags)
{
	bool selective = flags & FI_SELECTIVE_COMPLETION;

	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION) ||
	    !(flags & (FI_TRANSMIT | FI_RECV)))
		return -FI_EBADFLAGS;
	if (cq->domain != ep->domain || (flags & FI_TRANSMIT && ep->tx.cq) ||
	    (flags & FI_RECV && ep->rx.cq))
		return -FI_EINVAL;
	if (flags & FI_TRANSMIT) {
		ep->tx.cq = cq;
		ep->tx.selective = selective;
		cq->refs++;
	}
	if (flags & FI_RECV) {
		ep->rx.cq = cq;
		ep->rx.selective = selective;
		cq->refs++;
	}
	return 0;
}

static int bind_cntr(struct wfi_ep *ep, struct wfi_cntr *cntr, uint64_t flags)
{
	const struct {
		uint64_t flag;
		struct wfi_cntr **place;
	} kinds[] = {
		{FI_SEND, &ep->sends},
		{FI_RECV, &ep->receives},
		{FI_READ, &ep->reads},
		{FI_WRITE, &ep->writes},
		{FI_REMOTE_READ, &ep->remote_reads},
		{FI_REMOTE_WRITE, &ep->remote_writes},
	};
	const size_t n = sizeof(kinds) / sizeof(kinds[0]);

	if (flags & ~(FI_SEND | FI_RECV | WFI_CAPS_RMA) || flags == 0)
		return -FI_ENOSYS;
	if (cntr->domain != ep->domain ||
	    (flags & (FI_REMOTE_READ | FI_REMOTE_WRITE) && !ep->events))
		return -FI_EINVAL;
	for (size_t i = 0; i < n; i++)
		if (flags & kinds[i].flag && *kinds[i].place)
			return -FI_EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (!(flags & kinds[i].flag))
			continue;
		*kinds[i].place = cntr;
		cntr->refs++;
	}
	return 0;
}

static int bind_av(struct wfi_ep *ep, struct wfi_av *av)
{
	if (ep->av || av->domain != ep->domain)
		return -FI_EINVAL;
	ep->av = av;
	av->refs++;
	return 0;
}

static int bind_stx(struct wfi_ep *ep, struct wfi_stx *stx)
{
	if (!ep->shared_tx || ep->stx || stx->domain != ep->domain)
		return -FI_EINVAL;
	ep->stx = stx;
	stx->refs++;
	return 0;
}

static int bind_srx(struct wfi_ep *ep, struct wfi_ep *srx)
{
	if (!ep->shared_rx || ep->srx || srx->domain != ep->domain)
		return -FI_EINVAL;
	ep->srx = srx;
	srx->users++;
	return 0;
}

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct wfi_ep *ep = ep_of_fid(fid);
	int rc;

	wfi_lock();
	if (ep->enabled) {
		rc = -FI_EOPBADSTATE;
	} else if (bfid->fclass == FI_CLASS_CQ) {
		rc = bind_cq(ep, container_of(bfid, struct wfi_cq, cq.fid), flags);
	} else if (bfid->fclass == FI_CLASS_CNTR) {
		rc = bind_cntr(ep, container_of(bfid, struct wfi_cntr, cntr.fid), flags);
	} else if (bfid->fclass == FI_CLASS_AV) {
		rc = bind_av(ep, container_of(bfid, struct wfi_av, av.fid));
	} else if (bfid->fclass == FI_CLASS_STX_CTX) {
		rc = bind_stx(ep, container_of(bfid, struct wfi_stx, stx.fid));
	} else if (bfid->fclass == FI_CLASS_SRX_CTX) {
		rc = bind_srx(ep, ep_of_fid(bfid));
	} else if (bfid->fclass == FI_CLASS_EQ && !ep->eq) {
		ep->eq = container_of(bfid, struct wfi_eq, eq.fid);
		ep->eq->refs++;
		rc = 0;
	} else {
		rc = -FI_EINVAL;
	}
	wfi_unlock();
	return rc;
}

static void unbind(struct wfi_ep *ep)
{
	struct wfi_cntr *cntrs[] = {ep->sends,  ep->receives,     ep->reads,
				    ep->writes, ep->remote_reads, ep->remote_writes};

	for (size_t i = 0; i < sizeof(cntrs) / sizeof(cntrs[0]); i++)
		if (cntrs[i])
			cntrs[i]->refs--;
	if (ep->tx.cq)
		ep->tx.cq->refs--;
	if (ep->rx.cq)
		ep->rx.cq->refs--;
	if (ep->av)
		ep->av->refs--;
	if (ep->eq)
		ep->eq->refs--;
	if (ep->stx)
		ep->stx->refs--;
	if (ep->srx)
		ep->srx->users--;
}

/* ------------------------------------------------------------------ receives */

/* Drop messages that have arrived and are not received; their sends succeed. */
static void drop_messages(const struct wfi_ep *ep)
{
	struct weft_op_params params = {.size = sizeof(params)};
	struct weft_message *message;

	for (unsigned int i = 0; i < 2; i++) {
		params.channel = (uint16_t)(ep->number * 2 + i);
		while (weft_tag_probe(wfi.worker, NULL, 0, 0, &params, &message, NULL) == 0)
			weft_tag_msg_drop(wfi.worker, message);
	}
}

/* End the operations of an endpoint or shared context that closes. Locked. */
static void end_operations(struct wfi_ep *ep)
{
	ep->enabled = false;
	wfi_multi_close(ep);
	wfi_ops_close(ep);
	wfi_claims_drop(ep);
	drop_messages(ep);
}

/* Capabilities of receives, which all enabled endpoints of a shared context have in common. */
#define RECEIVE_CAPS                                                                   \
	(FI_MSG | FI_TAGGED | FI_RECV | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE | \
	 FI_SOURCE_ERR)

/*
 * A shared receive context has a number, as endpoints have. Messages to its endpoints go to that
 * number, so a message does not show to which of them it was sent. Completions therefore have one
 * queue, one counter and one address vector: those of the endpoint that is enabled first.
 */
static int srx_join(struct wfi_ep *srx, const struct wfi_ep *ep)
{
	int rc;

	if (srx->enabled_users > 0) {
		if (srx->rx.cq != ep->rx.cq || srx->rx.selective != ep->rx.selective ||
		    srx->receives != ep->receives || srx->av != ep->av ||
		    srx->caps != (ep->caps & RECEIVE_CAPS))
			return -FI_EINVAL;
		srx->enabled_users++;
		return 0;
	}
	rc = wfi_ep_number_take(srx);
	if (rc < 0)
		return rc;
	srx->rx.cq = ep->rx.cq;
	srx->rx.selective = ep->rx.selective;
	srx->receives = ep->receives;
	srx->av = ep->av;
	srx->caps = ep->caps & RECEIVE_CAPS;
	srx->directed = ep->directed;
	srx->source = ep->source;
	srx->source_err = ep->source_err;
	srx->enabled_users = 1;
	srx->enabled = true;
	return 0;
}

/*
 * An endpoint of the shared context closes. Completions go to a queue of the endpoints, so with the
 * last endpoint the context's receives end without a completion.
 */
static void srx_leave(struct wfi_ep *srx)
{
	if (--srx->enabled_users > 0)
		return;
	end_operations(srx);
	wfi_ep_number_put(srx);
}

/* ------------------------------------------------------------------ enabling, closing */

/* Prepare for messages and writes of peers. There is a worker. @return 0 or a negative error */
static int start_receiving(struct wfi_ep *ep)
{
	uint16_t receiver = ep->number;
	int rc;

	rc = wfi_rma_listen(ep);
	if (rc == 0 && ep->source_err)
		rc = wfi_senders_listen();
	if (rc == 0 && ep->srx) {
		rc = srx_join(ep->srx, ep);
		receiver = ep->srx->number;
	}
	if (rc < 0)
		return rc;
	if (ep->srx)
		ep->caps &= ~(uint64_t)FI_RECV;
	ep->source_channel = wfi_source_channel(ep->number, receiver);
	return 0;
}

static void put_worker(void)
{
	if (wfi.endpoints == 1) /* remote keys must be destroyed before their worker */
		wfi_peers_forget();
	wfi_worker_put();
}

static int own_address(const struct wfi_ep *ep, struct wfi_addr *own)
{
	int rc = wfi_addr_own(own);

	if (rc < 0)
		return rc;
	own->domain = ep->domain->number;
	own->number = (uint8_t)ep->number;
	own->receiver = (uint8_t)(ep->srx ? ep->srx->number : ep->number);
	if (ep->source_err)
		own->length |= WFI_ADDR_INTRODUCE;
	return 0;
}

/* If the source address has a port, send the endpoint's address to clients at that port. */
static int start_serving(struct wfi_ep *ep)
{
	struct wfi_addr own;
	int rc;

	if (!ep->server)
		return 0;
	rc = own_address(ep, &own);
	return rc < 0 ? rc : wfi_name_serve(ep->server, &own);
}

static int ep_enable(struct wfi_ep *ep)
{
	int rc;

	if (ep->enabled || ep->closing)
		return ep->closing ? -FI_EBUSY : 0;
	if (!ep->av)
		return -FI_ENOAV;
	if ((ep->shared_tx && !ep->stx) || (ep->shared_rx && !ep->srx))
		return -FI_EINVAL;
	if ((ep->caps & FI_SEND && !ep->tx.cq && !ep->sends) ||
	    (ep->caps & FI_RECV && !ep->rx.cq && !ep->receives))
		return -FI_ENOCQ;
	rc = wfi_ep_number_take(ep);
	if (rc < 0)
		return rc;
	rc = wfi_worker_get();
	if (rc == 0) {
		rc = start_receiving(ep);
		if (rc == 0 && start_serving(ep) < 0) {
			FI_WARN(&wfi_provider, FI_LOG_EP_CTRL,
				"the endpoint does not listen at its source address: it has no "
				"address, or no thread can be started (ulimit -u)\n");
			wfi_name_close(ep->server); /* clients would wait for an answer */
			ep->server = NULL;
		}
		if (rc < 0)
			put_worker();
	}
	if (rc < 0)
		wfi_ep_number_put(ep);
	ep->enabled = rc == 0;
	return rc;
}

static unsigned int busy(const struct wfi_ep *ep)
{
	return ep->busy + (ep->srx ? ep->srx->busy : 0);
}

/*
 * Wait at most @p ms for operations to end, since the application may use their buffers afterwards.
 * @return false: Weft still uses buffers
 */
static bool wait_for_operations(const struct wfi_ep *ep, int ms)
{
	struct wfi_deadline deadline = wfi_deadline(ms);

	while (busy(ep) != 0) {
		if (wfi_deadline_left(&deadline) == 0)
			return false;
		weft_worker_progress(wfi.worker);
		wfi_yield();
	}
	return true;
}

/* Disable the endpoint. @return 0; -FI_EBUSY: operations still use buffers, to be called again */
static int stop(struct wfi_ep *ep)
{
	bool ended;

	if (ep->enabled) {
		end_operations(ep);
		if (ep->srx)
			srx_leave(ep->srx);
		ep->closing = true;
	}
	if (!ep->closing)
		return 0;
	ended = wait_for_operations(ep, DELIVER_MS);
	if (!ended) {
		wfi_ops_withdraw(ep);
		/* All operations of the last endpoint end with the worker. */
		ended = wfi.endpoints == 1 || wait_for_operations(ep, CLOSE_MS);
	}
	if (!ended && wfi.endpoints > 1) {
		FI_WARN(&wfi_provider, FI_LOG_EP_CTRL,
			"the endpoint is not closed: %u operations with peers that do not respond "
			"still use their buffers; close it again later\n",
			busy(ep));
		return -FI_EBUSY;
	}
	ep->closing = false;
	wfi_ep_number_put(ep);
	put_worker();
	return 0;
}

static int ep_close(struct fid *fid)
{
	struct wfi_ep *ep = ep_of_fid(fid);
	int rc;

	if (wfi_domain_is_parents(ep->domain))
		return 0;
	wfi_lock();
	wfi_name_close(ep->server);
	ep->server = NULL;
	rc = stop(ep);
	if (rc == 0) {
		unbind(ep);
		ep->domain->refs--;
	}
	wfi_unlock();
	if (rc == 0)
		free(ep);
	return rc;
}

static int op_flags(struct wfi_ep *ep, uint64_t *flags, bool set)
{
	struct wfi_half *half = *flags & FI_TRANSMIT ? &ep->tx : &ep->rx;
	bool both = (*flags & (FI_TRANSMIT | FI_RECV)) == (FI_TRANSMIT | FI_RECV);

	if (!(*flags & (FI_TRANSMIT | FI_RECV)) || both)
		return -FI_EINVAL;
	if (set)
		half->op_flags = *flags & ~(FI_TRANSMIT | FI_RECV);
	else
		*flags = half->op_flags;
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct wfi_ep *ep = ep_of_fid(fid);
	int rc;

	wfi_lock();
	switch (command) {
	case FI_ENABLE:
		rc = ep_enable(ep);
		break;
	case FI_GETOPSFLAG:
		rc = op_flags(ep, arg, false);
		break;
	case FI_SETOPSFLAG:
		rc = op_flags(ep, arg, true);
		break;
	default:
		rc = -FI_ENOSYS;
	}
	wfi_unlock();
	return rc;
}

/* ------------------------------------------------------------------ address */

static int ep_getname(fid_t fid, void *addr, size_t *length)
{
	struct wfi_ep *ep = ep_of_fid(fid);
	size_t room = *length;
	struct wfi_addr own;
	char out[WFI_TEXT_MAX];
	int rc;

	if (fid->fclass != FI_CLASS_EP)
		return -FI_EINVAL;
	wfi_lock();
	rc = ep->enabled ? own_address(ep, &own) : -FI_EOPBADSTATE;
	wfi_unlock();
	if (rc < 0)
		return rc;
	*length = wfi_address_write(ep->domain->addr_format, &own, out);
	memcpy(addr, out, room < *length ? room : *length);
	return room < *length ? -FI_ETOOSMALL : 0;
}

static int no_setname(fid_t fid, void *addr, size_t length)
{
	return -FI_ENOSYS;
}

static int no_getpeer(struct fid_ep *ep, void *addr, size_t *length)
{
	return -FI_ENOSYS;
}

static int no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t length)
{
	return -FI_ENOSYS;
}

static int no_accept(struct fid_ep *ep, const void *param, size_t length)
{
	return -FI_ENOSYS;
}

static int no_shutdown(struct fid_ep *ep, uint64_t flags)
{
	return -FI_ENOSYS;
}

static struct fi_ops_cm cm_ops = {
	/* The size ends before join: no multicast. listen and reject are for passive endpoints. */
	.size = offsetof(struct fi_ops_cm, join),
	.setname = no_setname,
	.getname = ep_getname,
	.getpeer = no_getpeer,
	.connect = no_connect,
	.accept = no_accept,
	.shutdown = no_shutdown,
};

/* ------------------------------------------------------------------ options */

static ssize_t ep_cancel(fid_t fid, void *context)
{
	int rc;

	wfi_lock();
	rc = wfi_ops_cancel(ep_of_fid(fid), context);
	wfi_unlock();
	return rc;
}

static int ep_getopt(fid_t fid, int level, int name, void *value, size_t *length)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (*length < sizeof(size_t))
		return -FI_ETOOSMALL;
	*(size_t *)value = ep_of_fid(fid)->min_multi_recv;
	*length = sizeof(size_t);
	return 0;
}

static int ep_setopt(fid_t fid, int level, int name, const void *value, size_t length)
{
	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (length != sizeof(size_t))
		return -FI_EINVAL;
	ep_of_fid(fid)->min_multi_recv = *(const size_t *)value;
	return 0;
}

static int no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **tx_ep,
		     void *context)
{
	return -FI_ENOSYS;
}

static int no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		     void *context)
{
	return -FI_ENOSYS;
}

static ssize_t no_size_left(struct fid_ep *ep)
{
	return -FI_ENOSYS;
}

static struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = no_tx_ctx,
	.rx_ctx = no_rx_ctx,
	.rx_size_left = no_size_left,
	.tx_size_left = no_size_left,
};

static struct fi_ops ep_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = wfi_no_ops_open,
};

/* ------------------------------------------------------------------ shared contexts */

static int stx_close(struct fid *fid)
{
	struct wfi_stx *stx = container_of(fid, struct wfi_stx, stx.fid);

	if (wfi_domain_is_parents(stx->domain))
		return 0;
	wfi_lock();
	if (stx->refs > 0) {
		wfi_unlock();
		return -FI_EBUSY;
	}
	stx->domain->refs--;
	wfi_unlock();
	free(stx);
	return 0;
}

static int srx_close(struct fid *fid)
{
	struct wfi_ep *srx = ep_of_fid(fid);

	if (wfi_domain_is_parents(srx->domain))
		return 0;
	wfi_lock();
	if (srx->users > 0) {
		wfi_unlock();
		return -FI_EBUSY;
	}
	srx->domain->refs--;
	wfi_unlock();
	free(srx);
	return 0;
}

/* fi_enable() does nothing: a shared context is usable once one of its endpoints is enabled. */
static int srx_control(struct fid *fid, int command, void *arg)
{
	return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static struct fi_ops stx_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = stx_close,
	.bind = wfi_no_bind,
	.control = wfi_no_control,
	.ops_open = wfi_no_ops_open,
};

static struct fi_ops srx_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = srx_close,
	.bind = wfi_no_bind,
	.control = srx_control,
	.ops_open = wfi_no_ops_open,
};

int wfi_stx_open(struct fid_domain *fid, struct fi_tx_attr *attr, struct fid_stx **out,
		 void *context)
{
	struct wfi_domain *domain = container_of(fid, struct wfi_domain, domain);
	struct wfi_stx *stx = calloc(1, sizeof(*stx));

	if (!stx)
		return -FI_ENOMEM;
	stx->domain = domain;
	stx->stx.fid.fclass = FI_CLASS_STX_CTX;
	stx->stx.fid.context = context;
	stx->stx.fid.ops = &stx_fi_ops;
	stx->stx.ops = &ep_ops;
	wfi_lock();
	domain->refs++;
	wfi_unlock();
	*out = &stx->stx;
	return 0;
}

/* ------------------------------------------------------------------ opening */

/* @return 0, or -FI_EINVAL: the key is malformed, or is not that of the process */
static int check_key(const struct fi_info *info)
{
	const uint8_t *key;
	int rc = wfi_info_key(info, &key);

	if (rc < 0)
		return rc;
	wfi_lock();
	if (!wfi_process_has_key(key))
		rc = -FI_EINVAL;
	wfi_unlock();
	return rc;
}

/* Create an endpoint or a shared receive context, without attributes. @return NULL: no memory */
static struct wfi_ep *ep_new(struct wfi_domain *domain, size_t fclass, struct fi_ops *ops,
			     void *context)
{
	struct wfi_ep *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return NULL;
	ep->domain = domain;
	ep->min_multi_recv = MIN_MULTI_RECV;
	LIST_INIT(&ep->claims);
	STAILQ_INIT(&ep->multi);
	ep->ep.fid.fclass = fclass;
	ep->ep.fid.context = context;
	ep->ep.fid.ops = ops;
	ep->ep.ops = &ep_ops;
	ep->ep.cm = &cm_ops;
	/* All tables, whatever the capabilities: libfabric calls them without a check for NULL. */
	ep->ep.tagged = &wfi_tagged_ops;
	ep->ep.msg = &wfi_msg_ops;
	ep->ep.rma = &wfi_rma_ops;
	ep->ep.atomic = &wfi_atomic_ops;
	wfi_lock();
	domain->refs++;
	wfi_unlock();
	return ep;
}

int wfi_srx_open(struct fid_domain *fid, struct fi_rx_attr *attr, struct fid_ep **out,
		 void *context)
{
	struct wfi_domain *domain = container_of(fid, struct wfi_domain, domain);
	struct wfi_ep *srx = ep_new(domain, FI_CLASS_SRX_CTX, &srx_fi_ops, context);

	if (!srx)
		return -FI_ENOMEM;
	srx->caps = FI_MSG | FI_TAGGED | FI_RECV; /* until an endpoint is enabled (srx_join()) */
	srx->rx.op_flags = attr ? attr->op_flags : 0;
	*out = &srx->ep;
	return 0;
}

/* Reserve the port of a source address. @return 0, also without a port; or a negative error */
static int listen_at_source(const struct fi_info *info, struct wfi_name_server **server)
{
	struct wfi_addr name;

	if (!info->src_addr ||
	    !wfi_address_read(info->addr_format, info->src_addr, info->src_addrlen, &name) ||
	    !wfi_name_is(&name, sizeof(name)))
		return 0;
	return wfi_name_listen(&name, wfi.seal_key, server);
}

int wfi_ep_open(struct fid_domain *fid, struct fi_info *info, struct fid_ep **out, void *context)
{
	struct wfi_domain *domain = container_of(fid, struct wfi_domain, domain);
	struct wfi_name_server *server = NULL;
	struct wfi_ep *ep;
	int rc;

	if (!info || !info->ep_attr || info->ep_attr->type != FI_EP_RDM)
		return -FI_EINVAL;
	rc = check_key(info);
	if (rc == 0)
		rc = listen_at_source(info, &server);
	if (rc < 0)
		return rc;
	ep = ep_new(domain, FI_CLASS_EP, &ep_fi_ops, context);
	if (!ep) {
		wfi_name_close(server);
		return -FI_ENOMEM;
	}
	ep->server = server;
	ep->shared_tx = info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT;
	ep->shared_rx = info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
	ep->caps = info->caps;
	ep->directed = info->caps & FI_DIRECTED_RECV;
	ep->source = info->caps & FI_SOURCE;
	ep->source_err = info->caps & FI_SOURCE_ERR;
	ep->events = info->caps & FI_RMA_EVENT;
	ep->ordered = info->tx_attr && info->tx_attr->msg_order & WFI_ORDER_FENCED;
	ep->inject_size = info->tx_attr && info->tx_attr->inject_size > WFI_INJECT_SIZE
				  ? info->tx_attr->inject_size
				  : WFI_INJECT_SIZE;
	if (ep->inject_size > WFI_INJECT_MAX)
		ep->inject_size = WFI_INJECT_MAX;
	ep->tx.op_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
	ep->rx.op_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
	*out = &ep->ep;
	return 0;
}
