/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two workers in one process, each with lanes of its own, again and again over the same ports: EAL
 * and PMDs live on from one case to the next, so each is also a port opened anew, mostly with
 * another MTU.
 *
 *	nic_pair <CASES		a case a line: NAME|LANES|LANES|WHAT...
 *
 * The lanes are as in WEFT_LANES, the EAL's arguments come from WEFT_EAL_ARGS. WHAT, by default
 * none:
 *	chains=N	so many frames at each end may come as chains of buffers
 *	both		both of two lanes carry 1 MiB messages
 *	rails		there are two lanes, which may carry what they like
 *	csum=WORDS	what the log says of the checksum that the ends agreed on
 *	refused=WORDS	the first worker can't be made, and a line with these words says why
 *
 * Each way 1 MiB and 8 B messages go, posted before they are sent, and every byte is compared. The
 * counters say how: data in as few frames as hold it, in whole buffers, copied once at each end.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "weft.h"

#define TIMEOUT_S 60
#define BIG ((size_t)1 << 20)
#define BIGS 4u
#define SMALL 8u
#define SMALLS 96u
#define WINDOW 32u
/*
 * What is not payload in a frame, at most: Ethernet with a tag, IP, UDP, two headers of Weft,
 * checksum.
 */
#define HEADERS 128u

struct test {
	char *name, *lanes[2], *refused, *csum;
	uint64_t chains;
	bool both, rails;
};

/* What a worker has counted, summed up over its lanes. */
struct counts {
	uint64_t data, again, chained, chained_copied, copy_only, zcopy, bad;
	uint64_t copied, received, unexpected;
};

struct side {
	struct weft_worker *worker;
	struct weft_ep *ep;
	void *address;
	size_t address_len;
	struct counts before, now;
};

static struct weft_context *ctx;
static struct side side[2];
static uint64_t *out[BIGS], *in[BIGS];
static char wrong[512]; /* the first thing that was */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

__attribute__((format(printf, 1, 2))) static bool fault(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (!*wrong)
		vsnprintf(wrong, sizeof(wrong), fmt, ap);
	va_end(ap);
	return false;
}

/* ---- both ends ------------------------------------------------------------------------------ */

static bool open_side(const struct test *t, int n)
{
	struct weft_worker_params p = WEFT_INIT(struct weft_worker_params, .lanes = t->lanes[n]);
	int rc = weft_worker_create(ctx, &p, &side[n].worker);

	if (!rc)
		rc = weft_worker_get_address(side[n].worker, &side[n].address,
					     &side[n].address_len);
	return rc ? fault("%s: %s", t->lanes[n], weft_strerror(rc)) : true;
}

static bool connect_side(int n)
{
	struct weft_ep_params p = WEFT_INIT(struct weft_ep_params, .address = side[!n].address);
	int rc;

	p.address_length = side[!n].address_len;
	rc = weft_ep_create(side[n].worker, &p, &side[n].ep);
	return rc ? fault("endpoint %d: %s", n, weft_strerror(rc)) : true;
}

static void progress(void)
{
	weft_worker_progress(side[0].worker);
	weft_worker_progress(side[1].worker);
}

static bool done(struct weft_request *req)
{
	return !req || weft_request_test(req, NULL) != WEFT_INPROGRESS;
}

static bool ended_well(struct weft_request *req, const char *what, unsigned int i)
{
	int rc = req ? weft_request_test(req, NULL) : 0;

	weft_request_free(req);
	return rc ? fault("%s %u: %s", what, i, weft_strerror(rc)) : true;
}

static bool connected(void)
{
	struct weft_ep_attr attr = WEFT_INIT(struct weft_ep_attr, .status = 0);
	double until = now() + TIMEOUT_S;
	int n;

	for (n = 0; n < 2; n++) {
		do {
			progress();
			weft_ep_query(side[n].ep, &attr);
		} while (attr.status == WEFT_INPROGRESS && now() < until);
		if (attr.status)
			return fault("end %d does not connect: %s", n, weft_strerror(attr.status));
	}
	return true;
}

