/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures and the flight recorder as a lane sees them; weft-dump's reader reads their files. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/host.h"
#include "capture/capture.h"
#include "capture/capture_file.h"
#include "capture_util.h"
#include "dump/decode.h"
#include "dump/file.h"
#include "eal.h"
#include "frame/arp.h"
#include "frame/frame.h"

#define BURST 8u
#define LARGE 8000u
#define SMALL 90u
#define SHORT 61u

static struct rte_mempool *pool;
static struct weft_frame_port port = {
	.name = "7",
	.device = "net_test",
	.frame_size = 9014,
	.mac = {2, 0, 0, 0, 0, 1},
	.bandwidth = 1.25e9,
};
static struct weft_lane_conf conf = {.recorder = 128, .recorder_file = ""};
static char folder[] = "/tmp/weft-capture-XXXXXX", file[64], recorder_file[128];

/* ---- a lane, and what is in a file ---- */

static struct rte_mbuf *frame_of(uint16_t len, uint8_t port_number)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *p = (uint8_t *)rte_pktmbuf_append(m, len);

	memset(p, 0, len);
	p[12] = 8; /* IPv4, UDP */
	p[14] = 0x45;
	p[23] = 17;
	p[37] = port_number;
	return m;
}

/* A burst of which the port takes a part. */
static void show(struct weft_tap *tap, struct rte_mbuf **m, unsigned int n, unsigned int taken,
		 enum weft_pcapng_direction direction)
{
	weft_tap_offer(tap, m, n, direction, weft_platform_host.now(NULL));
	weft_tap_taken(tap, taken);
}

static struct weft_tap *tap_of(const char *capture)
{
	conf.capture = capture;
	return weft_tap_open(&port, &weft_platform_host, 1, &conf);
}

static void stop(struct weft_capture_state *state)
{
	char why[300];

	assert_int_equal(weft_capture_stop(state, why, sizeof(why)), 0);
}

/* ---- captures ---- */

/*
 * @behaviour Y28: captures are started, filtered and stopped while lanes run; records that do not
 * fit are dropped, and frames = records + drops; a failing capture does not affect the lane; a
 * flight recorder has the last frames
 */
static void what_is_sent_is_in_the_file_or_counted(void **state)
{
	static const char text[] = ",ring=256k,size=1G";
	struct weft_capture_state end;
	struct rte_mbuf *m[BURST];
	char capture[128];
	uint64_t sent = 0;
	struct seen seen;
	struct weft_tap *tap;

	(void)state;
	snprintf(capture, sizeof(capture), "%s%s", file, text);
	tap = tap_of(capture);
	for (unsigned int i = 0; i < BURST; i++)
		m[i] = frame_of(i % 2 ? LARGE : SMALL, 1);
	/* Faster than anybody writes 256 KiB, and parts of bursts only. */
	for (unsigned int i = 0; i < 4000; i++) {
		show(tap, m, BURST, i % (BURST + 1), i % 2 ? WEFT_PCAPNG_OUT : WEFT_PCAPNG_IN);
		sent += i % (BURST + 1);
	}
	stop(&end);
	seen = capture_seen(file);
	assert_int_equal(end.frames + end.dropped, sent);
	assert_int_equal(seen.frames, end.frames);
	assert_int_equal(seen.dropped, end.dropped);
	assert_true(seen.frames > 0 && end.dropped > 0);
	assert_true(seen.in > 0 && seen.in < seen.frames);
	assert_string_equal(seen.name, "dpdk:7 (net_test)");
	rte_pktmbuf_free_bulk(m, BURST);
	weft_tap_close(tap);
}

