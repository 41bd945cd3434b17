/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The whole library in virtual time: a lane dies and comes back, and of the messages that both ends
 * exchange about it one is lost, comes twice, or comes late, over another lane.
 */

#include <stdlib.h>
#include <string.h>

#include "core/worker.h"
#include "mock/rounds.h"
#include "scene.h"
#include "wireup/failover.h"
#include "wireup/wireup.h"

#define MESSAGES 6

enum fate { LOST, DOUBLED, LATE, VERY_LATE, FATES };

static struct {
	struct sim *sim;
	uint8_t type;
	enum fate fate;
	unsigned int nth, seen; /* of its type: the one that it happens to; so many there were */
} script;

struct late {
	struct weft_ep *ep;
	struct weft_wire_wireup head;
	size_t length;
	uint8_t records[];
};

int __real_weft_wireup_send(struct weft_lane_ep *lane_ep, struct weft_wire_wireup *head,
			    const void *records, size_t length);
int __wrap_weft_wireup_send(struct weft_lane_ep *lane_ep, struct weft_wire_wireup *head,
			    const void *records, size_t length);

static void comes_late(void *arg)
{
	struct late *l = arg;
	uint32_t up = l->ep->lanes_up;

	if (up)
		__real_weft_wireup_send(l->ep->lanes[31 - __builtin_clz(up)].lane_ep, &l->head,
					l->records, l->length);
	free(l);
}

static void send_late(struct weft_ep *ep, const struct weft_wire_wireup *head, const void *records,
		      size_t length, uint64_t ns)
{
	struct late *l = malloc(sizeof(*l) + length);

	assert_non_null(l);
	l->ep = ep;
	l->head = *head;
	l->length = length;
	if (length)
		memcpy(l->records, records, length);
	sim_at(script.sim, sim_now(script.sim) + ns, comes_late, l);
}

int __wrap_weft_wireup_send(struct weft_lane_ep *lane_ep, struct weft_wire_wireup *head,
			    const void *records, size_t length)
{
	struct weft_wire_wireup copy = *head;
	int rc = 0;

	if (!script.sim || head->type != script.type || script.seen++ != script.nth)
		return __real_weft_wireup_send(lane_ep, head, records, length);
	if (script.fate == DOUBLED)
		rc = __real_weft_wireup_send(lane_ep, head, records, length);
	if (rc == 0 && script.fate == DOUBLED)
		__real_weft_wireup_send(lane_ep, &copy, records, length);
	if (script.fate >= LATE)
		send_late(lane_ep->user, head, records, length,
			  script.fate == LATE ? 5 * SIM_MS : 400 * SIM_MS);
	return rc;
}

/* Lane 0 carries nothing in either direction, without an event. */
static void cut(struct scene *s, bool dead)
{
	sim_port_up(s->port[0][0])->blackhole = dead;
	sim_port_up(s->port[1][0])->blackhole = dead;
}

static void talk(struct scene *s, struct scene_ep *const *e, unsigned int base)
{
	struct op *r[MESSAGES], *w[MESSAGES];

	for (unsigned int i = 0; i < MESSAGES; i++) {
		r[i] = op_recv(s, i % 2, 700000, base + i);
		w[i] = op_send(e[i % 2], base + i, 700000, base + i);
	}
	scene_run(s, 200 * SIM_US);
	cut(s, true);
	for (unsigned int i = 0; i < MESSAGES; i++) {
		op_expect(r[i], 2 * SIM_S, 0);
		op_holds(r[i], base + i, 700000);
		op_expect(w[i], 2 * SIM_S, 0);
	}
}

/* @return how many there were of the message that it happened to */
static unsigned int one(struct sim_case *c, uint8_t type, enum fate fate, unsigned int nth)
{
	const struct scene_conf conf = {.lanes = {3, 3}};
	struct scene *s = scene_open(c, &conf);
	struct scene_ep *e[2] = {scene_up(s, 1, 0), scene_up(s, 0, 1)};

	scene_run(s, 20 * SIM_MS);
	memset(&script, 0, sizeof(script));
	script.sim = s->sim;
	script.type = type;
	script.fate = fate;
	script.nth = nth;
	/* Twice: what was late meets the next life of the lane. */
	for (unsigned int k = 0; k < 2; k++) {
		talk(s, e, 100 * k);
		scene_run(s, 150 * SIM_MS);
		cut(s, false);
		scene_run(s, k ? 4 * SIM_S : SIM_S);
	}
	script.sim = NULL;
	if (e[0]->errors + e[1]->errors || scene_lanes_up(e[0]) != 3 || scene_lanes_up(e[1]) != 3)
		fail_msg("message %u of type %u, fate %d: %u errors, lanes %u and %u", nth, type,
			 (int)fate, e[0]->errors + e[1]->errors, scene_lanes_up(e[0]),
			 scene_lanes_up(e[1]));
	scene_talk(s, e[1], 1, 100);
	return script.seen;
}

/* @behaviour R38: Each message of the handshake may be lost, duplicated or late */
static void any_message_about_a_lane_may_be_lost_double_or_late(struct sim_case *c)
{
	static const uint8_t types[] = {WEFT_WIREUP_LANE_DOWN, WEFT_WIREUP_LANE_DOWN_ACK,
					WEFT_WIREUP_LANE_SUSPECT, WEFT_WIREUP_ATTACH,
					WEFT_WIREUP_ATTACHED};
	unsigned int happened = 0, tried = 0;

	for (unsigned int t = 0; t < sizeof(types); t++)
		for (enum fate fate = LOST; fate < FATES; fate++)
			for (unsigned int nth = 0; nth < 3; nth++) {
				/* ATTACH is about the lane that it comes over. */
				if (t > 2 && fate >= LATE)
					continue;
				if (test_left_out(tried++))
					continue;
				happened += one(c, types[t], fate, nth) > nth;
			}
	if (test_part() == 1)
		assert_true(happened > 20);
}

static struct sim_case cases[] = {
	SIM_CASE(any_message_about_a_lane_may_be_lost_double_or_late),
};

int main(int argc, char **argv)
{
	return sim_test_main(argc, argv, "sys_handshake", cases, sizeof(cases) / sizeof(cases[0]));
}
