/* SPDX-License-Identifier: BSD-3-Clause */

#include "info/samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char answer[QUERY_ANSWER];

static void on_lane(const char *name, const char *text, bool is_number, void *arg)
{
	struct lanes *l = arg;

	(void)name;
	if (!is_number && l->num < LANES_MAX)
		snprintf(l->text[l->num++], sizeof(l->text[0]), "%s", text);
}

bool lanes_take(struct query_process *p, struct lanes *lanes)
{
	lanes->num = 0;
	return query(p, "/weft/workers", answer) && query_walk(answer, on_lane, lanes);
}

bool lanes_first(const struct lanes *lanes, unsigned int i)
{
	unsigned int k;

	for (k = 0; k < i && strncmp(lanes->text[k], lanes->text[i], 16); k++)
		;
	return k == i;
}

struct place {
	struct samples *to;
	struct sample like;
	size_t skip; /* bytes of each name that identify the lane */
};

static void on_counter(const char *name, const char *text, bool is_number, void *arg)
{
	struct place *p = arg;
	struct sample *s;

	if (!is_number || p->to->num == SAMPLES_MAX || strlen(name) <= p->skip)
		return;
	s = &p->to->of[p->to->num++];
	*s = p->like;
	snprintf(s->name, sizeof(s->name), "%s", name + p->skip);
	s->value = strtod(text, NULL);
}

static void take_lane(struct query_process *p, const char *text, bool first, struct samples *to)
{
	static const char *const others[] = {"ep.",  "wireup.", "tag.", "am.",
					     "rma.", "rndv.",   "msg.", "regcache."};
	struct place place = {.to = to, .like = {.pid = p->pid}};
	char command[160], device[64];

	if (sscanf(text, "%19s %63s %63s", place.like.worker, place.like.lane, device) < 2)
		return;
	snprintf(command, sizeof(command), "/weft/counters,%s,%s.,all", place.like.worker,
		 place.like.lane);
	place.skip = strlen(place.like.lane) + 1;
	if (query(p, command, answer))
		query_walk(answer, on_counter, &place);
	if (!first)
		return;
	/* Counters of the worker: by prefixes, since an answer of DPDK has 250 counters at most. */
	place.skip = 0;
	place.like.lane[0] = '\0';
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		snprintf(command, sizeof(command), "/weft/counters,%s,%s,all", place.like.worker,
			 others[i]);
		if (query(p, command, answer))
			query_walk(answer, on_counter, &place);
	}
}

void samples_take(struct query_process *list, unsigned int n, struct samples *to)
{
	static struct lanes lanes;
	unsigned int i, j;

	to->num = 0;
	for (i = 0; i < n; i++) {
		if (list[i].is_switch || !lanes_take(&list[i], &lanes))
			continue;
		for (j = 0; j < lanes.num; j++)
			take_lane(&list[i], lanes.text[j], lanes_first(&lanes, j), to);
	}
}

double samples_value(const struct samples *s, const struct sample *like, const char *name)
{
	for (unsigned int i = 0; i < s->num; i++)
		if (s->of[i].pid == like->pid && !strcmp(s->of[i].worker, like->worker) &&
		    !strcmp(s->of[i].lane, like->lane) && !strcmp(s->of[i].name, name))
			return s->of[i].value;
	return 0;
}
