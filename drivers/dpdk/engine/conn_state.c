/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/conn_state.h"
#include "engine/iface.h"
#include "engine/loss_rules.h"

/* ---------------------------------------------------------------- paths */

static void path_init(struct raw_conn *c, unsigned int k)
{
	c->path[k] = (struct raw_path){.sport = c->iface->rx_filter.udp_port};
	weft_loss_init(&c->path[k].loss);
}

static void free_paths(struct raw_conn *c)
{
	if (c->path != &c->first_path)
		free(c->path);
}

int raw_state_paths(struct raw_conn *c, unsigned int n)
{
	struct raw_path *path;

	if (n <= c->path_room)
		return 0;
	path = malloc(n * sizeof(*path));
	if (!path) {
		raw_count(c->iface, RAW_NO_MEMORY);
		return -ENOMEM;
	}
	memcpy(path, c->path, c->path_room * sizeof(*path));
	free_paths(c);
	c->path = path;
	while (c->path_room < n)
		path_init(c, c->path_room++);
	return 0;
}

/* ---------------------------------------------------------------- handshake, hints */

static int allocated(struct raw_conn *c, const void *p)
{
	if (p)
		return 0;
	raw_count(c->iface, RAW_NO_MEMORY);
	return -ENOMEM;
}

void raw_state_connected(struct raw_conn *c)
{
	free(c->search);
	c->search = NULL;
	free(c->hs);
	c->hs = NULL;
}

int raw_state_move(struct raw_conn *c)
{
	if (!c->move)
		c->move = calloc(1, sizeof(*c->move));
	return allocated(c, c->move);
}

/* ---------------------------------------------------------------- all */

int raw_state_init(struct raw_conn *c)
{
	c->hs = calloc(1, sizeof(*c->hs));
	if (allocated(c, c->hs) != 0)
		return -ENOMEM;
	c->path = &c->first_path;
	c->path_room = 1;
	path_init(c, 0);
	return 0;
}

void raw_state_free(struct raw_conn *c)
{
	raw_state_connected(c);
	free_paths(c);
	free(c->move);
}
