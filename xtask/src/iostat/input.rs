//! Pairs of moments that both programs are shown: written ones for what is known to go wrong, random ones for the rest.

/// A disk's counters in `diskstats`, after its numbers and its name.
pub(super) type Counters = [u64; 17];

/// One device at one moment.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    pub(super) name: String,
    pub(super) minor: u32,
    pub(super) counters: Counters,
    /// The number that the kernel gives each disk that appears, and to no other (`/sys/block/*/diskseq`).
    pub(super) diskseq: Option<u64>,
}

/// What the kernel's files say at one moment.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    /// Hundredths of a second, as `/proc/uptime` has them.
    pub(super) uptime_cs: u64,
    pub(super) disks: Vec<Disk>,
}

/// Two moments.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) name: String,
    /// Counters a line: 11 before 4.18, 15 with discards, 17 with flushes from 5.5.
    pub(super) counters: usize,
    pub(super) t0: Moment,
    pub(super) t1: Moment,
    /// The disks for which quell must say why there are no rates. iostat prints numbers that mean nothing.
    pub(super) gaps: Vec<&'static str>,
}

/// The major number of every disk here: a range that no driver owns.
pub(super) const MAJOR: u32 = 240;

impl Disk {
    /// `/sys/block/NAME/stat`.
    pub(super) fn stat(&self, counters: usize) -> String {
        let numbers: Vec<String> = self.counters.iter().take(counters).map(u64::to_string).collect();
        format!("{}\n", numbers.join(" "))
    }
}

impl Moment {
    /// `/proc/diskstats`.
    pub(super) fn diskstats(&self, counters: usize) -> String {
        let line = |disk: &Disk| format!("{MAJOR:4} {:7} {} {}", disk.minor, disk.name, disk.stat(counters));
        self.disks.iter().map(line).collect()
    }

    /// `/proc/uptime`.
    pub(super) fn uptime(&self) -> String {
        format!("{}.{:02} 0.00\n", self.uptime_cs / 100, self.uptime_cs % 100)
    }
}

impl Pair {
    /// Whether the ticks that a column is made of wrapped from one moment to the other.
    pub(super) fn wrapped(&self, device: &str, title: &str) -> bool {
        let at = match title {
            "%util" => 9,
            "aqu-sz" => 10,
            _ => return false,
        };
        let ticks = |moment: &Moment| {
            let disk = moment.disks.iter().find(|disk| disk.name == device)?;
            disk.counters.get(at).copied()
        };
        ticks(&self.t1) < ticks(&self.t0)
    }
}

/// Seeds of the random pairs. Three generations of kernels take turns.
const SEEDS: std::ops::Range<u64> = 0..18;

/// Disks in a random pair.
const DISKS: u32 = 30;

/// Every pair.
pub(super) fn pairs() -> Vec<Pair> {
    let written = [
        steady("20 columns, 1 s", 17, 100),
        steady("20 columns, 2 s", 17, 200),
        steady("20 columns, 60 s", 17, 6000),
        steady("18 columns, 2 s", 15, 200),
        steady("14 columns, 2 s", 11, 200),
        wrapped(),
        came_back(),
    ];
    written.into_iter().chain(SEEDS.map(random)).collect()
}

fn disk(name: &str, minor: u32, counters: Counters) -> Disk {
    Disk { name: name.into(), minor, counters, diskseq: None }
}

