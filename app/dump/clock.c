/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "dump/clock.h"
#include "dump/decode.h"

/* ---- survey --------------------------------------------------------------------------------- */

/* What a first pass finds about captures: spans, lost records, stations. */

/*
 * At least this share of the frames of an interface has its own address: switches flood a few
 * others.
 */
#define STATION_SHARE 0.98

/* @return 0 or -ENOMEM */
static int survey_make(struct survey *s, unsigned int num)
{
	unsigned int i, n;

	*s = (struct survey){.num = num};
	s->file = calloc(num, sizeof(*s->file));
	if (!s->file)
		return -ENOMEM;
	for (i = 0; i < num; i++)
		for (n = 0; n < DUMP_IFACES; n++)
			s->file[i].port[n].station = SURVEY_NO_STATION;
	return 0;
}

void survey_free(struct survey *s)
{
	unsigned int i;

	for (i = 0; s->file && i < s->num; i++)
		history_free(&s->file[i].history);
	free(s->file);
	*s = (struct survey){0};
}

/* Index of an address at a port, or SURVEY_NO_STATION. */
static uint8_t survey_index(const struct survey_port *p, const uint8_t mac[6])
{
	unsigned int i;

	for (i = 0; i < p->num_macs; i++)
		if (!memcmp(p->mac[i], mac, 6))
			return (uint8_t)i;
	return SURVEY_NO_STATION;
}

static uint8_t count_address(struct survey_port *p, const uint8_t mac[6])
{
	uint8_t at = survey_index(p, mac);

	if (at == SURVEY_NO_STATION && p->num_macs < SURVEY_MACS) {
		at = (uint8_t)p->num_macs++;
		memcpy(p->mac[at], mac, 6);
	}
	if (at != SURVEY_NO_STATION)
		p->count[at]++;
	return at;
}

/* MAC addresses of the ports of one weft-switch (address_each() of app/switch) */
static bool of_one_switch(const uint8_t a[6], const uint8_t b[6])
{
	return a[0] == 0x02 && a[1] == 0x57 && !memcmp(a, b, 5);
}

/* Does the address belong to this station of the port? */
static bool is_of(const struct survey_port *p, uint8_t station, const uint8_t mac[6])
{
	const uint8_t *own = p->mac[station];

	return !memcmp(own, mac, 6) || (!p->within && of_one_switch(own, mac));
}

static bool index_is_of(const struct survey_port *p, uint8_t station, uint8_t index)
{
	return index != SURVEY_NO_STATION && is_of(p, station, p->mac[index]);
}

static void add_hole(struct survey_file *s, uint64_t from, uint64_t to, uint64_t count,
		     uint16_t iface)
{
	struct survey_hole *h;

	s->placed += count;
	if (s->num_holes < SURVEY_HOLES) {
		s->hole[s->num_holes++] = (struct survey_hole){from, to, count, iface};
		return;
	}
	/* No room: the last hole covers all further ones, of any interface. */
	h = &s->hole[SURVEY_HOLES - 1];
	h->to = to;
	h->count += count;
	h->iface = UINT16_MAX;
}

static void addresses(struct survey_port *p, const struct dump_frame *frame,
		      const struct dump_view *v)
{
	uint8_t from;

	if (!v->src_mac || v->dst_mac[0] & 1)
		return;
	p->frames++;
	p->undirected += frame->way == DUMP_WAY_UNKNOWN;
	from = count_address(p, v->src_mac);
	count_address(p, v->dst_mac);
	p->within = p->within || of_one_switch(v->src_mac, v->dst_mac);
	if (frame->way == DUMP_OUT && p->station == SURVEY_NO_STATION)
		p->station = from;
}

/* The bytes of a frame up to the end of its lane header. */
static uint32_t needed_of(const struct dump_view *v)
{
	const uint32_t around = RTE_ETHER_HDR_LEN + sizeof(struct weft_frame_hdr);

	return around + (v->vlan ? RTE_VLAN_HLEN : 0) +
	       (v->src.kind == ADDRESS_IP6   ? WEFT_IP6_UDP_LEN
		: v->src.kind == ADDRESS_IP4 ? WEFT_IP_UDP_LEN
					     : 0);
}

