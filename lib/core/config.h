/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file core/config.h
 * Configuration: one table (core/config_table.c) with name, type, unit, default and help of every
 * `WEFT_*` variable. Values are parsed once, into typed fields that library and drivers read.
 *
 * Values as text:
 *  - bytes: a number with an optional binary suffix k, M, G, T ("64k", "1.5M")
 *  - time: a number with ns, us, ms, s or m; a bare number is seconds
 *  - rate: a number with a unit, which may have a decimal prefix ("25Gbps", "3GBs", "1.25e9Bs")
 *  - bool: y/n, yes/no, on/off, true/false, 1/0
 *  - enum: one of the words in the table, or at least the first four letters of one
 *  - number: a whole decimal number; double: a decimal number; string: any text
 *  - "auto", "inf", or a word of the option, in place of a number: where the table allows it
 */
#ifndef WEFT_CONFIG_H
#define WEFT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "lane.h"
#include "weft.h"

/** A size that has no bound ("inf"). */
#define WEFT_CONF_INF SIZE_MAX
/** "auto" in rndv_thresh, zcopy_thresh and unexp_memory; other options store it as 0. */
#define WEFT_CONF_AUTO (SIZE_MAX - 1)
/** WEFT_RNDV_THRESH=model: the staged model (proto/proto.h) decides, and no formula. */
#define WEFT_CONF_MODEL (SIZE_MAX - 2)

/** WEFT_RNDV_SCHEME. */
enum weft_rndv_scheme {
	WEFT_RNDV_AUTO, /**< get; where the sender does not offer get, the faster of put and am */
	WEFT_RNDV_GET,
	WEFT_RNDV_PUT,
	WEFT_RNDV_AM,
};

/** WEFT_SEAL. */
enum weft_seal_word {
	WEFT_SEAL_WORD_AUTO, /**< encrypt with a job key, else off */
	WEFT_SEAL_WORD_OFF,
	WEFT_SEAL_WORD_AUTH,
	WEFT_SEAL_WORD_ENCRYPT,
};

/** The configuration of a context. Strings are never NULL, except lane.capture when unset. */
struct weft_conf {
	/* connections */
	const char *file;        /**< WEFT_CONFIG: "" = none, "off" = no file is read at all */
	const char *lanes;       /**< WEFT_LANES, of workers with no lanes in params; "" = "*" */
	unsigned int log_level;  /**< WEFT_LOG_LEVEL: enum weft_log_level */
	const char *log_file;    /**< WEFT_LOG_FILE: "" = stderr */
	unsigned int encap;      /**< WEFT_ENCAP: 0 udp, 1 ether */
	const char *job_key;     /**< WEFT_JOB_KEY: file; "" = none */
	bool job_key_ignored;    /**< the environment names a file, which is ignored because the
				    program has more rights than its user */
	const char *keylog;      /**< WEFT_KEYLOG: file; "" = none */
	int keylog_fd;           /**< descriptor of that file; lane.keylog points here */
	unsigned int seal;       /**< WEFT_SEAL: enum weft_seal_word */
	unsigned int seal_allow; /**< WEFT_SEAL_ALLOW: 1 = lanes that cannot seal may be used */
	/** WEFT_THREAD_MULTI: every worker takes its lock, whatever its thread mode */
	bool thread_multi;
	/** WEFT_HEARTBEAT: ns without progress after which peers get a heartbeat; 0 = never */
	uint64_t heartbeat_ns;
	/** WEFT_MAX_UNCLAIMED_EPS: limit of a worker's unclaimed endpoints, made by peers */
	unsigned int max_passive_eps;

