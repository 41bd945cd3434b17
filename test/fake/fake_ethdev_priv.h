/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the fake ethdev share: fake/fake_ethdev.c (ports, and what tests call),
 * fake/fake_ethdev_conf.c (configuration and life of a port), fake/fake_ethdev_info.c (what only
 * asks), fake/fake_ethdev_io.c (frames), fake/fake_ethdev_intr.c (RX interrupts),
 * fake/fake_ethdev_pmd.c (presets).
 */
#ifndef FAKE_ETHDEV_PRIV_H
#define FAKE_ETHDEV_PRIV_H

#include <rte_mbuf.h>

#include <rte_timer.h>

#include "fake/fake_ethdev.h"

#define FAKE_ETH_PORTS 8
#define FAKE_ETH_DONE 4096 /* received frames that wait for rx_burst() */
#define FAKE_ETH_CALLBACKS 8

struct fake_eth_rxq {
	struct fake_eth_port *port;
	struct rte_mempool *mp; /* as set up last, also long ago: PMDs do not clear it */
	char mp_name[RTE_MEMPOOL_NAMESIZE];
	uint16_t ring, posted;
	struct rte_mbuf **bufs; /* [posted] */
	struct rte_mbuf *done[FAKE_ETH_DONE];
	unsigned int head, tail;
	bool fresh; /* set up since the last configure */
	bool intr_made, intr_on;
	int intr_fd;
};

struct fake_eth_txq {
	struct fake_eth_port *port;
	uint16_t ring, used; /* mbufs in the ring */
	uint16_t unsent;     /* the last so many of them are not read yet */
	uint16_t rs_thresh;
	struct rte_mbuf **bufs; /* [ring], oldest first */
	bool fresh;
};

struct fake_eth_callback {
	enum rte_eth_event_type type;
	rte_eth_dev_cb_fn fn;
	void *arg;
};

struct fake_eth_port {
	uint16_t id;
	char name[RTE_ETH_NAME_MAX_LEN];
	struct fake_eth_traits t;
	struct fake_eth_count count;
	struct fake_eth_port *peer;
	void (*seen)(void *arg, const uint8_t *frame, uint32_t len);
	void *seen_arg;
	struct rte_eth_dev_owner owner;
	struct rte_ether_addr mac;
	struct rte_eth_conf conf;
	uint16_t mtu;
	uint16_t nb_rx, nb_tx;
	bool configured, started, removed, unplugged, promiscuous;
	_Atomic bool broken; /* set by the thread of a watchdog, too */
	bool gone;           /* no device has the number */
	uint64_t link_at;    /* ms */
	struct rte_timer watchdog;
	_Atomic bool hangs;
	struct fake_eth_callback cb[FAKE_ETH_CALLBACKS];
	uint64_t vlans[64];
	uint8_t key[FAKE_ETH_KEY_MAX];
	uint16_t reta[FAKE_ETH_RETA_MAX];
	struct fake_eth_rxq rxq[FAKE_ETH_QUEUES];
	struct fake_eth_txq txq[FAKE_ETH_QUEUES];
	void *rx_data[RTE_MAX_QUEUES_PER_PORT], *tx_data[RTE_MAX_QUEUES_PER_PORT];
	void *rx_clbk[RTE_MAX_QUEUES_PER_PORT], *tx_clbk[RTE_MAX_QUEUES_PER_PORT];
};

/* fake/fake_ethdev.c */

/** NULL: there is none with this number. */
struct fake_eth_port *fake_eth_port(uint16_t id);
uint64_t fake_eth_now_ms(void);
bool fake_eth_link(const struct fake_eth_port *p);

/* fake/fake_ethdev_info.c */

uint32_t fake_eth_l2_overhead(const struct fake_eth_port *p);
int fake_eth_mtu_valid(const struct fake_eth_port *p, uint32_t mtu);

/* fake/fake_ethdev_conf.c */

/** Take what a life has left: rings, configuration. Pools that rings remember stay remembered. */
void fake_eth_wipe(struct fake_eth_port *p, bool rings_too);

/* fake/fake_ethdev_intr.c */

void fake_eth_intr_make(struct fake_eth_port *p);
void fake_eth_intr_drop(struct fake_eth_port *p);
/** A frame has come. */
void fake_eth_intr_raise(struct fake_eth_rxq *q);

/* fake/fake_ethdev_io.c */

/** Bytes of a receive buffer that the NIC uses. */
uint32_t fake_eth_usable(const struct fake_eth_port *p, const struct rte_mempool *mp);
void fake_eth_io_on(struct fake_eth_port *p);
void fake_eth_io_off(struct fake_eth_port *p);
/** Fill a receive ring. */
void fake_eth_post(struct fake_eth_rxq *q);
/** Free what a ring holds. */
void fake_eth_rxq_drop(struct fake_eth_rxq *q);
void fake_eth_txq_drop(struct fake_eth_txq *q);
/** DMA: read what is to be sent. */
void fake_eth_move(struct fake_eth_port *p);
/** Free what has been sent. @return mbufs */
unsigned int fake_eth_tx_free(struct fake_eth_txq *q);

#endif /* FAKE_ETHDEV_PRIV_H */
