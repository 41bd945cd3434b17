/* SPDX-License-Identifier: BSD-3-Clause */

#include "context.h"
#include "core/worker.h"
#include "mock/mock_priv.h"

/* ------------------------------------------------------------------ control */

void mock_reset(void)
{
	/* What a failed test has left is forgotten, so that only that test fails. */
	memset(&mock_net, 0, sizeof(mock_net));
	mock_net.rng = 88172645463325252ull;
	mock_net.next_id = 100;
	mock_now = 1000000000ull;
	mock_features = 0;
}

void mock_seed(uint64_t seed)
{
	mock_net.rng = seed * 0x9e3779b97f4a7c15ull + 1;
}

unsigned int mock_num_ifaces(void)
{
	return mock_net.num_ifaces;
}

unsigned int mock_num_lane_eps(void)
{
	return mock_net.num_lane_eps;
}

unsigned int mock_num_messages(void)
{
	return mock_net.num_msgs;
}

unsigned int mock_num_kept(void)
{
	return mock_net.num_kept;
}

struct weft_lane_iface *mock_iface(struct weft_worker *worker, unsigned int index)
{
	assert_true(index < worker->num_ifaces);
	return worker->ifaces[index];
}

void mock_set_order(enum mock_order order)
{
	mock_net.order = order;
}

void mock_set_burst(unsigned int n)
{
	mock_net.burst = n;
}

void mock_hold(struct weft_lane_iface *iface)
{
	*(iface != NULL ? &to_iface(iface)->held : &mock_net.held) = true;
}

void mock_release(struct weft_lane_iface *iface)
{
	*(iface != NULL ? &to_iface(iface)->held : &mock_net.held) = false;
}

void mock_set_delay(struct weft_lane_iface *iface, uint64_t ns)
{
	*(iface != NULL ? &to_iface(iface)->delay : &mock_net.delay) = ns;
}

void mock_set_filter(enum mock_verdict (*filter)(const struct mock_msg_view *msg, void *arg),
		     void *arg)
{
	mock_net.filter = filter;
	mock_net.filter_arg = arg;
}

void mock_set_eagain(struct weft_lane_iface *iface, unsigned int permille)
{
	*(iface != NULL ? &to_iface(iface)->eagain : &mock_net.eagain) = permille;
}

void mock_set_window(unsigned int n)
{
	mock_net.window = n;
}

void mock_set_slow_hardware(bool on)
{
	mock_net.slow_hardware = on;
}

void mock_set_no_keep(bool on)
{
	mock_net.no_keep = on;
}

void mock_refuse(struct weft_lane_iface *from, struct weft_lane_iface *to, int status,
		 const char *text)
{
	struct refusal *r;

	assert_true(mock_net.num_refusals < 16);
	r = &mock_net.refusals[mock_net.num_refusals++];
	*r = (struct refusal){from != NULL ? to_iface(from) : NULL, to ? to_iface(to) : NULL,
			      status, ""};
	snprintf(r->text, sizeof(r->text), "%s", text ? text : "");
}

void mock_allow_all(void)
{
	mock_net.num_refusals = 0;
}

static void kill_end(struct mock_lane_ep *lane_ep, int status, const char *text)
{
	lane_ep->down_due = true;
	lane_ep->down_status = status;
	lane_ep->deadline = UINT64_MAX;
	snprintf(lane_ep->text, sizeof(lane_ep->text), "%s", text);
	mock_purge_to(lane_ep, status);
}

void mock_kill(struct weft_lane_iface *a, struct weft_lane_iface *b, int status, const char *text)
{
	struct mock_iface *f;
	struct mock_lane_ep *lane_ep;

	LIST_FOREACH(f, &mock_net.ifaces, entry) {
		LIST_FOREACH(lane_ep, &f->lane_eps, entry) {
			if (!lane_ep->peer || lane_ep->peer->unknown_sender || lane_ep->down_due)
				continue;
			if (!((!a || a == &f->base) && (!b || b == lane_ep->peer->base.iface)))
				continue;
			kill_end(lane_ep->peer, status, text);
			kill_end(lane_ep, status, text);
			lane_ep->peer->peer = NULL;
			lane_ep->peer = NULL;
		}
	}
}

void mock_mute(struct weft_lane_iface *iface)
{
	struct mock_iface *f = to_iface(iface);
	struct mock_lane_ep *lane_ep;

	f->muted = true;
	LIST_FOREACH(lane_ep, &f->lane_eps, entry) {
		if (!lane_ep->peer || lane_ep->peer->unknown_sender)
			continue;
		lane_ep->deadline = mock_now + f->peer_timeout;
		lane_ep->peer->deadline = mock_now + iface_of(lane_ep->peer)->peer_timeout;
		snprintf(lane_ep->text, sizeof(lane_ep->text), "the peer gave no sign of life");
		snprintf(lane_ep->peer->text, sizeof(lane_ep->text),
			 "the peer gave no sign of life");
	}
}

