//! A disk's rates: every column of `iostat -x`, with iostat's arithmetic.
//!
//! The formulas are those of sysstat (`rd_stats.c`, `compute_ext_disk_stats`; `iostat.c`, `write_ext_stat`). Where
//! iostat prints nonsense, a reset counter or a re-plugged disk, there is a [`Gap`] instead.

use quell_kfile::diskstats::{Counters, Direction};
use quell_units::{DevName, DevNum, Gap, Known, Micros, Millis, Sectors, count};

use super::growth;
use crate::snapshot::Device;

/// One device's rates.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceRates {
    /// The device's number.
    pub dev: DevNum,
    /// The device's name.
    pub name: DevName,
    /// Requests in flight at the later reading.
    pub in_flight: u64,
    /// What it did in between.
    pub rates: Known<DiskRates>,
}

/// What a device did between two readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskRates {
    /// The time between the readings.
    pub seconds: f64,
    /// Reads.
    pub read: Flow,
    /// Writes, without flushes.
    pub write: Flow,
    /// Discards; `None` before 4.18.
    pub discard: Option<Flow>,
    /// Flushes; `None` before 5.5.
    pub flush: Option<FlushFlow>,
    /// Mean number of requests in flight: iostat's `aqu-sz`.
    ///
    /// Since 5.0 the kernel counts a request when it completes, so a device that hangs shows 0.
    pub queue_length_avg: f64,
    /// Share of the time with a request in flight, 0 to 100 and a little more: iostat's `%util`, which is no measure of
    /// how full a device is, and under-reads for a disk whose I/O goes through a partition.
    pub util_pct: f64,
    /// Sum of the ticks of all completed requests over the time: what `util_pct` would be if requests never overlapped.
    pub ticks_ratio: f64,
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flow {
    /// Requests completed.
    pub ios: u64,
    /// Requests completed per second.
    pub ios_per_sec: f64,
    /// Bios merged into queued requests per second.
    pub merges_per_sec: f64,
    /// Bytes per second.
    pub bytes_per_sec: f64,
    /// Mean time from insertion to completion, queueing included; `None` where nothing completed.
    pub await_usec: Option<f64>,
    /// Mean size; `None` where nothing completed.
    pub size_bytes_avg: Option<f64>,
    /// Share of bios that were merged, 0 to 100.
    pub merged_pct: f64,
}

/// Flushes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlushFlow {
    /// Flushes completed.
    pub ios: u64,
    /// Flushes completed per second.
    pub ios_per_sec: f64,
    /// Mean time; `None` where nothing completed.
    pub await_usec: Option<f64>,
}

impl DiskRates {
    /// Requests completed, flushes left out.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.flows().map(|flow| flow.ios).fold(0, u64::saturating_add)
    }

    /// Requests completed per second, flushes left out.
    #[must_use]
    pub fn ios_per_sec(&self) -> f64 {
        self.flows().map(|flow| flow.ios_per_sec).sum()
    }

    /// Bytes read and written per second.
    #[must_use]
    pub fn bytes_per_sec(&self) -> f64 {
        self.read.bytes_per_sec + self.write.bytes_per_sec
    }

    /// Mean time of reads and writes together; `None` where nothing completed.
    #[must_use]
    pub fn await_usec(&self) -> Option<f64> {
        self.mean(|flow| flow.await_usec)
    }

    /// Mean size of reads and writes together; `None` where nothing completed.
    #[must_use]
    pub fn size_bytes_avg(&self) -> Option<f64> {
        self.mean(|flow| flow.size_bytes_avg)
    }

    fn flows(&self) -> impl Iterator<Item = &Flow> {
        [Some(&self.read), Some(&self.write), self.discard.as_ref()].into_iter().flatten()
    }

    fn mean(&self, of: impl Fn(&Flow) -> Option<f64>) -> Option<f64> {
        let both = [&self.read, &self.write];
        let ios: u64 = both.iter().map(|flow| flow.ios).fold(0, u64::saturating_add);
        let sum: f64 = both.iter().filter_map(|flow| Some(of(flow)? * count(flow.ios))).sum();
        (ios > 0).then(|| sum / count(ios))
    }
}