	/* messages */
	/** WEFT_RNDV_THRESH: rendezvous from this size on; WEFT_CONF_AUTO, _MODEL; _INF = never */
	size_t rndv_thresh;
	/** rndv_perf_diff of a profile: percent by which rendezvous may be slower, < 100 */
	double rndv_perf_diff;
	/** WEFT_BCOPY_BW: bytes/s at which a CPU copies; 0 = measure */
	double bcopy_bw;
	/** zcopy_thresh of a profile: eager zcopy from this size; _INF = never; _AUTO = by model */
	size_t zcopy_thresh;
	unsigned int reg_cache; /* enum weft_regcache_mode */
	unsigned int reg_cache_entries;
	size_t reg_cache_bytes;
	/**
	 * WEFT_MULTI_EAGER_LIMIT: multi-eager messages are shorter, unless rndv_thresh is a larger
	 * number; 0 = no multi-eager
	 */
	size_t multi_eager_limit;
	/**
	 * WEFT_MIN_LANES: a worker with fewer rails is not created. A worker without any rail is,
	 * if this is 1 or if its WEFT_LANES names no network. An endpoint to another host that
	 * connects with fewer lanes fails
	 */
	unsigned int min_lanes;
	/** max_eager_lanes of a profile: lanes that one eager message may use, >= 1 */
	unsigned int max_eager_lanes;
	/** max_rndv_lanes of a profile: lanes that one rendezvous message may use, >= 1 */
	unsigned int max_rndv_lanes;
	/** no variable: least bytes of a piece of a striped message, where that can be kept */
	size_t min_chunk;
	/** WEFT_PROTO_INFO: log the protocol of each size, once for each set of lanes */
	bool proto_info;
	/** WEFT_UNEXP_LIMIT: bytes of credit that a worker grants, plus 4 KiB for each peer */
	size_t unexp_limit;
	/**
	 * WEFT_UNEXP_MEMORY: bytes of a worker for unexpected messages beyond unexp_limit; 0 =
	 * none, and senders wait; WEFT_CONF_AUTO = a share of the host's memory
	 */
	size_t unexp_memory;
	/**
	 * WEFT_EAGER_CREDIT: limit of a peer's eager bytes that are in flight or unmatched, without
	 * messages of up to WEFT_EAGER_FREE bytes
	 */
	size_t eager_credit;
	/** WEFT_SEQ_START: first sequence number of messages, same at both ends (wrap tests) */
	uint32_t seq_start;
	/** WEFT_ATOMIC_MODE: 0 cpu; 1 device: only lanes with native atomics execute atomics */
	unsigned int atomic_device;

	unsigned int rndv_scheme; /**< WEFT_RNDV_SCHEME: enum weft_rndv_scheme */
	size_t rndv_min_piece; /**< no variable: bytes; about the least piece of rendezvous data */
	size_t rndv_window;    /**< WEFT_RNDV_WINDOW: limit of outstanding bytes per lane */
	size_t rndv_limit;     /**< WEFT_RNDV_LIMIT: limit of requested bytes of a worker */
	unsigned int rma_max_gets; /**< WEFT_RMA_MAX_GETS: outstanding pieces of a worker's gets */

	uint64_t wait_spin_ns;  /**< WEFT_WAIT_SPIN: polling before a wait sleeps */
	uint64_t wait_sleep_ns; /**< WEFT_WAIT_SLEEP: limit of a sleep that no lane can end */

	/* settings of lanes: each driver gets this struct, unchanged */
	struct weft_lane_conf lane;
};

#define WEFT_OPTIONS_MAX 64u

/** Sources of values, by rising precedence. */
enum weft_config_source {
	WEFT_CONFIG_DEFAULT,
	WEFT_CONFIG_SYSTEM_FILE, /**< /etc/weft.conf */
	WEFT_CONFIG_USER_FILE,   /**< weft.conf in XDG_CONFIG_HOME or ~/.config */
	WEFT_CONFIG_NAMED_FILE,  /**< the file that WEFT_CONFIG names */
	WEFT_CONFIG_ENVIRONMENT,
	WEFT_CONFIG_PROGRAM, /**< weft_config_modify() */
	WEFT_CONFIG_SOURCES
};

struct weft_config_origin {
	enum weft_config_source source;
	unsigned int line; /**< line of the file; 0 = the source is no file */
};