/* ------------------------------------------------------------------ unknown senders */

void mock_inject(struct weft_lane_ep *lane_ep, uint8_t am_id, const void *data, size_t length)
{
	mock_enqueue(NULL, to_lane_ep(lane_ep), am_id, data, length, NULL);
}

struct weft_lane_ep *mock_unknown(struct weft_lane_iface *to)
{
	struct mock_iface *f = to_iface(to);
	struct mock_lane_ep *lane_ep, *passive;

	mock_net.unknown_iface.base.ops = &mock_ops;
	lane_ep = mock_lane_ep_new(&mock_net.unknown_iface.base, NULL);
	lane_ep->unknown_sender = true;
	passive = mock_lane_ep_new(to, NULL);
	passive->base.passive = true;
	passive->up_due = true;
	passive->peer = lane_ep;
	lane_ep->peer = passive;
	LIST_INSERT_HEAD(&f->lane_eps, passive, entry);
	return &lane_ep->base;
}

void mock_unknown_at(struct weft_lane_ep *base, uint64_t address)
{
	to_lane_ep(base)->at = address;
}

void mock_unknown_send(struct weft_lane_ep *base, uint8_t am_id, const void *data, size_t length)
{
	struct mock_lane_ep *lane_ep = to_lane_ep(base);

	if (lane_ep->peer)
		mock_enqueue(NULL, lane_ep->peer, am_id, data, length, NULL);
}

void mock_unknown_close(struct weft_lane_ep *base)
{
	struct mock_lane_ep *lane_ep = to_lane_ep(base);

	if (lane_ep->peer) {
		lane_ep->peer->gone_due = true;
		lane_ep->peer->peer = NULL;
	}
	mock_net.num_lane_eps--;
	free(lane_ep);
}

size_t mock_unknown_last(struct weft_lane_ep *base, uint8_t *am_id, const void **data)
{
	struct mock_lane_ep *lane_ep = to_lane_ep(base);

	if (am_id)
		*am_id = lane_ep->last_id;
	if (data)
		*data = lane_ep->last;
	return lane_ep->last_len;
}

unsigned int mock_unknown_received(struct weft_lane_ep *base)
{
	return to_lane_ep(base)->received;
}

/* ------------------------------------------------------------------ helpers */

struct weft_context *mock_context_with(const struct weft_lane_driver *const *drivers,
				       const char *setting, va_list ap)
{
	struct weft_context_params p = WEFT_INIT(struct weft_context_params, .name = "test");
	struct weft_config *config;
	struct weft_context *ctx;
	char name[64];
	size_t n;

	assert_int_equal(weft_config_read(&config), 0);
	for (; setting; setting = va_arg(ap, const char *)) {
		n = strcspn(setting, "=");
		assert_true(n < sizeof(name) && setting[n] == '=');
		memcpy(name, setting, n);
		name[n] = '\0';
		assert_int_equal(weft_config_modify(config, name, setting + n + 1), 0);
	}
	p.config = config;
	p.features = mock_features;
	assert_int_equal(weft_context_create_in(&p, &mock_platform, drivers, &ctx), 0);
	weft_config_release(config);
	return ctx;
}

struct weft_context *mock_context(const char *setting, ...)
{
	struct weft_context *ctx;
	va_list ap;

	va_start(ap, setting);
	ctx = mock_context_with(mock_drivers, setting, ap);
	va_end(ap);
	return ctx;
}

struct weft_worker *mock_worker(struct weft_context *ctx, const char *lanes)
{
	struct weft_worker_params p = WEFT_INIT(struct weft_worker_params, .lanes = lanes);
	struct weft_worker *w;

	assert_int_equal(weft_worker_create(ctx, &p, &w), 0);
	return w;
}

struct weft_ep *mock_connect(struct weft_worker *from, struct weft_worker *to)
{
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params, .err_cb = mock_err_cb);
	struct weft_ep *ep;
	void *address;

	assert_int_equal(weft_worker_get_address(to, &address, &p.address_length), 0);
	p.address = address;
	assert_int_equal(weft_ep_create(from, &p, &ep), 0);
	weft_worker_release_address(to, address);
	return ep;
}

void mock_run(unsigned int rounds, uint64_t step_ns, struct weft_worker *worker, ...)
{
	struct weft_worker *w;
	va_list ap;

	while (rounds-- > 0) {
		va_start(ap, worker);
		for (w = worker; w; w = va_arg(ap, struct weft_worker *))
			weft_worker_progress(w);
		va_end(ap);
		mock_now += step_ns;
	}
}

void mock_err_cb(struct weft_ep *ep, int status, const char *why, void *arg)
{
	struct mock_err *err = arg;

	(void)ep;
	if (!err)
		return;
	err->calls++;
	err->status = status;
	snprintf(err->why, sizeof(err->why), "%s", why);
}