/* Take a frame of the first pass. */
static void survey_frame(struct survey *s, const struct dump_file *file,
			 const struct dump_frame *frame, const struct dump_view *v)
{
	struct survey_file *f = &s->file[frame->file];
	struct survey_port *p = &f->port[frame->iface];

	/* A file with sections of several hosts has no number of a host. */
	if (p->frames == 0 && f->lane_frames == 0)
		f->host = file->host;
	else if (f->host != file->host)
		f->host = 0;
	if (frame->dropped)
		add_hole(f, p->last ? p->last : frame->time, frame->time, frame->dropped,
			 frame->iface);
	if (!p->first)
		p->first = frame->time;
	else if (!p->second && frame->time > p->first)
		p->second = frame->time;
	if (frame->time > p->last)
		p->last = frame->time;
	if (!f->first || frame->time < f->first)
		f->first = frame->time;
	if (frame->time > f->last)
		f->last = frame->time;
	addresses(p, frame, v);
	f->lane_frames += v->what == DUMP_LANE;
	f->undirected += v->what == DUMP_LANE && frame->way == DUMP_WAY_UNKNOWN;
	if (v->what == DUMP_CUT) {
		f->too_short++;
		f->caplen = frame->caplen > f->caplen ? frame->caplen : f->caplen;
		f->needed = needed_of(v) > f->needed ? needed_of(v) : f->needed;
	}
}

/* The file has been read. */
static void survey_file_end(struct survey *s, struct dump_file *file)
{
	struct survey_file *f = &s->file[file->index];

	f->end = file->end > f->last ? file->end : f->last;
	f->lost = dump_file_dropped(file);
	f->broken_off = dump_file_broken_off(file);
	f->recorder = file->weft && file->comment[0] && f->host;
	memcpy(f->comment, file->comment, sizeof(f->comment));
	f->history = file->history;
	file->history = (struct history){0};
}

/* Are all frames of the port from or to the station whose first address this is? */
static bool is_in_all(const struct survey_port *p, unsigned int i)
{
	uint64_t frames = 0;
	unsigned int k;

	for (k = 0; k < p->num_macs; k++) {
		if (!is_of(p, (uint8_t)i, p->mac[k]))
			continue;
		if (k < i)
			return false;
		frames += p->count[k];
	}
	return (double)frames >= STATION_SHARE * (double)p->frames;
}

/*
 * The two stations in all frames of the port. @return false: its station is known, or not exactly
 * two stations are in all frames
 */
static bool survey_pair(const struct survey_port *p, uint8_t index[2])
{
	unsigned int i, n = 0;

	if (p->station != SURVEY_NO_STATION)
		return false;
	for (i = 0; i < p->num_macs; i++) {
		if (!is_in_all(p, i))
			continue;
		if (n < 2)
			index[n] = (uint8_t)i;
		n++;
	}
	return n == 2;
}

static void station_of(struct survey_port *p)
{
	unsigned int i, n = 0;
	uint8_t found = SURVEY_NO_STATION;

	if (p->station != SURVEY_NO_STATION || !p->undirected)
		return;
	for (i = 0; i < p->num_macs; i++) {
		if (!is_in_all(p, i))
			continue;
		found = (uint8_t)i;
		n++;
	}
	if (n == 1)
		p->station = found;
}

/* Find the stations that follow from one capture alone. */
static void survey_stations(struct survey *s)
{
	unsigned int i, n;

	for (i = 0; i < s->num; i++)
		for (n = 0; n < DUMP_IFACES; n++)
			station_of(&s->file[i].port[n]);
}