/* @behaviour Y28 */
static void it_is_started_filtered_and_stopped_while_frames_pass(void **state)
{
	struct rte_mbuf *m[2] = {frame_of(LARGE, 1), frame_of(SMALL, 2)};
	struct weft_tap *tap = tap_of(NULL), *later;
	struct weft_capture_state now;
	char command[128], why[300];
	struct seen seen;

	(void)state;
	show(tap, m, 2, 2, WEFT_PCAPNG_IN);
	snprintf(command, sizeof(command), "%s,filter=udp dst port 1,snaplen=128", file);
	assert_int_equal(weft_capture_start(command, why, sizeof(why)), 0);
	assert_int_equal(weft_capture_start(command, why, sizeof(why)), -EBUSY);
	show(tap, m, 2, 2, WEFT_PCAPNG_IN); /* one of them */
	assert_int_equal(weft_capture_refilter("udp dst prt 2", why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "udp dst prt 2"));
	show(tap, m, 2, 2, WEFT_PCAPNG_IN); /* as before */
	assert_int_equal(weft_capture_refilter("less 100", why, sizeof(why)), 0);
	show(tap, m, 2, 2, WEFT_PCAPNG_IN); /* the other one */
	later = tap_of(NULL);
	show(later, m, 2, 2, WEFT_PCAPNG_OUT);
	assert_true(weft_capture_query(0, &now));
	assert_int_equal(now.interfaces, 2);
	stop(&now);
	show(tap, m, 2, 2, WEFT_PCAPNG_IN);
	assert_int_equal(weft_capture_stop(&now, why, sizeof(why)), -ENOENT);
	seen = capture_seen(file);
	assert_int_equal(seen.frames, 4);
	assert_int_equal(seen.in, 3);
	assert_int_equal(seen.interfaces, 2);
	assert_int_equal(seen.caplen, 128);
	assert_int_equal(seen.longest, LARGE);
	rte_pktmbuf_free_bulk(m, 2);
	weft_tap_close(later);
	weft_tap_close(tap);
}

/* @behaviour Y28 */
static void files_are_rotated_by_size(void **state)
{
	struct weft_capture_state end;
	struct rte_mbuf *m[BURST];
	char command[128], name[80];
	struct weft_tap *tap;
	struct stat st;
	uint64_t kept;

	(void)state;
	snprintf(command, sizeof(command), "%s,size=1M,files=3,ring=16M", file);
	tap = tap_of(command);
	for (unsigned int i = 0; i < BURST; i++)
		m[i] = frame_of(LARGE, 1);
	for (unsigned int i = 0; i < 100; i++) /* 6.4 MB: all are in the ring */
		show(tap, m, BURST, BURST, WEFT_PCAPNG_OUT);
	weft_tap_close(tap);
	stop(&end);
	assert_int_equal(end.frames, 100 * BURST);
	kept = capture_seen(file).frames;
	for (unsigned int i = 1; i < 3; i++) {
		snprintf(name, sizeof(name), "%s.%u", file, i);
		kept += capture_seen(name).frames;
		assert_int_equal(stat(name, &st), 0);
		assert_true(st.st_size >= 1 << 20 && st.st_size < (1 << 20) + 65536);
		assert_int_equal(st.st_mode & 0777, 0600);
	}
	assert_true(kept < end.frames && kept > 200);
	snprintf(name, sizeof(name), "%s.3", file);
	assert_int_not_equal(stat(name, &st), 0);
	rte_pktmbuf_free_bulk(m, BURST);
}

/*
 * A program that creates a second context finds the capture of its first one, whose file the user
 * has moved away.
 *
 * @behaviour Y28
 */