/* All lanes of both ends have their link. */
static bool have_links(void)
{
	struct weft_iface_info info;
	unsigned int n, i;

	for (n = 0; n < 2; n++) {
		info = WEFT_INIT(struct weft_iface_info, .up = 0);
		for (i = 0; weft_worker_query_iface(side[n].worker, i, &info) == 0; i++)
			if (!info.up)
				return false;
	}
	return true;
}

/* A rail whose link is not up when the ends connect is left out, and a NIC's takes its time. */
static bool wait_for_links(void)
{
	double until = now() + TIMEOUT_S;

	while (!have_links()) {
		if (now() > until)
			return fault("not all links came up");
		progress();
	}
	return true;
}

/* Both ends have a second lane, and it is up. */
static bool has_rails(void)
{
	struct weft_lane_info info;
	int n;

	for (n = 0; n < 2; n++) {
		info = WEFT_INIT(struct weft_lane_info, .state = WEFT_LANE_STATE_DOWN);
		if (weft_ep_query_lane(side[n].ep, 1, &info) || info.state != WEFT_LANE_STATE_UP)
			return false;
	}
	return true;
}

/* The first lane makes the connection; others join it. */
static bool rails_joined(void)
{
	double until = now() + TIMEOUT_S;

	while (!has_rails()) {
		if (now() > until)
			return fault("there is no second lane");
		progress();
	}
	return true;
}

static bool open_both(const struct test *t)
{
	bool rails = t->both || t->rails;
	struct weft_config *config;
	int rc = weft_config_read(&config);

	if (rc)
		return fault("configuration: %s", weft_strerror(rc));
	/* Emulated time jumps. */
	weft_config_modify(config, "CONNECT_TIMEOUT", "30s");
	if (t->csum)
		weft_config_modify(config, "LOG_LEVEL", "info");
	struct weft_context_params p = WEFT_INIT(struct weft_context_params, .config = config);
	rc = weft_context_create(&p, &ctx);
	weft_config_release(config);
	if (rc)
		return fault("context: %s", weft_strerror(rc));
	if (!open_side(t, 0) || !open_side(t, 1))
		return false;
	if (rails && !wait_for_links())
		return false;
	return connect_side(0) && connect_side(1) && connected() && (!rails || rails_joined());
}

/* In good order: what was sent last has been acknowledged. */
static void close_both(void)
{
	struct weft_request *req[2] = {NULL, NULL};
	double until = now() + TIMEOUT_S;
	int n;

	for (n = 0; n < 2; n++)
		if (side[n].ep)
			weft_ep_close(side[n].ep, 0, NULL, &req[n]);
	while (side[0].ep && side[1].ep && (!done(req[0]) || !done(req[1])) && now() < until)
		progress();
	for (n = 0; n < 2; n++) {
		ended_well(req[n], "close", (unsigned int)n);
		if (side[n].address)
			weft_worker_release_address(side[n].worker, side[n].address);
	}
	weft_worker_destroy(side[0].worker);
	weft_worker_destroy(side[1].worker);
	if (ctx && weft_context_destroy(ctx))
		fault("the context can't be destroyed");
	ctx = NULL;
	memset(side, 0, sizeof(side));
}

/* ---- messages ------------------------------------------------------------------------------- */

static void fill(uint64_t *p, size_t len, uint64_t tag)
{
	uint64_t v = (tag + 1) * 0x9e3779b97f4a7c15ull;
	size_t i;

	for (i = 0; i < len / sizeof(*p); i++)
		p[i] = v += 0xbf58476d1ce4e5b9ull ^ v >> 31;
}

static bool holds(const uint64_t *p, size_t len, uint64_t tag)
{
	static uint64_t want[BIG / sizeof(uint64_t)];

	fill(want, len, tag);
	return memcmp(p, want, len) == 0;
}

