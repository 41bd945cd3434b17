/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's flush: that of all its endpoints. */

#include <errno.h>
#include <stdlib.h>

#include "msg/msg.h"

struct worker_flush {
	struct weft_request *req;
	unsigned int left; /* endpoints that have not answered, + 1 while asking */
	int status;
};

static void ep_flushed(void *arg, int status)
{
	struct worker_flush *f = arg;
	struct weft_request *req = f->req;

	if (status < 0 && f->status == 0)
		f->status = status;
	if (--f->left > 0)
		return;
	status = f->status;
	free(f);
	weft_msg_request_done(req, status);
}

static int worker_flush(struct weft_worker *w, const struct weft_op_params *params,
			struct weft_request **out)
{
	struct worker_flush *f = calloc(1, sizeof(*f));
	struct weft_request *req;
	struct weft_ep *ep;
	int rc;

	req = f ? weft_msg_request_new(w, "worker flush", params, out != NULL) : NULL;
	if (!req) {
		free(f);
		return -ENOMEM;
	}
	f->req = req;
	f->left = 1;
	LIST_FOREACH(ep, &w->eps, entry) {
		/*
		 * What has failed was told by its error callback; what closes is flushed by that.
		 */
		if (ep->state == WEFT_EP_FAILED || ep->state == WEFT_EP_CLOSING)
			continue;
		f->left++;
		rc = weft_msg_ep_flush(ep, ep_flushed, f);
		if (rc == 0)
			continue;
		f->left--;
		if (rc < 0 && f->status == 0)
			f->status = rc;
	}
	if (--f->left > 0) {
		if (out)
			*out = req;
		return WEFT_INPROGRESS;
	}
	rc = weft_msg_request_at_once(req, f->status);
	free(f);
	if (rc == WEFT_INPROGRESS && out)
		*out = req;
	return rc;
}

int weft_worker_flush(struct weft_worker *w, const struct weft_op_params *params,
		      struct weft_request **req)
{
	int rc;

	if (req)
		*req = NULL;
	if (!w || weft_op_params_check(params))
		return -EINVAL;
	if (weft_dt_calls)
		return weft_dt_refuse("weft_worker_flush");
	weft_worker_lock(w);
	rc = worker_flush(w, params, req);
	weft_worker_unlock(w);
	return rc;
}