static void a_file_that_was_removed_is_begun_again(void **state)
{
	struct rte_mbuf *m = frame_of(SMALL, 1);
	struct weft_capture_state end;
	struct weft_tap *tap, *later;
	char moved[80];

	(void)state;
	snprintf(moved, sizeof(moved), "%s.moved", file);
	tap = tap_of(file);
	show(tap, &m, 1, 1, WEFT_PCAPNG_OUT);
	weft_tap_close(tap);
	assert_int_equal(rename(file, moved), 0);
	tap = tap_of(file);
	for (unsigned int i = 0; i < 3; i++)
		show(tap, &m, 1, 1, WEFT_PCAPNG_OUT);
	/* A file that is there is continued. */
	later = tap_of(file);
	show(later, &m, 1, 1, WEFT_PCAPNG_OUT);
	weft_tap_close(later);
	assert_int_equal(capture_seen(moved).frames, 1);
	assert_int_equal(capture_seen(file).frames, 4);
	/* The first lane is open still. */
	assert_int_equal(unlink(file), 0);
	later = tap_of(file);
	show(tap, &m, 1, 1, WEFT_PCAPNG_OUT);
	show(later, &m, 1, 1, WEFT_PCAPNG_OUT);
	weft_tap_close(tap);
	weft_tap_close(later);
	stop(&end);
	assert_int_equal(end.frames, 7);
	assert_int_equal(capture_seen(file).frames, 2);
	assert_int_equal(capture_seen(file).interfaces, 2);
	rte_pktmbuf_free(m);
}

/* @behaviour Y28 */
static void a_capture_that_cannot_be_leaves_the_lane_alone(void **state)
{
	static const char *const bad[] = {
		"/nowhere/x.pcapng", ",filter=udp",         "/tmp/x,filter=no such thing",
		"/tmp/x,snaplen=1",  "/tmp/x,snaplen=many", "/tmp/x,ring=1k",
		"/tmp/x,files=0",    "/tmp/x,size=1",       "/tmp/x,colour=red",
		"/tmp/x,filter=",
	};
	struct rte_mbuf *m = frame_of(LARGE, 1);
	struct weft_capture_state now;
	struct weft_tap *tap;
	char why[400];

	(void)state;
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		why[0] = '\0';
		assert_true(weft_capture_start(bad[i], why, sizeof(why)) < 0);
		assert_true(strlen(why) > 10);
		tap = tap_of(bad[i]);
		show(tap, &m, 1, 1, WEFT_PCAPNG_OUT);
		assert_false(weft_capture_query(0, &now));
		weft_tap_close(tap);
	}
	/* A disk that is full. */
	tap = tap_of("/dev/full");
	for (unsigned int i = 0; i < 100; i++)
		show(tap, &m, 1, 1, WEFT_PCAPNG_OUT);
	stop(&now);
	assert_int_equal(now.frames + now.dropped, 100);
	rte_pktmbuf_free(m);
	weft_tap_close(tap);
}

/* At the name of a recorder's file in /tmp, say. */
static void what_others_made_does_not_get_the_frames(void **state)
{
	char name[80], why[400];
	int reader, fd;

	(void)state;
	if (access("/dev/loop0", W_OK) == 0)
		assert_int_equal(weft_capture_file_open("/dev/loop0", why, sizeof(why)), -EINVAL);
	if (geteuid() != 0) {
		print_message("left out: only root can make files of others\n");
		skip();
	}
	snprintf(name, sizeof(name), "%s/fifo", folder);
	assert_int_equal(mkfifo(name, 0600), 0);
	reader = open(name, O_RDONLY | O_NONBLOCK);
	fd = weft_capture_file_open(name, why, sizeof(why));
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(chown(name, 4711, 4711), 0);
	assert_int_equal(weft_capture_file_open(name, why, sizeof(why)), -EPERM);
	assert_non_null(strstr(why, "belongs to user 4711"));
	close(reader);
}