/* @p count messages at once; every byte is compared. */
static bool batch(int from, size_t len, unsigned int count, uint64_t tag)
{
	struct weft_request *s[WINDOW] = {NULL}, *r[WINDOW] = {NULL};
	double until = now() + TIMEOUT_S;
	bool all = false, well = true;
	unsigned int i, at;

	for (i = 0; i < count && well; i++) {
		at = i % BIGS;
		memset(in[at] + i / BIGS, 0, len);
		well = weft_tag_recv(side[!from].worker, NULL, in[at] + i / BIGS, len, tag + i,
				     UINT64_MAX, NULL, &r[i]) >= 0;
	}
	for (i = 0; i < count && well; i++) {
		fill(out[i % BIGS] + i / BIGS, len, tag + i);
		well = weft_tag_send(side[from].ep, out[i % BIGS] + i / BIGS, len, tag + i, NULL,
				     &s[i]) >= 0;
	}
	while (well && !all && now() < until) {
		progress();
		for (all = true, i = 0; i < count; i++)
			all = all && done(s[i]) && done(r[i]);
	}
	if (!well || !all)
		return fault("messages of %zu bytes from end %d: %s", len, from,
			     well ? "not all came in time" : "they can't be posted");
	for (i = 0; i < count; i++) {
		well = ended_well(s[i], "send", i) && ended_well(r[i], "receive", i) && well;
		if (!holds(in[i % BIGS] + i / BIGS, len, tag + i))
			well = fault("message %u of %zu bytes from end %d is wrong", i, len, from);
	}
	return well;
}

/* ---- counters ------------------------------------------------------------------------------- */

static bool ends_with(const char *name, const char *what)
{
	size_t n = strlen(name), w = strlen(what);

	return n >= w && strcmp(name + n - w, what) == 0;
}

static void count(const char *name, uint64_t value, void *arg)
{
	static const char *const bad[] = {".drop.bad_length",    ".drop.bad_ip",
					  ".drop.bad_magic",     ".drop.bad_version",
					  ".drop.bad_type",      ".drop.bad_message",
					  ".drop.bad_csum",      ".drop.too_long",
					  ".drop.beyond_window", ".drop.bad_ack"};
	struct counts *c = arg;
	size_t i;

	if (ends_with(name, ".tx.data"))
		c->data += value;
	else if (strstr(name, ".tx.retransmit.") && !ends_with(name, ".copied"))
		c->again += value;
	else if (ends_with(name, ".rx.chained"))
		c->chained += value;
	else if (ends_with(name, ".rx.chained.copied"))
		c->chained_copied += value;
	else if (ends_with(name, ".rx.copy_only"))
		c->copy_only += value;
	else if (ends_with(name, ".tx.zcopy"))
		c->zcopy += value;
	else if (strcmp(name, "copied_bytes") == 0)
		c->copied += value;
	else if (strcmp(name, "rx_copied_bytes") == 0)
		c->received += value;
	else if (strcmp(name, "tag.unexpected") == 0)
		c->unexpected += value;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (!value || !ends_with(name, bad[i]))
			continue;
		c->bad += value;
		fault("%s is %llu", name, (unsigned long long)value);
	}
}

static void count_both(void)
{
	int n;

	for (n = 0; n < 2; n++) {
		side[n].before = side[n].now;
		memset(&side[n].now, 0, sizeof(side[n].now));
		weft_worker_counters(side[n].worker, count, &side[n].now);
	}
}

#define SINCE(n, what) (side[n].now.what - side[n].before.what)

/* The shortest and the longest of the lanes' frames. */
static void frame_sizes(int n, size_t *least, size_t *most)
{
	struct weft_iface_info info = WEFT_INIT(struct weft_iface_info, .up = 0);
	unsigned int i;

	*least = *most = 0;
	for (i = 0; weft_worker_query_iface(side[n].worker, i, &info) == 0; i++) {
		if (strcmp(info.driver, "dpdk") != 0)
			continue;
		if (!*least || info.frame_size < *least)
			*least = info.frame_size;
		if (info.frame_size > *most)
			*most = info.frame_size;
	}
}

