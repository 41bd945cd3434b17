/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "lane_host.h"
#include "common/pattern.h"
#include "engine/engine.h"
#include "sim_priv.h"

#define KEPT_MAX 4096

struct lane_host {
	struct sim_host host; /* first */
	struct sim_port *port;
	struct weft_config *config;
	struct weft_lane_iface *iface;
	struct lane_end *ends;
	uint8_t got[LANE_MAX_NUMBERS];
	unsigned int received, wrong, twice;
	unsigned int zcopies;
	int zcopy_status;
	unsigned int keep, kept;
	void *descs[KEPT_MAX];
	struct sim_rng rng;
};

/* ---- callbacks ------------------------------------------------------------------------------ */

static struct lane_end *end_of(struct lane_host *h, struct weft_lane_ep *lane_ep)
{
	struct lane_end *e;

	for (e = h->ends; e; e = e->next)
		if (e->lane_ep == lane_ep)
			return e;
	return NULL;
}

static struct lane_end *new_end(struct lane_host *h, struct weft_lane_ep *lane_ep)
{
	struct lane_end *e = sim_alloc(sizeof(*e)), **at;

	e->host = h;
	e->lane_ep = lane_ep;
	for (at = &h->ends; *at; at = &(*at)->next)
		;
	*at = e;
	return e;
}

static int recv_message(void *arg, struct weft_lane_ep *lane_ep, uint8_t am_id, const void *data,
			size_t length, void *desc)
{
	struct lane_host *h = arg;
	const uint8_t *p = data;
	uint32_t head[2];

	h->received++;
	if (am_id != LANE_AM || length < LANE_HDR || !end_of(h, lane_ep)) {
		h->wrong++;
		return 0;
	}
	memcpy(head, p, LANE_HDR);
	if (head[0] >= LANE_MAX_NUMBERS || head[1] != length - LANE_HDR ||
	    pattern_check(head[0], 0, p + LANE_HDR, head[1]) != head[1]) {
		h->wrong++;
		return 0;
	}
	if (h->got[head[0]] < 255)
		h->got[head[0]]++;
	h->twice += h->got[head[0]] == 2;
	if (desc && h->kept < h->keep && h->kept < KEPT_MAX) {
		h->descs[h->kept++] = desc;
		return WEFT_LANE_KEEP;
	}
	return 0;
}

static void lane_event(void *arg, struct weft_lane_ep *lane_ep, enum weft_lane_event ev, int status,
		       const char *text)
{
	struct lane_host *h = arg;
	struct lane_end *e = end_of(h, lane_ep);

	if (!e) {
		e = new_end(h, lane_ep);
		e->passive = true;
	}
	if (ev == WEFT_LANE_EV_SUSPECT)
		return;
	if (text)
		snprintf(e->text, sizeof(e->text), "%s", text);
	if (ev == WEFT_LANE_EV_SIZE)
		return;
	e->status = status;
	if (ev == WEFT_LANE_EV_UP) {
		e->up = true;
		e->ups++;
		e->up_at = h->host.sim->now;
		return;
	}
	e->end_at = h->host.sim->now;
	e->up = false;
	e->downs++;
	e->down |= ev == WEFT_LANE_EV_DOWN;
	e->gone |= ev == WEFT_LANE_EV_GONE;
}

/* ---- life ----------------------------------------------------------------------------------- */

static unsigned int progress(struct sim_host *host)
{
	struct lane_host *h = (struct lane_host *)host;
	unsigned int n = h->iface->ops->progress(h->iface, host->platform.now(host->platform.arg));

	h->iface->ops->tx_flush(h->iface);
	return n;
}

static void stop(struct sim_host *host)
{
	struct lane_host *h = (struct lane_host *)host;
	struct lane_end *e;

	while ((e = h->ends)) {
		if (e->lane_ep)
			h->iface->ops->ep_destroy(e->lane_ep);
		h->ends = e->next;
		free(e);
	}
	lane_release(h);
	h->iface->ops->close(h->iface);
	h->iface = NULL;
	weft_config_release(h->config);
}

static const struct weft_lane_driver no_driver = {.name = "sim", .abi = WEFT_LANE_ABI};