/** A configuration that can be changed; weft.h declares it. */
struct weft_config {
	struct weft_conf conf;
	/** the source of each option's value, by index in weft_options[] */
	struct weft_config_origin origin[WEFT_OPTIONS_MAX];
	char *files[WEFT_CONFIG_SOURCES]; /**< paths of the files read; NULL = no file */
};

/** The sources that weft_config_read_from() reads. */
struct weft_config_sources {
	const char *system_file, *user_file; /**< paths; NULL = none */
	char *const *environment;            /**< "NAME=value", NULL-terminated */
	bool secure;                         /**< AT_SECURE: more rights than the user */
	struct weft_log_limit *limit;        /**< rate limit of warnings */
};

/** weft_config_read() with the sources as an argument; tests pass their own. */
int weft_config_read_from(const struct weft_config_sources *from, struct weft_config **config);

/** Copy @p src; if that is NULL, call weft_config_read(). @return 0, -ENOMEM, -EINVAL */
int weft_config_copy(const struct weft_config *src, struct weft_config **config);

/* ------------------------------------------------------------------ the table */

enum weft_option_type {
	WEFT_OPT_BYTES,  /**< size_t */
	WEFT_OPT_TIME,   /**< uint64_t, ns */
	WEFT_OPT_BOOL,   /**< bool */
	WEFT_OPT_ENUM,   /**< unsigned int, index into words */
	WEFT_OPT_UINT,   /**< unsigned int */
	WEFT_OPT_U32,    /**< uint32_t */
	WEFT_OPT_PORT,   /**< uint16_t */
	WEFT_OPT_DOUBLE, /**< double */
	WEFT_OPT_RATE,   /**< double, bytes/s */
	WEFT_OPT_STRING, /**< const char *, malloc()ed */
};

struct weft_option {
	const char *name; /**< without WEFT_ */
	enum weft_option_type type;
	size_t offset;     /**< of its field in struct weft_conf */
	const char *def;   /**< default, as text */
	const char *unit;  /**< what a value means, for help: "bytes", "time", ... */
	const char *words; /**< enum: "udp|ether" */
	const char *word;  /**< a word allowed in place of a number; NULL = none */
	size_t word_value; /**< the value that `word` is stored as */
	bool has_auto;     /**< "auto" is allowed */
	size_t auto_value; /**< the value that "auto" is stored as */
	bool has_inf;      /**< "inf" is allowed: WEFT_CONF_INF; in times WEFT_NEVER */
	/** bounds of numbers, in the stored unit; max 0 = 2^53, or none of doubles and rates */
	double min, max;
	/**
	 * The value can let the process open files, sockets or devices, load modules, or be
	 * watched. In a program with more rights than its user (AT_SECURE) the variable is ignored,
	 * except in files that root owns.
	 */
	bool guarded;
	bool hidden;      /**< for tests and for finding faults: not in weft-config(7) */
	bool profile;     /**< only a key of [model] in a profile (plan/plan.c): no variable */
	bool environment; /**< the variable has an effect in the environment only */
	const char *help; /**< sentences, one paragraph */
};

extern const struct weft_option weft_options[];
extern const unsigned int weft_num_options;

/** A variable of an earlier release. It has no effect, and a line of the log reports it. */
struct weft_removed {
	const char *name;  /**< without WEFT_ */
	const char *since; /**< the first release without it */
	const char *now;   /**< a sentence: what applies in its place */
};

#define WEFT_REMOVED_MAX 16u
extern const struct weft_removed weft_removed[];
extern const unsigned int weft_num_removed;

/** The variable or the key of profiles with this name, with or without WEFT_; or NULL. */
const struct weft_option *weft_option_find(const char *name);

/**
 * Nearest of the words in @p list (separated by any of @p sep) to @p word by edit distance, or NULL
 * if none is near. The word is copied to @p buf, and @p buf returned.
 */
const char *weft_nearest_word(const char *word, const char *list, const char *sep, char *buf,
			      size_t size);

#endif /* WEFT_CONFIG_H */