/*
 * Each byte was copied once by the sender, into its frame, and once by the receiver, to its place.
 * A NIC that reads user memory spares the first, but for ends of messages; the sender does not
 * count its shortest messages.
 */
static bool copied_once(const struct test *t, int from, size_t len, unsigned int messages)
{
	uint64_t bytes = len * messages, sent = SINCE(from, copied), got = SINCE(!from, received);
	uint64_t least = bytes, most = bytes;

	if (SINCE(from, zcopy) || len == SMALL) {
		least = 0;
		most = len == SMALL ? 0 : bytes / 20;
	}
	printf("# end %d, %zu B: %.2f copies a byte by the sender, %.2f by the receiver\n", from,
	       len, (double)sent / (double)bytes, (double)got / (double)bytes);
	if (sent < least || sent > most)
		return fault("the sender copied %llu bytes, %llu to %llu should do",
			     (unsigned long long)sent, (unsigned long long)least,
			     (unsigned long long)most);
	if (got != bytes)
		return fault("the receiver copied %llu bytes of %llu", (unsigned long long)got,
			     (unsigned long long)bytes);
	if (SINCE(!from, chained_copied) > t->chains || SINCE(!from, unexpected) ||
	    SINCE(!from, copy_only))
		return fault(
			"%llu frames were put together first, %llu messages put aside before their "
			"place was known, %llu copied",
			(unsigned long long)SINCE(!from, chained_copied),
			(unsigned long long)SINCE(!from, unexpected),
			(unsigned long long)SINCE(!from, copy_only));
	return true;
}

/*
 * What the last messages cost. Those that fit a frame may share one with others; longer ones fill
 * their frames, and a few more frames carry what the protocols say.
 */
static bool frugal(const struct test *t, int from, size_t len, unsigned int messages)
{
	size_t shortest, longest, room;
	uint64_t data, least, most;

	frame_sizes(from, &shortest, &longest);
	room = shortest - HEADERS;
	most = messages * (len > room ? (len + room - 1) / room + 2 : 1) + 8;
	least = messages * len / longest;
	count_both();
	data = SINCE(from, data);
	printf("# end %d, %zu B: %.2f frames of at most %zu bytes a message, %llu sent again, %llu "
	       "chained\n",
	       from, len, (double)data / messages, longest, (unsigned long long)SINCE(from, again),
	       (unsigned long long)SINCE(!from, chained));
	if (data < least || data > most)
		return fault("%u messages of %zu bytes took %llu frames, %llu to %llu should do",
			     messages, len, (unsigned long long)data, (unsigned long long)least,
			     (unsigned long long)most);
	if (SINCE(!from, chained) > t->chains)
		return fault("%llu frames came as chains of buffers",
			     (unsigned long long)SINCE(!from, chained));
	return copied_once(t, from, len, messages);
}

/*
 * Each of two lanes has carried a twentieth at least. Of lanes that differ in speed only what they
 * carried is printed: the emulation decides it.
 */
static bool both_carried(int n, bool alike)
{
	struct weft_lane_info info[2];
	int i;

	for (i = 0; i < 2; i++) {
		memset(&info[i], 0, sizeof(info[i]));
		info[i].size = sizeof(info[i]);
		if (weft_ep_query_lane(side[n].ep, (unsigned int)i, &info[i]))
			return fault("end %d has no lane %d", n, i);
	}
	printf("# end %d: %llu and %llu bytes\n", n, (unsigned long long)info[0].tx_bytes,
	       (unsigned long long)info[1].tx_bytes);
	if (!alike ||
	    (info[0].tx_bytes * 20 > info[1].tx_bytes && info[1].tx_bytes * 20 > info[0].tx_bytes))
		return true;
	return fault("%s carried %llu bytes, %s %llu", info[0].name,
		     (unsigned long long)info[0].tx_bytes, info[1].name,
		     (unsigned long long)info[1].tx_bytes);
}