/// The rates of one device, `was` being its earlier reading.
pub(super) fn rates_device(was: Option<&Device>, now: &Device, span: Known<Micros>) -> DeviceRates {
    let rates = match was {
        None => Err(Gap::CounterReset),
        Some(was) if is_another(was, now) => Err(Gap::CounterReset),
        Some(was) => span.and_then(|span| rates_disk(&was.counters, &now.counters, span)),
    };
    DeviceRates { dev: now.dev, name: now.name, in_flight: now.counters.in_flight, rates }
}

/// Whether another disk took the number in between.
fn is_another(was: &Device, now: &Device) -> bool {
    was.name != now.name || matches!((was.diskseq, now.diskseq), (Ok(was), Ok(now)) if was != now)
}

fn rates_disk(was: &Counters, now: &Counters, span: Micros) -> Known<DiskRates> {
    let seconds = span.seconds();
    let busy = ticks(was.busy_ms, now.busy_ms);
    // A wrap of the busy time cannot be longer than the time itself; a reset that left the counts alone can.
    if now.busy_ms < was.busy_ms && busy.as_f64() > 1.1 * seconds * 1000.0 + 100.0 {
        return Err(Gap::CounterReset);
    }
    let discard = both(was.discard, now.discard).map(|(was, now)| rates_flow(was, now, span)).transpose()?;
    let flush = match both(was.flush, now.flush) {
        None => None,
        Some((was, now)) => {
            let ios = growth(was.ios, now.ios)?;
            let ticks = ticks(was.ticks_ms, now.ticks_ms);
            Some((FlushFlow { ios, ios_per_sec: per_sec(count(ios), span), await_usec: await_usec(ticks, ios) }, ticks))
        }
    };
    let read = rates_flow(was.read, now.read, span)?;
    let write = rates_flow(was.write, now.write, span)?;
    let weighted = ticks(was.weighted_ms, now.weighted_ms);
    let sum_of_ticks = [Some(read.1), Some(write.1), discard.map(|(_, ticks)| ticks), flush.map(|(_, ticks)| ticks)]
        .into_iter()
        .flatten()
        .fold(Millis(0), Millis::saturating_add);
    Ok(DiskRates {
        seconds,
        read: read.0,
        write: write.0,
        discard: discard.map(|(flow, _)| flow),
        flush: flush.map(|(flow, _)| flow),
        queue_length_avg: per_sec(weighted.as_f64(), span) / 1000.0,
        util_pct: per_sec(busy.as_f64(), span) / 10.0,
        ticks_ratio: per_sec(sum_of_ticks.as_f64(), span) / 1000.0,
    })
}

fn rates_flow(was: Direction, now: Direction, span: Micros) -> Known<(Flow, Millis)> {
    let ios = growth(was.ios, now.ios)?;
    let merges = growth(was.merges, now.merges)?;
    let Sectors(sectors) = Sectors(growth(was.sectors.0, now.sectors.0)?);
    let bytes = Sectors(sectors).bytes();
    // The kernel adds to both at once: ticks that went back while nothing completed are a reset, not a wrap.
    if ios == 0 && now.ticks_ms < was.ticks_ms {
        return Err(Gap::CounterReset);
    }
    let ticks = ticks(was.ticks_ms, now.ticks_ms);
    let bios = count(ios.saturating_add(merges));
    let flow = Flow {
        ios,
        ios_per_sec: per_sec(count(ios), span),
        merges_per_sec: per_sec(count(merges), span),
        bytes_per_sec: per_sec(bytes.as_f64(), span),
        await_usec: await_usec(ticks, ios),
        size_bytes_avg: (ios > 0).then(|| bytes.as_f64() / count(ios)),
        merged_pct: if merges > 0 { 100.0 * count(merges) / bios } else { 0.0 },
    };
    Ok((flow, ticks))
}

/// In iostat's own order, hundredths of a second first: another order rounds other halves up.
fn per_sec(amount: f64, span: Micros) -> f64 {
    amount / (span.as_f64() / 10_000.0) * 100.0
}

fn await_usec(ticks: Millis, ios: u64) -> Option<f64> {
    (ios > 0).then(|| ticks.as_f64() * 1000.0 / count(ios))
}

fn both<T>(was: Option<T>, now: Option<T>) -> Option<(T, T)> {
    was.zip(now)
}

