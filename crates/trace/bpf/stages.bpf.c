// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where the time of each request goes, added up for each device, cgroup and operation.
 *
 * A bio is met when it enters the throttle and when it is queued, and the request it becomes, or is merged into, when it is
 * issued and when it is complete; what was seen so far is kept in a slot under the address of the bio. At the last completion
 * the times between those moments become the stages of each bio of the request: each starts where the one before it ends, so
 * that they add up to the total. By the bio and not by the request, since it is the bio that somebody waits for: of four that
 * were throttled and then merged, each waited. Nothing is sent to user space: it reads the sums and subtracts what it read
 * before.
 */
#include "kernel.h"
#include "histogram.h"

/* The order is that of quell_engine::snapshot::Stage. */
enum stage {
	STAGE_THROTTLE, /* held by io.max */
	STAGE_QOS,      /* held by iocost, iolatency or wbt */
	STAGE_TAG,      /* waiting for a request; with what is above, where that cannot be told */
	STAGE_QUEUE,    /* from there until the driver got it: plug, scheduler, dispatch */
	STAGE_DEVICE,   /* in the driver and the device */
	STAGE_FLUSH,    /* flushes of the device's cache before and after it */
	STAGE_TOTAL,    /* from the bio's submission to the request's last completion */
	STAGES,
};

/* The order is that of quell_engine::snapshot::Operation. */
enum operation { OP_READ, OP_WRITE, OP_SYNC_WRITE, OP_FLUSH, OP_DISCARD };

struct group_key {
	u32 dev; /* major << 20 | minor */
	u32 operation;
	u64 cgroup; /* the inode of its directory; 0 is the disk itself, for the flushes that it was sent */
};

struct stage_sum {
	u64 sum_nsec;
	u64 max_nsec; /* two processors at once may leave the smaller one */
	u64 bios_loose; /* counted without a histogram, because there was none left */
	u32 histogram; /* its place in `histograms`, from 1; 0 before the first use */
	u32 unused;
};

struct group {
	u64 requests;
	u64 bios; /* not counted where the device alone is traced */
	u64 errors;
	u64 requeues;
	struct stage_sum stages[STAGES];
};

struct histogram {
	u32 buckets[BUCKETS];
};

/*
 * What is known of a bio, and from `issued` on of the request that it heads; times of CLOCK_MONOTONIC in nanoseconds, 0 for
 * not yet.
 */
struct slot {
	u64 begun;     /* entered the throttle, or was queued where there is none */
	u64 queued;    /* came out of the throttle */
	u64 qos_ended; /* came out of rq_qos */
	u64 issued;
	u64 data_done; /* the data of a write whose flush is still to come */
	u32 requeues;
	u32 marks;
};

/* The rest of a bio that was split: it is submitted again, and not queued again. */
#define MARK_REST 1U

/* What could not be counted in its place. Read by user space. */
struct losses {
	u64 slots;      /* no room for another bio: its times are lost, not its request */
	u64 groups;     /* no room for another device, cgroup and operation */
	u64 groups_nsec; /* the total time of those */
	u64 unmatched;  /* completed without having been seen before: under way when tracing began */
};

struct losses losses SEC(".bss.losses");
u32 histograms_used;
u64 held; /* bios that entered the throttle and were not queued yet */

/* Set by user space. */
const volatile u32 histograms_max = 1;
const volatile bool device_only;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, u64);
	__type(value, struct slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct group_key);
	__type(value, struct group);
} groups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct histogram);
} histograms SEC(".maps");

static const struct group no_group;

#define add(counter, amount) __sync_fetch_and_add(&(counter), (amount))

static __always_inline u32 dev_of(struct gendisk *disk)
{
	return ((u32)disk->major << 20) | (u32)disk->first_minor;
}