void survey_way(const struct survey *s, struct dump_frame *frame)
{
	const struct survey_port *p;

	if (!s->done || frame->way != DUMP_WAY_UNKNOWN || frame->record || frame->caplen < 12)
		return;
	p = &s->file[frame->file].port[frame->iface];
	if (p->station == SURVEY_NO_STATION)
		return;
	if (is_of(p, p->station, frame->data + 6))
		frame->way = DUMP_OUT;
	else if (is_of(p, p->station, frame->data) || frame->data[0] & 1)
		frame->way = DUMP_IN;
}

/* ---- clocks --------------------------------------------------------------------------------- */

/*
 * Clocks of the captures, relative to that of the first one with which frames connect them. For a
 * frame that one capture has as sent and another as received, the difference of the time stamps is
 * the clocks' offset plus the delay of the path. The minima of both directions differ by twice the
 * offset, if the path has the same delay in both directions. Minima of stretches of time give the
 * drift, where captures last for a second or more, and where the stretches agree.
 *
 * Time stamps are not corrected if no frame arrives before it was sent, and the least delays both
 * ways add up to at most EQUAL_NS. So two processes of one host, or two hosts with one clock, show
 * the delays of both directions.
 *
 * Processes of one host have one clock: its number in both files, or records of lanes through
 * shared memory, show that two captures are of one host. A copy of a virtual machine has the number
 * of the first one, so frames must not contradict it.
 *
 * A flight recorder has the time at which a progress call began, which polled up to CALL_NS later.
 *
 * Frames are sampled by a hash, so all captures have the same samples. Memory is bounded: when
 * there are too many samples, about half of them are dropped.
 */

#define SAMPLES (1u << 17)
#define PEEK 512u
#define STRETCHES 32
#define DRIFT_NS 1000000000u   /* ns; shorter captures are too short for a drift */
#define DRIFT_MOST 200e-6      /* greatest drift: the crystals of both hosts are within 100 ppm */
#define DRIFT_STRETCHES 8u     /* stretches with frames both ways, at least */
#define DRIFT_SPREAD 2e-6      /* quartiles of slopes are at most this, or the median, apart */
#define EQUAL_NS 20000000      /* ns, at most, of both least delays together, for equal clocks */
#define HOST_NS 10000000       /* ns; frames that come this long before they are sent: two clocks */
#define CALL_NS 100000         /* ns; flight recorders mark polls that begin later in their call */
#define NEIGHBOUR_NS 10000000u /* most ns between two frames that are compared */
#define VOTES 8u /* pairs of neighbours, at least, of which three quarters agree on a station */

struct sighting {
	uint64_t id, time;
	uint16_t iface;
	uint8_t file, way;
	uint8_t from, to; /* addresses at its port, as survey_index() */
	bool host;        /* seen on a lane within one host, which has one clock */
};

struct sightings {
	struct sighting *s;
	unsigned int num;
	uint64_t mask;
};

/* ---- sampling ------------------------------------------------------------------------------- */

static uint64_t id_of(const struct weft_frame_hdr *h)
{
	uint64_t words[5], id = 0;
	unsigned int i;

	memcpy(words, (const uint8_t *)h + 2, sizeof(words));
	for (i = 0; i < 5; i++) {
		id = (id ^ words[i]) * 0x9e3779b97f4a7c15ull;
		id ^= id >> 31;
	}
	return id;
}

static void thin(struct sightings *all)
{
	unsigned int i, n = 0;

	all->mask = all->mask << 1 | 1;
	for (i = 0; i < all->num; i++)
		if (!(all->s[i].id & all->mask))
			all->s[n++] = all->s[i];
	all->num = n;
}

