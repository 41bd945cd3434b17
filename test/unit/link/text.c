/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Links as text: what is read, what is refused with which message, what is written.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "link/link.h"

static struct sim_link parsed(const char *text)
{
	struct sim_link l = {0};
	char why[300] = "";

	if (sim_link_parse(text, &l, why, sizeof(why)))
		fail_msg("'%s': %s", text, why);
	return l;
}

static void every_item_is_read(void **state)
{
	struct sim_link l = parsed("rate=10G:64k,delay=50us,jitter=1.5ms,queue=150k,ecn=60000,"
				   "loss=1%,bursts=0.02:30:50%,dup=0.03,reorder=5%:200us,"
				   "corrupt=0.1%,truncate=4%,mtu=1500,police=1G:1M,pps=1M:128,"
				   "flow=5G:100k,turn=2ms,flow-police=2G:50k,"
				   "blackout=yes");

	(void)state;
	assert_int_equal(l.rate, 10000000000);
	assert_int_equal(l.rate_burst, 64000);
	assert_int_equal(l.delay_ns, 50000);
	assert_int_equal(l.jitter_ns, 1500000);
	assert_int_equal(l.queue_bytes, 150000);
	assert_int_equal(l.ecn_bytes, 60000);
	assert_true(l.loss == 0.01 && l.bursts == 0.02 && l.burst_len == 30);
	assert_true(l.burst_loss == 0.5 && l.dup == 0.03 && l.reorder == 0.05);
	assert_int_equal(l.reorder_ns, 200000);
	assert_true(l.corrupt == 0.001 && l.truncate == 0.04);
	assert_int_equal(l.mtu, 1500);
	assert_int_equal(l.police_rate, 1000000000);
	assert_int_equal(l.police_burst, 1000000);
	assert_int_equal(l.police_pps, 1000000);
	assert_int_equal(l.police_pps_burst, 128);
	assert_int_equal(l.flow_rate, 5000000000);
	assert_int_equal(l.flow_queue, 100000);
	assert_int_equal(l.turn_ns, 2000000);
	assert_int_equal(l.flow_police, 2000000000);
	assert_int_equal(l.flow_burst, 50000);
	assert_true(l.blackhole);
}

static void what_is_not_named_stays(void **state)
{
	struct sim_link l = parsed("rate=1G,loss=1%");
	char why[300];

	(void)state;
	assert_int_equal(sim_link_parse(" delay=1ms , loss=0 ", &l, why, sizeof(why)), 0);
	assert_int_equal(l.rate, 1000000000);
	assert_int_equal(l.delay_ns, 1000000);
	assert_true(l.loss == 0);
	assert_int_equal(sim_link_parse("clear,dup=1%", &l, why, sizeof(why)), 0);
	assert_int_equal(l.rate + l.delay_ns, 0);
	assert_true(l.dup == 0.01);
	assert_int_equal(sim_link_parse("", &l, why, sizeof(why)), 0);
	assert_true(l.dup == 0.01);
	/* A second number that is left out is its default again. */
	l = parsed("reorder=1%:5us");
	assert_int_equal(sim_link_parse("reorder=2%", &l, why, sizeof(why)), 0);
	assert_int_equal(l.reorder_ns, 0);
}

static void refused(const char *text, const char *sentence)
{
	struct sim_link l = {.loss = 0.25}, before = l;
	char why[300] = "";

	assert_int_equal(sim_link_parse(text, &l, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, sentence);
	assert_memory_equal(&l, &before, sizeof(l));
}

static void mistakes_have_a_sentence(void **state)
{
	(void)state;
	refused("los=1%", "'los' is none of rate delay jitter turn queue ecn loss bursts dup "
			  "reorder corrupt truncate mtu police pps flow flow-police blackout "
			  "clear");
	refused("dup=1%,loss", "loss needs a value: loss=...");
	refused("loss=2", "loss takes a share of frames from 0 to 1, or in %, not '2'");
	refused("loss=101%", "loss takes a share of frames from 0 to 1, or in %, not '101%'");
	refused("loss=nan", "loss takes a share of frames from 0 to 1, or in %, not 'nan'");
	refused("loss=-1%", "loss takes a share of frames from 0 to 1, or in %, not '-1%'");
	refused("loss=0x1", "loss takes a share of frames from 0 to 1, or in %, not '0x1'");
	refused("loss=", "loss takes a share of frames from 0 to 1, or in %, not ''");
	refused("delay=50", "delay takes a time up to 100s, in ns, us, ms or s, not '50'");
	refused("delay=101s", "delay takes a time up to 100s, in ns, us, ms or s, not '101s'");
	refused("delay=1us:2us", "delay takes no further value ':2us'");
	refused("rate=2T", "rate takes bit/s up to 1000G, not '2T'");
	refused("rate=1G:2G", "rate takes bytes up to 1G, not '2G'");
	refused("mtu=1k", "mtu takes bytes of a packet up to 65535, not '1k'");
	refused("bursts=1%:0.5", "bursts takes a mean length from 1 to 1000000 frames, not '0.5'");
	refused("bursts=60%:10:50%",
		"bursts: the share of all frames must be less than the share that a burst loses "
		"while it lasts");
	refused("blackout=maybe", "blackout takes yes or no, not 'maybe'");
	refused("queue=10k", "queue needs a rate: without one there is no queue");
	refused("ecn=10k", "ecn needs a rate: without one there is no queue");
}

static void a_text_too_long_is_refused(void **state)
{
	struct sim_link l = {0};
	char text[2000], why[300];

	(void)state;
	memset(text, ',', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(sim_link_parse(text, &l, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "the text is longer than 1023 characters");
}

static void what_is_written_is_read_again(void **state)
{
	static const char *const texts[] = {
		"clear",
		"rate=10G:64k,delay=50us,queue=150k,loss=1%",
		"jitter=1500ns,bursts=2%:30:50%,reorder=5%:200us,mtu=1500",
		"police=1G:1M,pps=1M:128,flow=5G,blackout=yes",
		"bursts=2%:0:50%",
	};
	char buf[1024];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct sim_link l = parsed(texts[i]), again;

		assert_string_equal(sim_link_text(&l, buf, sizeof(buf)), texts[i]);
		again = parsed(buf);
		assert_memory_equal(&l, &again, sizeof(l));
	}
	/* A short buffer cuts, and nothing is written behind it. */
	buf[8] = 'x';
	sim_link_text(&(struct sim_link){.rate = 1000, .loss = 0.5}, buf, 8);
	assert_int_equal(buf[8], 'x');
	assert_true(strlen(buf) < 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_item_is_read),
		cmocka_unit_test(what_is_not_named_stays),
		cmocka_unit_test(mistakes_have_a_sentence),
		cmocka_unit_test(a_text_too_long_is_refused),
		cmocka_unit_test(what_is_written_is_read_again),
	};

	return cmocka_run_group_tests_name("link_text", tests, NULL, NULL);
}