static __always_inline u32 operation_of(u32 opf, bool flush_only)
{
	u32 op = opf & REQ_OP_MASK;

	if (flush_only || op == REQ_OP_FLUSH)
		return OP_FLUSH;
	if (op == REQ_OP_DISCARD || op == REQ_OP_SECURE_ERASE)
		return OP_DISCARD;
	if (!(op & REQ_OP_WRITE))
		return OP_READ;
	return opf & req_sync() ? OP_SYNC_WRITE : OP_WRITE;
}

static __always_inline u64 cgroup_of(struct bio *bio)
{
	return bio->bi_blkg ? bio->bi_blkg->blkcg->css.cgroup->kn->id : 1;
}

static __always_inline struct group *group_at(struct group_key *key)
{
	struct group *group = bpf_map_lookup_elem(&groups, key);

	if (group)
		return group;
	bpf_map_update_elem(&groups, key, &no_group, BPF_NOEXIST);
	return bpf_map_lookup_elem(&groups, key);
}

/*
 * Adds one time to a stage. A stage that took no time is not counted in it: user space knows how many there were. Its own
 * function for the verifier's sake, as bucket_of.
 */
__noinline int add_time(struct stage_sum *stage, u64 nsec)
{
	struct histogram *histogram;
	u32 place, bucket;

	if (!stage)
		return 0;
	add(stage->sum_nsec, nsec);
	if (nsec > stage->max_nsec)
		stage->max_nsec = nsec;
	place = stage->histogram;
	if (!place && histograms_used < histograms_max) {
		place = add(histograms_used, 1) + 1;
		/* Of two processors one gets the stage, and the other's histogram stays empty. */
		u32 had = __sync_val_compare_and_swap(&stage->histogram, 0, place);
		if (had)
			place = had;
	}
	place -= 1;
	histogram = bpf_map_lookup_elem(&histograms, &place);
	if (!histogram) {
		add(stage->bios_loose, 1);
		return 0;
	}
	bucket = bucket_of(nsec);
	if (bucket < BUCKETS)
		add(histogram->buckets[bucket], 1);
	return 0;
}

static __always_inline void count_stage(struct group *group, enum stage at, u64 nsec)
{
	if (nsec)
		add_time(&group->stages[at], nsec);
}

/* A slot's key: the first bio, or the request itself where it has none, as a flush that the kernel sends. */
static __always_inline u64 key_of(struct request *rq)
{
	struct bio *bio = rq->bio;

	return bio ? (u64)bio : (u64)rq;
}

static __always_inline void put(u64 key, struct slot *slot)
{
	if (bpf_map_update_elem(&slots, &key, slot, BPF_ANY))
		add(losses.slots, 1);
}

/*
 * Entered the throttle, which is called for cgroups with a limit alone. Every bio that enters is queued next, at once or
 * after its wait, unless it is the rest of one that was split.
 */
