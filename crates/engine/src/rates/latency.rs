//! Where the time of I/O went between two readings of the trace.

use quell_units::{Gap, Known, count, whole};

use crate::snapshot::{BUCKETS, Stage, StageCounters, Trace, TraceCounts, TraceKey};

/// The upper edge of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketEdge(pub usize);

impl BucketEdge {
    /// 2^(k/4) microseconds, schema 2 of Prometheus' native histograms; infinite for the last bucket.
    #[must_use]
    pub fn usec(self) -> f64 {
        match u32::try_from(self.0) {
            Ok(at) if self.0 + 1 < BUCKETS => (f64::from(at) / 4.0).exp2(),
            _ => f64::INFINITY,
        }
    }
}

/// The times of one stage.
#[derive(Clone, Debug, PartialEq)]
pub struct StageTimes {
    /// Bios that spent time here; requests where the device alone was traced.
    pub ios: u64,
    /// The time of all of them.
    pub sum_usec: f64,
    /// The longest since tracing began.
    pub max_usec: f64,
    /// How many spent how much, by [`BucketEdge`]; fewer than `ios` by those that found no histogram.
    pub buckets: Vec<u64>,
}

/// What one cgroup, or several of one workload, did on one device by one operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// Whose it is; of several cgroups, one of them.
    pub key: TraceKey,
    /// How much it was.
    pub counts: TraceCounts,
    /// By [`Stage::ALL`].
    pub stages: [StageTimes; 7],
}

impl StageTimes {
    fn between(was: Option<&StageCounters>, now: &StageCounters) -> Known<Self> {
        let before = |at: usize| was.and_then(|was| was.buckets.get(at)).copied().unwrap_or(0);
        let buckets: Vec<u64> =
            now.buckets.iter().enumerate().map(|(at, &n)| u64::from(n.wrapping_sub(before(at)))).collect();
        let grown = |of: fn(&StageCounters) -> u64| super::growth(was.map_or(0, of), of(now));
        Ok(Self {
            ios: sum(&buckets).saturating_add(grown(|stage| stage.bios_loose)?),
            sum_usec: count(grown(|stage| stage.sum_nsec.get())?) / 1e3,
            max_usec: now.max_nsec.usec(),
            buckets,
        })
    }

    fn add(&mut self, other: &Self) {
        self.ios = self.ios.saturating_add(other.ios);
        self.sum_usec += other.sum_usec;
        self.max_usec = self.max_usec.max(other.max_usec);
        self.buckets.resize(self.buckets.len().max(other.buckets.len()), 0);
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// The time that this share (0 to 1) of `ios` spent here at most: the upper edge of its bucket, in microseconds,
    /// and no more than the longest. 0 where it is one of those that spent none; `None` where there were none.
    #[must_use]
    pub fn percentile_usec(&self, share: f64, ios: u64) -> Option<f64> {
        let in_buckets = sum(&self.buckets);
        let all = ios.max(in_buckets);
        if all == 0 {
            return None;
        }
        let rank = whole((share * count(all)).ceil()).max(1);
        let mut seen = all - in_buckets;
        if seen >= rank {
            return Some(0.0);
        }
        for (at, n) in self.buckets.iter().enumerate() {
            seen = seen.saturating_add(*n);
            if seen >= rank {
                return Some(BucketEdge(at).usec().min(self.max_usec));
            }
        }
        Some(self.max_usec)
    }
}

impl Latency {
    /// What grew between two readings of one trace, groups that did nothing left out.
    ///
    /// # Errors
    /// A counter that went back: the readings are of two traces.
    pub fn between(was: &Trace, now: &Trace) -> Result<Vec<Self>, Gap> {
        let mut out = Vec::new();
        for group in &now.groups {
            let before = was.groups.binary_search_by_key(&group.key, |group| group.key);
            let before = before.ok().and_then(|at| was.groups.get(at));
            let times = |stage: usize| {
                let now = group.stages.get(stage).ok_or(Gap::Malformed)?;
                StageTimes::between(before.and_then(|group| group.stages.get(stage)), now)
            };
            let latency = Self {
                key: group.key,
                counts: grown(before.map_or_else(TraceCounts::default, |group| group.counts), group.counts)?,
                stages: [times(0)?, times(1)?, times(2)?, times(3)?, times(4)?, times(5)?, times(6)?],
            };
            if latency.counts.requests > 0 || latency.ios() > 0 {
                out.push(latency);
            }
        }
        Ok(out)
    }

    /// Adds what another cgroup of the same workload did.
    pub fn add(&mut self, other: &Self) {
        let (mine, theirs) = (&mut self.counts, &other.counts);
        mine.requests = mine.requests.saturating_add(theirs.requests);
        mine.bios = mine.bios.saturating_add(theirs.bios);
        mine.errors = mine.errors.saturating_add(theirs.errors);
        mine.requeues = mine.requeues.saturating_add(theirs.requeues);
        self.stages.iter_mut().zip(&other.stages).for_each(|(mine, theirs)| mine.add(theirs));
    }