static int open_iface(struct lane_host *h, char *why)
{
	const struct sim_port_params *p = &h->port->params;
	struct weft_raw_conf rc;
	struct weft_lane_open open = {.resource = h->port->name,
				      .options = "",
				      .platform = &h->host.platform,
				      .recv = recv_message,
				      .event = lane_event,
				      .arg = h};
	struct weft_lane_conf conf = h->config->conf.lane;
	int ret = sim_port_open(h->port);

	if (ret)
		return ret;
	sim_port_conf(h->port, &rc);
	conf.job_key = p->job_key;
	conf.seal_auth = p->seal_auth;
	conf.seal_dh = !p->seal_psk;
	conf.seal_rekey_ns = p->seal_rekey_ns;
	conf.keylog = p->keylog;
	open.conf = &conf;
	sim_fill(&h->rng, &open.worker_id, sizeof(open.worker_id));
	sim_fill(&h->rng, &open.iface_id, sizeof(open.iface_id));
	ret = weft_raw_iface_open(&h->port->fp, &rc, &open, &h->iface, why, 300);
	if (ret)
		h->port->fp.ops->close(&h->port->fp);
	else
		h->iface->driver = &no_driver;
	return ret;
}

int lane_host_try(struct sim *sim, struct sim_port *port, const char *config,
		  struct lane_host **out, char *why)
{
	struct lane_host *h = sim_alloc(sizeof(*h));
	int ret;

	h->port = port;
	h->host.progress = progress;
	h->host.stop = stop;
	sim_host_add(sim, &h->host, NULL, &port, 1);
	h->host.alive = false;
	h->rng = sim_stream(sim, 9000 + h->host.index);
	*out = h;
	ret = sim_config(config, &h->config);
	if (ret)
		return ret;
	ret = open_iface(h, why);
	if (ret)
		weft_config_release(h->config);
	h->host.alive = !ret;
	return ret;
}

struct lane_host *lane_host_create(struct sim *sim, struct sim_port *port, const char *config)
{
	struct lane_host *h;
	char why[300] = "";
	int ret = lane_host_try(sim, port, config, &h, why);

	if (ret) {
		fprintf(stderr, "sim: lane %s does not open: %d, %s\n", port->name, ret, why);
		abort();
	}
	return h;
}

void lane_host_close(struct lane_host *h)
{
	sim_host_stop(&h->host, false);
}

void lane_host_kill(struct lane_host *h)
{
	sim_host_stop(&h->host, true);
}

void lane_host_pause(struct lane_host *h, uint64_t ns)
{
	h->host.paused_until = h->host.sim->now + ns;
}

struct weft_lane_iface *lane_iface(struct lane_host *h)
{
	return h->iface;
}

/* ---- connections ---------------------------------------------------------------------------- */

struct lane_end *lane_connect_addr(struct lane_host *h, const void *addr, size_t len)
{
	struct lane_end *e = new_end(h, NULL);
	int ret = h->iface->ops->ep_connect(h->iface, addr, len, e, &e->lane_ep);

	if (ret) {
		e->lane_ep = NULL;
		e->down = true;
		e->status = ret;
	}
	return e;
}

struct lane_end *lane_connect(struct lane_host *h, struct lane_host *to)
{
	uint8_t addr[WEFT_LANE_ADDR_MAX];

	to->iface->ops->get_address(to->iface, addr);
	return lane_connect_addr(h, addr, to->iface->attr.dev_addr_len);
}

struct lane_end *lane_passive(struct lane_host *h)
{
	struct lane_end *e;

	for (e = h->ends; e && (!e->passive || !e->lane_ep); e = e->next)
		;
	return e;
}

unsigned int lane_num_passive(const struct lane_host *h)
{
	const struct lane_end *e;
	unsigned int n = 0;

	for (e = h->ends; e; e = e->next)
		n += e->passive;
	return n;
}

void lane_destroy(struct lane_end *e)
{
	struct weft_lane_ep *lane_ep = e->lane_ep;

	e->lane_ep = NULL;
	if (lane_ep)
		lane_ep->ops->ep_destroy(lane_ep);
}

static bool both_up(void *arg)
{
	struct lane_end **e = arg;

	e[1] = lane_passive(((struct lane_host **)arg)[2]);
	return (e[0]->up && e[1] && e[1]->up) || e[0]->down;
}

struct lane_end *lane_up(struct lane_host *a, struct lane_host *b)
{
	void *state[3] = {lane_connect(a, b), NULL, b};
	struct lane_end *e = state[0];

