/* SPDX-License-Identifier: BSD-3-Clause */

#include "context.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/host.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/tcp.h"
#include "core/address.h"
#include "core/config.h"
#include "core/lane_list.h"
#include "core/worker.h"
#include "dispatch.h"
#include "mem/mem.h"
#include "self/self_lane.h"
#include "shm/shm_lane.h"
#include "weft_build.h"

/* ------------------------------------------------------------------ the job key */

static int job_key_read(const char *path, uint8_t key[WEFT_JOB_KEY_LEN])
{
	bool remote = false;
	char why[512];
	int rc = weft_job_key_load(path, key, &remote, why, sizeof(why));

	if (rc < 0)
		weft_error("WEFT_JOB_KEY: %s", why);
	else if (remote)
		weft_warn(
			"WEFT_JOB_KEY=%.256s is in a network's file system: its server, and hosts "
			"that can read that network, can read the key",
			path);
	return rc;
}

static int job_key_check(const struct weft_conf *conf, bool has_key)
{
	if (!has_key &&
	    (conf->seal == WEFT_SEAL_WORD_AUTH || conf->seal == WEFT_SEAL_WORD_ENCRYPT)) {
		weft_error("WEFT_SEAL needs a job key: set WEFT_JOB_KEY=FILE, the same at all "
			   "processes of the job");
		return -EINVAL;
	}
	if (!has_key && conf->job_key_ignored && conf->seal != WEFT_SEAL_WORD_OFF) {
		weft_error("WEFT_JOB_KEY is set, and a program with more rights than its user "
			   "takes no file from the environment: set it in a configuration file of "
			   "root, or set WEFT_SEAL=off to send plain frames");
		return -EPERM;
	}
	if (has_key && !WEFT_HAVE_SEAL) {
		weft_error(
			"this build of Weft can't seal frames (it was made without libcrypto 3 or "
			"libipsec-mb), and a job key is set: remove the key, and use only a "
			"network whose members you trust");
		return -ENOTSUP;
	}
	return 0;
}

/* Open the file of WEFT_KEYLOG, if one is set. It is called only if there is a job key. */
static int open_keylog(struct weft_conf *conf)
{
	char why[512];
	int fd;

	if (conf->keylog[0] == '\0')
		return 0;
	fd = weft_keylog_open(conf->keylog, why, sizeof(why));
	if (fd < 0) {
		weft_error("WEFT_KEYLOG: %s", why);
		return fd;
	}
	weft_warn("WEFT_KEYLOG: the keys of all sealed frames are written to %.256s; a reader of "
		  "this file can read all messages",
		  conf->keylog);
	conf->keylog_fd = fd;
	conf->lane.keylog = &conf->keylog_fd;
	return 0;
}

/*
 * Find the key and set conf->lane.job_key, to be released by job_key_release(). If frames must be
 * sealed and this is not possible, the call fails: no frame is sent in clear instead.
 * @param given  32 bytes, or NULL
 * @return 0, -ENOMEM, or another error, which has been logged
 */
static int job_key_take(struct weft_conf *conf, const void *given)
{
	bool has_key = conf->seal != WEFT_SEAL_WORD_OFF && (given || conf->job_key[0] != '\0');
	uint8_t *key;
	int rc = job_key_check(conf, has_key);

	if (rc < 0 || !has_key)
		return rc;
	key = weft_secret_alloc(WEFT_JOB_KEY_LEN);
	if (!key)
		return -ENOMEM;
	if (given)
		memcpy(key, given, WEFT_JOB_KEY_LEN);
	else
		rc = job_key_read(conf->job_key, key);
	if (rc == 0)
		rc = open_keylog(conf);
	if (rc < 0) {
		weft_secret_free(key, WEFT_JOB_KEY_LEN);
		return rc;
	}
	conf->lane.job_key = key;
	conf->lane.seal_auth = conf->seal == WEFT_SEAL_WORD_AUTH;
	return 0;
}

static void close_keylog(struct weft_conf *conf)
{
	unsigned int lost = weft_keylog_flush();

	if (lost > 0)
		weft_warn("WEFT_KEYLOG: %u lines were not written to %.256s", lost, conf->keylog);
	close(conf->keylog_fd);
	conf->lane.keylog = NULL;
}

static void job_key_release(struct weft_conf *conf)
{
	weft_secret_free((void *)(uintptr_t)conf->lane.job_key, WEFT_JOB_KEY_LEN);
	conf->lane.job_key = NULL;
	if (conf->lane.keylog)
		close_keylog(conf);
}

/* ------------------------------------------------------------------ contexts */

