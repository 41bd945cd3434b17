/* SPDX-License-Identifier: BSD-3-Clause */

#include "common/roce_counters.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of mlx5, bnxt_re, irdma, rxe and of the kernel's documents; a device has some of them. */
static const struct {
	const char *name, *text;
} known[] = {
	{"out_of_sequence", "packets out of sequence"},
	{"packet_seq_err", "NAKs for a wrong sequence"},
	{"implied_nak_seq_err", "answers ahead of the expected one"},
	{"local_ack_timeout_err", "timeouts"},
	{"duplicate_request", "duplicate requests"},
	{"rcvd_out_of_order_request", "requests out of order"},
	{"out_of_seq_request", "requests out of sequence"},
	{"completer_retry_err", "requests sent again"},
	{"retry_exceeded_err", "requests given up"},
	{"rnr_nak_retry_err", "RNR NAKs received"},
	{"rcvd_rnr_err", "RNR NAKs received"},
	{"send_rnr_err", "RNR NAKs sent"},
	{"out_of_buffer", "messages without a receive buffer"},
	{"np_cnp_sent", "CNPs sent"},
	{"rp_cnp_handled", "CNPs received"},
	{"np_ecn_marked_roce_packets", "packets with a congestion mark"},
};

#define KNOWN (sizeof(known) / sizeof(known[0]))

const char *roce_counter_text(const char *name)
{
	for (size_t i = 0; i < KNOWN; i++)
		if (!strcmp(known[i].name, name))
			return known[i].text;
	return NULL;
}

static void read_one(struct roce_counters *c, const char *path)
{
	struct roce_counter *one = &c->of[c->num];
	FILE *f;

	if (sscanf(path, "/sys/class/infiniband/%31[^/]/ports/%7[^/]/hw_counters/%39[^/]",
		   one->device, one->port, one->name) != 3 ||
	    !(one->text = roce_counter_text(one->name)))
		return;
	f = fopen(path, "r");
	if (!f)
		return;
	if (fscanf(f, "%llu", &one->value) == 1)
		c->num++;
	fclose(f);
}

void roce_counters_read(struct roce_counters *c)
{
	glob_t g;

	c->num = 0;
	if (glob("/sys/class/infiniband/*/ports/*/hw_counters/*", 0, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc && c->num < ROCE_COUNTERS; i++)
			read_one(c, g.gl_pathv[i]);
	globfree(&g);
}

static int by_name(const void *a, const void *b)
{
	const struct roce_counter *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (!order)
		order = strcmp(x->device, y->device);
	return order ? order : strcmp(x->port, y->port);
}

void roce_counters_sort(struct roce_counters *c)
{
	qsort(c->of, c->num, sizeof(c->of[0]), by_name);
}

static unsigned long long value_of(const struct roce_counters *c, const struct roce_counter *like)
{
	for (unsigned int i = 0; i < c->num; i++)
		if (!strcmp(c->of[i].device, like->device) && !strcmp(c->of[i].port, like->port) &&
		    !strcmp(c->of[i].name, like->name))
			return c->of[i].value;
	return like->value;
}

void roce_counters_print(const struct roce_counters *before, const struct roce_counters *after)
{
	const struct roce_counter *one, *line = NULL;
	unsigned long long then;

	for (unsigned int i = 0; i < after->num; i++) {
		one = &after->of[i];
		then = value_of(before, one);
		if (one->value <= then)
			continue;
		if (!line || strcmp(line->device, one->device) || strcmp(line->port, one->port))
			printf("%sRoCE device %s, port %s, all programs of this host:",
			       line ? "\n" : "", one->device, one->port);
		else
			printf(",");
		printf(" %llu %s", one->value - then, one->text);
		line = one;
	}
	if (line)
		printf("\n");
}