	if (!sim_run(a->host.sim, SIM_S, both_up, state) || !e->up) {
		fprintf(stderr, "sim: no connection: %d %s\n", e->status, e->text);
		return NULL;
	}
	return e;
}

/* ---- sending -------------------------------------------------------------------------------- */

struct to_pack {
	uint32_t head[2];
};

static ssize_t pack_message(void *dst, size_t max, void *arg)
{
	struct to_pack *p = arg;

	if (max < LANE_HDR + p->head[1])
		return -EMSGSIZE;
	memcpy(dst, p->head, LANE_HDR);
	pattern_fill(p->head[0], 0, (uint8_t *)dst + LANE_HDR, p->head[1]);
	return LANE_HDR + (ssize_t)p->head[1];
}

struct zcopy {
	struct weft_lane_comp comp;
	struct lane_host *host;
	uint8_t *mem;
	size_t size;
};

/* Memory is the sender's again: rubbish from here on, which must not reach anybody. */
static void zcopy_done(struct weft_lane_comp *comp, int status)
{
	struct zcopy *z = (struct zcopy *)comp;

	z->host->zcopies--;
	z->host->zcopy_status = status;
	memset(z->mem, 0xee, z->size);
	free(z->mem);
	free(z);
}

static int send_zcopy(struct lane_end *e, const uint32_t *head, size_t size)
{
	struct zcopy *z = sim_alloc(sizeof(*z));
	struct iovec iov[2];
	size_t cut = size / 3;
	int ret;

	z->comp.done = zcopy_done;
	z->host = e->host;
	z->mem = sim_alloc(size);
	z->size = size;
	pattern_fill(head[0], 0, z->mem, size);
	iov[0] = (struct iovec){z->mem, cut};
	iov[1] = (struct iovec){z->mem + cut, size - cut};
	e->host->zcopies++;
	ret = e->lane_ep->ops->am_zcopy(e->lane_ep, LANE_AM, head, LANE_HDR, cut ? iov : iov + 1,
					cut ? 2 : 1, NULL, &z->comp);
	if (ret < 0) {
		e->host->zcopies--;
		free(z->mem);
		free(z);
	}
	return ret;
}

ssize_t lane_send(struct lane_end *e, enum lane_how how, uint32_t number, size_t size)
{
	struct to_pack p = {{number, (uint32_t)size}};
	uint8_t payload[SIM_FRAME_MAX];

	if (how == LANE_BCOPY)
		return e->lane_ep->ops->am_bcopy(e->lane_ep, LANE_AM, pack_message, &p);
	if (how == LANE_ZCOPY)
		return send_zcopy(e, p.head, size);
	pattern_fill(number, 0, payload, size);
	return e->lane_ep->ops->am_short(e->lane_ep, LANE_AM, p.head, LANE_HDR, payload, size);
}

size_t lane_max(const struct lane_end *e, enum lane_how how)
{
	const struct weft_lane_attr *a = &e->host->iface->attr;
	size_t max = how == LANE_SHORT   ? a->max_short
		     : how == LANE_BCOPY ? a->max_bcopy
					 : a->max_zcopy;

	if (e->lane_ep->max_msg && e->lane_ep->max_msg < max)
		max = e->lane_ep->max_msg;
	return max - LANE_HDR;
}

struct send_all {
	struct lane_end *e;
	uint32_t next, to;
	struct sim_rng rng;
	bool flushing;
};

static bool send_step(void *arg)
{
	struct send_all *s = arg;
	struct sim_rng dice;
	enum lane_how how;
	ssize_t ret;
	size_t size;
	int burst = 32;

	if (!s->e->lane_ep || s->e->down)
		return true;
	while (s->next < s->to && burst--) {
		/* A message is the same each time it is tried. */
		dice = s->rng;
		how = (enum lane_how)sim_below(&dice, s->e->host->iface->attr.max_zcopy ? 3 : 2);
		size = sim_chance(&dice, 0.5) ? sim_below(&dice, 100)
					      : sim_below(&dice, lane_max(s->e, how) + 1);
		if (size > lane_max(s->e, how))
			size = lane_max(s->e, how);
		if (how == LANE_ZCOPY && !size)
			size = 1;
		ret = lane_send(s->e, how, s->next, size);
		if (ret == -EAGAIN)
			return false;
		if (ret < 0) {
			fprintf(stderr, "sim: send of %zu bytes, kind %d: %zd\n", size, (int)how,
				ret);
			return true;
		}
		s->next++;
		s->rng = dice;
	}
	if (s->next < s->to)
		return false;
	if (!s->flushing) {
		s->flushing = true;
		if (lane_flush(s->e, &s->e->flushed) == WEFT_LANE_IDLE)
			s->e->flushed = 1;
	}
	return s->e->flushed;
}

