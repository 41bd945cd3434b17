/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file plan/plan.h
 * The contents of a plan (weft_plan.h), for the files that make and print one:
 *
 *	plan/plan.c   plans, filled from a live endpoint or from a profile file
 *	plan/print.c  output for users and scripts; the origin of every number
 */
#ifndef WEFT_PLAN_H
#define WEFT_PLAN_H

#include <stdio.h>

#include "base/text.h"
#include "proto/proto.h"
#include "weft.h"
#include "weft_plan.h"

struct weft_plan_lane {
	char name[64];
	char driver[16];
	char device[64];
	char domain[32];
	char why[160]; /* why the endpoint has this lane; "" = the lane is from a profile */
};

struct weft_plan {
	char title[128];
	struct weft_model model;
	struct weft_plan_lane lanes[WEFT_MODEL_LANES];
	bool measured;             /* no copy bandwidth is configured */
	struct weft_texts reasons; /* weft_proto_info.why of protocols that can carry no size */
};

struct weft_ep;

/**
 * weft_ep_events.settled(): with WEFT_PROTO_INFO, log the protocols that the endpoint will use.
 * Endpoints with equal lanes share one output.
 */
void weft_plan_settled(struct weft_ep *ep);

int weft_plan_read_with(const struct weft_proto *const *protos, const struct weft_config *config,
			FILE *in, const char *name, struct weft_plan **out, char *why,
			size_t why_len);

int weft_plan_print_key(const struct weft_plan *plan, FILE *out, const struct weft_proto_key *key,
			enum weft_plan_format format);

#endif /* WEFT_PLAN_H */