static void see(struct sightings *all, const struct dump_frame *frame, const struct dump_view *v,
		const struct survey_port *port, bool host)
{
	uint64_t id = id_of(v->hdr);

	if (id & all->mask)
		return;
	while (all->num == SAMPLES && all->mask != UINT64_MAX)
		thin(all);
	/* The mask has no further bit if all samples have one id, as crafted frames may. */
	if ((id & all->mask) || all->num == SAMPLES)
		return;
	all->s[all->num++] = (struct sighting){
		.id = id,
		.time = frame->time,
		.iface = frame->iface,
		.file = frame->file,
		.way = frame->way,
		.from = v->src_mac ? survey_index(port, v->src_mac) : SURVEY_NO_STATION,
		.to = v->dst_mac ? survey_index(port, v->dst_mac) : SURVEY_NO_STATION,
		.host = host,
	};
}

/* One capture alone needs no clock: its directions show in its first frames. */
static bool is_enough(const struct survey *s, const struct dump_file *file)
{
	return s->num == 1 && file->frames >= PEEK && !s->file[0].undirected;
}

static int look_through(const char *name, uint8_t index, struct survey *s, struct sightings *all)
{
	struct dump_frame frame;
	struct dump_file *file;
	struct dump_view view;
	char why[400];

	file = dump_file_open(name, index, why, sizeof(why));
	if (!file) {
		cli_error("%s", why);
		return APP_FAIL;
	}
	while (!s->partial && dump_file_next(file, &frame)) {
		dump_decode(&frame, &view);
		survey_frame(s, file, &frame, &view);
		if (view.what == DUMP_LANE || dump_record_is_unique(&view))
			see(all, &frame, &view, &s->file[index].port[frame.iface],
			    frame.record && !strncmp(file->iface[frame.iface].lane, "shm:", 4));
		s->partial = is_enough(s, file);
	}
	survey_file_end(s, file);
	dump_file_close(file);
	return APP_OK;
}

static int by_id(const void *a, const void *b)
{
	const struct sighting *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (int)x->way - (int)y->way;
}

/* ---- stations ------------------------------------------------------------------------------- */

/* A frame in two captures: how much later the other one has it. */
struct twin {
	uint64_t time;
	int64_t later;
	bool first; /* the frame is from the first of the two addresses */
};