    /// The times of one stage.
    #[must_use]
    pub fn stage(&self, stage: Stage) -> &StageTimes {
        let [throttle, qos, tag, queue, device, flush, total] = &self.stages;
        match stage {
            Stage::Throttle => throttle,
            Stage::Qos => qos,
            Stage::Tag => tag,
            Stage::Queue => queue,
            Stage::Device => device,
            Stage::Flush => flush,
            Stage::Total => total,
        }
    }

    /// How many times there are in the stages, those of no length included: one a bio, or one a request where the device
    /// alone was traced, and for the disk's own flushes.
    #[must_use]
    pub fn ios(&self) -> u64 {
        let longest = self.stages.iter().map(|stage| stage.ios).max().unwrap_or(0);
        match self.stage(Stage::Total).ios {
            0 => longest,
            ios => ios,
        }
    }

    /// What is in the total and in no stage, in microseconds; `None` where there is no total.
    #[must_use]
    pub fn other_usec(&self) -> Option<f64> {
        let total = self.stage(Stage::Total);
        let stages: f64 =
            Stage::ALL.iter().filter(|stage| **stage != Stage::Total).map(|stage| self.stage(*stage).sum_usec).sum();
        (total.ios > 0).then(|| (total.sum_usec - stages).max(0.0))
    }
}

fn sum(buckets: &[u64]) -> u64 {
    buckets.iter().fold(0, |sum, n| sum.saturating_add(*n))
}

fn grown(was: TraceCounts, now: TraceCounts) -> Known<TraceCounts> {
    Ok(TraceCounts {
        requests: super::growth(was.requests, now.requests)?,
        bios: super::growth(was.bios, now.bios)?,
        errors: super::growth(was.errors, now.errors)?,
        requeues: super::growth(was.requeues, now.requeues)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Operation, TraceGroup};
    use quell_units::{CgroupId, DevNum, Nanos};

    fn stage(usec: u64, buckets: &[(usize, u32)]) -> StageCounters {
        let mut all = vec![0; BUCKETS];
        buckets.iter().for_each(|&(at, n)| all[at] = n);
        StageCounters { sum_nsec: Nanos(usec * 1000), max_nsec: Nanos(usec * 1000), bios_loose: 0, buckets: all }
    }

    fn trace(device: StageCounters, total: StageCounters) -> Trace {
        let none = StageCounters::default;
        let stages = [none(), none(), none(), none(), device, none(), total];
        let dev = DevNum { major: 253, minor: 0 };
        let key = TraceKey { dev, cgroup: Some(CgroupId(7)), operation: Operation::Read };
        let counts = TraceCounts { requests: 4, bios: 5, ..TraceCounts::default() };
        let group = TraceGroup { key, counts, stages };
        Trace { groups: vec![group], ..Trace::default() }
    }

    #[test]
    fn edges_are_quarters_of_an_octave() {
        for (at, usec) in [(0, 1.0), (4, 2.0), (8, 4.0)] {
            assert!((BucketEdge(at).usec() - usec).abs() < 1e-12);
        }
        assert!((BucketEdge(2).usec() - 2f64.sqrt()).abs() < 1e-12);
        assert!(BucketEdge(BUCKETS - 1).usec().is_infinite());
    }

    #[test]
    fn a_window_is_what_grew_and_what_did_nothing_is_left_out() {
        let was = trace(stage(100, &[(8, 2)]), stage(120, &[(9, 2)]));
        let now = trace(stage(300, &[(8, 5)]), stage(400, &[(9, 5)]));
        let all = Latency::between(&was, &now).unwrap();
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].ios(), all[0].stage(Stage::Device).sum_usec), (3, 200.0));
        assert_eq!(all[0].other_usec(), Some(80.0));
        assert_eq!(Latency::between(&now, &now), Ok(Vec::new()));
        assert_eq!(Latency::between(&now, &was).err(), Some(Gap::CounterReset));
    }

    #[test]
    fn a_bucket_that_wrapped_still_counts() {
        let was = trace(stage(1, &[]), stage(1, &[(9, u32::MAX)]));
        let now = trace(stage(1, &[]), stage(2, &[(9, 1)]));
        assert_eq!(Latency::between(&was, &now).unwrap()[0].ios(), 2);
    }

    #[test]
    fn bios_that_spent_no_time_in_a_stage_count_as_none() {
        let now = trace(stage(4, &[(8, 1)]), stage(400, &[(9, 10)]));
        let latency = &Latency::between(&Trace::default(), &now).unwrap()[0];
        let device = latency.stage(Stage::Device);
        assert_eq!(device.percentile_usec(0.5, latency.ios()), Some(0.0));
        assert_eq!(device.percentile_usec(0.99, latency.ios()), Some(4.0));
        assert_eq!(StageTimes::between(None, &StageCounters::default()).unwrap().percentile_usec(0.5, 0), None);
    }

    #[test]
    fn adding_cgroups_keeps_the_longest() {
        let now = trace(stage(4, &[(8, 1)]), stage(400, &[(9, 10)]));
        let mut sum = Latency::between(&Trace::default(), &now).unwrap().remove(0);
        sum.add(&sum.clone());
        assert_eq!((sum.ios(), sum.counts.bios, sum.stage(Stage::Total).max_usec), (20, 10, 400.0));
    }
}
