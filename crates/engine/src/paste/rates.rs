//! Rates that a tool made, in the place of those made from counters.

use quell_paste::{Benchmark, Direction, TableRow};
use quell_units::{DevName, ratio};

use super::series::{Stretch, requests};
use crate::rates::{DeviceRates, DiskRates, Flow, FlushFlow, Rates};
use crate::snapshot::Window;

/// Puts a table's rows where no counters gave rates.
pub(super) fn of_tables(rates: &mut Rates, window: &Window, stretch: &Stretch) {
    for row in stretch.rows.iter().filter(|row| row.tells_waiting()) {
        put(rates, window, &row.name, || of_row(row, stretch.seconds));
    }
    if rates.seconds.is_err() && stretch.rows.iter().any(TableRow::tells_waiting) {
        rates.seconds = Ok(stretch.seconds);
    }
}

/// Puts a load generator's own numbers where nobody else told what the disk did.
pub(super) fn of_benchmarks(rates: &mut Rates, window: &Window, benchmarks: &[Benchmark]) {
    for benchmark in benchmarks {
        let name = benchmark.device.as_deref().unwrap_or(super::devices::UNNAMED);
        let seconds = benchmark.seconds.unwrap_or(1.0);
        let row = TableRow {
            name: name.to_owned(),
            read: benchmark.read,
            write: benchmark.write,
            flush: benchmark.sync,
            util_pct: benchmark.util_pct,
            ..TableRow::default()
        };
        put(rates, window, name, || of_row(&row, seconds));
        if rates.seconds.is_err() && rates.devices.iter().any(|device| device.rates.is_ok()) {
            rates.seconds = Ok(seconds);
        }
    }
}

fn put(rates: &mut Rates, window: &Window, name: &str, made: impl FnOnce() -> DiskRates) {
    let Some(name) = DevName::new(name.as_bytes()) else { return };
    let Some(device) = window.t1.devices.iter().find(|device| device.name == name) else { return };
    match rates.devices.binary_search_by_key(&device.dev, |rates| rates.dev) {
        Ok(at) => {
            if let Some(rates) = rates.devices.get_mut(at).filter(|rates| rates.rates.is_err()) {
                rates.rates = Ok(made());
            }
        }
        Err(at) => {
            let in_flight = device.counters.in_flight;
            rates.devices.insert(at, DeviceRates { dev: device.dev, name, in_flight, rates: Ok(made()) });
        }
    }
}

/// A row as if it were made from counters over this time.
fn of_row(row: &TableRow, seconds: f64) -> DiskRates {
    let flow = |direction: Direction| {
        let ios_per_sec = direction.ios_per_sec.unwrap_or(0.0);
        let merges_per_sec = direction.merges_per_sec.unwrap_or(0.0);
        let some = ios_per_sec > 0.0;
        let size = direction.size_bytes.or(direction.bytes_per_sec.map(|bytes| ratio(bytes, ios_per_sec)));
        Flow {
            ios: requests(ios_per_sec, seconds),
            ios_per_sec,
            merges_per_sec,
            bytes_per_sec: direction.bytes_per_sec.or(size.map(|size| size * ios_per_sec)).unwrap_or(0.0),
            await_usec: direction.await_usec.or(row.await_usec).filter(|_| some),
            size_bytes_avg: size.filter(|_| some),
            merged_pct: 100.0 * ratio(merges_per_sec, ios_per_sec + merges_per_sec),
        }
    };
    let told = |direction: Direction| direction.ios_per_sec.is_some();
    let flush = |direction: Direction| {
        let ios_per_sec = direction.ios_per_sec.unwrap_or(0.0);
        let await_usec = direction.await_usec.filter(|_| ios_per_sec > 0.0);
        FlushFlow { ios: requests(ios_per_sec, seconds), ios_per_sec, await_usec }
    };
    let ticks_ratio = row.requests_in_flight();
    DiskRates {
        seconds,
        read: flow(row.read),
        write: flow(row.write),
        discard: told(row.discard).then(|| flow(row.discard)),
        flush: told(row.flush).then(|| flush(row.flush)),
        queue_length_avg: row.queue_length_avg.unwrap_or(ticks_ratio),
        util_pct: row.util_pct.unwrap_or_else(|| 100.0 * ticks_ratio.min(1.0)),
        ticks_ratio,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_gives_the_numbers_that_counters_would() {
        let read = Direction {
            ios_per_sec: Some(100.0),
            bytes_per_sec: Some(409_600.0),
            merges_per_sec: Some(100.0),
            await_usec: Some(5000.0),
            size_bytes: None,
        };
        let row = TableRow { name: "sda".into(), read, util_pct: Some(40.0), ..TableRow::default() };
        let rates = of_row(&row, 2.0);
        assert_eq!(
            (rates.read.ios, rates.read.size_bytes_avg, rates.read.await_usec),
            (200, Some(4096.0), Some(5000.0))
        );
        assert!((rates.queue_length_avg - 0.5).abs() < 1e-9 && (rates.read.merged_pct - 50.0).abs() < 1e-9);
        assert_eq!((rates.write.await_usec, rates.discard, rates.flush), (None, None, None));
    }
}