/// The growth of a tick counter, which the kernel prints modulo 2^32 (`block/genhd.c`: `(unsigned int)div_u64(...)`).
fn ticks(was: Millis, now: Millis) -> Millis {
    const MODULUS: u64 = 1 << 32;
    Millis(now.0.wrapping_sub(was.0) % MODULUS)
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the inputs are chosen so that the results are exact")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use quell_kfile::diskstats;

    fn counters(text: &str) -> Counters {
        diskstats::parse_stat(format!("{text}\n").as_bytes()).unwrap()
    }

    fn rates(was: &str, now: &str, seconds: u64) -> Known<DiskRates> {
        rates_disk(&counters(was), &counters(now), Micros(seconds * 1_000_000))
    }

    #[test]
    fn the_columns_are_those_of_iostat() {
        let rates = rates("0 0 0 0 0 0 0 0 0 0 0", "100 25 1600 200 50 0 800 500 3 600 700", 2).unwrap();
        assert_eq!(rates.read.ios_per_sec, 50.0);
        assert_eq!(rates.read.merged_pct, 20.0);
        assert_eq!(rates.read.await_usec, Some(2000.0));
        assert_eq!(rates.read.size_bytes_avg, Some(8192.0));
        assert_eq!(rates.write.await_usec, Some(10_000.0));
        assert_eq!(rates.queue_length_avg, 0.35);
        assert_eq!(rates.util_pct, 30.0);
        assert_eq!(rates.await_usec(), Some(700_000.0 / 150.0));
        assert_eq!(rates.discard, None);
    }

    #[test]
    fn ticks_wrap_at_32_bits_and_the_rate_stays_right() {
        let was = "10 0 80 4294967290 0 0 0 0 0 4294967000 4294967000";
        let now = "20 0 160 14 0 0 0 0 0 704 1704";
        let rates = rates(was, now, 2).unwrap();
        assert_eq!(rates.read.await_usec, Some(2000.0));
        assert_eq!(rates.util_pct, 50.0);
        assert_eq!(rates.queue_length_avg, 1.0);
    }

    #[test]
    fn a_reset_is_a_gap_and_not_a_number() {
        let was = "100 0 800 50 0 0 0 0 0 5000 5000";
        assert_eq!(rates(was, "3 0 24 2 0 0 0 0 0 4 4", 2), Err(Gap::CounterReset), "counts went back");
        assert_eq!(rates(was, "100 0 800 50 0 0 0 0 0 100 6000", 2), Err(Gap::CounterReset), "only busy went back");
        assert_eq!(rates(was, "100 0 800 20 0 0 0 0 0 5000 6000", 2), Err(Gap::CounterReset), "ticks without requests");
    }

    #[test]
    fn nothing_completed_has_no_mean() {
        let was = "1 0 8 1 0 0 0 0 2 10 10";
        let rates = rates(was, was, 1).unwrap();
        assert_eq!((rates.read.await_usec, rates.await_usec()), (None, None));
    }

    proptest! {
        #[test]
        fn any_two_readings_give_a_gap_or_sane_numbers(
            was in proptest::array::uniform17(0_u64..1 << 33),
            grown in proptest::array::uniform17(prop_oneof![0_u64..1 << 20, 0_u64..1 << 33]),
            back in proptest::option::of(0_usize..17),
            seconds in 1_u64..1000,
        ) {
            let mut now: [u64; 17] = std::array::from_fn(|at| was[at] + grown[at]);
            if let Some(at) = back {
                now[at] = was[at] / 2;
            }
            let text = |numbers: [u64; 17]| numbers.map(|n| n.to_string()).join(" ");
            if let Ok(rates) = rates(&text(was), &text(now), seconds) {
                let flows = [Some(rates.read), Some(rates.write), rates.discard];
                let numbers = flows.into_iter().flatten().flat_map(|flow| {
                    let means = [flow.await_usec, flow.size_bytes_avg].map(|mean| mean.unwrap_or(0.0));
                    [flow.ios_per_sec, flow.merges_per_sec, flow.bytes_per_sec, flow.merged_pct, means[0], means[1]]
                });
                for number in numbers.chain([rates.queue_length_avg, rates.util_pct, rates.ticks_ratio]) {
                    prop_assert!(number.is_finite() && number >= 0.0, "{number} in {rates:?}");
                }
            }
        }
    }
}
