//! Every behaviour of the model, in times that nobody waits for.

use serde::de::value::{Error, MapDeserializer};

use super::*;

/// 2000 requests or 40 MB per second, and nothing else takes time.
fn plain() -> Model {
    Model { read_usec: 0, write_usec: 0, flush_usec: 0, bytes_per_sec: 40_000_000, ..Model::default() }
}

fn units(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

/// When each of so many requests that arrive at once is complete, in microseconds.
fn at_once(queue: &mut Queue, now_usec: u64, count: usize, op: Op, bytes: u64) -> Vec<u128> {
    (0..count).map(|_| queue.complete_at(micros(now_usec), op, bytes).as_micros()).collect()
}

#[test]
fn requests_that_arrive_at_once_are_served_one_after_the_other() {
    let mut queue = Queue::new(Model::default());
    let expected: Vec<u128> = (1..=10).map(|nth| nth * 500 + 600).collect();
    assert_eq!(at_once(&mut queue, 0, 10, Op::Read, 4096), expected);
}

#[test]
fn a_latency_delays_the_completion_and_occupies_nothing() {
    let mut queue = Queue::new(Model { read_usec: 1_000_000, write_usec: 7, ..plain() });
    assert_eq!(at_once(&mut queue, 0, 1, Op::Read, 512), [1_000_500]);
    assert_eq!(at_once(&mut queue, 0, 1, Op::Write, 512), [1007]);
}

#[test]
fn an_idle_disk_serves_from_the_arrival_on() {
    let mut queue = Queue::new(plain());
    at_once(&mut queue, 0, 3, Op::Read, 4096);
    assert_eq!(at_once(&mut queue, 70_000, 2, Op::Read, 4096), [70_500, 71_000]);
}

#[test]
fn a_large_request_takes_its_transfer_and_a_small_one_its_turn() {
    let mut queue = Queue::new(plain());
    assert_eq!(at_once(&mut queue, 0, 2, Op::Read, 400_000), [10_000, 20_000]);
    assert_eq!(at_once(&mut queue, 0, 1, Op::Read, 4_000), [20_500]);
}

#[test]
fn zero_is_unlimited() {
    let mut queue = Queue::new(Model { iops: 0, bytes_per_sec: 0, ..plain() });
    assert_eq!(at_once(&mut queue, 3, 4, Op::Write, 1 << 25), [3, 3, 3, 3]);
    assert_eq!(at_once(&mut queue, 4, 1, Op::Flush, 0), [4]);
}

#[test]
fn units_serve_at_the_same_time() {
    let mut queue = Queue::new(Model { units: units(3), ..plain() });
    assert_eq!(at_once(&mut queue, 0, 7, Op::Read, 512), [500, 500, 500, 1000, 1000, 1000, 1500]);
}

#[test]
fn units_share_the_bandwidth() {
    let mut queue = Queue::new(Model { units: units(4), ..plain() });
    assert_eq!(at_once(&mut queue, 0, 5, Op::Read, 400_000), [10_000, 20_000, 30_000, 40_000, 50_000]);
}

#[test]
fn a_hog_of_writes_delays_the_reader() {
    let mut queue = Queue::new(plain());
    assert_eq!(at_once(&mut queue, 0, 1, Op::Read, 4096), [500]);
    at_once(&mut queue, 1000, 32, Op::Write, 4096);
    assert_eq!(at_once(&mut queue, 1000, 1, Op::Read, 4096), [17_500]);
}

#[test]
fn a_flush_ends_after_what_came_before_it_and_delays_nobody() {
    let mut queue = Queue::new(Model { write_usec: 100, flush_usec: 2000, ..plain() });
    at_once(&mut queue, 0, 2, Op::Write, 4096);
    assert_eq!(at_once(&mut queue, 0, 1, Op::Flush, 0), [3100]);
    assert_eq!(at_once(&mut queue, 0, 1, Op::Write, 4096), [1600]);
    assert_eq!(at_once(&mut queue, 9000, 1, Op::Flush, 0), [11_000]);
}

#[test]
fn a_flush_that_occupies_lets_nobody_be_served() {
    let model = Model { write_usec: 100, flush_usec: 2000, flush_occupies: true, units: units(2), ..plain() };
    let mut queue = Queue::new(Model { cache_bytes: 8192, ..model.clone() });
    assert_eq!(at_once(&mut queue, 0, 1, Op::Flush, 0), [2000]);
    assert_eq!(at_once(&mut queue, 0, 1, Op::Read, 4096), [2500]);
    assert_eq!(at_once(&mut queue, 0, 1, Op::Write, 4096), [2100], "into the cache");
    let mut queue = Queue::new(model);
    at_once(&mut queue, 0, 1, Op::Write, 4096);
    assert_eq!(at_once(&mut queue, 0, 1, Op::Flush, 0), [2600]);
    assert_eq!(at_once(&mut queue, 0, 3, Op::Write, 4096), [3200, 3200, 3700]);
}

#[test]
fn a_write_through_is_a_write_and_a_flush() {
    let mut queue = Queue::new(Model { write_usec: 100, flush_usec: 2000, ..plain() });
    assert_eq!(at_once(&mut queue, 0, 2, Op::WriteThrough, 4096), [2600, 4600]);
}

#[test]
fn the_cache_takes_writes_until_it_is_full_and_a_flush_drains_it() {
    let mut queue = Queue::new(Model { write_usec: 100, flush_usec: 2000, cache_bytes: 8000, ..plain() });
    assert_eq!(at_once(&mut queue, 0, 4, Op::Write, 4000), [100, 100, 600, 1100]);
    assert_eq!(at_once(&mut queue, 0, 1, Op::Flush, 0), [3300], "1100, the flush, and 8000 bytes at 40 MB/s");
    assert_eq!(at_once(&mut queue, 0, 1, Op::Write, 4000), [100], "there is room again");
}

#[test]
fn the_cache_empties_while_the_disk_is_idle() {
    let mut queue = Queue::new(Model { cache_bytes: 8000, ..plain() });
    assert_eq!(at_once(&mut queue, 0, 3, Op::Write, 4000), [0, 0, 500]);
    assert_eq!(at_once(&mut queue, 550, 1, Op::Write, 4000), [1050], "2000 bytes of room");
    assert_eq!(at_once(&mut queue, 1150, 1, Op::Write, 4000), [1150], "2000 and 4000");
}

#[test]
fn a_burst_steps_down_and_its_credit_refills_when_idle() {
    let burst = Some(Burst { ios: 3, then_iops: NonZeroU64::new(100).unwrap() });
    let mut queue = Queue::new(Model { burst, ..plain() });
    assert_eq!(at_once(&mut queue, 0, 5, Op::Read, 512), [500, 1000, 1500, 11_500, 21_500]);
    let after_two = 21_500 + 20_000;
    let ends = at_once(&mut queue, after_two, 3, Op::Read, 512);
    assert_eq!(ends, [42_000, 42_500, 52_500]);
    let ends = at_once(&mut queue, 90_000_000, 4, Op::Read, 512);
    assert_eq!(ends, [90_000_500, 90_001_000, 90_001_500, 90_011_500], "no more than all of it");
}

#[test]
fn a_slow_disk_multiplies_every_time() {
    let mut queue = Queue::new(Model::default());
    queue.slow_down(NonZeroU32::new(10).unwrap());
    assert_eq!(at_once(&mut queue, 0, 2, Op::Read, 4096), [11_000, 16_000]);
    assert_eq!(at_once(&mut queue, 0, 1, Op::Flush, 0), [41_000]);
    queue.slow_down(NonZeroU32::MIN);
    assert_eq!(at_once(&mut queue, 50_000, 1, Op::Read, 4096), [51_100]);
}

#[test]
fn numbers_without_sense_do_not_overflow() {
    let huge = Model { read_usec: u64::MAX, flush_usec: u64::MAX, iops: 1, cache_bytes: u64::MAX, ..plain() };
    let mut queue = Queue::new(huge);
    queue.slow_down(NonZeroU32::MAX);
    for op in [Op::Read, Op::Write, Op::Flush, Op::WriteThrough] {
        queue.complete_at(Duration::MAX, op, u64::MAX);
    }
}

#[test]
fn a_field_that_is_left_out_has_its_default_and_an_unknown_one_is_refused() {
    let read = |name, value: u64| Model::deserialize(MapDeserializer::<_, Error>::new([(name, value)].into_iter()));
    assert_eq!(read("iops", 5), Ok(Model { iops: 5, ..Model::default() }));
    assert!(read("iopps", 5).unwrap_err().to_string().contains("iopps"));
    assert!(read("units", 0).is_err(), "nobody would ever be served");
}
