/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link that goes down and comes back writes two log lines, limited by weft_log_allowed().
 *
 * Rails that are worse than comparable ones get a warning, because everything works without them,
 * only slower. Interfaces of a worker are compared when they are opened and when a link changes:
 * they may be missing, slower, or have a smaller MTU. Lanes of an endpoint are compared when all
 * lanes of the map are attached or left out: they may be missing, or take smaller messages.
 *
 * Rails are comparable ("sisters") if they have the same driver and the same kind of link: a memory
 * port next to a NIC is no mistake. A lane inside the host is no rail, and its peer needs none.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "core/config.h"
#include "wireup/rails.h"
#include "wireup/state.h"

/* A link counts as slower if it has less than this share of the other's rate. */
#define SLOWER 0.9

#define LINES 5u
#define LINES_NS 10000000000ull
#define SUMMARY_NS 1000000000ull /* from the first line left out to the line with their number */
#define SUSPECT_GAP_NS 50000ull
#define SUSPECT_BURST 64u

bool weft_is_rail(const struct weft_lane_iface *iface)
{
	return !(iface->attr.features &
		 (WEFT_LANE_F_LOOPBACK | WEFT_LANE_F_CONTROL | WEFT_LANE_F_HOST));
}

/* ------------------------------------------------------------------ interfaces */

static bool are_sisters(const struct weft_lane_iface *a, const struct weft_lane_iface *b)
{
	return a->driver == b->driver && a->attr.link == b->attr.link && weft_is_rail(a) &&
	       weft_is_rail(b);
}

static bool is_slower(const struct weft_lane_iface *a, const struct weft_lane_iface *b)
{
	return a->attr.bandwidth_known && b->attr.bandwidth_known &&
	       a->attr.bandwidth < SLOWER * b->attr.bandwidth;
}

static const struct weft_lane_iface *best_sister(const struct weft_worker *w, unsigned int i,
						 bool by_frame)
{
	const struct weft_lane_iface *best = w->ifaces[i], *other;
	unsigned int k;

	for (k = 0; k < w->num_ifaces; k++) {
		other = w->ifaces[k];
		if (are_sisters(best, other) &&
		    (by_frame ? best->attr.frame_size < other->attr.frame_size
			      : is_slower(best, other)))
			best = other;
	}
	return best;
}

static void compare_speed(struct weft_worker *w, unsigned int i)
{
	const struct weft_lane_iface *iface = w->ifaces[i], *best = best_sister(w, i, false);

	if (best != iface)
		weft_log_worker(w, WEFT_LOG_WARN,
				"%s (%s) is slower than %s (%s): %.3g Gb/s and %.3g Gb/s; large "
				"messages are striped in that proportion",
				iface->name, iface->attr.device, best->name, best->attr.device,
				iface->attr.bandwidth * 8e-9, best->attr.bandwidth * 8e-9);
}

static void compare_frames(struct weft_worker *w, unsigned int i)
{
	const struct weft_lane_iface *iface = w->ifaces[i], *best = best_sister(w, i, true);

	if (best != iface)
		weft_log_worker(w, WEFT_LOG_WARN,
				"%s (%s) has frames of %zu bytes, %s (%s) of %zu: raise the MTU of "
				"%s if its network carries larger frames",
				iface->name, iface->attr.device, iface->attr.frame_size, best->name,
				best->attr.device, best->attr.frame_size, iface->attr.device);
}

static void rails_changed(struct weft_worker *w, const struct weft_lane_iface *iface)
{
	unsigned int i;

	for (i = 0; i < w->num_ifaces; i++)
		if (w->ifaces[i] == iface && weft_log_allowed(&w->links[i].limit))
			compare_speed(w, i);
}

void weft_rails_missing(struct weft_worker *w, const char *name, const char *why)
{
	weft_reason_add(&w->missing, "%s%s: %s", w->missing.text[0] != '\0' ? "; " : "", name, why);
}

int weft_rails_opened(struct weft_worker *w, bool wants_rails)
{
	unsigned int i, n = 0, least = w->ctx->conf->min_lanes;

	for (i = 0; i < w->num_ifaces; i++)
		n += weft_is_rail(w->ifaces[i]);
	for (i = 0; i < w->num_ifaces; i++) {
		compare_speed(w, i);
		compare_frames(w, i);
	}
	/* Without any rail a worker is for its host alone, unless it must have several lanes. */
	if (n >= least || (n == 0 && (least == 1 || !wants_rails)))
		return 0;
	weft_error("this worker has %u lane%s, WEFT_MIN_LANES requires %u%s%s", n,
		   n == 1 ? "" : "s", least,
		   w->missing.text[0] != '\0' ? "; " : ": no other port or device was found",
		   w->missing.text);
	return -ENODEV;
}

