/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/config.h
 * One table (core/config_table.c) has name, type, unit, default and help of every `WEFT_*`
 * variable. Values are parsed once, into typed fields.
 *
 * Values as text:
 *  - bytes: a number with an optional binary suffix k, M, G, T ("64k", "1.5M")
 *  - time: a number with ns, us, ms, s or m; a bare number is seconds
 *  - rate: a number with a unit, which may have a decimal prefix ("25Gbps", "3GBs", "1.25e9Bs")
 *  - bool: y/n, yes/no, on/off, true/false, 1/0
 *  - enum: one of the words in the table, or at least the first four letters of one
 *  - number: a whole decimal number; double: a decimal number
 *  - "auto", "inf", or a word of the option: where the table allows it
 */
#ifndef WEFT_CONFIG_H
#define WEFT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "lane.h"
#include "weft.h"

/** "inf" for a size. */
#define WEFT_CONF_INF SIZE_MAX
/** "auto" in rndv_thresh, zcopy_thresh and unexp_memory; in other options it is 0. */
#define WEFT_CONF_AUTO (SIZE_MAX - 1)
/** WEFT_RNDV_THRESH=model: the staged model (proto/proto.h) decides. */
#define WEFT_CONF_MODEL (SIZE_MAX - 2)

enum weft_rndv_scheme {
	WEFT_RNDV_AUTO, /**< get; the faster of put and am where the sender offers no get */
	WEFT_RNDV_GET,
	WEFT_RNDV_PUT,
	WEFT_RNDV_AM,
};

enum weft_seal_word {
	WEFT_SEAL_WORD_AUTO, /**< encrypt with a job key, else off */
	WEFT_SEAL_WORD_OFF,
	WEFT_SEAL_WORD_AUTH,
	WEFT_SEAL_WORD_ENCRYPT,
};

/** Strings are never NULL, except lane.capture when unset. */
struct weft_conf {
	/* connections */
	const char *file;        /**< WEFT_CONFIG: "" = none, "off" = no file at all */
	const char *lanes;       /**< of workers without lanes in params; "" = "*" */
	unsigned int log_level;  /**< enum weft_log_level */
	const char *log_file;    /**< "" = stderr */
	unsigned int encap;      /**< 0 udp, 1 ether */
	const char *job_key;     /**< file; "" = none */
	bool job_key_ignored;    /**< a file of the environment, because of AT_SECURE */
	const char *keylog;      /**< file; "" = none */
	int keylog_fd;           /**< of that file; lane.keylog points here */
	unsigned int seal;       /**< enum weft_seal_word */
	unsigned int seal_allow; /**< 1 = lanes that cannot seal may be used */
	bool thread_multi;       /**< every worker takes its lock */
	uint64_t heartbeat_ns;   /**< ns without progress until a heartbeat; 0 = never */
	/** WEFT_MAX_UNCLAIMED_EPS, of one worker: endpoints made by peers */
	unsigned int max_passive_eps;

	/* messages */
	/** least size of rendezvous; WEFT_CONF_AUTO, _MODEL; _INF = never */
	size_t rndv_thresh;
	double rndv_perf_diff; /**< percent by which rendezvous may be slower, < 100 */
	double bcopy_bw;       /**< bytes/s at which a CPU copies; 0 = measure */
	/** least size of eager zcopy; WEFT_CONF_INF = never; _AUTO = by the model */
	size_t zcopy_thresh;
	unsigned int reg_cache; /* enum weft_regcache_mode */
	unsigned int reg_cache_entries;
	size_t reg_cache_bytes;
	/** multi-eager messages are shorter, unless rndv_thresh is a larger number; 0 = none */
	size_t multi_eager_limit;
	/**
	 * WEFT_MIN_LANES: a worker with fewer rails is not created. A worker without any rail is,
	 * if this is 1 or WEFT_LANES names no network. An endpoint to another host with fewer lanes
	 * fails
	 */
	unsigned int min_lanes;
	unsigned int max_eager_lanes; /**< of one message, >= 1 */
	unsigned int max_rndv_lanes;  /**< of one message, >= 1 */
	size_t min_chunk; /**< no variable: least bytes of a striped piece, where possible */
	bool proto_info;  /**< log the protocol of each size, once for each set of lanes */
	/** bytes of credit for all peers; a peer that finds none left still gets 4 KiB */
	size_t unexp_limit;
	/**
	 * bytes beyond unexp_limit; 0: senders wait; WEFT_CONF_AUTO: a share of the host's memory
	 */
	size_t unexp_memory;
	/** bytes of a peer in flight or unmatched, without messages of up to WEFT_EAGER_FREE */
	size_t eager_credit;
	uint32_t seq_start;         /**< first number, the same at both ends (wrap tests) */
	unsigned int atomic_device; /**< 0 cpu; 1 only lanes with native atomics execute atomics */

