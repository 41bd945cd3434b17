/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer of weft-cat that announces pieces of 1 KiB and sends one of 1 MiB.
 *
 *	proc_cat_liar [EAL ARGUMENTS --] HOST PORT LANES
 */

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/common/eal_start.h"
#include "app/common/program.h"

#define TAG_TO_SERVER 0x7743415400000001ull

struct options {
	struct peer_options peer; /* first */
};

static int parse(void *options, int argc, char **argv)
{
	struct options *o = options;

	if (argc != 4)
		return APP_USAGE;
	o->peer.port = (uint16_t)atoi(argv[2]);
	if (peer_host(&o->peer, argv[1]))
		return APP_USAGE;
	return peer_option(&o->peer, "-L", argv[3]);
}

static int lie(struct peer *p)
{
	uint64_t mine = htole64(1024), theirs;
	size_t length = 1 << 20;
	char *piece = calloc(1, length);
	int ret = piece ? peer_send(p, OOB_PARAMS, &mine, sizeof(mine)) : APP_FAIL;

	if (!ret)
		ret = peer_recv(p, OOB_PARAMS, &theirs, sizeof(theirs));
	if (!ret)
		ret = peer_barrier(p);
	if (!ret && weft_tag_send(p->ep, piece, length, TAG_TO_SERVER, NULL, NULL) < 0)
		ret = APP_FAIL;
	/* Until the other end has had enough. */
	while (!ret && peer_poll(p) == 0)
		;
	return ret ? ret : p->exit_code;
}

static int run(void *options, int eal_count, char **eal_words)
{
	const struct options *o = options;
	struct peer p;
	int ret = program_connect(&p, &o->peer, eal_count, eal_words);

	if (!ret)
		ret = lie(&p);
	return peer_end(&p, ret);
}

int main(int argc, char **argv)
{
	static const struct program program = {
		.name = "weft-cat", .server = "weft-cat -l", .parse = parse, .run = run};
	struct options o = {0};

	return eal_exit(program_main(&program, &o.peer, argc, argv));
}