/* ------------------------------------------------------------------ links */

static struct weft_iface_link *link_of(struct weft_worker *w, const struct weft_lane_iface *iface)
{
	unsigned int i;

	for (i = 0; i < w->num_ifaces; i++)
		if (w->ifaces[i] == iface)
			return &w->links[i];
	return NULL; /* the interface is being opened */
}

/* Level of a line about a link. Another process may start and end; a NIC should keep its link. */
static enum weft_log_level level_of(const struct weft_lane_iface *iface)
{
	return iface->attr.link == WEFT_LANE_LINK_PEER ? WEFT_LOG_INFO : WEFT_LOG_WARN;
}

static void log_event(struct weft_worker *w, struct weft_iface_link *l,
		      const struct weft_lane_iface *iface, enum weft_log_level level,
		      const char *text)
{
	if ((int)level <= weft_log_level && weft_log_allowed(&l->limit))
		weft_log_worker_write(level, w, "%s (%s): %s", iface->name, iface->attr.device,
				      text);
}

static void log_missing(struct weft_worker *w, struct weft_iface_link *l,
			struct weft_lane_iface *iface)
{
	char why[224], text[288];

	weft_iface_link_text(iface, why, sizeof(why));
	if (w->now > l->since)
		snprintf(text, sizeof(text), "no link for %.1f s: %s",
			 (double)(w->now - l->since) * 1e-9, why);
	else
		snprintf(text, sizeof(text), "%s", why);
	l->down_logged = true;
	log_event(w, l, iface, WEFT_LOG_WARN, text);
}

void weft_iface_link_text(struct weft_lane_iface *iface, char *buf, size_t size)
{
	buf[0] = '\0';
	if (iface->ops->link_text)
		iface->ops->link_text(iface, buf, size);
	if (buf[0] == '\0')
		snprintf(buf, size, "link is down: check the cable, the switch or the other end");
}

void weft_iface_link_init(struct weft_worker *w, unsigned int index)
{
	struct weft_lane_iface *iface = w->ifaces[index];
	struct weft_iface_link *l = &w->links[index];

	*l = (struct weft_iface_link){
		.since = w->now,
		.look_at = UINT64_MAX,
		.summary_at = UINT64_MAX,
	};
	l->up = l->seen = iface->ops->link_up(iface);
	if (l->up || iface->attr.link == WEFT_LANE_LINK_PEER)
		return;
	if (iface->attr.link == WEFT_LANE_LINK_HOST) {
		log_missing(w, l, iface);
		return;
	}
	l->look_at = w->now + WEFT_LANE_LINK_WAIT_NS;
	if (l->look_at < w->next_timer)
		w->next_timer = l->look_at;
}

/*
 * An interface that fails takes its lanes with it, which may be those of thousands of endpoints.
 * Each lane is checked separately, because its peer may be the cause. The checks are spread over
 * time, because their probes would otherwise delay all other lanes.
 */
uint64_t weft_iface_suspect_at(struct weft_worker *w, const struct weft_lane_iface *iface)
{
	const uint64_t burst = SUSPECT_BURST * SUSPECT_GAP_NS;
	struct weft_iface_link *l = link_of(w, iface);
	uint64_t least = w->now > burst ? w->now - burst : 0, at;

	if (!l)
		return w->now;
	at = l->suspect_next > w->now ? l->suspect_next : w->now;
	l->suspect_next = (l->suspect_next > least ? l->suspect_next : least) + SUSPECT_GAP_NS;
	return at;
}

bool weft_iface_lane_line(struct weft_worker *w, const struct weft_lane_iface *iface, bool back)
{
	struct weft_iface_link *l = link_of(w, iface);

	if (!l)
		return true;
	if (w->now >= l->lines_until) {
		l->lines_until = w->now + LINES_NS;
		l->lines = 0;
	}
	if (l->lines < LINES) {
		l->lines++;
		return true;
	}
	if (back)
		l->back++;
	else
		l->lost++;
	if (l->summary_at == UINT64_MAX)
		l->summary_at = w->now + SUMMARY_NS;
	if (l->summary_at < w->next_timer)
		w->next_timer = l->summary_at;
	return false;
}