	unsigned int rndv_scheme; /**< enum weft_rndv_scheme */
	size_t rndv_min_piece; /**< no variable: bytes, about the least piece of rendezvous data */
	size_t rndv_window;    /**< limit of outstanding bytes per lane */
	size_t rndv_limit;     /**< limit of requested bytes of a worker */
	unsigned int rma_max_gets; /**< outstanding pieces of a worker's gets */

	uint64_t wait_spin_ns;  /**< polling before a wait sleeps */
	uint64_t wait_sleep_ns; /**< limit of a sleep that no lane can end */

	/* each driver gets this struct, unchanged */
	struct weft_lane_conf lane;
};

#define WEFT_OPTIONS_MAX 64u

/** Sources of values, by rising precedence. */
enum weft_config_source {
	WEFT_CONFIG_DEFAULT,
	WEFT_CONFIG_SYSTEM_FILE, /**< /etc/weft.conf */
	WEFT_CONFIG_USER_FILE,   /**< weft.conf in XDG_CONFIG_HOME or ~/.config */
	WEFT_CONFIG_NAMED_FILE,
	WEFT_CONFIG_ENVIRONMENT,
	WEFT_CONFIG_PROGRAM,
	WEFT_CONFIG_SOURCES
};

struct weft_config_origin {
	enum weft_config_source source;
	unsigned int line; /**< 0 = the source is no file */
};

struct weft_config {
	struct weft_conf conf;
	struct weft_config_origin origin[WEFT_OPTIONS_MAX];
	char *files[WEFT_CONFIG_SOURCES]; /**< paths; NULL = no file */
};

struct weft_config_sources {
	const char *system_file, *user_file; /**< paths; NULL = none */
	char *const *environment;            /**< "NAME=value", NULL-terminated */
	bool secure;                         /**< AT_SECURE: more rights than the user */
	struct weft_log_limit *limit;
};

int weft_config_read_from(const struct weft_config_sources *from, struct weft_config **config);

/** @param src  NULL: call weft_config_read(). @return 0, -ENOMEM, -EINVAL */
int weft_config_copy(const struct weft_config *src, struct weft_config **config);

/* ------------------------------------------------------------------ the table */

enum weft_option_type {
	WEFT_OPT_BYTES, /**< size_t */
	WEFT_OPT_TIME,  /**< uint64_t, ns */
	WEFT_OPT_BOOL,
	WEFT_OPT_ENUM, /**< unsigned int, index into words */
	WEFT_OPT_UINT,
	WEFT_OPT_U32,
	WEFT_OPT_PORT,
	WEFT_OPT_DOUBLE,
	WEFT_OPT_RATE,   /**< double, bytes/s */
	WEFT_OPT_STRING, /**< const char *, malloc()ed */
};

struct weft_option {
	const char *name; /**< without WEFT_ */
	enum weft_option_type type;
	size_t offset; /**< of its field in struct weft_conf */
	const char *def;
	const char *unit;  /**< for help: "bytes", "time", ... */
	const char *words; /**< enum: "udp|ether" */
	const char *word;  /**< allowed in place of a number; NULL = none */
	size_t word_value;
	bool has_auto;
	size_t auto_value;
	bool has_inf; /**< "inf" is allowed: WEFT_CONF_INF; in times WEFT_NEVER */
	/** of numbers, as stored; max 0 = 2^53, or none of doubles and rates */
	double min, max;
	/**
	 * The value can let the process open files, sockets or devices, load modules, or be
	 * watched. With AT_SECURE it is ignored, except in files that root owns.
	 */
	bool guarded;
	bool hidden;      /**< for tests and finding faults: not in weft-config(7) */
	bool profile;     /**< no variable, but a key of [model] in a profile (plan/plan.c) */
	bool environment; /**< no effect in files */
	const char *help;
};

extern const struct weft_option weft_options[];
extern const unsigned int weft_num_options;

/** A variable of an earlier release, without effect. The log reports its use. */
struct weft_removed {
	const char *name;
	const char *since; /**< the first release without it */
	const char *now;   /**< a sentence: what applies instead */
};

#define WEFT_REMOVED_MAX 16u
extern const struct weft_removed weft_removed[];
extern const unsigned int weft_num_removed;

/** @param name  with or without WEFT_. @return also keys of profiles; NULL = none */
const struct weft_option *weft_option_find(const char *name);

/** @return the nearest word of @p list (separators @p sep), copied to @p buf; NULL: none is near */
const char *weft_nearest_word(const char *word, const char *list, const char *sep, char *buf,
			      size_t size);

#endif /* WEFT_CONFIG_H */
