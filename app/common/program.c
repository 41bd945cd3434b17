/* SPDX-License-Identifier: BSD-3-Clause */

#include "common/program.h"

#include "common/cli.h"
#include "drivers/dpdk/port/eal.h"
#include "common/eal_start.h"
#include "common/sys.h"

int program_connect(struct peer *p, const struct peer_options *options, int eal_count,
		    char **eal_words)
{
	int ret;

	*p = (struct peer){.opts = options};
	ret = eal_start(eal_count, eal_words, options->config, options->core);
	if (!ret)
		ret = peer_init(p, options);
	if (!ret)
		ret = peer_open(p);
	if (!ret)
		ret = peer_meet(p);
	return ret ? ret : peer_connect(p);
}

int program_main(const struct program *p, struct peer_options *options, int argc, char **argv)
{
	char **eal_words;
	int eal_count, ret = APP_OK;

	cli_program = p->name;
	cli_server = p->server;
	eal_count = weft_eal_split_args(&argc, &argv, &eal_words);
	sys_catch_signals();
	if (!cli_wants_help(argc, argv))
		ret = peer_options_init(options);
	if (!ret)
		ret = p->parse(options, argc, argv);
	if (!ret)
		ret = p->run(options, eal_count, eal_words);
	weft_config_release(options->config);
	return ret < 0 ? APP_OK : ret;
}