static void log_summary(struct weft_worker *w, struct weft_iface_link *l,
			const struct weft_lane_iface *iface)
{
	if (w->now < l->summary_at) {
		if (l->summary_at < w->next_timer)
			w->next_timer = l->summary_at;
		return;
	}
	weft_log_worker(w, WEFT_LOG_WARN,
			"%s (%s): %u more of its lanes were given up, %u came back", iface->name,
			iface->attr.device, l->lost, l->back);
	l->summary_at = UINT64_MAX;
	l->lost = l->back = 0;
}

void weft_iface_timers(struct weft_worker *w)
{
	struct weft_iface_link *l;
	unsigned int i;

	for (i = 0; i < w->num_ifaces; i++) {
		l = &w->links[i];
		log_summary(w, l, w->ifaces[i]);
		if (l->look_at == UINT64_MAX)
			continue;
		if (w->now < l->look_at) {
			if (l->look_at < w->next_timer)
				w->next_timer = l->look_at;
			continue;
		}
		l->look_at = UINT64_MAX;
		if (!l->up && !w->ifaces[i]->ops->link_up(w->ifaces[i]))
			log_missing(w, l, w->ifaces[i]);
	}
}

static bool came_up(struct weft_worker *w, struct weft_iface_link *l,
		    const struct weft_lane_iface *iface, const char *speed)
{
	double away = w->now > l->since ? (double)(w->now - l->since) * 1e-9 : 0;
	enum weft_log_level level = l->down_logged ? level_of(iface) : WEFT_LOG_INFO;
	char text[160];

	if (l->up)
		return false;
	snprintf(text, sizeof(text), "link is %s after %.1f s%s%s", l->seen ? "back" : "up", away,
		 speed[0] != '\0' ? ", " : "", speed);
	if (!l->seen)
		l->up_after = away;
	l->up = l->seen = true;
	l->down_logged = false;
	l->look_at = UINT64_MAX;
	log_event(w, l, iface, level, text);
	rails_changed(w, iface);
	return true;
}

static void note_link_down(struct weft_worker *w, struct weft_iface_link *l,
			   const struct weft_lane_iface *iface, const char *cause)
{
	char text[256];

	if (!l->up)
		return;
	l->up = false;
	l->down_logged = true;
	l->since = w->now;
	snprintf(text, sizeof(text), "link lost%s%s", cause[0] != '\0' ? ": " : "", cause);
	log_event(w, l, iface, level_of(iface), text);
}

bool weft_rails_event(struct weft_worker *w, struct weft_lane_iface *iface,
		      enum weft_lane_iface_event ev, const char *text)
{
	struct weft_iface_link *l = link_of(w, iface);
	char line[96];

	if (!l || l->ended)
		return false;
	switch (ev) {
	case WEFT_LANE_IFACE_EV_LINK_UP:
		return came_up(w, l, iface, text);
	case WEFT_LANE_IFACE_EV_LINK_DOWN:
		note_link_down(w, l, iface, text);
		break;
	case WEFT_LANE_IFACE_EV_SPEED:
		snprintf(line, sizeof(line), "link speed is now %.60s", text);
		log_event(w, l, iface, level_of(iface), line);
		rails_changed(w, iface);
		break;
	case WEFT_LANE_IFACE_EV_ENDED:
		l->ended = true;
		l->up = false;
		l->since = w->now;
		l->look_at = UINT64_MAX;
		log_event(w, l, iface, WEFT_LOG_ERROR, text);
		break;
	}
	return false;
}

/* ------------------------------------------------------------------ lanes */

static void why_unused(struct weft_ep *ep, unsigned int l, char *buf, size_t size)
{
	const struct weft_wireup *wu = ep->wireup;
	struct weft_lane_iface *iface = ep->worker->ifaces[wu->local[l].index];
	unsigned int i, n = 0;

	buf[0] = '\0';
	for (i = 0; i < wu->select.num_remote; i++)
		n += !(wu->remote.ifaces[i].features & WEFT_LANE_F_CONTROL);
	for (i = 0; i < ep->lane_room; i++)
		if (wu->map[i].max_frag == 0 && wu->map[i].pair.local == l &&
		    strncmp(weft_lane_why(ep, i), "left out", 8) == 0)
			snprintf(buf, size, "%s", weft_lane_why(ep, i));
	if (buf[0] != '\0')
		return;
	if (wu->select.reach[l] != 0) {
		snprintf(buf, size,
			 "%s %u interface%s of %.63s carr%s lanes from other interfaces of this "
			 "worker; a lane needs one at each end: open another one there, or leave "
			 "this one out of WEFT_LANES",
			 n == 1 ? "the" : "all", n, n == 1 ? "" : "s", ep->remote_name,
			 n == 1 ? "ies" : "y");
		return;
	}
	for (i = 0; i < wu->select.num_remote && buf[0] == '\0'; i++)
		if (weft_address_is_of(iface->driver, wu->remote.ifaces[i].driver))
			iface->ops->is_reachable(iface, wu->remote.ifaces[i].addr,
						 wu->remote.ifaces[i].addr_len, buf, size);
	n = (unsigned int)strlen(iface->name);
	/* Texts of drivers often begin with the iface. */
	if (strncmp(buf, iface->name, n) == 0 && strncmp(buf + n, ": ", 2) == 0)
		memmove(buf, buf + n + 2, strlen(buf + n + 2) + 1);
	if (buf[0] == '\0')
		snprintf(buf, size, "%s has no %s interface", ep->remote_name, iface->driver->name);
}