/// Disks that do what disks do: busy, idle, never used, one kind of request alone.
fn steady(name: &str, counters: usize, span_cs: u64) -> Pair {
    let t0 = vec![
        disk(
            "vda",
            0,
            [
                191_977, 28_180, 10_093_546, 73_748, 9_550, 133_772, 3_730_304, 26_840, 0, 25_556, 103_356, 5_445, 59,
                599_392, 2_300, 741, 467,
            ],
        ),
        disk("sda", 1, [14, 0, 100, 36, 712, 705, 43_992, 3_793, 0, 2_936, 5_243, 0, 0, 0, 0, 462, 1_414]),
        disk(
            "nvme0n1",
            2,
            [5_000_000_000, 1, 40_000_000_000, 900_000, 7, 0, 56, 1, 3, 800_000, 900_001, 0, 0, 0, 0, 0, 0],
        ),
        disk("dm-0", 3, [10, 0, 80, 5, 10, 0, 80, 5, 0, 10, 10, 10, 0, 80, 5, 0, 0]),
        disk("loop0", 4, [0; 17]),
        disk("loop1", 5, [0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 5, 9, 0, 72, 5, 0, 0]),
        disk("loop2", 6, [0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 5, 0, 0, 0, 0, 3, 5]),
    ];
    let grown: [Counters; 7] = [
        [1_203, 177, 45_672, 2_115, 333, 1_024, 98_304, 7_331, 2, 985, 9_475, 12, 1, 4_096, 5, 77, 305],
        [0, 0, 0, 0, 1, 0, 8, 3, 0, 4, 3, 0, 0, 0, 0, 1, 2],
        [1_234_567, 0, 9_876_536, 1_345_678, 0, 0, 0, 0, 0, 1_000, 1_345_678, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        [0; 17],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9, 3, 0, 24, 9, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9, 0, 0, 0, 0, 2, 9],
    ];
    let t1 = t0.iter().zip(grown).map(|(disk, grown)| grow(disk, grown)).collect();
    moments(name, counters, span_cs, t0, t1)
}

/// The ticks wrapped at 2^32, as they do after 49.7 days of accumulated time.
fn wrapped() -> Pair {
    const NEAR: u64 = (1 << 32) - 700;
    let t0 =
        vec![disk("vda", 0, [900, 0, 7_200, NEAR, 800, 0, 6_400, NEAR, 0, NEAR, NEAR, 70, 0, 560, NEAR, 60, NEAR])];
    let grown = [1_000, 0, 8_000, 2_500, 500, 10, 4_000, 1_750, 0, 1_900, 5_000, 10, 0, 80, 800, 20, 900];
    let t1 = t0.iter().map(|disk| grow(disk, grown)).collect();
    moments("32-bit ticks wrap", 17, 200, t0, t1)
}

/// Disks that were not the same ones any more, beside one that was.
fn came_back() -> Pair {
    let counters = [5_000, 10, 40_000, 900, 5_000, 10, 40_000, 900, 0, 1_500, 1_800, 0, 0, 0, 0, 50, 60];
    let less = [3, 0, 24, 2, 1, 0, 8, 1, 0, 4, 3, 0, 0, 0, 0, 0, 0];
    let grown = [100, 0, 800, 50, 100, 0, 800, 50, 0, 80, 100, 0, 0, 0, 0, 1, 1];
    let names = ["sda", "sdb", "sdc", "sdd"];
    let t0: Vec<Disk> =
        (0..).zip(names).map(|(minor, name)| Disk { diskseq: Some(7), ..disk(name, minor, counters) }).collect();
    let mut t1: Vec<Disk> = t0.iter().map(|disk| grow(disk, grown)).collect();
    if let [_, reset, replugged, renamed] = t1.as_mut_slice() {
        reset.counters = less;
        // Another disk under the same name, and it had time to count further than the first.
        replugged.diskseq = Some(8);
        renamed.name = "sde".into();
    }
    Pair { gaps: vec!["sdb", "sdc", "sde"], ..moments("a reset, a re-plug, a new name", 17, 200, t0, t1) }
}

fn moments(name: &str, counters: usize, span_cs: u64, t0: Vec<Disk>, t1: Vec<Disk>) -> Pair {
    const BOOTED_CS: u64 = 1_234_567;
    Pair {
        name: name.into(),
        counters,
        t0: Moment { uptime_cs: BOOTED_CS, disks: t0 },
        t1: Moment { uptime_cs: BOOTED_CS + span_cs, disks: t1 },
        gaps: Vec::new(),
    }
}

/// The counters that the kernel prints modulo 2^32, and the one that is no counter.
const TICKS: [usize; 6] = [3, 7, 9, 10, 14, 16];
const IN_FLIGHT: usize = 8;

