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
 *  - enum: one of the words in the table, or its first four letters or more
 *  - number, double, string: unchanged
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
/** A size the library chooses itself ("auto"). Sizes that are never auto never have this value. */
#define WEFT_CONF_AUTO (SIZE_MAX - 1)
/** WEFT_RNDV_THRESH=model: the staged model decides. */
#define WEFT_CONF_MODEL (SIZE_MAX - 2)

/** WEFT_RNDV_SCHEME. */
enum weft_rndv_scheme {
	WEFT_RNDV_AUTO, /**< get; the faster of put and am if the sender does not offer it */
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
	const char *file;        /**< WEFT_CONFIG: "" = none, "off" = no file at all */
	const char *lanes;       /**< WEFT_LANES: which lanes workers open; "" = all */
	unsigned int log_level;  /**< WEFT_LOG_LEVEL: enum weft_log_level */
	const char *log_file;    /**< WEFT_LOG_FILE: "" = stderr */
	unsigned int encap;      /**< WEFT_ENCAP: 0 udp, 1 ether */
	const char *job_key;     /**< WEFT_JOB_KEY: file; "" = none */
	bool job_key_ignored;    /**< the environment names one, which a program with more rights
				    than its user does not read */
	const char *keylog;      /**< WEFT_KEYLOG: file; "" = none */
	int keylog_fd;           /**< what lane.keylog points to */
	unsigned int seal;       /**< WEFT_SEAL: enum weft_seal_word */
	unsigned int seal_allow; /**< WEFT_SEAL_ALLOW: 0 none, 1 roce */
	/** WEFT_THREAD_MULTI: every worker takes its lock, whatever its thread mode */
	bool thread_multi;
	/** WEFT_HEARTBEAT: ns without progress until peers get a heartbeat; 0 = never */
	uint64_t heartbeat_ns;
	/** WEFT_MAX_UNCLAIMED_EPS: per worker, endpoints that peers created, not claimed here */
	unsigned int max_passive_eps;

	/* messages */
	/** WEFT_RNDV_THRESH: rendezvous from this size on; WEFT_CONF_AUTO, _MODEL; _INF = never */
	size_t rndv_thresh;
	/** rndv_perf_diff of a profile: percent by which rendezvous may be slower, 0..100 */
	double rndv_perf_diff;
	/** WEFT_BCOPY_BW: bytes/s at which a CPU copies; 0 = measure */
	double bcopy_bw;
	/** zcopy_thresh of a profile: eager zcopy from this size; WEFT_CONF_AUTO, _INF = never */
	size_t zcopy_thresh;
	unsigned int reg_cache; /* enum weft_regcache_mode */
	unsigned int reg_cache_entries;
	size_t reg_cache_bytes;
	/** WEFT_MULTI_EAGER_LIMIT: multi-eager messages are shorter; 0 = no multi-eager */
	size_t multi_eager_limit;
	/** WEFT_MIN_LANES: a worker or an endpoint with fewer fails */
	unsigned int min_lanes;
	/** max_eager_lanes of a profile: lanes that one eager message may use, >= 1 */
	unsigned int max_eager_lanes;
	/** max_rndv_lanes of a profile: lanes that one rendezvous message may use, >= 1 */
	unsigned int max_rndv_lanes;
	/** No variable: smallest piece worth a lane of its own, >= 1 */
	size_t min_chunk;
	/** WEFT_PROTO_INFO: print which protocols each endpoint uses, and why */
	bool proto_info;
	/** WEFT_UNEXP_LIMIT: unexpected payload that a worker keeps, beyond 4 KiB per peer */
	size_t unexp_limit;
	/**
	 * WEFT_UNEXP_MEMORY: memory of a worker for unexpected messages beyond unexp_limit;
	 * WEFT_CONF_AUTO; 0 = none, and senders wait
	 */
	size_t unexp_memory;
	/** WEFT_EAGER_CREDIT: eager payload that one peer may have in flight and unmatched */
	size_t eager_credit;
	/** WEFT_SEQ_START: first sequence of every endpoint, same at both ends (wrap tests) */
	uint32_t seq_start;
	/** WEFT_ATOMIC_MODE: 0 cpu; 1 device: only lanes with native atomics execute atomics */
	unsigned int atomic_device;

	unsigned int rndv_scheme; /**< WEFT_RNDV_SCHEME: enum weft_rndv_scheme */
	size_t rndv_min_piece;    /**< no variable: smallest piece requested over one lane */
	size_t rndv_window; /**< WEFT_RNDV_WINDOW: bytes requested and not received, per lane */
	size_t rndv_limit;  /**< WEFT_RNDV_LIMIT: the same per worker */
	unsigned int rma_max_gets; /**< WEFT_RMA_MAX_GETS */

	uint64_t wait_spin_ns;  /**< WEFT_WAIT_SPIN */
	uint64_t wait_sleep_ns; /**< WEFT_WAIT_SLEEP */

	/* lanes: passed to the drivers as it is */
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
	/** the source of each option's value */
	struct weft_config_origin origin[WEFT_OPTIONS_MAX];
	char *files[WEFT_CONFIG_SOURCES]; /**< malloc()ed; NULL = not read */
};

/** From where weft_config_read() reads. */
struct weft_config_sources {
	const char *system_file, *user_file; /**< NULL = none */
	char *const *environment;            /**< "NAME=value", NULL-terminated */
	bool secure;                         /**< more rights than the user (AT_SECURE) */
	struct weft_log_limit *limit;        /**< limit of the warnings of this reader */
};

/** weft_config_read() from other sources, for tests. */
int weft_config_read_from(const struct weft_config_sources *from, struct weft_config **config);

/** Copy @p src; NULL = weft_config_read(). @return 0, -ENOMEM, -EINVAL */
int weft_config_copy(const struct weft_config *src, struct weft_config **config);

/* ------------------------------------------------------------------ the table */

enum weft_option_type {
	WEFT_OPT_BYTES,  /**< size_t */
	WEFT_OPT_TIME,   /**< uint64_t, ns */
	WEFT_OPT_BOOL,   /**< bool */
	WEFT_OPT_ENUM,   /**< unsigned int, index into words */
	WEFT_OPT_UINT,   /**< unsigned int */
	WEFT_OPT_U32,    /**< uint32_t, the whole range */
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
	const char *word;  /**< a further word that is allowed... */
	size_t word_value; /**< ... and stored as this */
	bool has_auto;     /**< "auto" is allowed... */
	size_t auto_value; /**< ... and stored as this */
	bool has_inf;
	/** bounds in the stored unit; max 0 = none. "auto" and "inf" are exempt */
	double min, max;
	/**
	 * The value names files, sockets, devices or arguments of the EAL, which loads modules. The
	 * variable is ignored in a program that has more rights than its user (AT_SECURE).
	 */
	bool guarded;
	bool hidden;      /**< for tests: not in weft-config(7) */
	bool profile;     /**< a key of [model] in a profile, and no variable (plan/plan.c) */
	bool environment; /**< it has an effect in the environment only */
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

/** Variable, or key of a profile, by name, with or without WEFT_; NULL = there is none. */
const struct weft_option *weft_option_find(const char *name);

/**
 * Nearest of the words in @p list (separated by any of @p sep) to @p word by edit distance, or NULL
 * if none is near. Copied to @p buf.
 */
const char *weft_nearest_word(const char *word, const char *list, const char *sep, char *buf,
			      size_t size);

#endif /* WEFT_CONFIG_H */
