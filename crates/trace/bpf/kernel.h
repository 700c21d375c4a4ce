/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The kernel's own types, with the fields that are read here and no others.
 *
 * Where each field lies is looked up in the running kernel's BTF when the programs are loaded (CO-RE), so that one object
 * fits every kernel. A field that some kernels lack stands in a flavour of its own (`___name`) and is asked for first.
 */
#ifndef QUELL_KERNEL_H
#define QUELL_KERNEL_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

typedef __u64 u64;
typedef __u32 u32;

#define KERNEL __attribute__((preserve_access_index))

struct kernfs_node {
	u64 id;
} KERNEL;

struct cgroup {
	struct kernfs_node *kn;
} KERNEL;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
} KERNEL;

struct blkcg {
	struct cgroup_subsys_state css;
} KERNEL;

struct blkcg_gq {
	struct blkcg *blkcg;
} KERNEL;

struct block_device_operations {
	void *submit_bio;
} KERNEL;

struct gendisk {
	int major;
	int first_minor;
	const struct block_device_operations *fops;
} KERNEL;

struct block_device {
	struct gendisk *bd_disk;
} KERNEL;

struct request_queue {
	struct gendisk *disk;
} KERNEL;

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	u32 bi_opf;
	void *bi_private;
	struct blkcg_gq *bi_blkg;
} KERNEL;

struct request {
	struct request_queue *q;
	u32 cmd_flags;
	u32 __data_len;
	struct bio *bio;
	u64 start_time_ns;
	void *end_io;
} KERNEL;

struct rq_qos;

/* Bits of bi_opf and cmd_flags; their places differ between kernels. */
enum req_flag_bits {
	__REQ_SYNC,
	__REQ_FUA,
	__REQ_PREFLUSH,
};

static __always_inline u32 req_sync(void)
{
	return 1U << bpf_core_enum_value(enum req_flag_bits, __REQ_SYNC);
}

/* The bits that send a request through the flush machinery (block/blk-flush.c). */
static __always_inline u32 req_preflush(void)
{
	return 1U << bpf_core_enum_value(enum req_flag_bits, __REQ_PREFLUSH);
}

static __always_inline u32 req_fua(void)
{
	return 1U << bpf_core_enum_value(enum req_flag_bits, __REQ_FUA);
}

/* enum req_op: the same numbers in every kernel that has block_rq_issue of one argument. */
#define REQ_OP_BITS 8
#define REQ_OP_MASK ((1U << REQ_OP_BITS) - 1)
#define REQ_OP_WRITE 1
#define REQ_OP_FLUSH 2
#define REQ_OP_DISCARD 3
#define REQ_OP_SECURE_ERASE 5
#define REQ_OP_DRV_IN 34

#endif