#define FEATURES                                                                      \
	(WEFT_FEATURE_TAG | WEFT_FEATURE_AM | WEFT_FEATURE_RMA | WEFT_FEATURE_AMO32 | \
	 WEFT_FEATURE_AMO64)

static unsigned int driver_index(const struct weft_context *ctx,
				 const struct weft_lane_driver *driver)
{
	unsigned int i;

	for (i = 0; ctx->drivers[i] != driver; i++)
		;
	return i;
}

static int found_add(void *arg, const struct weft_lane_resource *resource)
{
	struct weft_found *found = arg;
	struct weft_found_resource *list =
		realloc(found->list, ((size_t)found->num + 1) * sizeof(*list));
	struct weft_found_resource *r;

	if (!list)
		return -ENOMEM;
	found->list = list;
	r = &list[found->num];
	r->name = strdup(resource->name);
	r->why = resource->why ? strdup(resource->why) : NULL;
	if (!r->name || (resource->why && !r->why)) {
		free(r->name);
		free(r->why);
		return -ENOMEM;
	}
	r->inside = resource->inside;
	found->num++;
	return 0;
}

static void found_free(struct weft_found *found)
{
	for (int i = 0; i < found->num; i++) {
		free(found->list[i].name);
		free(found->list[i].why);
	}
	free(found->list);
	found->list = NULL;
	found->num = 0;
}

struct weft_found *weft_context_find(struct weft_context *ctx,
				     const struct weft_lane_driver *driver)
{
	struct weft_found *found = &ctx->found[driver_index(ctx, driver)];
	int rc;

	if (found->queried)
		return found;
	found->queried = true;
	rc = driver->query(&ctx->conf->lane, found_add, found);
	if (rc < 0) {
		weft_warn("driver %s: no resources: %s", driver->name, weft_strerror(rc));
		found_free(found);
		found->num = rc;
	} else {
		weft_debug("driver %s: %d resources", driver->name, found->num);
	}
	return found;
}

bool weft_driver_is_network(const struct weft_lane_driver *driver)
{
	return driver != &weft_self_driver && driver != &weft_shm_driver;
}

static unsigned int num_usable(const struct weft_found *found)
{
	unsigned int n = 0;

	for (int i = 0; i < found->num; i++)
		n += !found->list[i].why && !found->list[i].inside;
	return n;
}

/* As a worker does: a fallback item is queried only if the others have no network resource. */
static void find_items(struct weft_context *ctx, const struct weft_lanes_item *items, int n)
{
	unsigned int usable = 0;
	int i;

	for (i = 0; i < n; i++) {
		if (items[i].fallback)
			continue;
		weft_context_find(ctx, items[i].driver);
		if (weft_driver_is_network(items[i].driver))
			usable += num_usable(weft_context_find(ctx, items[i].driver));
	}
	for (i = 0; i < n; i++)
		if (items[i].fallback && usable == 0)
			weft_context_find(ctx, items[i].driver);
}

/*
 * Check WEFT_LANES; with @p find, search the resources of its drivers, too. The search starts a
 * driver's environment (the EAL), so only weft_context_query() requests it here. A worker searches
 * for its own lanes, which may be others.
 * @return 0; -EINVAL when the lanes are malformed; -ENOMEM
 */
static int configured_drivers(struct weft_context *ctx, bool find)
{
	struct weft_lanes_item *items = calloc(WEFT_LANES_MAX_ITEMS, sizeof(*items));
	char why[320];
	int n;

	if (!items)
		return -ENOMEM;
	n = weft_lanes_parse(ctx->conf->lanes, ctx->drivers, items, why, sizeof(why));
	if (n < 0)
		weft_error("WEFT_LANES: %s", why);
	if (find)
		find_items(ctx, items, n);
	free(items);
	return n < 0 ? n : 0;
}

static void set_name(struct weft_context *ctx, const char *name)
{
	if (name)
		snprintf(ctx->name, sizeof(ctx->name), "%s", name);
	else
		snprintf(ctx->name, sizeof(ctx->name), "%.50s-%d", program_invocation_short_name,
			 (int)getpid());
}

static void context_free(struct weft_context *ctx)
{
	unsigned int i;

	for (i = 0; ctx->found && ctx->drivers[i]; i++)
		found_free(&ctx->found[i]);
	free(ctx->found);
	free(ctx->drivers_list);
	weft_regcache_free(ctx->regcache);
	weft_mem_table_fini(&ctx->keys);
	weft_mem_domains_free(ctx);
	if (ctx->config)
		job_key_release(&ctx->config->conf);
	weft_config_release(ctx->config);
	pthread_mutex_destroy(&ctx->export_lock);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx);
}