fn grow(disk: &Disk, by: Counters) -> Disk {
    let mut counters = disk.counters;
    for (at, (counter, by)) in counters.iter_mut().zip(by).enumerate() {
        *counter = match at {
            IN_FLIGHT => by,
            _ if TICKS.contains(&at) => (*counter + by) % (1 << 32),
            _ => *counter + by,
        };
    }
    Disk { counters, ..disk.clone() }
}

/// Disks of every size. Whole seconds are as common as with users: there the second decimal is most often a tie, and the
/// order of the operations decides it.
fn random(seed: u64) -> Pair {
    let mut random = Random(seed);
    let counters = match seed % 3 {
        0 => 17,
        1 => 15,
        _ => 11,
    };
    let span_cs = match random.below(3) {
        0 => 100 * (1 + random.below(10)),
        1 => 1 + random.below(1_000),
        _ => 1 + random.below(1_000_000),
    };
    let t0: Vec<Disk> = (0..DISKS).map(|minor| disk(&format!("nvme{minor}n1"), minor, random.start())).collect();
    let t1 = t0.iter().map(|disk| grow(disk, random.growth(span_cs * 10))).collect();
    moments(&format!("random {seed}, {} columns, {span_cs} cs", counters + 3), counters, span_cs, t0, t1)
}

/// `SplitMix64`: the same pairs on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number of up to this many bits, each length as likely as the others.
    fn magnitude(&mut self, bits_max: u64) -> u64 {
        let bits = self.below(bits_max + 1);
        self.next() & ((1_u64 << bits) - 1)
    }

    fn start(&mut self) -> Counters {
        std::array::from_fn(|at| if TICKS.contains(&at) { self.magnitude(32) } else { self.magnitude(40) })
    }

    fn growth(&mut self, span_ms: u64) -> Counters {
        let [read, write, discard] = [self.flow(), self.flow(), self.flow()];
        let flushes = self.magnitude(16);
        let flush_ticks = if flushes == 0 { 0 } else { self.magnitude(24) };
        let busy = self.below(span_ms + 1);
        let [r_ios, r_mrg, r_sec, r_ms] = read;
        let [w_ios, w_mrg, w_sec, w_ms] = write;
        let [d_ios, d_mrg, d_sec, d_ms] = discard;
        let (in_flight, weighted) = (self.magnitude(10), self.magnitude(31));
        [
            r_ios,
            r_mrg,
            r_sec,
            r_ms,
            w_ios,
            w_mrg,
            w_sec,
            w_ms,
            in_flight,
            busy,
            weighted,
            d_ios,
            d_mrg,
            d_sec,
            d_ms,
            flushes,
            flush_ticks,
        ]
    }

    /// Requests, merges, sectors, ticks. Without a request there are no sectors and no ticks: the kernel adds to all at
    /// once.
    fn flow(&mut self) -> [u64; 4] {
        let ios = self.magnitude(24);
        if ios == 0 {
            return [0, self.magnitude(4), 0, 0];
        }
        [ios, self.magnitude(20), ios * (1 + self.magnitude(11)), self.magnitude(31)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_the_kernel_writes_it() {
        let disks = vec![disk("vda", 3, std::array::from_fn(|at| u64::try_from(at).unwrap()))];
        let moment = Moment { uptime_cs: 1_203, disks };
        assert_eq!(moment.diskstats(11), " 240       3 vda 0 1 2 3 4 5 6 7 8 9 10\n");
        assert_eq!(moment.diskstats(17).split_whitespace().count(), 20);
        assert_eq!(moment.uptime(), "12.03 0.00\n");
    }

    #[test]
    fn pairs_are_the_same_on_every_run_and_differ_from_each_other() {
        let text = |pair: &Pair| pair.t1.diskstats(17);
        assert_eq!(text(&random(3)), text(&random(3)));
        assert_ne!(text(&random(3)), text(&random(4)));
    }

    #[test]
    fn ticks_of_the_wrapped_pair_went_back() {
        let pair = wrapped();
        for at in TICKS {
            assert!(pair.t1.disks[0].counters[at] < pair.t0.disks[0].counters[at]);
        }
    }
}