/* @behaviour Y28 */
static void a_fork_leaves_the_file_to_its_parent(void **state)
{
	struct rte_mbuf *m = frame_of(SMALL, 1);
	struct weft_capture_state end;
	struct weft_tap *tap = tap_of(file);
	int status;
	pid_t pid;

	(void)state;
	show(tap, &m, 1, 1, WEFT_PCAPNG_OUT);
	pid = fork();
	if (pid == 0) {
		show(tap, &m, 1, 1, WEFT_PCAPNG_OUT);
		_exit(weft_capture_query(0, &end));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	show(tap, &m, 1, 1, WEFT_PCAPNG_OUT);
	stop(&end);
	assert_int_equal(capture_seen(file).frames, 2);
	rte_pktmbuf_free(m);
	weft_tap_close(tap);
}

/*
 * Whatever becomes of the disk, lanes go on. A FIFO without a reader takes the place of one that
 * hangs: the capture is ended after two seconds, and what was shown meanwhile is counted.
 */
/* @behaviour Y28 */
static void a_disk_that_hangs_holds_up_no_lane(void **state)
{
	struct rte_mbuf *m = frame_of(LARGE, 1);
	struct weft_capture_state end;
	char name[80], capture[128];
	uint64_t begin, longest = 0, took, before;
	struct weft_tap *tap;
	int reader;

	(void)state;
	snprintf(name, sizeof(name), "%s/hangs", folder);
	assert_int_equal(mkfifo(name, 0600), 0);
	reader = open(name, O_RDONLY | O_NONBLOCK);
	snprintf(capture, sizeof(capture), "%s,ring=256k", name);
	tap = tap_of(capture);
	begin = weft_platform_host.now(NULL);
	for (unsigned int i = 0; i < 2000; i++) {
		before = weft_platform_host.now(NULL);
		show(tap, &m, 1, 1, WEFT_PCAPNG_OUT);
		took = weft_platform_host.now(NULL) - before;
		longest = took > longest ? took : longest;
		usleep(50);
	}
	print_message("# longest %" PRIu64 " us of %" PRIu64 "\n", longest / 1000,
		      (weft_platform_host.now(NULL) - begin) / 1000);
	/* The writer waits for two seconds: a lane that waited for it would show that. */
	assert_true(longest < 1500000000ull);
	weft_tap_close(tap);
	stop(&end);
	assert_int_equal(end.frames + end.dropped, 2000);
	assert_true(end.dropped > 1000);
	assert_non_null(strstr(end.why, "can't be written any more"));
	close(reader);
	rte_pktmbuf_free(m);
}

/* ... at any moment, without exit handlers: what was captured until shortly before can be read. */
/* @behaviour Y28 */
static void a_capture_of_a_process_that_is_killed_is_read(void **state)
{
	struct rte_mbuf *m = frame_of(SMALL, 1);
	struct dump_frame frame;
	struct weft_tap *tap;
	struct dump_file *f;
	char why[400];
	uint64_t frames = 0;
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0) {
		tap = tap_of(file);
		for (unsigned int i = 0; i < 500; i++)
			show(tap, &m, 1, 1, WEFT_PCAPNG_OUT);
		usleep(300000);
		/* These may be in the file, or not, or in part. */
		for (unsigned int i = 0; i < 100000; i++)
			show(tap, &m, 1, 1, WEFT_PCAPNG_OUT);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	f = dump_file_open(file, 0, why, sizeof(why));
	assert_non_null(f);
	while (dump_file_next(f, &frame)) {
		assert_int_equal(frame.len, SMALL);
		frames++;
	}
	print_message("# %" PRIu64 " frames, '%s'\n", frames, f->why);
	assert_true(frames >= 500);
	assert_true(f->why[0] == '\0' || strstr(f->why, "cut short"));
	dump_file_close(f);
	rte_pktmbuf_free(m);
}

/* ---- the flight recorder ---- */

/* @behaviour Y28 */
static void the_recorder_has_the_last_frames_of_each_lane(void **state)
{
	struct rte_mbuf *m[BURST];
	struct weft_tap *a = tap_of(NULL), *b = tap_of(NULL);
	char name[512];
	struct seen seen;

	(void)state;
	for (unsigned int i = 0; i < BURST; i++)
		m[i] = frame_of(i ? LARGE : SMALL, 1);
	for (unsigned int i = 0; i < 1000; i++)
		show(a, m, BURST, BURST, WEFT_PCAPNG_OUT);
	show(b, m, BURST, 3, WEFT_PCAPNG_IN);
	assert_int_equal(weft_recorder_file_write("a test", name, sizeof(name)), 0);
	seen = capture_seen(name);
	/* 32, which a burst may be writing over in this moment, are left out. */
	assert_int_equal(seen.frames, 128 - 32 + 3);
	assert_int_equal(seen.in, 3);
	assert_int_equal(seen.caplen, WEFT_RECORDER_BYTES);
	assert_int_equal(seen.longest, LARGE);
	rte_pktmbuf_free_bulk(m, BURST);
	weft_tap_close(a);
	weft_tap_close(b);
}

/* A buffer that ends with its short frame, and behind it memory that may not be read. */
/* @behaviour Y28 */
static void the_recorder_reads_no_more_than_the_buffer_has(void **state)
{
	static struct rte_mbuf_ext_shared_info shared;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct weft_tap *tap = tap_of(NULL);
	struct dump_frame frame;
	struct dump_file *f;
	unsigned int in = 0, out = 0;
	char name[512], why[400];

	(void)state;
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(mprotect(at + page, page, PROT_NONE), 0);
	rte_mbuf_ext_refcnt_set(&shared, 2); /* it is not freed by the mbuf */
	rte_pktmbuf_attach_extbuf(m, at + page - SHORT, RTE_BAD_IOVA, SHORT, &shared);
	m->data_off = 0;
	memset(rte_pktmbuf_append(m, SHORT), 0xa5, SHORT);
	show(tap, &m, 1, 1, WEFT_PCAPNG_OUT);
	weft_tap_arrived(tap, &m, 1, weft_platform_host.now(NULL));
	assert_int_equal(weft_recorder_file_write("a test", name, sizeof(name)), 0);
	f = dump_file_open(name, 0, why, sizeof(why));
	assert_non_null(f);
	/* Recorders of the tests before have frames of other lengths. */
	while (dump_file_next(f, &frame)) {
		if (frame.len != SHORT)
			continue;
		assert_int_equal(frame.caplen, SHORT);
		for (unsigned int i = 0; i < SHORT; i++)
			assert_int_equal(frame.data[i], 0xa5);
		in += frame.way == DUMP_IN;
		out += frame.way == DUMP_OUT;
	}
	assert_int_equal(in, 1);
	assert_int_equal(out, 1);
	dump_file_close(f);
	rte_pktmbuf_free(m);
	weft_tap_close(tap);
	munmap(at, 2 * page);
}

/* @behaviour Y28 */
static void errors_do_not_fill_the_disk(void **state)
{
	struct weft_tap *tap = tap_of(NULL);
	struct rte_mbuf *m = frame_of(SMALL, 1);
	char before[512], after[512];

	(void)state;
	show(tap, &m, 1, 1, WEFT_PCAPNG_OUT);
	assert_int_equal(weft_recorder_file_write("a test", before, sizeof(before)), 0);
	for (unsigned int i = 0; i < 1000; i++)
		weft_recorder_error("a test of many errors");
	/* Numbers tell how many files there were between: one. */
	while (weft_recorder_file_write("a test", after, sizeof(after)) == -EBUSY)
		usleep(1000);
	assert_int_equal(atoi(strrchr(after, '-') + 1) - atoi(strrchr(before, '-') + 1), 2);
	rte_pktmbuf_free(m);
	weft_tap_close(tap);
}

static void on_signal(int sig)
{
	char name[512];

	(void)sig;
	weft_recorder_file_write("a signal", name, sizeof(name));
}

/* @behaviour Y28 */
static void a_signal_handler_may_write_a_file(void **state)
{
	struct weft_tap *tap = tap_of(NULL);
	struct rte_mbuf *m = frame_of(SMALL, 1);
	char name[512], last[512];
	int status, n;
	pid_t pid;

	(void)state;
	show(tap, &m, 1, 1, WEFT_PCAPNG_OUT);
	signal(SIGUSR2, on_signal);
	signal(SIGABRT, on_signal);
	raise(SIGUSR2);
	assert_int_equal(weft_recorder_file_write("a test", name, sizeof(name)), 0);
	n = atoi(strrchr(name, '-') + 1);
	snprintf(last, sizeof(last), "%s/rec-%d-%d.pcapng", folder, getpid(), n - 1);
	assert_true(capture_seen(last).frames > 0);
	pid = fork();
	if (pid == 0)
		abort();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	snprintf(last, sizeof(last), "%s/rec-%d-%d.pcapng", folder, pid, n + 1);
	assert_true(capture_seen(last).frames > 0);
	rte_pktmbuf_free(m);
	weft_tap_close(tap);
}

static void *show_frames(void *arg)
{
	struct weft_tap *tap = arg;
	struct rte_mbuf *m = frame_of(SMALL, 1);

	for (unsigned int i = 0; i < 200000; i++) {
		memset(rte_pktmbuf_mtod(m, void *), i, SMALL);
		show(tap, &m, 1, 1, WEFT_PCAPNG_OUT);
	}
	rte_pktmbuf_free(m);
	return NULL;
}

/* Whatever is read while a lane writes, a frame is a whole one: all its bytes are equal. */
/* @behaviour Y28 */
static void frames_are_whole_while_the_lane_goes_on(void **state)
{
	struct weft_tap *tap;
	struct dump_frame frame;
	struct dump_file *f;
	char name[512], why[400];
	pthread_t thread;

	(void)state;
	conf.recorder = 1024;
	tap = tap_of(NULL);
	assert_int_equal(pthread_create(&thread, NULL, show_frames, tap), 0);
	for (unsigned int i = 0; i < 20; i++) {
		assert_int_equal(weft_recorder_file_write("a test", name, sizeof(name)), 0);
		f = dump_file_open(name, 0, why, sizeof(why));
		while (dump_file_next(f, &frame))
			for (unsigned int j = 1; frame.iface == f->num_ifaces - 1u && j < SMALL;
			     j++)
				assert_int_equal(frame.data[j], frame.data[0]);
		dump_file_close(f);
		unlink(name);
		if (i % 5 == 2)
			assert_int_equal(weft_capture_start(file, why, sizeof(why)), 0);
		else if (i % 5 == 3)
			assert_int_equal(weft_capture_refilter("less 95", why, sizeof(why)), 0);
		else if (i % 5 == 4)
			stop(&(struct weft_capture_state){0});
	}
	pthread_join(thread, NULL);
	weft_tap_close(tap);
}

static struct weft_seen_frame {
	uint32_t len, caplen;
	uint8_t data[200];
} got[4];

static unsigned int read_frames(void)
{
	struct dump_frame frame;
	unsigned int n = 0;
	char why[400];
	struct dump_file *f = dump_file_open(file, 0, why, sizeof(why));

	assert_non_null(f);
	for (; n < 4 && dump_file_next(f, &frame); n++) {
		got[n] = (struct weft_seen_frame){.len = frame.len, .caplen = frame.caplen};
		memcpy(got[n].data, frame.data, RTE_MIN(frame.caplen, sizeof(got[n].data)));
	}
	dump_file_close(f);
	return n;
}

static const struct in6_addr own = {{{0xfd, [15] = 1}}}, peer = {{{0xfd, [15] = 2}}};

/* A port of an IPv6 lane over sockets. */
static struct weft_frame_port six_port(void)
{
	struct weft_frame_port six = port;

	six.flags = WEFT_FRAME_PORT_SOCKET;
	six.hosts = weft_hosts_new(&own);
	assert_non_null(six.hosts);
	return six;
}

/* A frame of it, to the peer. */
static struct rte_mbuf *six_frame(const struct weft_frame_port *six, uint16_t len)
{
	struct rte_mbuf *m = frame_of(len, 1);
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(p + 14);

	ip->src_addr = rte_cpu_to_be_32(weft_hosts_find(six->hosts, &own));
	ip->dst_addr = rte_cpu_to_be_32(weft_hosts_number(six->hosts, &peer));
	ip->time_to_live = 64;
	((struct rte_udp_hdr *)(ip + 1))->dgram_len = rte_cpu_to_be_16((uint16_t)(len - 34));
	memset(p + 42, 0x5a, len - 42u);
	return m;
}

/* The engine's headers have numbers of hosts. The file has those of the network. */
static void a_capture_has_the_addresses_of_an_ip6_lane(void **state)
{
	struct weft_frame_port six = six_port();
	struct rte_mbuf *m = six_frame(&six, LARGE);
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(p + 14);
	const struct rte_ipv6_hdr *ip6 = (const void *)(got[0].data + 14);
	struct weft_tap *tap;
	char capture[160];

	(void)state;
	snprintf(capture, sizeof(capture), "%s,filter=ip6 and src host fd00::1,snaplen=150", file);
	conf.capture = capture;
	tap = weft_tap_open(&six, &weft_platform_host, 1, &conf);
	weft_tap_offer(tap, &m, 1, WEFT_PCAPNG_OUT, weft_platform_host.now(NULL));
	weft_tap_taken(tap, 1);
	ip->src_addr = ip->dst_addr;
	weft_tap_offer(tap, &m, 1, WEFT_PCAPNG_OUT, weft_platform_host.now(NULL));
	weft_tap_taken(tap, 1);
	stop(&(struct weft_capture_state){0});
	weft_tap_close(tap);
	assert_int_equal(read_frames(), 1);
	assert_int_equal(got[0].len, LARGE + 20);
	assert_int_equal(got[0].caplen, 150);
	assert_memory_equal(&ip6->src_addr, &own, 16);
	assert_memory_equal(&ip6->dst_addr, &peer, 16);
	assert_int_equal(got[0].data[62], 0x5a);
	/* The checksum is that of the whole frame. */
	memcpy(rte_pktmbuf_prepend(m, 20), got[0].data, 62);
	p = rte_pktmbuf_mtod(m, uint8_t *);
	assert_int_equal(weft_ip6_sum((void *)(p + 14), p + 54, LARGE - 34), UINT16_MAX);
	rte_pktmbuf_free(m);
	free(six.hosts);
}

/* The recorder's: of a burst of which the port takes two frames, a short one and a long one. */
static void the_recorder_has_the_addresses_of_an_ip6_lane(void **state)
{
	struct weft_frame_port six = six_port();
	struct rte_mbuf *m[3] = {six_frame(&six, SMALL), six_frame(&six, LARGE),
				 six_frame(&six, SMALL)};
	uint64_t now = weft_platform_host.now(NULL);
	unsigned int way[3] = {0}, large = 0;
	struct dump_frame frame;
	struct weft_tap *tap;
	struct dump_view v;
	struct dump_file *f;
	char name[512], why[400];

	(void)state;
	conf.capture = NULL;
	tap = weft_tap_open(&six, &weft_platform_host, 1, &conf);
	weft_tap_offer(tap, m, 3, WEFT_PCAPNG_OUT, now);
	weft_tap_taken(tap, 2);
	weft_tap_arrived(tap, m, 2, now);
	assert_int_equal(weft_recorder_file_write("a test", name, sizeof(name)), 0);
	f = dump_file_open(name, 0, why, sizeof(why));
	assert_non_null(f);
	while (dump_file_next(f, &frame)) {
		dump_decode(&frame, &v);
		if (v.src.kind != ADDRESS_IP6)
			continue;
		assert_memory_equal(v.src.b, &own, 16);
		assert_memory_equal(v.dst.b, &peer, 16);
		assert_int_equal(frame.data[62], 0x5a);
		assert_int_equal(frame.caplen, RTE_MIN(frame.len, WEFT_RECORDER_BYTES));
		way[frame.way]++;
		large += frame.len == LARGE + 20;
	}
	assert_string_equal(f->why, "");
	dump_file_close(f);
	assert_true(way[DUMP_OUT] == 2 && way[DUMP_IN] == 2 && large == 2);
	weft_tap_close(tap);
	rte_pktmbuf_free_bulk(m, 3);
	free(six.hosts);
}

static uint64_t fake_now;

static uint64_t fake_clock(void *arg)
{
	(void)arg;
	return fake_now;
}

/* A thread loses its core between the port's call and the clock: the capture has the bounds. */
static void a_time_that_is_not_exact_has_its_bound_in_the_file(void **state)
{
	static const struct weft_platform fake = {.now = fake_clock};
	struct rte_mbuf *m = frame_of(SMALL, 1);
	uint64_t within[4] = {0};
	unsigned int n = 0;
	struct dump_frame frame;
	struct weft_tap *tap;
	struct dump_file *f;
	char why[400];

	(void)state;
	conf.capture = file;
	tap = weft_tap_open(&port, &fake, 1, &conf);
	fake_now = 1000000;
	weft_tap_offer(tap, &m, 1, WEFT_PCAPNG_OUT, fake_now);
	fake_now += 5000000;
	weft_tap_taken(tap, 1);
	weft_tap_arrived(tap, &m, 1, fake_now - 3000000);
	weft_tap_offer(tap, &m, 1, WEFT_PCAPNG_OUT, fake_now - 3000000);
	weft_tap_taken(tap, 1);
	weft_tap_arrived(tap, &m, 1, fake_now - 9000);
	weft_tap_close(tap);
	stop(&(struct weft_capture_state){0});
	f = dump_file_open(file, 0, why, sizeof(why));
	assert_non_null(f);
	while (dump_file_next(f, &frame) && n < 4)
		within[n++] = frame.within;
	dump_file_close(f);
	assert_int_equal(n, 4);
	assert_int_equal(within[0], 5000000);
	assert_int_equal(within[1], 3000000);
	assert_int_equal(within[2], 0);
	assert_int_equal(within[3], 0);
	rte_pktmbuf_free(m);
}

static int set_up(void **state)
{
	(void)state;
	test_eal_init("64");
	pool = rte_pktmbuf_pool_create("capture", 64, 0, 0, 10000, SOCKET_ID_ANY);
	if (!pool || !mkdtemp(folder))
		return -1;
	snprintf(file, sizeof(file), "%s/c.pcapng", folder);
	snprintf(recorder_file, sizeof(recorder_file), "%s/rec-%%p-%%n.pcapng", folder);
	conf.recorder_file = recorder_file;
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sent_is_in_the_file_or_counted),
		cmocka_unit_test(it_is_started_filtered_and_stopped_while_frames_pass),
		cmocka_unit_test(files_are_rotated_by_size),
		cmocka_unit_test(a_file_that_was_removed_is_begun_again),
		cmocka_unit_test(a_capture_that_cannot_be_leaves_the_lane_alone),
		cmocka_unit_test(what_others_made_does_not_get_the_frames),
		cmocka_unit_test(a_fork_leaves_the_file_to_its_parent),
		cmocka_unit_test(a_disk_that_hangs_holds_up_no_lane),
		cmocka_unit_test(a_capture_of_a_process_that_is_killed_is_read),
		cmocka_unit_test(the_recorder_has_the_last_frames_of_each_lane),
		cmocka_unit_test(the_recorder_reads_no_more_than_the_buffer_has),
		cmocka_unit_test(errors_do_not_fill_the_disk),
		cmocka_unit_test(a_signal_handler_may_write_a_file),
		cmocka_unit_test(frames_are_whole_while_the_lane_goes_on),
		cmocka_unit_test(a_capture_has_the_addresses_of_an_ip6_lane),
		cmocka_unit_test(the_recorder_has_the_addresses_of_an_ip6_lane),
		cmocka_unit_test(a_time_that_is_not_exact_has_its_bound_in_the_file),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
