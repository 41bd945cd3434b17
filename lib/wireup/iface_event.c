/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines for events of ports and devices that a worker has open, the same for all drivers. A
 * link that goes down and comes back writes two lines each time, limited by weft_log_allowed().
 */

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "wireup/iface_event.h"
#include "wireup/lane_return.h"
#include "wireup/rails.h"
#include "wireup/wireup.h"

#define LINES 5u
#define LINES_NS 10000000000ull
#define SUMMARY_NS 1000000000ull /* from the first line left out to the line with their number */
#define SUSPECT_GAP_NS 50000ull
#define SUSPECT_BURST 64u

static struct weft_iface_link *link_of(struct weft_worker *w, const struct weft_lane_iface *iface)
{
	unsigned int i;

	for (i = 0; i < w->num_ifaces; i++)
		if (w->ifaces[i] == iface)
			return &w->links[i];
	return NULL; /* the interface is being opened */
}

/* A process that starts and ends is no fault; a cable that does so is. */
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

/* There is no link, and none is expected. */
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
 * time, because their probes would otherwise delay all other lanes. And not each lane has a log
 * line.
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

/* Check links whose time has come, for example a NIC that has had its time for a first link. */
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

static void came_up(struct weft_worker *w, struct weft_iface_link *l,
		    const struct weft_lane_iface *iface, const char *speed)
{
	double away = w->now > l->since ? (double)(w->now - l->since) * 1e-9 : 0;
	enum weft_log_level level = l->down_logged ? level_of(iface) : WEFT_LOG_INFO;
	char text[160];

	if (l->up)
		return;
	snprintf(text, sizeof(text), "link is %s after %.1f s%s%s", l->seen ? "back" : "up", away,
		 speed[0] != '\0' ? ", " : "", speed);
	if (!l->seen)
		l->up_after = away;
	l->up = l->seen = true;
	l->down_logged = false;
	l->look_at = UINT64_MAX;
	log_event(w, l, iface, level, text);
	weft_rails_changed(w, iface);
	weft_lane_return_link(w, iface);
}

static void went_down(struct weft_worker *w, struct weft_iface_link *l,
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

void weft_iface_event(void *arg, struct weft_lane_iface *iface, enum weft_lane_iface_event ev,
		      const char *text)
{
	struct weft_worker *w = arg;
	struct weft_iface_link *l = link_of(w, iface);
	char line[96];

	if (!l || l->ended)
		return;
	switch (ev) {
	case WEFT_LANE_IFACE_EV_LINK_UP:
		came_up(w, l, iface, text);
		break;
	case WEFT_LANE_IFACE_EV_LINK_DOWN:
		went_down(w, l, iface, text);
		break;
	case WEFT_LANE_IFACE_EV_SPEED:
		snprintf(line, sizeof(line), "link speed is now %.60s", text);
		log_event(w, l, iface, level_of(iface), line);
		weft_rails_changed(w, iface);
		break;
	case WEFT_LANE_IFACE_EV_ENDED:
		l->ended = true;
		l->up = false;
		l->since = w->now;
		l->look_at = UINT64_MAX;
		log_event(w, l, iface, WEFT_LOG_ERROR, text);
		break;
	}
}
