/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file frame/port_counters.h
 * The counters of a port, without those of its PMD: field, visible name, meaning.
 */
#ifndef WEFT_PORT_COUNTERS_H
#define WEFT_PORT_COUNTERS_H

/** struct weft_port */
#define WEFT_PORT_COUNTERS(X)                                                             \
	X(tx_refused, "tx_refused", "Frames that the PMD did not take at once.")          \
	X(tx_copied, "tx_copied", "Frames copied for a PMD that keeps what it is given.") \
	X(tx_too_long, "tx_too_long", "Frames not sent: longer than the port takes.")

/** struct weft_dma_stats, of the process */
#define WEFT_DMA_COUNTERS(X)                                                \
	X(mapped, "dma.mapped", "Areas of memory mapped for NICs.")         \
	X(no_room, "dma.no_room", "Registrations refused: too many areas.") \
	X(failed, "dma.failed", "Registrations refused by the EAL or the IOMMU.")
#define WEFT_DMA_LEVELS(X)                                               \
	X(areas, "dma.areas", "Areas of memory that NICs may read now.") \
	X(bytes, "dma.bytes", "Bytes of memory that NICs may read now.")

/** struct weft_port_intr */
#define WEFT_PORT_INTR_COUNTERS(X)                                                             \
	X(wakes, "rx_intr.wakes", "Interrupts that woke the worker, with frames.")             \
	X(empty, "rx_intr.empty", "Interrupts that woke the worker for nothing.")              \
	X(missed, "rx_intr.missed", "Sleeps that ran out with a frame waiting: no interrupt.") \
	X(late, "rx_intr.late", "Times that a frame came just before falling asleep.")         \
	X(refused, "rx_intr.refused", "Times that the PMD refused to switch interrupts on.")

/** struct weft_udp_stats */
#define WEFT_UDP_COUNTERS(X)                                                                     \
	X(tx_calls, "udp.tx_calls", "System calls that sent.")                                   \
	X(tx_datagrams, "udp.tx_datagrams", "Datagrams that the kernel took.")                   \
	X(tx_failed, "udp.tx_failed", "Frames lost by an error of the kernel (no route, down).") \
	X(tx_too_long, "udp.tx_too_long", "Frames lost: longer than the interface's MTU.")       \
	X(tx_no_port, "udp.tx_no_port", "Frames lost: another socket has the path's port.")      \
	X(rx_calls, "udp.rx_calls", "System calls that received.")                               \
	X(rx_empty, "udp.rx_empty", "Of those, the ones that found nothing.")                    \
	X(rx_datagrams, "udp.rx_datagrams", "Datagrams received.")                               \
	X(rx_copied, "udp.rx_copied", "Of those, the ones copied once more.")                    \
	X(rx_missed, "udp.rx_missed", "Datagrams that a full socket dropped.")                   \
	X(rx_too_long, "udp.rx_too_long", "Datagrams dropped: longer than a frame.")             \
	X(rx_no_buffer, "udp.rx_no_buffer", "Times that there was no buffer to receive into.")
#define WEFT_UDP_LEVELS(X) X(num_socks, "udp.sockets", "Sockets that are open now.")

#endif /* WEFT_PORT_COUNTERS_H */