static const char *log_file_text(int rc)
{
	if (rc == -EPERM)
		return "another user owns it and could read or redirect the log: remove it, or "
		       "give another name";
	if (rc == -EINVAL)
		return "it is neither a file nor a pipe nor a terminal: give another name";
	if (rc == -ENXIO)
		return "it is a pipe without a reader, or no device: start the reader first";
	return strerror(-rc);
}

static int context_setup(struct weft_context *ctx, const struct weft_context_params *p)
{
	unsigned int n;
	int rc;

	rc = weft_config_copy(p->config, &ctx->config);
	if (rc < 0)
		return rc;
	ctx->conf = &ctx->config->conf;
	rc = weft_log_setup(ctx->conf->log_level, ctx->conf->log_file);
	if (rc < 0) {
		weft_error("WEFT_LOG_FILE=%.128s cannot be opened: %s", ctx->conf->log_file,
			   log_file_text(rc));
		return -EINVAL;
	}
	rc = job_key_take(&ctx->config->conf, p->job_key);
	if (rc < 0)
		return rc;
	for (n = 0; ctx->drivers[n]; n++) {
		if (ctx->drivers[n]->abi != WEFT_LANE_ABI) {
			weft_error("driver %s has WEFT_LANE_ABI %u, this library has %u: compile "
				   "the driver with the headers of this library",
				   ctx->drivers[n]->name, ctx->drivers[n]->abi, WEFT_LANE_ABI);
			return -EINVAL;
		}
	}
	ctx->found = calloc(n + 1, sizeof(*ctx->found));
	ctx->regcache = weft_regcache_new(ctx);
	return ctx->found != NULL && ctx->regcache ? configured_drivers(ctx, false) : -ENOMEM;
}

int weft_context_create_in(const struct weft_context_params *params,
			   const struct weft_platform *platform,
			   const struct weft_lane_driver *const *drivers, struct weft_context **out)
{
	struct weft_context_params p;
	struct weft_context *ctx;
	pthread_mutexattr_t attr;
	int rc;

	if (!out || weft_struct_in(&p, sizeof(p), params) < 0)
		return -EINVAL;
	if (p.features & ~FEATURES) {
		weft_error(
			"features 0x%llx are not known to this version: leave them out, or install "
			"the Weft with which the program was compiled",
			(unsigned long long)(p.features & ~FEATURES));
		return -EINVAL;
	}
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return -ENOMEM;
	ctx->pid = getpid();
	ctx->platform = platform ? platform : &weft_platform_host;
	ctx->drivers_list = drivers ? NULL : weft_drivers_list();
	ctx->drivers = drivers ? drivers : ctx->drivers_list;
	if (!ctx->drivers) {
		free(ctx);
		return -ENOMEM;
	}
	ctx->tables = &weft_tables;
	ctx->features = p.features != 0 ? p.features : WEFT_FEATURE_TAG;
	/* Recursive: closing an iface under the lock ends requests that release registrations. */
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&ctx->lock, &attr);
	pthread_mutex_init(&ctx->export_lock, NULL);
	pthread_mutexattr_destroy(&attr);
	LIST_INIT(&ctx->workers);
	LIST_INIT(&ctx->mems);
	set_name(ctx, p.name);
	rc = context_setup(ctx, &p);
	if (rc < 0) {
		context_free(ctx);
		return rc;
	}
	*out = ctx;
	return 0;
}

int weft_context_create(const struct weft_context_params *params, struct weft_context **ctx)
{
	return weft_context_create_in(params, NULL, NULL, ctx);
}

int weft_context_destroy(struct weft_context *ctx)
{
	struct weft_mem *mem;
	bool busy;

	if (!ctx || !weft_context_is_ours(ctx))
		return 0;
	pthread_mutex_lock(&ctx->lock);
	busy = !LIST_EMPTY(&ctx->workers);
	LIST_FOREACH(mem, &ctx->mems, entry)
		busy = busy || mem->cached == NULL;
	pthread_mutex_unlock(&ctx->lock);
	if (busy)
		return -EBUSY;
	context_free(ctx);
	return 0;
}

int weft_context_query(const struct weft_context *context, struct weft_context_attr *attr)
{
	/* The result of a driver's search is kept; no state that the caller can see changes. */
	struct weft_context *ctx = (struct weft_context *)(uintptr_t)context;
	struct weft_context_attr out = {0};
	unsigned int i;

	if (!ctx)
		return -EINVAL;
	pthread_mutex_lock(&ctx->lock);
	configured_drivers(ctx, true);
	out.features = ctx->features;
	out.name = ctx->name;
	for (i = 0; ctx->drivers[i]; i++) {
		if (ctx->drivers[i] == &weft_self_driver)
			continue; /* every worker has that */
		out.num_resources += num_usable(&ctx->found[i]);
	}
	pthread_mutex_unlock(&ctx->lock);
	return weft_struct_out(attr, &out, sizeof(out));
}