static bool has_lane(const struct weft_ep *ep, unsigned int index)
{
	unsigned int i;

	for (i = 0; i < ep->num_lanes; i++)
		if (ep->lanes[i].up && ep->lane_info[i].local_iface == index)
			return true;
	return false;
}

static void log_unused(struct weft_ep *ep, struct weft_reason *all)
{
	const struct weft_wireup *wu = ep->wireup;
	struct weft_worker *w = ep->worker;
	enum weft_log_level level;
	struct weft_iface_link *link;
	unsigned int l, index;
	char why[256];

	all->text[0] = '\0';
	for (l = 0; l < wu->select.num_local; l++) {
		index = wu->local[l].index;
		if (!weft_is_rail(w->ifaces[index]) || has_lane(ep, index))
			continue;
		why_unused(ep, l, why, sizeof(why));
		weft_reason_add(all, "%s%s: %s", all->text[0] != '\0' ? "; " : "",
				w->ifaces[index]->name, why);
		link = &w->links[index];
		/* A lane that was left out has had its line; with many peers one line is enough. */
		level = link->unused_logged || strncmp(why, "left out", 8) == 0 ? WEFT_LOG_INFO
										: WEFT_LOG_WARN;
		link->unused_logged = true;
		weft_log_ep(ep, level, "%s (%s) carries no lane to %s: %s", w->ifaces[index]->name,
			    w->ifaces[index]->attr.device, ep->remote_name, why);
	}
}

static void log_smaller(struct weft_ep *ep, unsigned int n)
{
	const struct weft_worker *w = ep->worker;
	const struct weft_lane_iface *iface = ep->lanes[n].lane_ep->iface, *other;
	struct weft_iface_link *link;
	unsigned int i;

	for (i = 0; i < ep->num_lanes; i++) {
		if (!ep->lanes[i].up)
			continue;
		other = ep->lanes[i].lane_ep->iface;
		link = &ep->worker->links[ep->lane_info[n].local_iface];
		if (link->smaller_logged || iface->driver != other->driver ||
		    iface->attr.frame_size != other->attr.frame_size ||
		    iface->attr.link != other->attr.link ||
		    ep->lanes[n].max_frag >= ep->lanes[i].max_frag)
			continue;
		link->smaller_logged = true;
		weft_log_ep(
			ep, WEFT_LOG_WARN,
			"lane %u (%s to %s) takes messages of %u bytes, lane %u (%s) of %u: the "
			"other end of it, or the path, has a smaller MTU",
			n, iface->name, weft_lane_remote(ep, n), ep->lanes[n].max_frag, i,
			w->ifaces[ep->lane_info[i].local_iface]->name, ep->lanes[i].max_frag);
	}
}

/* An endpoint with a lane inside the host has no lanes of networks. */
static bool is_in_host(const struct weft_ep *ep)
{
	return ep->num_lanes > 0 && ep->lanes[0].lane_ep &&
	       ep->lanes[0].lane_ep->iface->attr.features & WEFT_LANE_F_HOST;
}

bool weft_rails_settled(struct weft_ep *ep)
{
	unsigned int i, n = 0, least = ep->worker->ctx->conf->min_lanes;
	struct weft_wireup *wu = ep->wireup;

	if (is_in_host(ep))
		return true;
	for (i = 0; i < ep->num_lanes; i++)
		n += ep->lanes[i].up;
	for (i = 0; i < ep->num_lanes; i++)
		if (ep->lanes[i].up)
			log_smaller(ep, i);
	log_unused(ep, &wu->reason);
	return n >= least;
}
