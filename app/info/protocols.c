/* SPDX-License-Identifier: BSD-3-Clause */
/* weft-info protocols */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/cli.h"
#include "info/protocols.h"

static const char help[] =
	"usage: weft-info protocols --lanes FILE [options]\n"
	"\n"
	"Prints which protocol Weft would use for which message size over some lanes, and why. The "
	"lanes come\n"
	"from a file: no port, no EAL and no rights are needed. Running programs print the same "
	"about their own\n"
	"lanes with WEFT_PROTO_INFO=y.\n"
	"\n"
	"  -L, --lanes FILE       profile of the lanes ('-': standard input); see weft-info(1) "
	"and share/doc/weft/profiles of the prefix\n"
	"  -o, --op OPERATION     tag_send (default), tag_send_sync, am_send, put, get, amo,\n"
	"                         amo_fetch (or fadd, cswap), rndv_data\n"
	"  -f, --format FORMAT    table (default), csv or text\n"
	"  -e, --explain SIZE     the time of each protocol for this size, term by term\n"
	"  -g, --graph FILE       draw the curves with gnuplot into FILE (.svg or .png)\n"
	"  -S, --set NAME=VALUE   set a configuration variable, e.g. RNDV_THRESH=model\n"
	"  -h, --help             this text\n"
	"\n"
	"Exit code: 0 all well, 1 the lanes do not carry the operation or nothing could be "
	"written, 2 wrong usage\n"
	"or profile.\n";

static const char shorts[] = ":L:o:f:e:g:S:h";
static const struct option longs[] = {
	{"lanes", required_argument, NULL, 'L'},  {"op", required_argument, NULL, 'o'},
	{"format", required_argument, NULL, 'f'}, {"explain", required_argument, NULL, 'e'},
	{"graph", required_argument, NULL, 'g'},  {"set", required_argument, NULL, 'S'},
	{"help", no_argument, NULL, 'h'},         {0}};

struct options {
	const char *lanes, *graph;
	enum weft_op op;
	enum weft_plan_format format;
	bool format_given, explain;
	uint64_t size;
	struct weft_config *config;
};

static int set_format(struct options *o, const char *text)
{
	static const char *const names[] = {"table", "csv", "text"};

	o->format_given = true;
	for (int i = 0; i < 3; i++) {
		if (strcmp(text, names[i]) == 0) {
			o->format = (enum weft_plan_format)i;
			return APP_OK;
		}
	}
	cli_error("--format '%s': expected table, csv or text", text);
	return APP_USAGE;
}

static int set_op(struct options *o, const char *text)
{
	int op = weft_op_find(text);

	if (op >= 0) {
		o->op = (enum weft_op)op;
		return APP_OK;
	}
	cli_error("--op '%s': expected tag_send, tag_send_sync, am_send, put, get, amo, amo_fetch, "
		  "fadd, cswap or rndv_data",
		  text);
	return APP_USAGE;
}

static int set_config(struct options *o, char *text)
{
	char *eq = strchr(text, '=');
	int rc;

	if (!eq) {
		cli_error("--set '%s': expected NAME=VALUE", text);
		return APP_USAGE;
	}
	*eq = '\0';
	rc = weft_config_modify(o->config, text, eq + 1);
	/* The library has logged the error. */
	return rc < 0 ? APP_USAGE : APP_OK;
}

static int set_graph(struct options *o, const char *text)
{
	const char *dot = strrchr(text, '.');

	o->graph = text;
	if (dot && (strcmp(dot, ".svg") == 0 || strcmp(dot, ".png") == 0))
		return APP_OK;
	cli_error("--graph '%s': expected a file name that ends in .svg or .png", text);
	return APP_USAGE;
}

static int option(struct options *o, int c)
{
	switch (c) {
	case 'L':
		o->lanes = optarg;
		return APP_OK;
	case 'o':
		return set_op(o, optarg);
	case 'f':
		return set_format(o, optarg);
	case 'e':
		o->explain = true;
		return cli_size("--explain", optarg, &o->size) ? APP_USAGE : APP_OK;
	case 'g':
		return set_graph(o, optarg);
	case 'S':
		return set_config(o, optarg);
	case 'h':
		fputs(help, stdout);
		return -1;
	default:
		return APP_USAGE;
	}
}

static int parse(struct options *o, int argc, char **argv)
{
	int c, ret;

	while ((c = cli_getopt(argc, argv, shorts, longs)) != -1) {
		ret = option(o, c);
		if (ret)
			return ret;
	}
	if (optind < argc) {
		cli_error("'%s' is no option of protocols; see weft-info protocols --help",
			  argv[optind]);
		return APP_USAGE;
	}
	if (o->lanes)
		return APP_OK;
	cli_error("name the lanes: --lanes FILE describes them, share/doc/weft/profiles of the "
		  "prefix has some. A running program prints those of its endpoints with "
		  "WEFT_PROTO_INFO=y");
	return APP_USAGE;
}

static int read_plan(const struct options *o, struct weft_plan **plan)
{
	bool input = strcmp(o->lanes, "-") == 0;
	FILE *in = input ? stdin : fopen(o->lanes, "re");
	char why[512];
	int rc;

	if (!in) {
		cli_error("--lanes %s: %s", o->lanes, strerror(errno));
		return APP_USAGE;
	}
	rc = weft_plan_read(o->config, in, input ? "standard input" : o->lanes, plan, why,
			    sizeof(why));
	if (!input)
		fclose(in);
	if (rc == 0)
		return APP_OK;
	cli_error("%s", why);
	return rc == -EINVAL || rc == -EIO ? APP_USAGE : APP_FAIL;
}

static int show(const struct options *o, const struct weft_plan *plan)
{
	int rc = 0;

	if (o->format_given || (!o->explain && !o->graph))
		rc = weft_plan_print(plan, stdout, o->op, o->format);
	if (rc == 0 && o->explain)
		rc = weft_plan_explain(plan, stdout, o->op, (size_t)o->size);
	if (fflush(stdout) || ferror(stdout)) {
		cli_error("standard output: %s", strerror(errno));
		return APP_FAIL;
	}
	if (rc == 0 && o->graph)
		return info_graph(plan, o->op, o->lanes, o->graph);
	return rc ? APP_FAIL : APP_OK;
}

int info_protocols(int argc, char **argv)
{
	struct options o = {.op = WEFT_OP_TAG_SEND};
	struct weft_plan *plan = NULL;
	int ret;

	if (cli_wants_help(argc, argv)) {
		fputs(help, stdout);
		return APP_OK;
	}
	if (weft_config_read(&o.config) < 0) {
		cli_error("the configuration is invalid (see above); weft-info -c lists all "
			  "variables");
		return APP_USAGE;
	}
	optind = 1;
	ret = parse(&o, argc, argv);
	if (ret == APP_OK)
		ret = read_plan(&o, &plan);
	if (ret == APP_OK)
		ret = show(&o, plan);
	weft_plan_destroy(plan);
	weft_config_release(o.config);
	return ret < 0 ? APP_OK : ret;
}
