/* SPDX-License-Identifier: BSD-3-Clause */

/* The window of the configuration, whatever the state of the network. */

#include "engine/cc_list.h"

static void fixed_init(struct weft_cc *cc, const struct weft_cc_conf *conf)
{
	cc->window = conf->most;
	cc->limit = conf->most;
}

static void fixed_ack(struct weft_cc *cc, const struct weft_cc_ack *ack)
{
	cc->marked += ack->marked;
}

static void fixed_loss(struct weft_cc *cc, uint32_t bytes, uint64_t now)
{
	(void)now;
	cc->lost_random += bytes;
}

static void fixed_timeout(struct weft_cc *cc, unsigned int tries, uint64_t now)
{
	(void)cc;
	(void)tries;
	(void)now;
}

static void fixed_nothing(struct weft_cc *cc)
{
	(void)cc;
}

const struct weft_cc_ops weft_cc_fixed = {
	.name = "fixed",
	.init = fixed_init,
	.on_ack = fixed_ack,
	.on_loss = fixed_loss,
	.on_timeout = fixed_timeout,
	.on_spurious = fixed_nothing,
	.on_idle = fixed_nothing,
};