void weft_context_print_config(const struct weft_context *ctx, FILE *out, unsigned int flags)
{
	if (ctx)
		weft_config_print(ctx->config, out, flags);
}

/* ------------------------------------------------------------------ drivers of the build */

#if WEFT_HAVE_DPDK
/* Weak: the library also links without the sources of drivers/dpdk, and then has no raw lanes. */
extern const struct weft_lane_driver weft_dpdk_driver __attribute__((weak));
extern const struct weft_lane_driver weft_udp_driver __attribute__((weak));
#pragma weak weft_capture_messages
#pragma weak weft_sealed_greeting
#endif

#if WEFT_HAVE_ROCE
extern const struct weft_lane_driver weft_roce_driver;
extern const struct weft_lane_driver weft_roce_ud_driver;
#endif

/* The only list of the drivers of this build. Its order is the order of interfaces in a worker. */
static const struct weft_lane_driver *const built_in[] = {
	&weft_self_driver, &weft_shm_driver,
#if WEFT_HAVE_DPDK
	&weft_dpdk_driver,
#endif
#if WEFT_HAVE_ROCE
	&weft_roce_driver, &weft_roce_ud_driver,
#endif
#if WEFT_HAVE_DPDK
	&weft_udp_driver, /* behind those that reach a NIC without the kernel */
#endif
};

#define NUM_BUILT_IN (sizeof(built_in) / sizeof(built_in[0]))

static pthread_mutex_t added_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct weft_lane_driver *added[WEFT_LANE_DRIVERS_MAX];
static unsigned int num_added;

/*
 * Driver number @p i: those of the build, then those that were added. NULL: @p i is past the last
 * one, or the weak driver of this number is not in the build.
 */
static const struct weft_lane_driver *driver_at(unsigned int i)
{
	if (i < NUM_BUILT_IN)
		return built_in[i];
	return i - NUM_BUILT_IN < num_added ? added[i - NUM_BUILT_IN] : NULL;
}

const struct weft_lane_driver **weft_drivers_list(void)
{
	const struct weft_lane_driver **list;
	unsigned int n = 0;

	list = calloc(NUM_BUILT_IN + WEFT_LANE_DRIVERS_MAX + 1, sizeof(*list));
	if (!list)
		return NULL;
	pthread_mutex_lock(&added_lock);
	for (unsigned int i = 0; i < NUM_BUILT_IN + num_added; i++)
		if (driver_at(i)) /* a weak one may be missing */
			list[n++] = driver_at(i);
	pthread_mutex_unlock(&added_lock);
	return list;
}

const struct weft_lane_tap_ops *weft_drivers_tap(void)
{
#if WEFT_HAVE_DPDK
	return &weft_capture_messages;
#else
	return NULL;
#endif
}

const struct weft_greeting_ops *weft_drivers_greeting(void)
{
#if WEFT_HAVE_SEAL
	return &weft_sealed_greeting;
#else
	return NULL;
#endif
}

int weft_recorder_write(const char *reason, char *text, size_t text_len)
{
	const struct weft_lane_tap_ops *ops = weft_drivers_tap();

	if (ops)
		return ops->record(reason, text, text_len);
	snprintf(text, text_len, "this build has no flight recorder");
	return -ENOENT;
}

/* Can WEFT_LANES and worker addresses contain this name of a driver? */
static bool name_is_good(const char *name)
{
	size_t n = name ? strlen(name) : 0;

	/* roce_rc is another name of roce (core/lane_list.c). */
	return n > 0 && n < sizeof(((struct weft_address_iface *)NULL)->driver) &&
	       strcmp(name, "roce_rc") != 0 &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == n;
}

static int add(const struct weft_lane_driver *driver)
{
	for (unsigned int i = 0; i < NUM_BUILT_IN + num_added; i++) {
		if (driver_at(i) == driver)
			return 0;
		if (driver_at(i) && strcmp(driver_at(i)->name, driver->name) == 0)
			return -EEXIST;
	}
	if (num_added == WEFT_LANE_DRIVERS_MAX)
		return -ENOSPC;
	added[num_added++] = driver;
	return 0;
}

int weft_lane_driver_add(const struct weft_lane_driver *driver)
{
	int rc;

	/* The number first: members of another version may lie elsewhere in the struct. */
	if (driver && driver->abi != WEFT_LANE_ABI)
		return -EPROTONOSUPPORT;
	if (!driver || !driver->query || !driver->open || !name_is_good(driver->name))
		return -EINVAL;
	pthread_mutex_lock(&added_lock);
	rc = add(driver);
	pthread_mutex_unlock(&added_lock);
	return rc;
}
