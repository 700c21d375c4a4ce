//! The requests between their arrival and their reply: when each is due, what the orders make of it, and the counters.
//!
//! As the model, it is told the time and never waits. The data of a request was read or written when it arrived; what
//! is held back here is only the message that says so.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use super::model::{Model, Op, Queue};
use super::{Counters, Order};

/// What the disk did for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) op: Op,
    pub(super) bytes: u64,
}

#[derive(Debug)]
struct Reply {
    message: Vec<u8>,
    arrived_at: Duration,
    /// `None` for what costs and counts nothing.
    work: Option<Work>,
}

/// All times count from the disk's start.
#[derive(Debug)]
pub(super) struct InFlight {
    model: Model,
    queue: Queue,
    order: Order,
    /// By when they are due, then by arrival.
    replies: BTreeMap<(Duration, u64), Reply>,
    arrivals: u64,
    counters: Counters,
}

impl InFlight {
    pub(super) fn new(model: &Model) -> Self {
        Self {
            model: model.clone(),
            queue: Queue::new(model.clone()),
            order: Order::Serve,
            replies: BTreeMap::new(),
            arrivals: 0,
            counters: Counters::default(),
        }
    }

    /// Follows an order from now on. The requests in flight keep the time that they are due, unless they are released
    /// or held.
    pub(super) fn order(&mut self, order: Order) {
        match order {
            Order::Serve => self.queue.slow_down(NonZeroU32::MIN),
            Order::Slow(factor) => self.queue.slow_down(factor),
            // All that is in flight is released, so what follows finds a disk that did nothing yet.
            Order::Fast => self.queue = Queue::new(self.model.clone()),
            Order::Hang | Order::Lose => {}
        }
        self.order = order;
    }

    pub(super) fn is_lost(&self) -> bool {
        self.order == Order::Lose
    }

    /// Takes a request in, with the message that will say that it is complete. Says whether it is the next one due.
    pub(super) fn arrive(&mut self, now: Duration, work: Option<Work>, message: Vec<u8>) -> bool {
        let due_at = match work {
            Some(work) if self.order != Order::Fast => self.queue.complete_at(now, work.op, work.bytes),
            _ => now,
        };
        let key = (due_at, self.arrivals);
        self.arrivals = self.arrivals.saturating_add(1);
        self.replies.insert(key, Reply { message, arrived_at: now, work });
        self.replies.first_key_value().is_some_and(|(first, _)| *first == key)
    }

    /// Takes the message of a request that is complete by now out, and counts it.
    pub(super) fn take_due(&mut self, now: Duration) -> Option<Vec<u8>> {
        if !self.wait(now)?.is_zero() {
            return None;
        }
        let (_, reply) = self.replies.pop_first()?;
        if let Some(work) = reply.work.filter(|_| self.order != Order::Fast) {
            self.counters.count(work.op, work.bytes, now.saturating_sub(reply.arrived_at));
        }
        Some(reply.message)
    }

    /// How long it is until the next request is complete; `None` as long as nothing else happens.
    pub(super) fn wait(&self, now: Duration) -> Option<Duration> {
        let (&(due_at, _), _) = self.replies.first_key_value()?;
        match self.order {
            Order::Hang | Order::Lose => None,
            Order::Fast => Some(Duration::ZERO),
            Order::Serve | Order::Slow(_) => Some(due_at.saturating_sub(now)),
        }
    }

    pub(super) fn counters(&self, now: Duration) -> Counters {
        Counters { at: now, in_flight: self.replies.len(), ..self.counters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Option<Work> = Some(Work { op: Op::Read, bytes: 512 });
    const WRITE: Option<Work> = Some(Work { op: Op::Write, bytes: 512 });

    /// One request per millisecond.
    fn disk() -> InFlight {
        let none = Model { read_usec: 0, write_usec: 0, flush_usec: 0, bytes_per_sec: 0, ..Model::default() };
        InFlight::new(&Model { iops: 1000, ..none })
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_request_is_complete_when_the_model_says_so_and_is_counted_then() {
        let mut disk = disk();
        assert!(disk.arrive(ms(5), READ, vec![1]));
        assert!(!disk.arrive(ms(5), WRITE, vec![2]));
        assert_eq!((disk.take_due(ms(5)), disk.wait(ms(5))), (None, Some(ms(1))));
        assert_eq!(disk.take_due(ms(6)), Some(vec![1]));
        let one = disk.counters(ms(6));
        assert_eq!((one.reads, one.read_bytes, one.read_time, one.writes), (1, 512, ms(1), 0));
        assert_eq!(disk.take_due(ms(9)), Some(vec![2]));
        let both = Counters { at: ms(9), writes: 1, write_bytes: 512, write_time: ms(4), in_flight: 0, ..one };
        assert_eq!(disk.counters(ms(9)), both);
        assert_eq!(disk.wait(ms(9)), None);
    }

    #[test]
    fn what_costs_nothing_overtakes_and_is_not_counted() {
        let mut disk = disk();
        disk.arrive(ms(0), READ, vec![1]);
        assert!(disk.arrive(ms(0), None, vec![2]));
        assert_eq!(disk.take_due(ms(0)), Some(vec![2]));
        assert_eq!(disk.counters(ms(0)), Counters { in_flight: 1, ..Counters::default() });
    }

    #[test]
    fn a_disk_that_hangs_completes_all_of_it_when_it_serves_again() {
        let mut disk = disk();
        disk.arrive(ms(0), WRITE, vec![1]);
        disk.order(Order::Hang);
        disk.arrive(ms(0), READ, vec![2]);
        assert_eq!((disk.take_due(ms(9000)), disk.wait(ms(9000))), (None, None));
        disk.order(Order::Serve);
        assert_eq!(disk.take_due(ms(9000)), Some(vec![1]));
        assert_eq!(disk.take_due(ms(9000)), Some(vec![2]));
        assert_eq!(disk.counters(ms(9000)).read_time, ms(9000));
    }

    #[test]
    fn a_fast_disk_releases_everything_uncounted_and_is_as_new_afterwards() {
        let mut disk = disk();
        for _ in 0..50 {
            disk.arrive(ms(0), WRITE, vec![1]);
        }
        disk.order(Order::Fast);
        disk.arrive(ms(0), READ, vec![2]);
        assert_eq!((0..51).filter(|_| disk.take_due(ms(0)).is_some()).count(), 51);
        assert_eq!(disk.counters(ms(0)), Counters::default());
        disk.order(Order::Serve);
        disk.arrive(ms(1), READ, vec![3]);
        assert_eq!(disk.wait(ms(1)), Some(ms(1)));
    }

    #[test]
    fn a_slow_disk_is_slow_until_it_serves_again() {
        let mut disk = disk();
        disk.order(Order::Slow(NonZeroU32::new(7).unwrap()));
        disk.arrive(ms(0), READ, vec![1]);
        assert_eq!(disk.wait(ms(0)), Some(ms(7)));
        assert_eq!(disk.take_due(ms(7)), Some(vec![1]));
        disk.order(Order::Serve);
        disk.arrive(ms(10), READ, vec![2]);
        assert_eq!(disk.wait(ms(10)), Some(ms(1)));
    }

    #[test]
    fn a_lost_disk_completes_nothing() {
        let mut disk = disk();
        disk.arrive(ms(0), READ, vec![1]);
        disk.order(Order::Lose);
        assert!(disk.is_lost());
        assert_eq!((disk.take_due(ms(9)), disk.wait(ms(9))), (None, None));
    }
}