SEC("fentry/__blk_throtl_bio")
int BPF_PROG(throttle_enter, struct bio *bio)
{
	u64 key = (u64)bio, now = bpf_ktime_get_ns();
	struct slot *slot = bpf_map_lookup_elem(&slots, &key);

	if (slot && slot->marks & MARK_REST) {
		/* Where it comes out is not seen: until its request is allocated, all is the throttle's. */
		slot->queued = 0;
		slot->qos_ended = 0;
		return 0;
	}
	struct slot fresh = { .begun = now };
	put(key, &fresh);
	add(held, 1);
	return 0;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(bio_queue, struct bio *bio)
{
	u64 key = (u64)bio, now = bpf_ktime_get_ns();
	bool stacked = bio->bi_bdev->bd_disk->fops->submit_bio;
	struct slot fresh = { .begun = now, .queued = now };

	if (held) {
		struct slot *slot = bpf_map_lookup_elem(&slots, &key);
		/* A slot that was left behind by a bio which failed was queued already. */
		if (slot && !slot->queued) {
			add(held, -1);
			fresh.begun = slot->begun;
		}
	}
	if (stacked) {
		/* dm and md have no requests of their own: what they hold by io.max is all that can be told of them. */
		if (fresh.begun != now) {
			struct group_key at = {
				.dev = dev_of(bio->bi_bdev->bd_disk),
				.operation = operation_of(bio->bi_opf, false),
				.cgroup = cgroup_of(bio),
			};
			struct group *group = group_at(&at);
			if (group) {
				add(group->bios, 1);
				count_stage(group, STAGE_THROTTLE, now - fresh.begun);
			}
			bpf_map_delete_elem(&slots, &key);
		}
		return 0;
	}
	put(key, &fresh);
	return 0;
}

/* The front of a bio that was too large: a new bio, which was never queued. What is left keeps the address. */
SEC("tp_btf/block_split")
int BPF_PROG(split, struct bio *front)
{
	u64 key = (u64)front, rest = (u64)front->bi_private;
	struct slot *slot = bpf_map_lookup_elem(&slots, &rest);

	if (slot) {
		struct slot copy = *slot;
		slot->marks |= MARK_REST;
		copy.marks = 0;
		put(key, &copy);
	}
	return 0;
}

SEC("fexit/__rq_qos_throttle")
int BPF_PROG(qos_exit, struct rq_qos *rqos, struct bio *bio)
{
	u64 key = (u64)bio;
	struct slot *slot = bpf_map_lookup_elem(&slots, &key);

	if (slot && slot->queued)
		slot->qos_ended = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(rq_issue, struct request *rq)
{
	u64 now = bpf_ktime_get_ns(), key;
	struct slot *slot;

	if ((rq->cmd_flags & REQ_OP_MASK) >= REQ_OP_DRV_IN)
		return 0;
	key = key_of(rq);
	slot = device_only ? 0 : bpf_map_lookup_elem(&slots, &key);
	if (!slot) {
		/* Submitted before tracing began, or through a layer that hands its bios down, as NVMe multipath. */
		u64 begun = rq->start_time_ns;
		if (!begun || begun > now)
			begun = now;
		struct slot fresh = { .begun = begun, .queued = begun, .issued = now };
		put(key, &fresh);
		return 0;
	}
	slot->issued = now;
	return 0;
}

SEC("tp_btf/block_rq_requeue")
int BPF_PROG(rq_requeue, struct request *rq)
{
	u64 key = key_of(rq);
	struct slot *slot = bpf_map_lookup_elem(&slots, &key);

	if (slot) {
		slot->issued = 0;
		slot->requeues += 1;
	}
	return 0;
}

/* The moment, but not before the one it follows: clocks of the kernel's own may be a plug's age behind. */
static __always_inline u64 after(u64 moment, u64 earlier)
{
	return moment > earlier ? moment : earlier;
}

/* The moments of a request, which all of its bios share. */
struct moments {
	u64 allocated;
	u64 issued;    /* 0 for a flush without data: the kernel sent one of its own */
	u64 data_done;
	u64 ended;
	u64 bio; /* the next one of its bios */
	struct group_key at;
	u32 bios;
	u32 preflush;
};

static __always_inline void count_stages(struct group *group, struct slot *slot, struct moments *rq)
{
	u64 queued = slot->queued ?: after(rq->allocated, slot->begun);
	u64 qos_ended = after(slot->qos_ended, queued);
	/* A bio that was merged came when its request was there. */
	u64 tagged = after(rq->allocated, qos_ended);
	u64 ended = after(rq->ended, tagged);

	count_stage(group, STAGE_TOTAL, ended - slot->begun);
	count_stage(group, STAGE_THROTTLE, queued - slot->begun);
	count_stage(group, STAGE_QOS, qos_ended - queued);
	count_stage(group, STAGE_TAG, tagged - qos_ended);
	if (!rq->issued) {
		count_stage(group, STAGE_FLUSH, ended - tagged);
		return;
	}
	u64 issued = after(rq->issued, tagged);
	u64 data_done = rq->data_done ? after(rq->data_done, issued) : ended;
	u64 in_flush = ended - data_done;
	if (rq->preflush)
		in_flush += issued - tagged;
	else
		count_stage(group, STAGE_QUEUE, issued - tagged);
	count_stage(group, STAGE_DEVICE, data_done - issued);
	count_stage(group, STAGE_FLUSH, in_flush);
}

/* One bio behind a request's first. */
static long count_merged(u32 at, struct moments *rq)
{
	u64 key = rq->bio;
	struct slot *slot;
	struct group *group;

	if (!key)
		return 1;
	rq->bio = (u64)BPF_CORE_READ((struct bio *)key, bi_next);
	rq->bios += 1;
	slot = bpf_map_lookup_elem(&slots, &key);
	if (!slot)
		return 0;
	group = bpf_map_lookup_elem(&groups, &rq->at);
	if (group)
		count_stages(group, slot, rq);
	bpf_map_delete_elem(&slots, &key);
	return 0;
}

/* More than a request can have: the largest are of some thousand pages, a bio each at the worst. */
#define MERGED_MAX 4096

SEC("tp_btf/block_rq_complete")
int BPF_PROG(rq_complete, struct request *rq, int error, unsigned int nr_bytes)
{
	u64 now = bpf_ktime_get_ns(), key;
	struct bio *bio = rq->bio;
	u32 cmd_flags = rq->cmd_flags, data_len = rq->__data_len, opf;
	struct slot *slot;
	struct group *group;

	if ((cmd_flags & REQ_OP_MASK) >= REQ_OP_DRV_IN)
		return 0;
	/* A part of it; the rest is still under way. */
	if (nr_bytes < data_len)
		return 0;
	key = key_of(rq);
	slot = bpf_map_lookup_elem(&slots, &key);
	/* The kernel takes these bits from a request when it makes flushes of them; the bio keeps them. */
	opf = bio ? bio->bi_opf : cmd_flags;
	if (bio && rq->end_io && opf & (req_preflush() | req_fua())) {
		/* A step of a flush sequence; the end of the last one finds end_io restored. */
		if (slot)
			slot->data_done = now;
		return 0;
	}
	struct moments moments = {
		.allocated = rq->start_time_ns,
		.ended = now,
		.bio = bio ? (u64)bio->bi_next : 0,
		.at = {
			.dev = dev_of(rq->q->disk),
			.operation = operation_of(opf, bio && slot && !slot->issued && opf & req_preflush()),
			.cgroup = bio ? cgroup_of(bio) : 0,
		},
		.bios = bio ? 1 : 0,
		.preflush = bio && opf & req_preflush(),
	};
	group = group_at(&moments.at);
	if (!group) {
		add(losses.groups, 1);
		if (slot)
			add(losses.groups_nsec, now - slot->begun);
	} else {
		add(group->requests, 1);
		if (error)
			add(group->errors, 1);
	}
	if (!slot) {
		/* Issued before tracing began, or there was no room: nothing is known of its times. */
		add(losses.unmatched, 1);
	} else {
		moments.issued = slot->issued;
		moments.data_done = slot->data_done;
		if (group && slot->requeues)
			add(group->requeues, slot->requeues);
		if (group && device_only)
			count_stage(group, STAGE_DEVICE, now - slot->issued);
		else if (group)
			count_stages(group, slot, &moments);
		bpf_map_delete_elem(&slots, &key);
	}
	if (device_only)
		return 0;
	if (moments.bio)
		bpf_loop(MERGED_MAX, count_merged, &moments, 0);
	if (group)
		add(group->bios, moments.bios);
	return 0;
}

/* The helpers that read kernel memory want a licence that the kernel knows; the rest of quell is MIT or Apache-2.0. */
char LICENSE[] SEC("license") = "GPL";
