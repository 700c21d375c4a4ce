/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Which bucket a time belongs to: the upper edges are 2^(k/4) microseconds, which is schema 2 of Prometheus' native
 * histograms. No logarithm is needed: the exponent is the place of the highest bit, and the quarter is found by comparing
 * the rest with three constants.
 */
#ifndef QUELL_HISTOGRAM_H
#define QUELL_HISTOGRAM_H

#include "kernel.h"

/* Bucket 0 holds all up to 1 us, bucket k all up to 2^(k/4) us, the last one what is longer than 2^27.5 us (190 s). */
#define BUCKETS 112

/* 2^(1/4), 2^(2/4) and 2^(3/4), times 2^30, rounded down. */
#define QUARTER_1 1276901416ULL
#define QUARTER_2 1518500249ULL
#define QUARTER_3 1805811301ULL

/* The place of the highest bit that is set; 0 for 0. */
static __always_inline u32 highest_bit(u64 value)
{
	u32 at = 0;

	if (value >> 32) { at += 32; value >>= 32; }
	if (value >> 16) { at += 16; value >>= 16; }
	if (value >> 8) { at += 8; value >>= 8; }
	if (value >> 4) { at += 4; value >>= 4; }
	if (value >> 2) { at += 2; value >>= 2; }
	if (value >> 1) at += 1;
	return at;
}

/* A function of its own: the verifier looks at each of its paths once, and not once a caller. */
__noinline u32 bucket_of(u64 nsec)
{
	u64 usec_q16, mantissa;
	u32 octave, quarter, bucket;

	if (nsec <= 1000)
		return 0;
	/* 52 hours; the product below must fit. */
	if (nsec >> 47)
		return BUCKETS - 1;
	/* Microseconds with 16 bits behind the point, rounded up: an edge belongs to the bucket below it. */
	usec_q16 = ((nsec << 16) + 999) / 1000;
	octave = highest_bit(usec_q16);
	/* From 1 to 2, with 30 bits behind the point; what is cut off still counts as more. */
	if (octave <= 30) {
		mantissa = usec_q16 << (30 - octave);
	} else {
		mantissa = usec_q16 >> (octave - 30);
		if (mantissa << (octave - 30) != usec_q16)
			mantissa += 1;
	}
	if (mantissa <= (1ULL << 30))
		quarter = 0;
	else if (mantissa <= QUARTER_1)
		quarter = 1;
	else if (mantissa <= QUARTER_2)
		quarter = 2;
	else if (mantissa <= QUARTER_3)
		quarter = 3;
	else
		quarter = 4;
	bucket = 4 * (octave - 16) + quarter;
	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

#endif