bool lane_send_all(struct lane_end *e, uint32_t from, uint32_t to, uint64_t max_ns)
{
	struct send_all s = {
		.e = e, .next = from, .to = to, .rng = sim_stream(e->host->host.sim, 9500 + from)};

	e->flushed = 0;
	return sim_run(e->host->host.sim, max_ns, send_step, &s) && e->flushed == 1;
}

struct flush {
	struct weft_lane_comp comp;
	int *done;
};

static void flush_done(struct weft_lane_comp *comp, int status)
{
	struct flush *f = (struct flush *)comp;

	*f->done = 1 - status;
	free(f);
}

int lane_flush(struct lane_end *e, int *done)
{
	struct flush *f = sim_alloc(sizeof(*f));
	int ret;

	f->comp.done = flush_done;
	f->done = done;
	ret = e->lane_ep->ops->ep_flush(e->lane_ep, &f->comp);
	if (ret)
		free(f);
	return ret;
}

/* ---- questions ------------------------------------------------------------------------------ */

unsigned int lane_zcopy_pending(const struct lane_host *h)
{
	return h->zcopies;
}

int lane_zcopy_status(const struct lane_host *h)
{
	return h->zcopy_status;
}

unsigned int lane_got(const struct lane_host *h, uint32_t number)
{
	return h->got[number];
}

unsigned int lane_received(const struct lane_host *h)
{
	return h->received;
}

unsigned int lane_wrong(const struct lane_host *h)
{
	return h->wrong;
}

bool lane_exactly_once(const struct lane_host *h, uint32_t from, uint32_t to)
{
	uint32_t i;

	for (i = from; i < to; i++) {
		if (h->got[i] != 1) {
			fprintf(stderr, "sim: message %u arrived %u times\n", i, h->got[i]);
			return false;
		}
	}
	return !h->wrong && !h->twice;
}

void lane_keep(struct lane_host *h, unsigned int n)
{
	h->keep = n;
}

unsigned int lane_kept(const struct lane_host *h)
{
	return h->kept;
}

void lane_release(struct lane_host *h)
{
	while (h->kept)
		h->iface->ops->release(h->iface, h->descs[--h->kept]);
}

struct counter_sum {
	const char *suffix;
	uint64_t sum;
};

static void add_counter(const char *name, uint64_t value, void *arg)
{
	struct counter_sum *c = arg;
	size_t n = strlen(name), s = strlen(c->suffix);

	if (n >= s && !strcmp(name + n - s, c->suffix))
		c->sum += value;
}

bool lane_is_up(void *end)
{
	return ((struct lane_end *)end)->up;
}

bool lane_has_failed(void *end)
{
	return ((struct lane_end *)end)->downs > 0;
}

void lane_talk(struct lane_end *e, struct lane_host *to, uint32_t from)
{
	if (!lane_send_all(e, from, from + 200, 5 * SIM_S))
		fail_msg("traffic stopped: %s", e->text);
	assert_true(lane_exactly_once(to, from, from + 200));
	assert_int_equal(e->downs + lane_passive(to)->downs, 0);
}

uint64_t lane_counter(struct lane_host *h, const char *suffix)
{
	struct counter_sum c = {suffix, 0};

	h->iface->ops->counters(h->iface, add_counter, &c);
	return c.sum;
}

struct lane_two lane_two_up(struct sim_case *c, struct sim_port_params p, const char *config)
{
	struct lane_two t = {.sim = case_sim_seed(c, c->seed)};

	t.pa = sim_port_create(t.sim, &p);
	if (p.ip)
		p.ip++;
	t.pb = sim_port_create(t.sim, &p);
	t.a = lane_host_create(t.sim, t.pa, config);
	t.b = lane_host_create(t.sim, t.pb, config);
	t.e = lane_up(t.a, t.b);
	assert_non_null(t.e);
	return t;
}