/* ---- a case --------------------------------------------------------------------------------- */

static bool stream(const struct test *t, int from)
{
	unsigned int i;

	count_both();
	if (!batch(from, BIG, BIGS, 0) || !frugal(t, from, BIG, BIGS))
		return false;
	if ((t->both || t->rails) && !both_carried(from, t->both))
		return false;
	for (i = 0; i < SMALLS; i += WINDOW)
		if (!batch(from, SMALL, WINDOW, i))
			return false;
	return frugal(t, from, SMALL, i);
}

static void run(const struct test *t)
{
	double begin = now(), up;

	if (open_both(t)) {
		up = now();
		if (stream(t, 0))
			stream(t, 1);
		count_both();
		printf("# up after %.2f s, done after %.2f s\n", up - begin, now() - begin);
	}
	close_both();
}

/* What is written to standard error goes into a file; @return its former self. */
static int divert(int file)
{
	int old;

	fflush(stderr);
	old = dup(STDERR_FILENO);
	dup2(file, STDERR_FILENO);
	return old;
}

/* The line of the log that tells of the connection says @p csum. */
static bool agreed(const char *logged, const char *csum)
{
	const char *line = strstr(logged, ": connected with "), *end;

	if (!line)
		return fault("the log tells of no connection");
	end = line + strcspn(line, "\n");
	line = strstr(line, csum);
	return line && line < end ? true : fault("the ends did not agree on '%s'", csum);
}

static void run_case(const struct test *t, unsigned int number)
{
	int file = memfd_create("nic_pair", 0), old = divert(file);
	char logged[16384];
	ssize_t len;

	*wrong = '\0';
	run(t);
	fflush(stderr);
	dup2(old, STDERR_FILENO);
	close(old);
	len = pread(file, logged, sizeof(logged) - 1, 0);
	logged[len < 0 ? 0 : len] = '\0';
	close(file);
	if (t->csum && !*wrong)
		agreed(logged, t->csum);
	fprintf(stderr, "---- %s\n%s%s\n", t->name, logged, wrong);
	if (t->refused && *wrong && strstr(logged, t->refused))
		*wrong = '\0';
	else if (t->refused)
		fault("nothing said '%s'", t->refused);
	printf("%sok %u - %s\n", *wrong ? "not " : "", number, t->name);
	if (*wrong)
		printf("# %s\n", wrong);
	fflush(stdout);
}

static bool parse(char *line, struct test *t)
{
	char *rest = NULL, *word;

	memset(t, 0, sizeof(*t));
	line[strcspn(line, "\n")] = '\0';
	t->name = strtok_r(line, "|", &rest);
	t->lanes[0] = strtok_r(NULL, "|", &rest);
	t->lanes[1] = strtok_r(NULL, "|", &rest);
	while ((word = strtok_r(NULL, "|", &rest))) {
		if (strncmp(word, "chains=", 7) == 0)
			t->chains = strtoull(word + 7, NULL, 10);
		else if (strcmp(word, "both") == 0)
			t->both = true;
		else if (strcmp(word, "rails") == 0)
			t->rails = true;
		else if (strncmp(word, "csum=", 5) == 0)
			t->csum = word + 5;
		else if (strncmp(word, "refused=", 8) == 0)
			t->refused = word + 8;
		else
			return false;
	}
	return t->lanes[1] != NULL;
}

int main(void)
{
	unsigned int number = 0, failed = 0, i;
	char line[1024];
	struct test t;

	for (i = 0; i < BIGS; i++) {
		out[i] = malloc(BIG + WINDOW * sizeof(uint64_t));
		in[i] = malloc(BIG + WINDOW * sizeof(uint64_t));
		if (!out[i] || !in[i])
			return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		if (!parse(line, &t)) {
			fprintf(stderr, "nic_pair: bad case '%s'\n", line);
			return 2;
		}
		run_case(&t, ++number);
		failed += *wrong != '\0';
	}
	printf("1..%u\n", number);
	return failed || !number;
}