static int by_time(const void *a, const void *b)
{
	const struct twin *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

/* Frames of a port that another capture has, too. @return their number */
static unsigned int twins(const struct sightings *all, uint8_t file, uint16_t iface,
			  const struct survey_port *port, const uint8_t pair[2], struct twin *twin)
{
	const struct sighting *x, *y;
	bool first;
	unsigned int i, k, n = 0;

	for (i = 0; i + 1 < all->num; i++) {
		if (all->s[i].id != all->s[i + 1].id || all->s[i].file == all->s[i + 1].file)
			continue;
		for (k = 0; k < 2; k++) {
			x = &all->s[i + k];
			y = &all->s[i + !k];
			if (x->file != file || x->iface != iface)
				continue;
			first = index_is_of(port, pair[0], x->from);
			if (first || index_is_of(port, pair[1], x->from))
				twin[n++] =
					(struct twin){x->time, (int64_t)(y->time - x->time), first};
		}
	}
	return n;
}

/*
 * Frames that the port's host sent are later elsewhere. Frames that it received are earlier
 * elsewhere. Neighbours in time are compared, since the clocks differ by an unknown amount.
 */
static void vote(const struct sightings *all, uint8_t file, uint16_t iface,
		 struct survey_port *port, const uint8_t pair[2], struct twin *twin)
{
	unsigned int i, n = twins(all, file, iface, port, pair, twin), votes[2] = {0, 0};
	int64_t by;

	qsort(twin, n, sizeof(*twin), by_time);
	for (i = 0; i + 1 < n; i++) {
		if (twin[i].first == twin[i + 1].first ||
		    twin[i + 1].time - twin[i].time > NEIGHBOUR_NS)
			continue;
		by = twin[i].later - twin[i + 1].later;
		if (by)
			votes[(by > 0) == twin[i].first ? 0 : 1]++;
	}
	n = votes[0] + votes[1];
	if (n >= VOTES && 4 * votes[0] >= 3 * n)
		port->station = pair[0];
	else if (n >= VOTES && 4 * votes[1] >= 3 * n)
		port->station = pair[1];
}

static uint8_t way_of(const struct survey_port *p, const struct sighting *s)
{
	if (s->way != DUMP_WAY_UNKNOWN || p->station == SURVEY_NO_STATION)
		return s->way;
	return index_is_of(p, p->station, s->from) ? DUMP_OUT
	       : index_is_of(p, p->station, s->to) ? DUMP_IN
						   : DUMP_WAY_UNKNOWN;
}

/*
 * Captures of the processes of a weft-switch, and of its uplink: a frame leaves two ports. The
 * uplink is between hosts then, and has no station.
 */
static void leave_middle(const struct sightings *all, uint8_t file, uint16_t iface,
			 struct survey_port *p)
{
	const struct sighting *x, *y;
	unsigned int i, k, twice = 0;

	for (i = 0; i + 1 < all->num; i++) {
		for (k = 0; k < 2 && all->s[i].id == all->s[i + 1].id; k++) {
			x = &all->s[i + k];
			y = &all->s[i + !k];
			twice += x->file == file && x->iface == iface && y->file != file &&
				 y->way != DUMP_WAY_UNKNOWN && way_of(p, x) == y->way;
		}
	}
	if (twice >= VOTES)
		p->station = SURVEY_NO_STATION;
}

/* Find the stations of all ports, and with them directions. @return 0 or -ENOMEM */
static int stations(struct survey *survey, struct sightings *all)
{
	struct twin *twin = malloc((all->num + 1) * sizeof(*twin));
	struct survey_port *p;
	struct sighting *s;
	unsigned int i, n;
	uint8_t pair[2];

	if (!twin)
		return -ENOMEM;
	survey_stations(survey);
	for (i = 0; i < survey->num; i++) {
		for (n = 0; n < DUMP_IFACES; n++) {
			p = &survey->file[i].port[n];
			if (p->undirected && survey_pair(p, pair))
				vote(all, (uint8_t)i, (uint16_t)n, p, pair, twin);
			if (p->undirected && p->station != SURVEY_NO_STATION)
				leave_middle(all, (uint8_t)i, (uint16_t)n, p);
		}
	}
	free(twin);
	for (i = 0; i < all->num; i++) {
		s = &all->s[i];
		s->way = way_of(&survey->file[s->file].port[s->iface], s);
	}
	survey->done = true;
	return 0;
}

/* ---- two clocks ----------------------------------------------------------------------------- */

/* The least differences of a stretch of time, in each direction, ns. */
struct stretch {
	int64_t least[2];
	bool has[2];
};

struct two {
	struct stretch s[STRETCHES], all;
	uint64_t from, to;
	bool host;
	int64_t early; /* ns by which a frame may have come after its time stamp, at most */
};

static void least(struct stretch *s, unsigned int dir, int64_t d)
{
	if (!s->has[dir] || d < s->least[dir])
		s->least[dir] = d;
	s->has[dir] = true;
}

/*
 * Is this one of the last frames of a flight recorder's lane? Their progress call may not have
 * ended when the file was written, so a pause in it is not marked.
 */
static bool is_open(const struct survey *survey, const struct sighting *in)
{
	const struct survey_file *f = &survey->file[in->file];

	return f->recorder && in->time == f->port[in->iface].last;
}

/*
 * Pair the sightings of each frame that one of both captures has as sent and the other as received.
 * The difference is how far the clock of @p b is ahead of that of @p a, plus the delay of the path
 * (direction 0: from a to b) or minus it (direction 1).
 */
static void each_pair(const struct sightings *all, const struct survey *survey, uint8_t a,
		      uint8_t b, struct two *two, bool stretches)
{
	const struct sighting *x = all->s, *y;
	uint64_t width = (two->to - two->from) / STRETCHES + 1, at;
	unsigned int i, dir;
	int64_t d;

	for (i = 0; i + 1 < all->num; i++) {
		x = &all->s[i];
		y = &all->s[i + 1];
		if (x->id != y->id || x->way != DUMP_IN || y->way != DUMP_OUT || is_open(survey, x))
			continue;
		if (!((x->file == b && y->file == a) || (x->file == a && y->file == b)))
			continue;
		two->host = two->host || x->host;
		dir = y->file == b;
		at = x->file == a ? x->time : y->time;
		d = dir ? (int64_t)(y->time - x->time) : (int64_t)(x->time - y->time);
		/*
		 * For the reverse direction the maximum is needed, as the minimum of the negatives.
		 */
		d = dir ? -d : d;
		if (stretches) {
			least(&two->s[(at - two->from) / width], dir, d);
			continue;
		}
		least(&two->all, dir, d);
		two->from = at < two->from ? at : two->from;
		two->to = at > two->to ? at : two->to;
	}
}

static bool middle(const struct stretch *s, int64_t *ahead)
{
	if (s->has[0] && s->has[1])
		*ahead = s->least[0] / 2 - s->least[1] / 2;
	return s->has[0] && s->has[1];
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/*
 * The median of the slopes between stretches (Theil and Sen). On busy hosts stretches contradict
 * each other: then there is no drift. @return whether there is one
 */
static bool slope(const struct two *two, struct trace_clock *clock)
{
	static double found[STRETCHES * STRETCHES / 2];
	double width = (double)(two->to - two->from) / STRETCHES;
	unsigned int i, j, n = 0, stretches = 0;
	double spread;
	int64_t a, b;

	for (i = 0; i < STRETCHES; i++) {
		stretches += middle(&two->s[i], &a);
		for (j = i + 1; j < STRETCHES; j++)
			if (middle(&two->s[i], &a) && middle(&two->s[j], &b))
				found[n++] = (double)(b - a) / (width * (j - i));
	}
	if (stretches < DRIFT_STRETCHES)
		return false;
	qsort(found, n, sizeof(found[0]), by_value);
	clock->drift = found[n / 2];
	spread = found[3 * n / 4] - found[n / 4];
	clock->drift_error = spread / 2;
	return fabs(clock->drift) <= DRIFT_MOST &&
	       spread <= (fabs(clock->drift) > DRIFT_SPREAD ? fabs(clock->drift) : DRIFT_SPREAD);
}

/* Without a correction, does any frame arrive more than @p early before it was sent? */
static bool contradict(const struct two *two, int64_t early)
{
	return (two->all.has[0] && two->all.least[0] < -early) ||
	       (two->all.has[1] && two->all.least[1] < -early);
}

/*
 * Are the clocks equal? Without a correction, no frame arrives more than `early` before it was
 * sent, and the least delays of both directions add up to at most EQUAL_NS.
 */
static bool are_equal(const struct two *two)
{
	return two->all.has[0] && two->all.has[1] && !contradict(two, two->early) &&
	       two->all.least[0] + two->all.least[1] <= EQUAL_NS;
}

/* How far b is ahead at the beginning: the median of what the stretches give. */
static int64_t at_begin(const struct two *two, double drift)
{
	double width = (double)(two->to - two->from) / STRETCHES, found[STRETCHES];
	unsigned int i, n = 0;
	int64_t ahead;

	for (i = 0; i < STRETCHES; i++)
		if (middle(&two->s[i], &ahead))
			found[n++] = (double)ahead - drift * width * i;
	qsort(found, n, sizeof(found[0]), by_value);
	return (int64_t)found[n / 2];
}

/* @return whether one capture has a frame as sent that the other one has as received */
static bool compare(const struct sightings *all, const struct survey *survey, uint8_t a, uint8_t b,
		    struct trace_clock *clock)
{
	const struct survey_file *f = &survey->file[a], *g = &survey->file[b];
	struct two two = {.from = UINT64_MAX, .early = f->recorder || g->recorder ? CALL_NS : 0};
	int64_t ahead;

	each_pair(all, survey, a, b, &two, false);
	if (!two.all.has[0] && !two.all.has[1])
		return false;
	/* The delay of shared memory is that of busy cores, and no measure of clocks. */
	if (two.host) {
		*clock = (struct trace_clock){.known = true, .at = two.from};
		return true;
	}
	if (are_equal(&two) || (f->host && f->host == g->host && !contradict(&two, HOST_NS))) {
		*clock = (struct trace_clock){.known = true, .equal = true, .at = two.from};
		return true;
	}
	if (!middle(&two.all, &ahead)) /* one direction only: its delay is taken as 0 */
		ahead = two.all.has[0] ? two.all.least[0] : -two.all.least[1];
	*clock = (struct trace_clock){.known = true, .offset = ahead};
	if (two.to - two.from >= DRIFT_NS) {
		each_pair(all, survey, a, b, &two, true);
		if (slope(&two, clock))
			clock->offset = at_begin(&two, clock->drift);
		else
			clock->drift = clock->drift_error = 0;
	}
	clock->at = two.from + (uint64_t)clock->offset; /* the beginning, by b's clock */
	return true;
}

/* ---- all of them ---------------------------------------------------------------------------- */

/* @p a: relative to its base. @p b: relative to a. @return b, relative to that base */
static struct trace_clock chained(const struct trace_clock *a, const struct trace_clock *b)
{
	struct trace_clock c = *b;
	uint64_t at = b->at - (uint64_t)b->offset; /* the time of b->at, by a's clock */

	c.offset += a->offset + (int64_t)(a->drift * (double)(int64_t)(at - a->at));
	c.drift += a->drift;
	c.equal = a->equal && b->equal;
	c.base = a->base;
	return c;
}

/* Relate captures to that of @p base, which no other one is related to so far. */
static void relate_to(const struct sightings *all, const struct survey *survey, unsigned int num,
		      uint8_t base, struct trace_clock *clock)
{
	struct trace_clock c;
	unsigned int a, b, found = 0;
	bool more = true;

	clock[base] = (struct trace_clock){.known = true, .equal = true, .base = base};
	while (more) {
		more = false;
		for (a = base; a < num; a++) {
			for (b = 0; clock[a].known && clock[a].base == base && b < num; b++) {
				if (clock[b].known ||
				    !compare(all, survey, (uint8_t)a, (uint8_t)b, &c))
					continue;
				clock[b] = chained(&clock[a], &c);
				more = true;
				found++;
			}
		}
	}
	clock[base].known = found || num == 1;
}

static void relate(const struct sightings *all, const struct survey *survey, unsigned int num,
		   struct trace_clock *clock)
{
	unsigned int i;

	for (i = 0; i < num; i++)
		if (!clock[i].known)
			relate_to(all, survey, num, (uint8_t)i, clock);
}

int trace_clocks(char *const *names, unsigned int num, struct trace_clock *clock,
		 struct survey *survey)
{
	struct sightings all = {.s = malloc(SAMPLES * sizeof(*all.s))};
	unsigned int i;
	int ret = APP_OK;

	memset(clock, 0, num * sizeof(*clock));
	if (!all.s || survey_make(survey, num)) {
		free(all.s);
		cli_error("no memory");
		return APP_FAIL;
	}
	for (i = 0; i < num && ret == APP_OK; i++) {
		if (!strcmp(names[i], "-")) {
			if (num == 1)
				break; /* standard input is read once: no directions are inferred */
			cli_error("captures that are compared are read twice, which standard input "
				  "can't be: write it to a file");
			ret = APP_USAGE;
		} else {
			ret = look_through(names[i], (uint8_t)i, survey, &all);
		}
	}
	qsort(all.s, all.num, sizeof(*all.s), by_id);
	if (ret == APP_OK && stations(survey, &all)) {
		cli_error("no memory");
		ret = APP_FAIL;
	}
	qsort(all.s, all.num, sizeof(*all.s), by_id);
	if (ret == APP_OK)
		relate(&all, survey, num, clock);
	free(all.s);
	return ret;
}
