/* SPDX-License-Identifier: BSD-3-Clause */

#include <stddef.h>

#include "cat/flow.h"
#include "common/cli.h"
#include "common/eal_start.h"
#include "common/program.h"

static int option_block(void *options, const char *option, const char *value)
{
	struct cat_options *o = options;

	if (cli_size(option, value, &o->chunk))
		return APP_USAGE;
	if (o->chunk >= 1 && o->chunk <= CAT_CHUNK_MAX)
		return APP_OK;
	cli_error("%s takes a size from 1 to 64M, not '%s'", option, value);
	return APP_USAGE;
}

static const struct cli_option table[] = {
	{"listen", 'l', NULL, "wait for a peer", .flag = offsetof(struct cat_options, listen)},
	{"no-stdin", 'd', NULL, "don't read standard input: only receive",
	 .flag = offsetof(struct cat_options, no_stdin)},
	{"block", 'b', "SIZE", "largest message (1M)", .set = option_block},
	{"window", 'O', "N", "messages in flight, each way (8)",
	 .number = {offsetof(struct cat_options, window), 1, CAT_WINDOW_MAX}},
	{"quiet", 'q', NULL,
	 "no progress line (it is shown when standard error is a terminal and standard "
	 "output is none)",
	 .flag = offsetof(struct cat_options, quiet)},
	{"summary", 's', NULL, "two lines at the end, also without a terminal",
	 .flag = offsetof(struct cat_options, summary)},
	{.table = peer_option_table},
	{0},
};

static const struct cli_command command = {
	.name = "weft-cat",
	.usage =
		"usage: weft-cat [EAL ARGUMENTS --] -l [options] [ADDRESS]   waits for one peer "
		"(at this local address)\n"
		"       weft-cat [EAL ARGUMENTS --] [options] HOST           connects to it\n"
		"\n"
		"Carries standard input of each end to standard output of the other, as netcat "
		"does, over all lanes\n"
		"between them. It ends when both inputs have ended and all was written, and both "
		"ends have compared the\n"
		"number of bytes and their CRC. Without a \"--\" all arguments are weft-cat's, and "
		"the EAL gets those of\n"
		"WEFT_EAL_ARGS.\n"
		"\n",
	.options = table,
	.after = {"\n"
		  "Exit code: 0 everything arrived, 1 could not start or go on (no lane, no peer, "
		  "output closed),\n"
		  "2 wrong usage, 3 the peer died or gave up before the end, 4 what was written is "
		  "not what was read,\n"
		  "128+N ended by signal N.\n"
		  "\n"
		  "Copy a tree, on one host over one memif lane:\n"
		  "  weft-cat --no-pci --vdev=net_memif0,role=server,bsize=9216 -- -L dpdk -l -d | "
		  "tar x\n"
		  "  tar c dir | weft-cat --no-pci --vdev=net_memif0,role=client,bsize=9216 -- -L "
		  "dpdk localhost\n"},
};

static int complete(struct cat_options *o, int argc, char **argv)
{
	const char *host = optind < argc ? argv[optind] : NULL;

	if (argc - optind > 1) {
		cli_error("only one address is possible, not both '%s' and '%s'", argv[optind],
			  argv[optind + 1]);
		return APP_USAGE;
	}
	if (!o->listen && !host) {
		cli_error("name the host to connect to, or use -l to wait for a peer; see --help");
		return APP_USAGE;
	}
	if (!host)
		return APP_OK;
	return o->listen ? peer_local(&o->peer, host) : peer_host(&o->peer, host);
}

static int parse(void *options, int argc, char **argv)
{
	struct cat_options *o = options;
	int ret;

	o->chunk = 1 << 20;
	o->window = 8;
	ret = cli_options_parse(&command, o, argc, argv);
	if (ret)
		return ret;
	return complete(o, argc, argv);
}

static int run(void *options, int eal_count, char **eal_words)
{
	const struct cat_options *o = options;
	struct cat *cat = NULL;
	struct peer p;
	int ret = program_connect(&p, &o->peer, eal_count, eal_words);

	if (!ret) {
		cat = cat_new(o, &p);
		ret = cat ? cat_run(cat) : peer_fail(&p, APP_FAIL);
	}
	ret = peer_end(&p, ret);
	cat_free(cat);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct program program = {
		.name = "weft-cat", .server = "weft-cat -l", .parse = parse, .run = run};
	struct cat_options o = {0};
	int ret = program_main(&program, &o.peer, argc, argv);

	return eal_exit(ret);
}
